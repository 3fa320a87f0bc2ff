"""Test what each control removes; `provisioning/faults --quick` runs all of them."""

from __future__ import annotations

import logging
from io import StringIO

from provisioning.prove.fault_injection.controls import (
    CONTROLS,
    ControlResult,
    collected_log,
)
from provisioning.prove.fault_injection.verdict import FORBIDDEN
from survey.taking import storage


def test_a_control_has_to_find_something():
    for control in CONTROLS:
        assert control.count in FORBIDDEN
        assert not control.is_as_required(0)
    assert CONTROLS[0].is_as_required(5)
    assert not CONTROLS[-1].is_as_required(2)


def test_each_guard_of_the_saving_statement_is_removed_by_a_control_of_its_own():
    guards = {
        control.name: [guard for guard in GUARDS if guard in control.on_conflict]
        for control in CONTROLS
    }
    revision, seen = GUARDS
    assert guards["revision guard off, reordered"] == [seen]
    assert guards["seen guard off, two tabs"] == [revision]
    assert guards["one row deleted"] == GUARDS


GUARDS = [
    "WHEN survey_response.revision < excluded.revision",
    "AND (survey_response.revision = ANY(%s::bigint[])",
]


def test_controls_keep_the_parameters_of_the_saving_statement():
    places = storage.ON_CONFLICT.count("%s")
    assert [control.on_conflict.count("%s") for control in CONTROLS] == (
        [places] * len(CONTROLS)
    )


def test_what_a_control_replaces_exists():
    for control in CONTROLS:
        assert control.statement[0] in storage.ON_CONFLICT
        assert all(hasattr(storage, name) for name in control.functions)


WARNING = '{"level": "WARNING", "event": "The database is down.", "stack": ["a.py:1"]}'


def test_log_lines_are_counted_by_event_and_quoted_only_for_a_failed_control():
    log = f"{WARNING}\n" * 16
    passed = ControlResult("killed", "lost", 5980, 0, 8.5, True, log)
    assert passed.text().splitlines()[1:] == [
        "    logged 16 times: The database is down."
    ]
    failed = ControlResult("killed", "lost", 0, 0, 8.5, False, log)
    assert failed.text().splitlines()[2:] == [WARNING] * 16


def test_a_log_is_collected_instead_of_printed(monkeypatch):
    printed = StringIO()
    monkeypatch.setattr(
        logging.getLogger(), "handlers", [logging.StreamHandler(printed)]
    )
    log = logging.getLogger("survey.test")
    with collected_log() as collected:
        log.warning("inside")
    log.warning("outside")
    assert (collected.getvalue(), printed.getvalue()) == ("inside\n", "outside\n")
