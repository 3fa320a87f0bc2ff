from __future__ import annotations

import argparse
import json

import pytest

from provisioning.commands import Refusal
from provisioning.measure.jmeter.jmeter_process import JmeterRun
from provisioning.measure.jmeter.options import LEVELS
from provisioning.measure.jmeter.report import (
    Samples,
    missed_levels,
    read_levels,
    read_results,
    read_surveys,
    report,
    table_rows,
)
from provisioning.measure.jmeter.shapes import SHAPES, load_of
from provisioning.measure.load.respondent import VIEWS


def test_only_good_answers_count_and_when_they_came():
    results = [
        "timeStamp,elapsed,label,threadName,success,URL,take\n",
        "3000,10,survey_login,people 1-2,true,http://x/,1\n",
        "1500,10,survey_login,people 1-1,false,http://x/,1\n",
        "900,50,survey_login,people 1-2,true,http://x/,1\n",
        # A message platform is no person.
        "500,1,message_person,platform 1-1,true,http://x/,\n",
    ]
    came, answered, _ = read_results(results, {})
    assert came == [0.9, 1.5]
    assert answered == pytest.approx([3.01, 0.95])


def test_pages_are_read_from_addresses_and_surveys_from_takes(tmp_path):
    properties = tmp_path / "run.properties"
    properties.write_text("take.1.survey=students\ntake.2.survey=parents\n")
    lines = ["timeStamp,elapsed,label,threadName,success,URL,take\n"]
    for path, take, elapsed in (
        ("take/pages/12/", 1, 10),
        ("take/pages/12/", 2, 20),
        (f"content/{'d' * 64}/r1/en/3/", 1, 30),
        # No pages of a survey.
        (f"content/{'d' * 64}/r1/en/0/", 1, 90),
        ("schools/7/", 1, 91),
    ):
        line = f"0,{elapsed},a view,people 1-1,true,http://127.0.0.1/{path},{take}\n"
        lines += [line] * 20
    _, _, samples = read_results(lines, read_surveys(properties))
    assert samples.slowest()["page"]["name"] == "page 3 of students"
    assert samples.slowest()["survey"]["requests"] == 80


def test_a_run_without_a_dashboard_names_jmeters_log(tmp_path):
    options = argparse.Namespace(shape="day", rate=10, duration=10, think=1, ramp=1)
    levels = {"error_percent": 0.0, "rate_percent": 95.0, "samplers": {}}
    with pytest.raises(Refusal, match=r"jmeter\.log"):
        run = JmeterRun(0.0, {})
        report(tmp_path, load_of(options, 10), levels, run, remote=False)


def test_the_json_holds_the_measures_of_each_view_and_of_all():
    samples = Samples()
    for seconds, failed in ((0.001, False), (0.002, True), (0.009, False)):
        samples.add(seconds, view="survey_login", failed=failed)
    samples.add(0.001, view="survey_display")
    statistics = samples.statistics()
    assert statistics["survey_login"] == {
        "requests": 3,
        "errors": 1,
        "error_percent": pytest.approx(33.3, abs=0.1),
        "max_ms": 9.0,
        "p50_ms": 2.0,
        "p95_ms": 9.0,
        "p99_ms": 9.0,
    }
    assert (statistics["Total"]["requests"], statistics["Total"]["errors"]) == (4, 1)


# The service levels


def statistics(**changes: dict) -> dict:
    of = {
        "requests": 1000,
        "errors": 0,
        "error_percent": 0.0,
        "p50_ms": 3.0,
        "p95_ms": 20.0,
        "p99_ms": 60.0,
        "max_ms": 90.0,
    }
    return {each: {**of, **changes.get(each, {})} for each in (*VIEWS, "Total")}


def missed(measured: dict, rate: float = 1, people: float = 1) -> list[str]:
    levels = read_levels(LEVELS, "day")
    missed_by_level = missed_levels(measured, rate=rate, people=people, levels=levels)
    return list(missed_by_level.values())


def test_good_figures_hold_all_levels():
    assert missed(statistics()) == []


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("column", "value", "measure"),
    [
        ("error_percent", 0.01, "error_percent: 0.01, not 0"),
        ("p95_ms", 151, "p95_ms: 151, not 1"),
        ("p99_ms", 251, "p99_ms: 251, not 250"),
    ],
)
def test_a_missed_level_is_named_with_both_figures(view, column, value, measure):
    (sentence,) = missed(statistics(**{view: {column: value}}))
    assert sentence.startswith(f"{view} {measure}")


def test_too_low_a_rate_is_missed():
    assert missed(statistics(), rate=0.95) == []
    assert missed(statistics(), rate=0.949) == ["all rate_percent: 94.9, not 95"]
    # A load generator that cannot bring the people must not look like a success.
    assert missed(statistics(), people=0.94) == ["all people_percent: 94, not 95"]


def test_a_view_without_requests_is_missed():
    measured = statistics()
    del measured["survey_complete"]
    assert missed(measured) == ["survey_complete: no request at all"]
    assert ["survey_complete", "none *"] in [
        row[:2] for row in table_rows(measured, [], VIEWS)
    ]


def test_the_table_marks_missed_levels():
    measured = statistics(survey_login={"error_percent": 2.5})
    levels = read_levels(LEVELS, "day")
    missed_by_level = missed_levels(measured, rate=1, people=1, levels=levels)
    rows = {
        row[0]: " ".join(row) for row in table_rows(measured, missed_by_level, VIEWS)
    }
    assert "2.5*" in rows["survey_login"]
    assert "*" not in rows["survey_display"]


@pytest.mark.parametrize("shape", [*SHAPES, "replay"])
def test_all_shapes_have_levels_for_every_view(shape):
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
