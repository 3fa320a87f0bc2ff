from __future__ import annotations

import argparse
import json

import pytest

from provisioning.measure.jmeter import ladder
from provisioning.measure.jmeter.ladder import _factor, print_steps, rate_of


def options(**changes: object) -> argparse.Namespace:
    usual = {"survey_pages": 10, "pages": None, "think": None, "shape": "day"}
    return argparse.Namespace(**{**usual, "duration": 60.0, **changes})


def test_people_at_a_time_become_requests_a_second():
    # 27.7 requests of each person, in ten pages of 3 s and 3 s of waiting.
    assert rate_of(options(), 330) == pytest.approx(277)
    assert rate_of(options(think=5.7), 600) == pytest.approx(277)


def test_at_the_bell_all_are_busy_for_the_duration():
    assert rate_of(options(shape="bell"), 60) == pytest.approx(27.7)


def test_pages_of_a_given_file_count(tmp_path):
    path = tmp_path / "pages.properties"
    path.write_text("take.1.pages=10\n")
    assert rate_of(options(survey_pages=99, pages=path), 330) == pytest.approx(277)


@pytest.mark.parametrize("text", ["1", "1.01", "0", "x"])
def test_a_ladder_has_to_climb(text):
    with pytest.raises(argparse.ArgumentTypeError):
        _factor(text)


def test_steps_are_printed_with_the_first_missed_level(capsys):
    step = {"users": 1500, "rate_asked": 100.4, "rate_achieved": 99.5}
    held = {**step, "samplers": {"survey_change_page": {"p99_ms": 41.2}}, "held": True}
    missed = {**step, "samplers": {}, "held": False, "missed": ["all rate_percent"]}
    print_steps([held, missed])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["1,500", "100", "100", "41", "held"]
    assert lines[2].endswith("missed all rate_percent")


@pytest.mark.parametrize(("held", "status"), [(2, 0), (0, 1)])
def test_a_ladder_climbs_until_a_level_is_missed(
    tmp_path, monkeypatch, capsys, held, status
):
    rates = []

    def run(options, output):
        rates.append(options.rate)
        result = {"rate_asked": options.rate, "rate_achieved": options.rate}
        is_held = len(rates) <= held
        missed = [] if is_held else ["all rate_percent: 90, not 95"]
        return {**result, "samplers": {}, "held": is_held, "missed": missed}

    monkeypatch.setattr(ladder, "run", run)
    arguments = ["--users", "330", "--factor", "2", "--output", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["jmeter/ladder", *arguments])
    assert ladder.main() == status
    assert rates == pytest.approx([277, 554, 1108][: held + 1])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [step["held"] for step in result["steps"]] == [True] * held + [False]
    assert (result["last_good"] or {}).get("users") == (660 if held else None)
