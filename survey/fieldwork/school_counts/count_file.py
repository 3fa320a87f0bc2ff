"""Read a file of numbers of families or students, one row for each school."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import School
from survey.models import SchoolCount
from survey.models.school_count import LARGEST_COUNT
from survey.people.rosters.columns import RosterColumns, squeeze
from survey.people.rosters.file_reader import TooLarge
from survey.people.rosters.list_headers import ListHeader
from survey.people.rosters.row_parser import CellRejection
from survey.people.rosters.table import RosterTable

Unit = SchoolCount.Unit
# Headers of a column of numbers that also say what they count.
UNITS_OF_HEADERS = {
    Unit.STUDENTS: "students numberofstudents studentcount enrollment enrolment",
    Unit.FAMILIES: "families numberoffamilies familycount households",
}
# Field -> headers that mean it, without punctuation and case.
_HEADERS = {
    "school": (
        "schoolcode school schoolid schoolnumber ncessch ncesid buildingcode"
        " campuscode sitecode code"
    ),
    "district": "districtcode district districtid leaid leacode",
    "count": " ".join(["count number total", *UNITS_OF_HEADERS.values()]),
    "unit": "unit countof of numberof",
}
COUNT_HEADER = ListHeader(
    {name: headers.split() for name, headers in _HEADERS.items()},
    {gettext_noop("school code"): ("school",), gettext_noop("count"): ("count",)},
)
UNIT_OF_HEADER = {
    header: unit
    for unit, headers in UNITS_OF_HEADERS.items()
    for header in headers.split()
}
# A state has some 4,000 schools, and the request waits for the file.
MOST_ROWS = 20_000
# "1,250" as spreadsheets write it, or 1250.0.
COUNT = re.compile(r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.0+)?")
# More digits are no count, and need not be converted.
LONGEST_COUNT = 12
LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class CountRow:
    """A valid row, and the number that it would replace."""

    row: int
    school: School
    unit: str
    count: int
    before: SchoolCount | None

    @property
    def is_change(self) -> bool:
        before = self.before
        return before is None or (before.unit, before.count) != (self.unit, self.count)


@dataclass
class CountReport:
    """Describe what a file would change."""

    description: str
    rows: int = 0
    # Rows without a number, which change nothing.
    blank: int = 0
    valid: list[CountRow] = field(default_factory=list)
    rejections: list[CellRejection] = field(default_factory=list)

    @property
    def rejected(self) -> int:
        return len({cell.row for cell in self.rejections})

    @property
    def changes(self) -> list[CountRow]:
        return [row for row in self.valid if row.is_change]


def check_counts(
    table: RosterTable,
    schools: QuerySet[School],
    current: dict[int, SchoolCount],
    *,
    unit: str,
) -> CountReport:
    """Compare a file with the numbers so far, and change nothing.

    Only `schools` can be named. `unit` holds where the file names none. Raises
    RosterUnreadable.
    """
    report = CountReport(table.description)
    reader = _RowReader(table.columns, schools, unit)
    named: dict[int, list[CountRow]] = {}
    for number, cells in table.rows:
        report.rows += 1
        if report.rows > MOST_ROWS:
            raise TooLarge(
                _(
                    "The file has more than %(most_rows)s rows. Upload one"
                    " district at a time."
                )
                % {"most_rows": f"{MOST_ROWS:,}"}
            )
        if not table.columns.text(cells, "count"):
            report.blank += 1
        elif parsed := reader.read(number, cells, report.rejections):
            school, of, count = parsed
            row = CountRow(number, school, of, count, current.get(school.pk))
            named.setdefault(school.pk, []).append(row)
    for rows in named.values():
        if len(rows) == 1:
            report.valid += rows
            continue
        numbers = ", ".join(str(row.row) for row in rows[:10])
        report.rejections += [
            CellRejection(
                row.row,
                table.columns.heading("school"),
                _("is in several rows: %(numbers)s") % {"numbers": numbers},
                row.school.code,
            )
            for row in rows
        ]
    report.valid.sort(key=lambda row: row.row)
    report.rejections.sort()
    return report


class _RowReader:
    """Read the school and the number of a row, or the reasons to reject it."""

    def __init__(
        self, columns: RosterColumns, schools: QuerySet[School], unit: str
    ) -> None:
        self.columns = columns
        heading = squeeze(columns.heading("count"))
        self.unit = UNIT_OF_HEADER.get(heading, unit)
        self.schools: dict[str, list[School]] = {}
        for school in schools.select_related("district").iterator(chunk_size=2000):
            self.schools.setdefault(school.code.casefold(), []).append(school)

    def read(
        self, number: int, cells: Sequence[str], rejections: list[CellRejection]
    ) -> tuple[School, str, int] | None:
        cell = partial(self.columns.text, cells)

        def reject(name: str, reason: str) -> None:
            heading = self.columns.heading(name)
            text = cell(name)[:LONGEST_SHOWN]
            rejections.append(CellRejection(number, heading, reason, text))

        before = len(rejections)
        match = self._find(cell("school"), cell("district"))
        if isinstance(match, str):
            reject("school", match)
        count, reason = _parse_count(cell("count"))
        if reason:
            reject("count", reason)
        unit = cell("unit").casefold() or self.unit
        if unit not in Unit.values:
            reject("unit", _("is neither “students” nor “families”"))
        if len(rejections) > before or isinstance(match, str):
            return None
        return match, unit, count

    def _find(self, code: str, district: str) -> School | str:
        """Return the school, or why there is none."""
        if not code:
            return _("is empty")
        schools = [
            school
            for school in self.schools.get(code.casefold(), ())
            if not district or school.district.code.casefold() == district.casefold()
        ]
        if len(schools) > 1:
            return _(
                "is the code of several schools: add a column with the district code"
            )
        # The same words for an unknown school and one of another district.
        return schools[0] if schools else _("is not one of your schools in this survey")


def _parse_count(text: str) -> tuple[int, str]:
    """Return the number, and the reason if it is none."""
    if not COUNT.fullmatch(text):
        return 0, _("is not a whole number")
    digits = text.partition(".")[0].replace(",", "")
    count = int(digits) if len(digits) <= LONGEST_COUNT else 0
    if not 1 <= count <= LARGEST_COUNT:
        return 0, _("is not between 1 and %(largest_count)s") % {
            "largest_count": f"{LARGEST_COUNT:,}"
        }
    return count, ""


def template_rows(schools: Iterator[School]) -> list[list[str]]:
    """Return a file to fill in: all schools, without numbers."""
    header = ["District code", "School code", "School name", "Count", "Unit"]
    rows = [
        [school.district.code, school.code, school.name, "", Unit.STUDENTS.value]
        for school in schools
    ]
    return [header, *rows]
