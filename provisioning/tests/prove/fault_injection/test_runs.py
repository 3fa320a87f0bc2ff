"""Runs add up, and the report card says what they prove together."""

from __future__ import annotations

import json

import pytest

from provisioning.commands import Refusal
from provisioning.prove.fault_injection.runs import add_run, print_card
from provisioning.prove.fault_injection.verdict import FORBIDDEN

MACHINE = {"cpu": "Xeon", "cores": 2, "revision": "abc1234"}


def run_of(saves, recovery, **changes):
    return {
        "seed": 5,
        "N": saves,
        "K": sum(map(len, recovery.values())),
        "planned": 10,
        "attempts": saves * 2,
        "seconds": 1800.0,
        "window_seconds": 5.0,
        "counts": {**dict.fromkeys(FORBIDDEN, 0), "recovered": 2},
        "recovery": {"median": 1.0, "max": 3.0, "each": recovery},
        "primary_lost": None,
        "controls": {},
        "not_as_required": [],
        **changes,
    }


@pytest.fixture
def card(tmp_path, capsys):
    """Add runs, and return the report card's status and last line."""

    def card(*runs):
        for run in runs:
            add_run(tmp_path / "faults.json", MACHINE, run)
        status = print_card(tmp_path / "faults.json")
        return status, json.loads(capsys.readouterr().out.splitlines()[-1])

    return card


def test_two_runs_add_up(card):
    status, figures = card(
        run_of(200_000, {"a": [1.0, 2.0], "b": [0.5]}),
        run_of(100_000, {"a": [6.0, None]}),
    )
    assert (status, figures["runs"], figures["N"], figures["K"]) == (0, 2, 300_000, 5)
    assert (figures["hours"], figures["recovered"]) == (1.0, 4)
    assert figures["loss_per_save_below"] == 1e-05
    assert figures["loss_per_fault_below"] == 0.6
    # Times, median, longest, never recovered, risk.
    assert figures["faults"] == {
        "a": [4, 2.0, 6.0, 1, 0.75],
        "b": [1, 0.5, 0.5, 0, None],
    }


def test_thirty_kills_without_a_loss_prove_less_than_a_tenth(card):
    _, figures = card(run_of(1000, {"postgresql-killed": [1.0] * 30}))
    assert figures["faults"]["postgresql-killed"][-1] == 0.1


@pytest.mark.parametrize("count", FORBIDDEN)
def test_one_wrong_answer_fails_the_card_for_good(card, count):
    wrong = {**dict.fromkeys(FORBIDDEN, 0), count: 1, "recovered": 0}
    status, figures = card(
        run_of(100_000, {"a": [1.0] * 30}, counts=wrong), run_of(100_000, {})
    )
    assert (status, figures[count]) == (1, 1)
    assert figures["faults"]["a"][-1] is None


def test_a_lost_answer_leaves_no_bound(card):
    wrong = {**dict.fromkeys(FORBIDDEN, 0), "lost": 1, "recovered": 0}
    _, figures = card(run_of(100_000, {"a": [1.0] * 30}, counts=wrong))
    assert figures["loss_per_save_below"] is figures["loss_per_fault_below"] is None


def test_a_lost_primary_is_a_row_of_its_own(card):
    loss = {"promise": "A1", "recovered": 12.0, "lost": 3, "acknowledged": 400}
    _, figures = card(*[run_of(1000, {}, primary_lost=loss)] * 4)
    assert figures["faults"] == {"primary lost (A1)": [4, 12.0, 12.0, 0, None]}
    assert figures["lost_with_primary_A1"] == "12 of 1600 saves in 4 losses"


def test_a_run_that_missed_its_times_is_counted(card):
    status, figures = card(run_of(1000, {}, not_as_required=["a: recovered in 12 s"]))
    assert (status, figures["runs_not_as_required"]) == (0, 1)


def test_without_runs_there_is_no_card(tmp_path):
    with pytest.raises(Refusal, match="No run was added yet"):
        print_card(tmp_path / "faults.json")
