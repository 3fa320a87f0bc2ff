"""Open an uploaded OneRoster ZIP as a table, like any other roster file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import School
from survey.instrument.spreadsheets.xlsx_rows import SheetRow
from survey.models import Role
from survey.people.rosters.columns import columns_of
from survey.people.rosters.layouts import KnownPlace, RosterLayout
from survey.people.rosters.oneroster.other_districts import refuse_other_district
from survey.people.rosters.oneroster.store import OneRosterStore, RowOptions
from survey.people.rosters.table import RosterTable


@contextmanager
def open_archive(file: BinaryIO, known: KnownPlace) -> Iterator[RosterTable]:
    """Load the ZIP into a temporary private store, and yield its flat rows.

    Raises OneRosterInvalid.
    """
    # Only this user can enter the folder.
    with TemporaryDirectory(prefix="oneroster-") as folder:
        store = OneRosterStore(Path(folder) / "store.sqlite3")
        report = store.load_zip(file, by_hand=True)
        if known.district:
            refuse_other_district(store, known.district, known.district_name)
        options = RowOptions(
            all_ids=True,
            district=(known.district, known.district_name) if known.district else None,
            school_codes=_school_codes(known) if report.is_delta else frozenset(),
        )
        header = store.header(options)
        # The same rows in each reading, also around midnight.
        today = timezone.localdate()
        notes = [*report.notes]

        def read(layout: RosterLayout) -> Iterator[SheetRow]:
            del notes[len(report.notes) :]
            identity = layout.fields.get("external_id", "")
            # A layout of another file: its columns will be named as missing.
            if identity not in header:
                identity = "sourcedId"
            rows = store.rows(
                roles=Role.values,
                options=replace(options, identity=identity),
                today=today,
                notes=notes,
            )
            # The header is row 1.
            yield from enumerate(rows, 2)

        content = _("changes only") if report.is_delta else _("complete")
        yield RosterTable(
            columns_of(header),
            read,
            f"OneRoster {report.version}, {content}",
            is_partial=report.is_delta,
            notes=notes,
        )


def _school_codes(known: KnownPlace) -> frozenset[str]:
    """Return the codes of schools that a delta without orgs may mean."""
    schools = School.objects.all()
    if known.district:
        schools = schools.filter(district__code__iexact=known.district)
    codes = schools.values_list("code", flat=True)
    return frozenset(code.casefold() for code in codes.iterator())
