"""Match the schools that a roster names with known ones, and create new ones."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import District, DistrictAlias, School, SchoolAlias
from survey.database import advisory_locks
from survey.people.rosters.batch_writes import write_batch
from survey.people.rosters.comparison import Comparison
from survey.people.rosters.field_parsers import LONGEST_CODE
from survey.people.rosters.layouts import NEW_SCHOOL, PlaceTexts
from survey.people.rosters.place_names import (
    MOST_COMPARED,
    FoundBy,
    PlaceDirectory,
    is_near_name,
    is_same_name,
)
from survey.people.rosters.place_resolution import (
    PlaceResolution,
    WrittenPlace,
    resolve_places,
)
from survey.people.rosters.report import PlaceNotes
from survey.people.rosters.row_parser import CellRejection, RosterPlace
from survey.people.rosters.scope import NOT_YOURS, RosterRefused, RosterScope
from survey.people.rosters.staging import Staging
from survey.work.jobs import JobRefused

PLACES_CHANGED = gettext_noop(
    "Districts or schools of this file were created or renamed meanwhile, so"
    " that it is no longer clear which are meant. Nothing was applied. Start"
    " it again."
)
CLOSED = gettext_noop("is closed here. Reopen it in the settings, or correct the row")
CHOSEN_SCHOOL_GONE = gettext_noop(
    "stands for a school that does not exist any more. Undo that choice, and choose"
    " another school"
)
NO_PLACES = PlaceDirectory(())


class PlacesChanged(RosterRefused, JobRefused):
    """Places were created meanwhile that make one of the file unclear."""


@dataclass
class SchoolMatches:
    """The school of each place; districts and schools to create are negative."""

    new_districts: dict[int, District] = field(default_factory=dict)
    new_schools: dict[int, School] = field(default_factory=dict)
    district_of_new: dict[int, int] = field(default_factory=dict)
    # The known schools of each district that the file names.
    known_schools: Mapping[int, PlaceDirectory] = field(default_factory=dict)
    # Rows of the temporary table `roster_place`: place, district, school.
    rows: list[tuple[int, int, int]] = field(default_factory=list)
    # What the report says about places that the uploader may see.
    notes: PlaceNotes = field(default_factory=PlaceNotes)
    # Rows of each place, and why those of some are rejected.
    people: Mapping[int, int] = field(default_factory=dict)
    rejected: dict[int, str] = field(default_factory=dict)

    def near_names(self, new_school: int) -> list[str]:
        """Return the known schools of a district that a new one may be instead."""
        known = self.known_schools.get(self.district_of_new[new_school], NO_PLACES)
        return known.near_names(self.new_schools[new_school].name)


def match_schools(c: Comparison) -> SchoolMatches:
    """Find the school of each row, and reject rows outside of the scope."""
    rows = c.staging.fetch_all(
        "SELECT place, district, count(*) FROM roster_row GROUP BY place, district"
    )
    texts: dict[int, str] = {place: district for place, district, _ in rows}
    matcher = PlaceMatcher(
        c.scope,
        {place: c.parser.places[place] for place in texts},
        c.table.layout.schools,
    )
    rejected: dict[int, tuple[str, str]] = {}
    for place in sorted(texts, key=lambda place: c.parser.places[place]):
        if problem := matcher.match(place):
            rejected[place] = problem
    matches = matcher.matches
    matches.people = {place: people for place, _, people in rows}
    matches.rejected = {place: reason for place, (_, reason) in rejected.items()}
    c.staging.copy_rows("roster_place", matches.rows)
    # By these, people whose row was rejected are found and not withdrawn.
    districts = {
        (text, district)
        for place, text in texts.items()
        for district in matcher.possible_districts(place)
    }
    for (text,) in c.staging.fetch_all("SELECT DISTINCT district FROM roster_exempt"):
        keys: Iterable[int] = matcher.known_districts.find(
            *WrittenPlace.of(text, "")
        ).keys
        if not keys and text not in texts.values():
            # Their name is not stored, so they could be of any district.
            keys = matcher.known_districts.code_of
        districts |= {(text, district) for district in keys}
    c.staging.copy_rows("roster_district", sorted(districts))
    if rejected:
        outside = "place NOT IN (SELECT place FROM roster_place)"
        for batch in c.staging.fetch_in_batches(
            f"SELECT row, place FROM roster_row WHERE {outside}"  # noqa: S608
            " AND row > %s ORDER BY row LIMIT %s"
        ):
            for row, place in batch:
                level, reason = rejected[place]
                c.log.add_row(
                    [CellRejection(row, c.columns.heading(level), reason, "")]
                )
        c.staging.remove_rejected_rows(outside)
    return matches


class PlaceMatcher:
    """Match the places of one file with districts and schools."""

    def __init__(
        self,
        scope: RosterScope,
        places: Mapping[int, RosterPlace],
        chosen: Mapping[PlaceTexts, int],
    ) -> None:
        """Take the places by their number in the file. 1 + n / 500 statements.

        `chosen` are the schools that a person has chosen for some places.
        """
        self.scope = scope
        self.matches = SchoolMatches()
        # None for a school that was deleted since.
        self.chosen = _chosen_schools(
            {
                number: chosen[place]
                for number, place in places.items()
                if chosen.get(place, NEW_SCHOOL) != NEW_SCHOOL
            }
        )
        places = {
            number: place
            for number, place in places.items()
            if number not in self.chosen
        }
        self.district_of = {
            number: WrittenPlace.of(place.district, place.district_name)
            for number, place in places.items()
        }
        self.school_of = {
            number: WrittenPlace.of(place.school, place.school_name)
            for number, place in places.items()
        }
        self.known_districts = directory_of_districts()
        self.districts = resolve_places(self.known_districts, self.district_of.values())
        self.known_schools = schools_of_districts(
            {match.keys[0] for match in self.districts.known.values()}
        )
        self.matches.known_schools = self.known_schools
        in_district: dict[int, list[WrittenPlace]] = defaultdict(list)
        for number, written in self.district_of.items():
            in_district[self.district_key(written)].append(self.school_of[number])
        self.schools = {
            key: resolve_places(self.known_schools.get(key, NO_PLACES), written)
            for key, written in in_district.items()
        }
        self._new_schools: dict[tuple[int, int], int] = {}

    def district_key(self, written: WrittenPlace) -> int:
        """Return the primary key, a negative number if it is new, or 0 if unclear."""
        if place := self.districts.known.get(written):
            return place.keys[0]
        number = self.districts.new.get(written)
        return 0 if number is None else -number - 1

    def possible_districts(self, place: int) -> tuple[int, ...]:
        if place in self.chosen:
            school = self.chosen[place]
            # The people of a deleted school could be of any district.
            return (school.district_id,) if school else (*self.known_districts.code_of,)
        written = self.district_of[place]
        if written in self.districts.unclear:
            return self.districts.unclear[written][1]
        return (self.district_key(written),)

    def match(self, place: int) -> tuple[str, str] | None:
        """Match one place, or return a field and why its rows are rejected."""
        if place in self.chosen:
            return self.match_chosen(place)
        written, school = self.district_of[place], self.school_of[place]
        if written in self.districts.unclear:
            reason, candidates = self.districts.unclear[written]
            places = self.scope.places
            is_visible = places.state or places.districts & {*candidates}
            return ("district", _(reason)) if is_visible else ("school", _(NOT_YOURS))
        district = self.district_key(written)
        schools = self.schools[district]
        match = schools.known.get(school)
        reason = self.scope.rejection_reason(
            district if district > 0 else None, match.keys[0] if match else None
        )
        if school in schools.unclear:
            unclear, candidates = schools.unclear[school]
            if not reason or self.scope.places.schools & {*candidates}:
                reason = unclear
        if reason == NOT_YOURS:
            return "school", _(reason) + self.own_district_meant(written.name)
        if reason:
            return "school", _(reason)
        self.note_spelling(self.districts, self.known_districts, written)
        known = self.known_schools.get(district, NO_PLACES)
        if district in self.known_districts.closed:
            return "district", _(CLOSED)
        if match and match.keys[0] in known.closed:
            return "school", _(CLOSED)
        self.note_spelling(schools, known, school, in_district=district)
        pk = match.keys[0] if match else self.add_new_school(district, school)
        self.matches.rows.append((place, district, pk))
        return None

    def match_chosen(self, place: int) -> tuple[str, str] | None:
        """Match a place with the school that a person has chosen for it."""
        school = self.chosen[place]
        if school is None:
            return "school", _(CHOSEN_SCHOOL_GONE)
        if reason := self.scope.rejection_reason(school.district_id, school.pk):
            return "school", _(reason)
        if school.closed_at or school.district.closed_at:
            return "school", _(CLOSED)
        self.matches.rows.append((place, school.district_id, school.pk))
        return None

    def own_district_meant(self, name: str) -> str:
        """Return a question, or nothing if no name of an own district is near.

        It says nothing about other districts: not even whether they exist.
        """
        district_ids = self.scope.places.districts
        names = {self.known_districts.name_of.get(pk, "") for pk in district_ids}
        near = [known for known in sorted(names) if is_near_name(name, known)]
        return (
            _(". Did you mean the district %(near)s?") % {"near": near[0]}
            if near
            else ""
        )

    def note_spelling(
        self,
        resolution: PlaceResolution,
        directory: PlaceDirectory,
        written: WrittenPlace,
        *,
        in_district: int | None = None,
    ) -> None:
        """Report a code or name that is not ours."""
        place = {"place": "district"}
        if in_district is not None:
            name = self.known_districts.name_of.get(in_district, "")
            place = {"place": "school", "district": name}
        notes = self.matches.notes
        names = resolution.names_of_code.get(written.code, [])
        if len(names) > 1:
            notes.add("conflicts", **place, code=written.code, names=names)
        match = resolution.known.get(written)
        if match is None or not (written.code and written.name):
            return
        [pk] = match.keys
        code, name = directory.code_of[pk], directory.name_of[pk]
        if match.by == FoundBy.NAME:
            notes.add(
                "taken_by_name", **place, code=code, name=name, theirs=written.code
            )
        elif not any(is_same_name(known, name) for known in names):
            notes.add("renamed", **place, code=code, name=name, theirs=written.name)

    def add_new_school(self, district: int, written: WrittenPlace) -> int:
        """Return the negative number of a school to create."""
        matches = self.matches
        if district < 0 and district not in matches.new_districts:
            place = self.districts.new_places[-district - 1]
            new = matches.new_districts[district] = District(
                code=place.code or code_for_name(place.name),
                name=place.name or place.code,
            )
            entry: dict[str, object] = {"code": new.code, "name": new.name}
            # Each name is compared with all known ones.
            if len(matches.new_districts) <= MOST_COMPARED:
                # Only who sees all districts may create one.
                entry["near"] = self.known_districts.near_names(new.name)
            matches.notes.add("unknown_districts", **entry)
        number = self.schools[district].new[written]
        pk = self._new_schools.get((district, number))
        if pk is None:
            pk = self._new_schools[district, number] = -len(self._new_schools) - 1
            place = self.schools[district].new_places[number]
            matches.new_schools[pk] = School(
                code=place.code or code_for_name(place.name),
                name=place.name or place.code,
                added_at=timezone.now(),
            )
            matches.district_of_new[pk] = district
        return pk


def _chosen_schools(chosen: Mapping[int, int]) -> dict[int, School | None]:
    """Read the chosen schools of places. No statement if there are none."""
    schools: dict[int, School] = {}
    wanted = sorted(set(chosen.values()))
    for start in range(0, len(wanted), 500):
        some = School.objects.select_related("district")
        schools |= some.in_bulk(wanted[start : start + 500])
    return {number: schools.get(pk) for number, pk in chosen.items()}


def directory_of_districts() -> PlaceDirectory:
    """Read all districts, and the codes of merged ones. 2 statements."""
    rows = list(District.objects.values_list("pk", "code", "name", "closed_at"))
    directory = PlaceDirectory((pk, code, name) for pk, code, name, _ in rows)
    directory.closed = {pk for pk, _, _, closed_at in rows if closed_at is not None}
    for alias in DistrictAlias.objects.values_list("district", "code", "name"):
        directory.add_alias(*alias)
    return directory


def schools_of_districts(districts: Collection[int]) -> dict[int, PlaceDirectory]:
    """Read all schools of some districts, and the codes of merged ones.

    2 statements for each 500.
    """
    rows: dict[int, list[tuple[int, str, str]]] = {pk: [] for pk in districts}
    closed: dict[int, set[int]] = defaultdict(set)
    wanted = sorted(districts)
    for start in range(0, len(wanted), 500):
        schools = School.objects.filter(district__in=wanted[start : start + 500])
        cells = schools.values_list("district_id", "pk", "code", "name", "closed_at")
        for district, pk, code, name, closed_at in cells:
            rows[district].append((pk, code, name))
            if closed_at is not None:
                closed[district].add(pk)
    directories = {pk: PlaceDirectory(some) for pk, some in rows.items()}
    for pk, some_closed in closed.items():
        directories[pk].closed = some_closed
    for start in range(0, len(wanted), 500):
        aliases = SchoolAlias.objects.filter(
            school__district__in=wanted[start : start + 500]
        )
        columns = "school__district", "school", "code", "name"
        for district, *alias in aliases.values_list(*columns):
            directories[district].add_alias(*alias)
    return directories


def code_for_name(name: str) -> str:
    """Return the code of a new place for which the file has no code."""
    code = name.casefold()
    if len(code) <= LONGEST_CODE:
        return code
    # Names that begin alike need different codes.
    digest = hashlib.sha256(code.encode()).hexdigest()[:8]
    return f"{code[: LONGEST_CODE - 9]}-{digest}"


# Called with the primary keys of new districts and new schools.
PlacesCallback = Callable[[Collection[int], Collection[int]], None]


def create_new_schools(
    staging: Staging, matches: SchoolMatches, on_created: PlacesCallback | None = None
) -> None:
    """Create missing districts and schools; point the rows to them.

    `on_created` is called in the same transaction.
    """
    if not matches.new_schools:
        return

    def insert(
        writer: Staging,
    ) -> tuple[tuple[dict[int, int], dict[int, int]], tuple[()]]:
        districts, schools = _insert_places(matches)
        if on_created:
            on_created(districts.values(), schools.values())
        return (districts, schools), ()

    districts, schools = write_batch(insert)
    matches.rows = [
        (place, districts.get(district, district), schools.get(school, school))
        for place, district, school in matches.rows
    ]
    staging.execute("DELETE FROM roster_place")
    staging.copy_rows("roster_place", matches.rows)


def _insert_places(matches: SchoolMatches) -> tuple[dict[int, int], dict[int, int]]:
    """Return the primary keys for the negative placeholders.

    Another import may have created some a moment ago, perhaps by another spelling.
    So they are looked up once more, one import at a time.
    """
    advisory_locks.lock(advisory_locks.PLACES)
    known = directory_of_districts()
    districts = _find_again(known, matches.new_districts)
    missing = [
        new for key, new in matches.new_districts.items() if key not in districts
    ]
    # Not every place is created by a roster, so a conflict is still possible.
    District.objects.bulk_create(missing, ignore_conflicts=True, batch_size=500)
    known = directory_of_districts()
    districts |= _find_again(known, matches.new_districts)
    in_district: dict[int, dict[int, School]] = defaultdict(dict)
    for key, school in matches.new_schools.items():
        district = matches.district_of_new[key]
        school.district_id = districts.get(district, district)
        in_district[school.district_id][key] = school
    schools: dict[int, int] = {}
    for pk, directory in schools_of_districts(in_district).items():
        schools |= _find_again(directory, in_district[pk])
    School.objects.bulk_create(
        [new for key, new in matches.new_schools.items() if key not in schools],
        ignore_conflicts=True,
        batch_size=500,
    )
    for pk, directory in schools_of_districts(in_district).items():
        schools |= _find_again(directory, in_district[pk])
    return districts, schools


def _find_again(
    directory: PlaceDirectory, new: Mapping[int, District | School]
) -> dict[int, int]:
    key_of: dict[int, int] = {}
    for key, place in new.items():
        match = directory.find(*WrittenPlace.of(place.code, place.name))
        if match.by == FoundBy.UNCLEAR:
            raise PlacesChanged(_(PLACES_CHANGED))
        if match.keys:
            [key_of[key]] = match.keys
    return key_of
