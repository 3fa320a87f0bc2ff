"""The schools that a roster names: known, new, or not to be named here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import QuerySet
from django.db.models.functions import Lower

from accounts.models import District, School
from survey.rosters.columns import Columns
from survey.rosters.people import PersonReader, Place, Rejection
from survey.rosters.report import Rejections
from survey.rosters.scope import Reach
from survey.rosters.staging import Staging, in_brief


@dataclass
class Placing:
    """What is still to be created has a negative number for the time being."""

    new_districts: dict[int, District] = field(default_factory=dict)
    new_schools: dict[int, School] = field(default_factory=dict)
    district_of_new: dict[int, int] = field(default_factory=dict)
    # As in the table of places: a place, its district, its school.
    rows: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Found:
    district: int
    school: int
    refusal: str = ""


def place_people(
    staging: Staging,
    reader: PersonReader,
    columns: Columns,
    reach: Reach,
    log: Rejections,
) -> Placing:
    """Say of each row in which school it is; refuse those out of reach."""
    used = [row for (row,) in staging.all("SELECT DISTINCT place FROM roster_row")]
    # In one order everywhere, so that two imports cannot wait for each other.
    used.sort(key=lambda index: (reader.places[index].district, reader.places[index]))
    placing = Placing()
    spared = [
        one for (one,) in staging.all("SELECT DISTINCT district FROM roster_spared")
    ]
    finder = _Finder(columns, [reader.places[index] for index in used], spared)
    found = {index: finder.find(reader.places[index], reach, placing) for index in used}
    placing.rows = [
        (index, one.district, one.school)
        for index, one in found.items()
        if not one.refusal
    ]
    staging.copy("roster_place", placing.rows)
    staging.copy("roster_district", finder.districts.items())
    _reject_out_of_reach(staging, columns, found, log)
    return placing


def _reject_out_of_reach(
    staging: Staging, columns: Columns, found: dict[int, _Found], log: Rejections
) -> None:
    refused = {index: one.refusal for index, one in found.items() if one.refusal}
    if not refused:
        return
    outside = "place NOT IN (SELECT place FROM roster_place)"
    heading = columns.heading("school")
    for batch in staging.in_batches(
        f"SELECT row, place FROM roster_row WHERE {outside}"  # noqa: S608
        " AND row > %s ORDER BY row LIMIT %s"
    ):
        for row, place in batch:
            log.add([Rejection(row, heading, refused[place], "")])
    staging.drop_rows(outside)


class _Finder:
    """Schools by the roster's own words for them: a code, or a name."""

    def __init__(
        self, columns: Columns, places: list[Place], more_districts: list[str]
    ) -> None:
        fields = columns.fields
        codes = [place.district for place in places] + more_districts
        self.districts = _by_code(District.objects.all(), codes)
        if fields["district"] == fields.get("district_name"):
            _add_names(self.districts, District.objects.all(), codes)
        self.schools: dict[tuple[int, str], int] = {}
        for pk in set(self.districts.values()):
            schools = School.objects.filter(district=pk)
            wanted = [
                place.school
                for place in places
                if self.districts.get(place.district) == pk
            ]
            known = _by_code(schools, wanted)
            if fields["school"] == fields.get("school_name"):
                _add_names(known, schools, wanted)
            self.schools |= {(pk, code): school for code, school in known.items()}

    def find(self, place: Place, reach: Reach, placing: Placing) -> _Found:
        district = self.districts.get(place.district, 0)
        school = self.schools.get((district, place.school), 0)
        refusal = reach.refusal(
            district if district > 0 else None, school if school > 0 else None
        )
        if refusal:
            return _Found(district, school, refusal)
        if not district:
            district = self.districts[place.district] = -len(placing.new_districts) - 1
            placing.new_districts[district] = District(
                code=place.district, name=place.district_name
            )
        if not school:
            school = -len(placing.new_schools) - 1
            self.schools[district, place.school] = school
            placing.new_schools[school] = School(
                code=place.school, name=place.school_name
            )
            placing.district_of_new[school] = district
        return _Found(district, school)


def _by_code(rows: QuerySet, codes: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    wanted = sorted(set(codes))
    for start in range(0, len(wanted), 500):
        some = rows.annotate(lower=Lower("code"))
        some = some.filter(lower__in=wanted[start : start + 500])
        found |= dict(some.values_list("lower", "pk"))
    return found


def _add_names(known: dict[str, int], rows: QuerySet, words: Iterable[str]) -> None:
    """A name stands for a code where only one is called so."""
    left = set(words) - known.keys()
    if not left:
        return
    named = [(name.casefold(), pk) for pk, name in rows.values_list("pk", "name")]
    times = Counter(name for name, _ in named)
    known |= {name: pk for name, pk in named if name in left and times[name] == 1}


def create_places(staging: Staging, placing: Placing) -> None:
    """Make the new districts and schools, and put the rows there."""
    if not placing.new_schools:
        return
    real = in_brief(lambda _: _created(placing))
    placing.rows = [
        (
            place,
            real.get(("district", district), district),
            real.get(("school", school), school),
        )
        for place, district, school in placing.rows
    ]
    staging.run("DELETE FROM roster_place")
    staging.copy("roster_place", placing.rows)


def _created(placing: Placing) -> dict[tuple[str, int], int]:
    # Another import may have created one a moment ago.
    real: dict[tuple[str, int], int] = {}
    District.objects.bulk_create(
        placing.new_districts.values(), ignore_conflicts=True, batch_size=500
    )
    codes = [one.code for one in placing.new_districts.values()]
    known = _by_code(District.objects.all(), codes)
    for number, district in placing.new_districts.items():
        real["district", number] = known[district.code]
    of_district: dict[int, dict[int, School]] = {}
    for number, school in placing.new_schools.items():
        district_id = placing.district_of_new[number]
        school.district_id = real.get(("district", district_id), district_id)
        of_district.setdefault(school.district_id, {})[number] = school
    School.objects.bulk_create(
        placing.new_schools.values(), ignore_conflicts=True, batch_size=500
    )
    for district_id, schools in of_district.items():
        of_one = School.objects.filter(district=district_id)
        known = _by_code(of_one, [school.code for school in schools.values()])
        for number, school in schools.items():
            real["school", number] = known[school.code]
    return real
