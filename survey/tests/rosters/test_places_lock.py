"""Rosters and the import of schools create places one at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from accounts.models import District, School, SchoolListing
from settings.tests.patience import patience
from survey.people.rosters.columns import RosterColumns
from survey.people.rosters.schools import SchoolMatches, create_new_schools
from survey.people.rosters.table import RosterTable
from survey.people.schools import importing
from survey.people.schools.importing import import_schools

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="needs two connections"
    ),
]

COLUMNS = ["code", "district", "name", "latitude", "longitude"]
ADAMS = ["0301", "0153", "Adams", "39.8", "-89.65"]


class NoTables:
    """Stands for the temporary tables, which the creation of schools only fills."""

    def execute(self, sql):
        pass

    def copy_rows(self, table, rows):
        pass


def test_a_roster_waits_for_an_import_that_creates_the_same_school(monkeypatch):
    """Without the lock, the import fails on the school that the roster has created."""
    district = District.objects.create(code="0153", name="Northfield")
    looked, created = threading.Event(), threading.Event()
    match = importing._match

    def slow_match(*args):
        result = match(*args)
        looked.set()
        # Never set in time if the roster waits.
        created.wait(0.5)
        return result

    monkeypatch.setattr(importing, "_match", slow_match)

    def create_by_import():
        columns = RosterColumns(COLUMNS, 1, {n: i for i, n in enumerate(COLUMNS)})
        table = RosterTable(columns, lambda _: iter([(2, ADAMS)]), "a test")
        try:
            return import_schools(table, create=True)
        finally:
            connection.close()

    def create_by_roster():
        matches = SchoolMatches(rows=[(0, district.pk, -1)])
        matches.new_schools[-1] = School(code="0301", name="Adams")
        matches.district_of_new[-1] = district.pk
        try:
            looked.wait(patience(10))
            create_new_schools(NoTables(), matches)
            created.set()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        imported = threads.submit(create_by_import)
        roster = threads.submit(create_by_roster)
        assert imported.result().imported
        roster.result()
    adams = School.objects.get(district=district)
    assert SchoolListing.objects.get(school=adams).latitude == 39.8
