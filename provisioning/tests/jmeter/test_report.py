from __future__ import annotations

import pytest

from provisioning.commands import Refusal
from provisioning.jmeter.jmeter_process import JmeterRun
from provisioning.jmeter.report import (
    answered_between,
    arrivals,
    report,
    sampler_figures,
)
from provisioning.jmeter.shapes import day


def test_only_good_answers_in_the_counted_time_count():
    results = [
        "timeStamp,elapsed,label,success\n",
        "1000,10,survey_login,true\n",
        "1990,10,survey_login,true\n",
        "1500,10,survey_login,false\n",
        "900,50,survey_login,true\n",
    ]
    assert answered_between(results, 1000, 2000) == 1


def test_a_person_arrives_with_the_first_request():
    results = [
        "timeStamp,threadName\n",
        *("3000,people 1-2\n", "1000,people 1-1\n", "900,people 1-2\n"),
    ]
    assert arrivals(results) == [900, 1000]


def test_a_run_without_a_dashboard_names_jmeters_log(tmp_path):
    load = day(rate=10, duration=10, pages=10, think=1, ramp=1)
    levels = {"error_percent": 0.0, "rate_percent": 95.0, "samplers": {}}
    with pytest.raises(Refusal, match=r"jmeter\.log"):
        report(tmp_path, load, levels, JmeterRun(0.0, {}, 1.0), remote=False)


def test_the_json_holds_the_views_and_not_their_total():
    row = {"sampleCount": 3, "errorCount": 1, "maxResTime": 9.0}
    row |= {"pct1ResTime": 1.04, "pct2ResTime": 2.0, "pct3ResTime": 3.0}
    assert sampler_figures({"survey_login": row, "Total": row}) == {
        "survey_login": {
            "requests": 3,
            "errors": 1,
            "max_ms": 9.0,
            "p50_ms": 1.0,
            "p95_ms": 2.0,
            "p99_ms": 3.0,
        }
    }
