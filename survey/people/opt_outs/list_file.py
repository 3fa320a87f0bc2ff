"""Read a list of the people who opt out or consent, and compare it with the roster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import District, School
from accounts.permissions import Places
from survey.models import Administration, Identity, ListedId, RecordJoin, Respondent
from survey.people.erasing.erased_ids import ERASED, ErasedIds
from survey.people.opt_outs.listed_ids import EarlyId
from survey.people.rosters.columns import ALIASES, REQUIRED, field_key
from survey.people.rosters.field_parsers import InvalidCell, parse_external_id
from survey.people.rosters.file_reader import TooLarge
from survey.people.rosters.list_headers import ListHeader
from survey.people.rosters.table import RosterTable

# As in rosters.
LIST_HEADER = ListHeader(
    {name: ALIASES[name] for name in ("external_id", "district", "school")},
    {REQUIRED["external_id"]: ("external_id",)},
    keys=(field_key,),
)
# The request waits for the file, and all people are changed at once.
MOST_ROWS = 5_000
LOOKED_UP_AT_ONCE = 500
LONGEST_SHOWN = 100

NO_DISTRICT = gettext_noop(
    "is not on the roster yet: add a column with the code of a district of"
    " yours, so that it can be kept"
)
NO_SCHOOL = gettext_noop(
    "is not on the roster of your schools yet: add a column with the code of"
    " your school, so that it can be kept"
)
NOT_ON_ROSTER = gettext_noop("is not on the roster of this survey round")
NO_ID = gettext_noop("has no ID")
SEVERAL = gettext_noop(
    "is an ID in several districts: add a column with the district code"
)
TOO_MANY = gettext_noop(
    "The file has more than 5,000 rows. Upload one school at a time, and only people"
    " who opt out."
)


TOO_MANY_CONSENTS = gettext_noop(
    "The file has more than 5,000 rows. Upload one school at a time."
)
REFUSED = gettext_noop(
    "has opted out: take the opt-out back on the page of the person, and then record"
    " the consent there"
)


@dataclass(frozen=True, slots=True)
class ListProblem:
    """A row that changes nobody."""

    row: int
    text: str
    reason: str


@dataclass
class ListReport:
    """What a list would do; nothing has changed yet."""

    description: str
    # Blank where people are looked up to erase them: no ID is kept for later.
    kind: str = ListedId.Kind.OPT_OUT
    rows: int = 0
    # Once each, in the order of the file.
    people: list[Respondent] = field(default_factory=list)
    # Not on the roster of these schools: kept for a later roster.
    early: list[EarlyId] = field(default_factory=list)
    already: int = 0
    repeated: int = 0
    problems: list[ListProblem] = field(default_factory=list)

    @property
    def started(self) -> list[Respondent]:
        return [person for person in self.people if person.started_at]


class ListRow(NamedTuple):
    number: int
    external_id: str
    # Codes, in lower case, or blank.
    district: str
    school: str


def check_list(
    table: RosterTable,
    administration: Administration,
    schools: QuerySet[School],
    places: Places,
    kind: str = ListedId.Kind.OPT_OUT,
) -> ListReport:
    """Find the people of a list in these schools, which are all of `places`.

    3 statements for each 500 rows, and 1 for IDs on no roster. Raises RosterUnreadable.
    """
    report = ListReport(table.description, kind)
    seen: set[int | EarlyId] = set()
    rows = _rows_with_id(table, report)
    finder = _Finder(administration, schools)
    early = _EarlyIds(schools, places, finder.districts, administration.role)
    while some := list(islice(rows, LOOKED_UP_AT_ONCE)):
        people = finder.find({row.external_id for row in some})
        for row in some:
            matches = [
                person
                for code, person in people.get(row.external_id, ())
                if row.district in ("", code.casefold())
            ]
            try:
                if len(matches) > 1:
                    raise InvalidCell(_(SEVERAL))
                if not (matches or kind):
                    raise InvalidCell(_(NOT_ON_ROSTER))
                _note_row(report, seen, matches[0] if matches else early.of_row(row))
            except InvalidCell as invalid:
                text = row.external_id[:LONGEST_SHOWN]
                report.problems.append(ListProblem(row.number, text, str(invalid)))
    report.problems.sort(key=lambda problem: problem.row)
    return report


def _note_row(
    report: ListReport, seen: set[int | EarlyId], entry: Respondent | EarlyId
) -> None:
    key = entry.pk if isinstance(entry, Respondent) else entry
    is_consent = report.kind == ListedId.Kind.CONSENT
    if key in seen:
        report.repeated += 1
    elif isinstance(entry, EarlyId):
        report.early.append(entry)
    elif not report.kind:
        report.people.append(entry)
    elif is_consent and entry.has_opted_out:
        raise InvalidCell(_(REFUSED))
    elif entry.has_opted_out or is_consent and not entry.awaits_consent:
        report.already += 1
    else:
        report.people.append(entry)
    seen.add(key)


def _rows_with_id(table: RosterTable, report: ListReport) -> Iterator[ListRow]:
    cell = table.columns.text
    for number, cells in table.rows:
        report.rows += 1
        if report.rows > MOST_ROWS:
            is_consent = report.kind == ListedId.Kind.CONSENT
            raise TooLarge(_(TOO_MANY_CONSENTS if is_consent else TOO_MANY))
        if external_id := cell(cells, "external_id"):
            codes = (cell(cells, name).casefold() for name in ("district", "school"))
            yield ListRow(number, external_id, *codes)
        else:
            report.problems.append(ListProblem(number, "", _(NO_ID)))


class _EarlyIds:
    """Say for which place an ID is kept that is not on the roster.

    Each district has IDs of its own. The list of a school is for its people only:
    else it could opt out those of other schools, whom its staff may not see.
    """

    def __init__(
        self,
        schools: QuerySet[School],
        places: Places,
        districts: dict[int, str],
        role: str,
    ) -> None:
        self.places, self.role = places, role
        self.districts = {code.casefold(): pk for pk, code in districts.items()}
        self._single_schools = schools.filter(pk__in=places.schools)

    @cached_property
    def erased(self) -> ErasedIds:
        return ErasedIds(self.role, list(self.districts.values()))

    @cached_property
    def schools(self) -> dict[tuple[int, str], int]:
        """The schools of users without the whole district, by code and name."""
        return {
            (school.district_id, text.casefold()): school.pk
            for school in self._single_schools
            for text in (school.name, school.code)
        }

    def of_row(self, row: ListRow) -> EarlyId:
        """Raises InvalidCell."""
        external_id = parse_external_id(row.external_id)
        district = self.districts.get(row.district)
        if not row.district and len(self.districts) == 1:
            [district] = self.districts.values()
        if district is None:
            raise InvalidCell(_(NO_DISTRICT))
        if self.erased.has(district, external_id):
            raise InvalidCell(_(ERASED))
        if self.places.has_district(district):
            return EarlyId(external_id, district, None)
        schools_there = {pk for (its, _), pk in self.schools.items() if its == district}
        school = self.schools.get((district, row.school))
        if not row.school and len(schools_there) == 1:
            [school] = schools_there
        if school is None:
            raise InvalidCell(_(NO_SCHOOL))
        return EarlyId(external_id, district, school)


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
        rows = {row.pk: row for row in people.select_related("identity", "school")}
        by_id: dict[str, list[tuple[str, Respondent]]] = {}
        for pk, district, external_id in pairs:
            if pk in rows:
                entry = (self.districts[district], rows[pk])
                by_id.setdefault(external_id, []).append(entry)
        return by_id
