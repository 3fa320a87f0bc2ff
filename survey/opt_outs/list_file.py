"""Read a list of the people who opt out, and compare it with the roster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from django.db.models import QuerySet

from accounts.csv_injection import unescape_formula
from accounts.models import District, School
from survey.models import Administration, Identity, RecordJoin, Respondent
from survey.rosters.columns import ALIASES, RosterColumns, clean_header, squeeze
from survey.rosters.file_reader import RosterTable, TooLarge

# Field -> headers that mean it, as in rosters.
HEADERS = {name: frozenset(ALIASES[name]) for name in ("external_id", "district")}
REQUIRED = ("student or staff ID",)
# The request waits for the file, and all people are changed at once.
MOST_ROWS = 5_000
LOOKED_UP_AT_ONCE = 500
LONGEST_SHOWN = 100

UNKNOWN = "is not on the roster of your schools in this survey"
NO_ID = "has no ID"
SEVERAL = "is an ID in several districts: add a column with the district code"
TOO_MANY = (
    f"The file has more than {MOST_ROWS:,} rows. Upload one school at a time, and only"
    " people who opt out."
)


@dataclass(frozen=True)
class ListColumns(RosterColumns):
    @property
    def missing(self) -> list[str]:
        return [] if "external_id" in self.fields else list(REQUIRED)


@dataclass(frozen=True, slots=True)
class ListProblem:
    """A row that opts nobody out."""

    row: int
    text: str
    reason: str


@dataclass
class ListReport:
    """What a list would do; nothing has changed yet."""

    description: str
    rows: int = 0
    # Once each, in the order of the file.
    people: list[Respondent] = field(default_factory=list)
    already: int = 0
    repeated: int = 0
    problems: list[ListProblem] = field(default_factory=list)

    @property
    def started(self) -> list[Respondent]:
        return [one for one in self.people if one.started_at]


def list_header(rows: Iterable[tuple[int, Sequence[str]]]) -> ListColumns | None:
    """Return the first row with a column of IDs, or None."""
    for number, cells in rows:
        columns = ListColumns([clean_header(cell) for cell in cells], number)
        for index, text in enumerate(columns.header):
            for name, headers in HEADERS.items():
                if squeeze(text) in headers:
                    columns.fields.setdefault(name, index)
        if "external_id" in columns.fields:
            return columns
    return None


def check_list(
    table: RosterTable, administration: Administration, schools: QuerySet[School]
) -> ListReport:
    """Find the people of a list in these schools.

    3 statements for each 500 rows. Raises RosterUnreadable.
    """
    report = ListReport(table.description)
    found: set[int] = set()
    rows = _rows_with_id(table, report)
    finder = _Finder(administration, schools)
    while some := list(islice(rows, LOOKED_UP_AT_ONCE)):
        people = finder.find({external_id for _, external_id, _ in some})
        for number, external_id, district in some:
            matches = [
                one
                for code, one in people.get(external_id, ())
                if not district or code.casefold() == district.casefold()
            ]
            if len(matches) != 1:
                reason = SEVERAL if matches else UNKNOWN
                text = external_id[:LONGEST_SHOWN]
                report.problems.append(ListProblem(number, text, reason))
            elif matches[0].pk in found:
                report.repeated += 1
            else:
                found.add(matches[0].pk)
                if matches[0].opted_out_at:
                    report.already += 1
                else:
                    report.people.append(matches[0])
    report.problems.sort(key=lambda problem: problem.row)
    return report


def _rows_with_id(
    table: RosterTable, report: ListReport
) -> Iterator[tuple[int, str, str]]:
    """Yield row, ID and district code."""

    def cell(cells: Sequence[str], name: str) -> str:
        index = table.columns.fields.get(name)
        text = "" if index is None else unescape_formula(cells[index])
        return " ".join(text.split())

    for number, cells in table.rows:
        report.rows += 1
        if report.rows > MOST_ROWS:
            raise TooLarge(TOO_MANY)
        if external_id := cell(cells, "external_id"):
            yield number, external_id, cell(cells, "district")
        else:
            report.problems.append(ListProblem(number, "", NO_ID))


class _Finder:
    """Find people by ID, also by one of a record that was joined with theirs."""

    def __init__(
        self, administration: Administration, schools: QuerySet[School]
    ) -> None:
        self.schools = schools
        self.administration = administration
        # The indexes of IDs begin with administration and district.
        of_schools = District.objects.filter(schools__in=schools).distinct()
        self.districts = dict(of_schools.values_list("pk", "code"))

    def find(self, ids: set[str]) -> dict[str, list[tuple[str, Respondent]]]:
        """Return the code of the district and the person, by ID."""
        place = {
            "administration": self.administration,
            "district__in": list(self.districts),
        }
        identities = Identity.objects.filter(**place, external_id__in=ids)
        joins = RecordJoin.objects.filter(
            **place, external_id__in=ids, state=RecordJoin.State.JOINED
        )
        pairs: list[tuple[int, int, str]] = []
        pairs += identities.values_list("pk", "district", "external_id")
        pairs += joins.values_list("kept", "district", "external_id")
        people = Respondent.objects.on_roster().filter(
            pk__in={pk for pk, _, _ in pairs}, school__in=self.schools
        )
        rows = {one.pk: one for one in people.select_related("identity", "school")}
        found: dict[str, list[tuple[str, Respondent]]] = {}
        for pk, district, external_id in pairs:
            if pk in rows:
                entry = (self.districts[district], rows[pk])
                found.setdefault(external_id, []).append(entry)
        return found
