"""Test the measurements and requirements of a failover drill."""

from __future__ import annotations

from typing import Any

import pytest

from provisioning.prove.failovers.__main__ import shortcomings_of
from provisioning.prove.failovers.drill import Load
from provisioning.prove.failovers.faults import FAULTS
from provisioning.prove.failovers.start import arguments

COUNTS = ["split", "never", "not_whole", "crossed", "corrupt", "unexpected"]
COUNTS += ["duplicated", "lost", "regressions", "lost_updates", "false_rejected"]
COUNTS += ["split_with_protection"]
CLEAN = dict.fromkeys(COUNTS, 0) | {"median_s": 12.0}


def missed(*options: str, **result: Any) -> list[str]:
    return shortcomings_of(CLEAN | result, arguments([*options]))


def acknowledged(*times: float) -> Load:
    load = Load.__new__(Load)
    load.acknowledged = list(times)
    return load


def test_saving_has_recovered_at_the_end_of_the_last_interruption():
    steady = [20.0 + tenth / 10 for tenth in range(50)]
    # Some saves passed for a moment in between.
    load = acknowledged(9.9, 10.1, 15.0, 15.1, *steady)
    assert load.recovered_after(10.0) == pytest.approx(10.0)


def test_a_fault_that_interrupts_nothing_costs_no_time():
    load = acknowledged(*(tenth / 10 for tenth in range(200)))
    assert load.recovered_after(10.0) == 0


def test_a_lost_save_breaks_promise_a2_alone():
    assert missed() == []
    assert missed(lost=1) == ["lost is 1"]
    assert missed("--promise=A1", lost=1) == []


def test_a_split_breaks_either_promise():
    for promise in ("A1", "A2"):
        assert missed(f"--promise={promise}", split=1) == ["split is 1"]


def test_a_host_that_does_not_come_back_breaks_it_too():
    assert missed(not_whole=1) == ["not_whole is 1"]


def test_half_of_the_failovers_take_fifteen_seconds_at_most():
    assert missed(median_s=15.0) == []
    assert missed(median_s=15.1) == ["saves succeed again after 15.1 s"]


def test_the_control_has_to_find_its_split_and_none_before():
    control = "--control=split"
    assert missed(control, split=3) == []
    assert missed(control) == ["the control did not find its split"]
    [twin] = missed(control, split=3, split_with_protection=1)
    assert "with every protection in place" in twin


def test_each_fault_can_be_asked_for_by_its_name():
    for fault in FAULTS:
        assert arguments([f"--only={fault.name}"]).only == [fault.name]
