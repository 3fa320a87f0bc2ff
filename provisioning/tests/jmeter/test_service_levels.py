from __future__ import annotations

import json

import pytest

from provisioning.commands import Refusal
from provisioning.jmeter.options import LEVELS
from provisioning.jmeter.service_levels import (
    SAMPLERS,
    Judgement,
    judge,
    read_levels,
    table_rows,
)


def statistics(**changes: dict) -> dict:
    of = {
        "sampleCount": 1000,
        "errorCount": 0,
        "errorPct": 0.0,
        "pct1ResTime": 3.0,
        "pct2ResTime": 20.0,
        "pct3ResTime": 60.0,
        "maxResTime": 90.0,
    }
    return {each: {**of, **changes.get(each, {})} for each in (*SAMPLERS, "Total")}


def missed(measured: dict, rate: float = 1, people: float = 1) -> list[str]:
    levels = read_levels(LEVELS, "day")
    verdict = judge(measured, rate=rate, people=people, levels=levels)
    return [f"{each.sampler} {each.measure}" for each in verdict if not each.held]


def test_good_figures_hold_all_levels():
    assert missed(statistics()) == []


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("column", "value", "measure"),
    [
        ("errorPct", 0.01, "error_percent"),
        ("pct2ResTime", 151, "p95_ms"),
        ("pct3ResTime", 251, "p99_ms"),
    ],
)
def test_a_missed_level_is_named(sampler, column, value, measure):
    measured = statistics(**{sampler: {column: value}})
    assert missed(measured) == [f"{sampler} {measure}"]


def test_too_low_a_rate_is_missed():
    assert missed(statistics(), rate=0.95) == []
    assert missed(statistics(), rate=0.949) == ["all rate_percent"]
    # A load generator that cannot bring the people must not look like a success.
    assert missed(statistics(), people=0.94) == ["all people_percent"]


def test_a_view_without_requests_is_missed():
    measured = statistics()
    del measured["survey_complete"]
    assert missed(measured) == ["survey_complete requests"]
    assert ["survey_complete", "none *"] in [
        row[:2] for row in table_rows(measured, [])
    ]


def test_the_table_marks_missed_levels():
    measured = statistics(survey_login={"errorPct": 2.5})
    verdict = judge(measured, rate=1, people=1, levels=read_levels(LEVELS, "day"))
    rows = {row[0]: " ".join(row) for row in table_rows(measured, verdict)}
    assert "2.5*" in rows["survey_login"]
    assert "*" not in rows["survey_display"]


@pytest.mark.parametrize("shape", ["day", "bell"])
def test_both_shapes_have_levels_for_every_view(shape):
    levels = read_levels(LEVELS, shape)
    assert levels["error_percent"] == 0
    assert levels["rate_percent"] >= 95
    assert all(
        {"p95_ms", "p99_ms"} <= each.keys() for each in levels["samplers"].values()
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda levels: levels.pop("day"),
        lambda levels: levels["day"].pop("error_percent"),
        lambda levels: levels["day"]["samplers"].pop("survey_login"),
        lambda levels: levels["day"]["samplers"]["survey_login"].update(p98=1),
    ],
)
def test_incomplete_levels_are_refused(spoil, tmp_path):
    levels = json.loads(LEVELS.read_text())
    spoil(levels)
    path = tmp_path / "slo.json"
    path.write_text(json.dumps(levels))
    with pytest.raises(Refusal, match=r"slo\.json"):
        read_levels(path, "day")


def test_a_missed_level_is_described_with_both_figures():
    slow = Judgement("survey_login", "p99_ms", 300.0, 250.0, False)
    assert str(slow) == "survey_login p99_ms: 300, not 250"
    absent = Judgement("survey_login", "requests", None, 1, False)
    assert str(absent) == "survey_login: no request at all"
