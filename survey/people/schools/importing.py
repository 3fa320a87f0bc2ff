"""Import the addresses and coordinates of schools into the public directory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TextIO

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.control_characters import has_control_character
from accounts.models import District, School, SchoolListing
from accounts.school_directory import refresh_words, search_text
from survey.database import advisory_locks
from survey.people.rosters.columns import RosterColumns
from survey.people.rosters.report import write_rejected_rows
from survey.people.rosters.row_parser import CellRejection
from survey.people.rosters.table import RosterTable

BATCH = 500
TEXTS = ("street", "city", "state", "postal_code")
PLACE = (*TEXTS, "latitude", "longitude")
# Written only if the file has these columns.
CONTACT = ("contact_name", "contact_phone", "contact_email")
MOST_LETTERS = {"name": 200, "street": 200, "city": 100, "state": 32, "postal_code": 16}
MOST_LETTERS |= {"contact_name": 100, "contact_phone": 40, "contact_email": 254}
# A district's digits begin the twelve of its schools in the federal directory.
DIGITS_OF_DISTRICT = 7
LONGEST_CODE = 64


@dataclass(frozen=True)
class SchoolRow:
    """A valid row of a file."""

    row: int
    code: str
    district: str
    name: str
    street: str
    city: str
    state: str
    postal_code: str
    contact_name: str
    contact_phone: str
    contact_email: str
    latitude: float
    longitude: float


@dataclass
class SchoolReport:
    """Describe what a file changes in the directory, or would change."""

    description: str
    rows: int = 0
    changed: int = 0
    unchanged: int = 0
    created: int = 0
    rejected: int = 0
    # False after a dry run, and where rows were rejected.
    imported: bool = False
    rejections: list[CellRejection] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        return {
            **asdict(self),
            "rejections": [cell._asdict() for cell in self.rejections[:1000]],
        }


def import_schools(
    table: RosterTable,
    *,
    create: bool = False,
    partial: bool = False,
    dry_run: bool = False,
    rejects: TextIO | None = None,
) -> SchoolReport:
    """Write the places of known schools; with `create`, add unknown ones.

    A school is known by its code, else by its name if only one has it. Without
    `partial` nothing is written if a row is rejected. All or nothing is written.
    """
    report = SchoolReport(table.description)
    rows = []
    for number, cells in table.rows:
        report.rows += 1
        if row := _parse(number, cells, table.columns, report.rejections):
            rows.append(row)
    written = [*PLACE, *(name for name in CONTACT if name in table.columns.fields)]
    with transaction.atomic():
        if create and not dry_run:
            # No roster creates districts or schools until this is committed.
            advisory_locks.lock(advisory_locks.PLACES)
        placed, new = _match(rows, table.columns, create, report)
        report.rejections.sort()
        report.rejected = len({cell.row for cell in report.rejections})
        report.created = len(new)
        known = SchoolListing.objects.in_bulk() if placed else {}
        changed = [
            (pk, row)
            for pk, row in placed
            if any(getattr(row, each) != getattr(known[pk], each) for each in written)
        ]
        report.changed = len(changed)
        report.unchanged = len(placed) - len(changed)
        report.imported = not dry_run and (partial or not report.rejected)
        if report.imported:
            changed += [(school.pk, row) for school, row in _create(new)]
            _write(changed, written)
    if report.imported:
        refresh_words()
    if rejects:
        write_rejected_rows(rejects, table.columns, table.rows, iter(report.rejections))
    return report


# Rows -------------------------------------------------------------------------


def _parse(
    number: int,
    cells: Sequence[str],
    columns: RosterColumns,
    rejections: list[CellRejection],
) -> SchoolRow | None:
    cell = partial(columns.text, cells)

    def reject(name: str, reason: str) -> None:
        text = cell(name)[:100]
        rejections.append(CellRejection(number, columns.heading(name), reason, text))

    before = len(rejections)
    texts = {name: cell(name) for name in ("name", *TEXTS, *CONTACT)}
    for name, text in texts.items():
        if len(text) > MOST_LETTERS[name]:
            reject(
                name,
                _("is longer than %(most_letters)s letters")
                % {"most_letters": MOST_LETTERS[name]},
            )
        elif has_control_character(text):
            reject(name, _("has an invisible control character"))
    email = texts["contact_email"]
    try:
        validate_email(email or "a@example.org")
    except ValidationError:
        reject("contact_email", _("is not an e-mail address"))
    code, district = cell("code"), cell("district")
    if len(code) > LONGEST_CODE or has_control_character(code + district):
        reject(
            "code",
            _(
                "is longer than %(longest_code)s letters, or has an invisible control"
                " character"
            )
            % {"longest_code": LONGEST_CODE},
        )
    elif not code and not texts["name"]:
        reject("code" if "code" in columns.fields else "name", _("names no school"))
    degrees = _parse_degrees(cell, reject)
    if len(rejections) > before:
        return None
    district = district or code[:DIGITS_OF_DISTRICT]
    return SchoolRow(
        row=number,
        code=code,
        district=district,
        latitude=degrees["latitude"],
        longitude=degrees["longitude"],
        **texts,
    )


def _parse_degrees(
    cell: Callable[[str], str], reject: Callable[[str, str], None]
) -> dict[str, float]:
    degrees: dict[str, float] = {}
    for name, limit in (("latitude", 90), ("longitude", 180)):
        try:
            degrees[name] = float(cell(name))
        except ValueError:
            reject(name, _("is not a number"))
            continue
        # Also not a number: NaN.
        if not (math.isfinite(degrees[name]) and abs(degrees[name]) <= limit):
            reject(
                name, _("is not between -%(limit)s and %(limit)s") % {"limit": limit}
            )
    if degrees == {"latitude": 0, "longitude": 0}:
        reject("latitude", _("and longitude are 0, which is in the sea"))
    return degrees


# Schools ----------------------------------------------------------------------

NewSchools = list[tuple[District | str, SchoolRow]]


def _match(
    rows: Sequence[SchoolRow],
    columns: RosterColumns,
    create: bool,
    report: SchoolReport,
) -> tuple[list[tuple[int, SchoolRow]], NewSchools]:
    """Return the schools of the rows, and the rows of schools to create."""
    by_code: dict[str, list[int]] = {}
    by_name: dict[str, list[int]] = {}
    known = School.objects.values_list("pk", "code", "district__code", "name")
    for pk, code, district_code, name in known.iterator(chunk_size=5000):
        # A roster may have the state's code, the federal one, or its last digits.
        for each in {code.casefold(), f"{district_code}{code}".casefold()}:
            by_code.setdefault(each, []).append(pk)
        by_name.setdefault(search_text(name), []).append(pk)
    named_in_file = Counter(search_text(row.name) for row in rows)
    placed: list[tuple[int, SchoolRow]] = []
    new: NewSchools = []
    row_of: dict[object, int] = {}
    for row in rows:
        matches = by_code.get(row.code.casefold(), []) if row.code else []
        column, text = "code", row.code
        if not matches and not (create and row.code):
            name = search_text(row.name)
            matches = by_name.get(name, []) if row.name else []
            if row.name:
                column, text = "name", row.name
            if matches and named_in_file[name] > 1:
                matches = [*matches, *matches]
        key: object = matches[0] if len(matches) == 1 else row.code.casefold()
        reason = ""
        if len(matches) > 1:
            reason = (
                _("is the code of several schools")
                if column == "code"
                else _("is the name of several schools")
            )
        elif not matches and not create:
            reason = _("is not a school here")
        elif not matches and not (row.code and row.name and row.district):
            reason = _(
                "is not a school here, and cannot be created without code and name"
            )
        elif key in row_of:
            reason = _("is the school of row %(row_of)s too") % {"row_of": row_of[key]}
        if reason:
            heading = columns.heading(column)
            report.rejections.append(CellRejection(row.row, heading, reason, text))
            continue
        row_of[key] = row.row
        if matches:
            placed.append((matches[0], row))
        else:
            new.append((row.district, row))
    return placed, new


def _create(new: NewSchools) -> list[tuple[School, SchoolRow]]:
    codes = sorted({str(district) for district, _ in new})
    District.objects.bulk_create(
        [District(code=code, name=code) for code in codes],
        ignore_conflicts=True,
        batch_size=BATCH,
    )
    districts: dict[str, District] = {}
    for start in range(0, len(codes), BATCH):
        districts |= District.objects.in_bulk(
            codes[start : start + BATCH], field_name="code"
        )
    schools = [
        School(district=districts[str(district)], code=row.code, name=row.name)
        for district, row in new
    ]
    School.objects.bulk_create(schools, batch_size=BATCH)
    return list(zip(schools, (row for _, row in new), strict=True))


def _write(places: Sequence[tuple[int, SchoolRow]], written: Sequence[str]) -> None:
    # In one order, so that two imports cannot wait for each other.
    ordered = sorted(places, key=lambda place: place[0])
    for start in range(0, len(ordered), BATCH):
        some = dict(ordered[start : start + BATCH])
        listings = SchoolListing.objects.filter(pk__in=some)
        batch = []
        for listing in listings:
            for name in written:
                setattr(listing, name, getattr(some[listing.pk], name))
            batch.append(listing)
        # An upsert that always updates: a CASE for each cell is ten times slower.
        SchoolListing.objects.bulk_create(
            batch,
            update_conflicts=True,
            unique_fields=["school"],
            update_fields=written,
        )
