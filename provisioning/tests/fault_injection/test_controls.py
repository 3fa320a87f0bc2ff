"""Without a protection the judge objects; with it, the same run is clean."""

from __future__ import annotations

import pytest

from provisioning.fault_injection.controls import CONTROLS, GUARD, run_controls, twin_of
from survey.taking.storage import ON_CONFLICT, POSTGRESQL


@pytest.mark.slow
def test_every_control_objects_and_every_twin_is_clean():
    found = list(run_controls(20261121, CONTROLS))
    assert [result.name for result in found] == [control.name for control in CONTROLS]
    for result in found:
        assert result.found > 0, result
        assert result.twin == 0, result
        assert result.as_required, result
    # One row is deleted, and exactly one save is missing.
    assert found[-1].found == 1


def test_twins_keep_all_protections_and_controls_have_to_find_something():
    for control in CONTROLS:
        assert not control.fails(0)
        twin = twin_of(control)
        assert twin.on_conflict == ON_CONFLICT
        assert (twin.settings, twin.without) == ({}, "")


def test_controls_change_the_statement_of_the_product():
    assert GUARD in ON_CONFLICT
    assert "{on_conflict}" in POSTGRESQL
    removed = [control.on_conflict for control in CONTROLS]
    assert ON_CONFLICT.replace(GUARD, "") in removed
    assert ON_CONFLICT.replace(GUARD, "") != ON_CONFLICT
