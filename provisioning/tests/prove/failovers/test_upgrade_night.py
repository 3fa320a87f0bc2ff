"""Test the requirements of `provisioning/run drill_fleet_upgrade`."""

from __future__ import annotations

import pytest

from provisioning.prove.failovers.drill import judge_with_control
from provisioning.prove.failovers.upgrade_night import shortcomings_of
from provisioning.prove.fault_injection.saver import PAGES
from provisioning.prove.fault_injection.saves import ANSWERED, AnswerSource, fingerprint
from provisioning.prove.fault_injection.verdict import FORBIDDEN, StoredAnswer
from provisioning.tests.prove.fault_injection.test_verdict import MAYA, SEED, attempt

UPGRADED = {
    **dict.fromkeys((*FORBIDDEN, "not_whole", "unlike_the_primary"), 0),
    "differences": [],
    "versions": [17, 17, 17],
    "acknowledged": 900,
    "lost_in_control": 1,
}


def test_a_fleet_that_was_upgraded_and_lost_nothing_misses_nothing():
    assert shortcomings_of(UPGRADED, 17) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 1) for name in FORBIDDEN),
        ("not_whole", 1),
        ("unlike_the_primary", 1),
        ("differences", ["role reports is missing"]),
        ("versions", [17, 15, 17]),
        ("acknowledged", 0),
        ("lost_in_control", 0),
    ],
)
def test_each_figure_of_the_night_is_a_requirement(name, value):
    assert len(shortcomings_of({**UPGRADED, name: value}, 17)) == 1


def test_an_answer_that_is_taken_away_is_noticed():
    source = AnswerSource(SEED, PAGES)
    sent = fingerprint(source.answers(MAYA, 1, 7))
    stored = [
        StoredAnswer(MAYA, item, ANSWERED, value, 7)
        for item, value in source.stored(MAYA, 1, 7).items()
    ]
    verdict = judge_with_control(SEED, [attempt(MAYA, 1, 7, answers=sent)], stored)
    assert (verdict["acknowledged"], verdict["lost"]) == (1, 0)
    assert verdict["lost_in_control"] == 1
