"""Without a protection the checker objects; with it, the same run is clean."""

from __future__ import annotations

import pytest

from provisioning.fault_injection.controls import GUARD, controls, run_controls, twin_of
from survey.taking.storage import ON_CONFLICT, POSTGRESQL

pytestmark = pytest.mark.once


def test_every_control_objects_and_every_twin_is_clean():
    chosen = controls()
    found = list(run_controls(20261121, chosen))
    assert [one.name for one in found] == [one.name for one in chosen]
    for one in found:
        assert one.found > 0, one
        assert one.twin == 0, one
        assert one.as_required, one
        assert one.seconds < 30, one
    # A row is deleted, and exactly one save is missed.
    assert found[-1].found == 1


def test_a_control_that_finds_nothing_is_not_as_required():
    """Its own twin: with the protections in place nothing is there to find."""
    unbroken = [twin_of(one) for one in controls()]
    for one, control in zip(unbroken, controls(), strict=True):
        assert not control.fails(0)
        assert one.on_conflict == ON_CONFLICT
        assert (one.settings, one.without) == ({}, "")


def test_the_controls_cut_the_products_own_statement():
    assert GUARD in ON_CONFLICT
    assert "{on_conflict}" in POSTGRESQL
