"""The pieces of `provisioning/run peers` that measure nothing."""

from __future__ import annotations

import ast
import copy
import re

import pytest

from provisioning.measure.peers import compare
from provisioning.measure.peers.otree_project import models, write_project

OBSERVED = {
    "answers_at_reply": 5,
    "answers_after_repeating": 5,
    "transactions_per_save": 1,
    "statements_per_save": 1.0,
}


def turn(saves: float, **changes: object) -> dict[str, object]:
    figures = {
        "saves_per_s": saves,
        "cpu_us_per_save": 1e6 / saves,
        "visit_saves_per_s": saves / 2,
        "cpu_us_per_visit_save": 2e6 / saves,
        "p99_ms": 9.0,
        "wal_bytes_per_save": 1000,
        "failed": 0,
    }
    return {**figures, **changes}


@pytest.fixture
def result():
    turns = {
        compare.HERE: [turn(1000), turn(900), turn(100)],
        "otree": [turn(30), turn(25), turn(90)],
    }
    figures = compare.figures_of(turns, {name: dict(OBSERVED) for name in turns})
    return copy.deepcopy({**figures, "missing": {}})


def test_medians_of_turns_are_compared(result):
    here, otree = (result["programs"][name] for name in (compare.HERE, "otree"))
    assert (here["saves_per_s"], otree["saves_per_s"]) == (900, 30)
    assert otree["cpu_us_per_save"] == pytest.approx(1e6 / 30)
    ratios = result["ratios"]["otree"]
    assert ratios["saves_per_s"] == ratios["visit_saves_per_s"] == 30
    assert ratios["cpu_us_per_save"] == pytest.approx(1 / 30, abs=0.001)
    assert set(result["ratios"]) == {"otree"}
    assert compare.shortcomings_of(result) == []


def test_a_program_that_has_not_stored_what_it_confirms_is_no_comparison(result):
    result["programs"]["otree"]["observed"]["answers_at_reply"] = 0
    result["programs"][compare.HERE]["failed"] = 3
    result["missing"] = {"otree": "no network", "django": "no port"}
    assert compare.shortcomings_of(result) == [
        # oTree may be missing: it is another's package.
        "django is missing: no port",
        "3 requests to groundswell failed",
        "otree has stored 0 of 5 when it replies",
    ]


def test_a_flush_takes_time_and_leaves_nothing(tmp_path):
    assert compare.flush_ms(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []


def test_an_otree_project_has_a_field_for_each_question(tmp_path):
    write_project(tmp_path, pages=3, items=2)
    ast.parse((tmp_path / "settings.py").read_text())
    text = (tmp_path / "survey" / "__init__.py").read_text()
    assert text == models(3, 2)
    ast.parse(text)
    assert re.findall(r"^    (q\d_\d) = models", text, re.MULTILINE) == [
        f"q{page}_{item}" for page in (1, 2, 3) for item in (1, 2)
    ]
    assert 'form_fields = ["q3_1", "q3_2"]' in text
    assert "page_sequence = [Page1, Page2, Page3]" in text


# What was kept


def test_a_result_of_a_busy_machine_or_of_few_turns_is_not_kept():
    machine = {"cores": 2, "load_average_before": 1.5}
    programs = {compare.HERE: {"turns": [turn(1000)] * 3}}
    good = {"machine": machine, "programs": programs}
    assert compare.unfit_to_keep(good) == []
    busy = {**good, "machine": {**machine, "load_average_before": 27.0}}
    assert "a load of 27.0" in compare.unfit_to_keep(busy)[0]
    short = {**good, "programs": {compare.HERE: {"turns": [turn(1000)]}}}
    assert compare.unfit_to_keep(short) == ["1 turns are fewer than 3"]
