"""Match the schools that a roster names with known ones, and create new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import QuerySet
from django.db.models.functions import Lower

from accounts.models import District, School
from survey.rosters.batch_writes import write_batch
from survey.rosters.columns import RosterColumns
from survey.rosters.report import RejectionLog
from survey.rosters.row_parser import CellRejection, RosterPlace, RowParser
from survey.rosters.scope import RosterScope
from survey.rosters.staging import Staging


@dataclass
class SchoolMatches:
    """The school of each place; districts and schools to create are negative."""

    new_districts: dict[int, District] = field(default_factory=dict)
    new_schools: dict[int, School] = field(default_factory=dict)
    district_of_new: dict[int, int] = field(default_factory=dict)
    # Rows of the temporary table `roster_place`: place, district, school.
    rows: list[tuple[int, int, int]] = field(default_factory=list)


def match_schools(
    staging: Staging,
    parser: RowParser,
    columns: RosterColumns,
    scope: RosterScope,
    log: RejectionLog,
) -> SchoolMatches:
    """Find the school of each row, and reject rows outside of the scope."""
    used = [
        place for (place,) in staging.fetch_all("SELECT DISTINCT place FROM roster_row")
    ]
    # In one order everywhere, so that two imports cannot wait for each other.
    used.sort(key=lambda place: (parser.places[place].district, parser.places[place]))
    districts_of_rejected = [
        district
        for (district,) in staging.fetch_all(
            "SELECT DISTINCT district FROM roster_exempt"
        )
    ]
    places = [parser.places[place] for place in used]
    districts, schools = _known_schools(columns, places, districts_of_rejected)
    matches = SchoolMatches()
    rejected: dict[int, str] = {}
    for place in used:
        named = parser.places[place]
        district = districts.get(named.district, 0)
        school = schools.get((district, named.school), 0)
        reason = scope.rejection_reason(
            district if district > 0 else None, school if school > 0 else None
        )
        if reason:
            rejected[place] = reason
            continue
        if not district:
            district = districts[named.district] = -len(matches.new_districts) - 1
            matches.new_districts[district] = District(
                code=named.district, name=named.district_name
            )
        if not school:
            school = schools[district, named.school] = -len(matches.new_schools) - 1
            matches.new_schools[school] = School(
                code=named.school, name=named.school_name
            )
            matches.district_of_new[school] = district
        matches.rows.append((place, district, school))
    staging.copy_rows("roster_place", matches.rows)
    staging.copy_rows("roster_district", districts.items())
    if rejected:
        outside = "place NOT IN (SELECT place FROM roster_place)"
        heading = columns.heading("school")
        for batch in staging.fetch_in_batches(
            f"SELECT row, place FROM roster_row WHERE {outside}"  # noqa: S608
            " AND row > %s ORDER BY row LIMIT %s"
        ):
            for row, place in batch:
                log.add_row([CellRejection(row, heading, rejected[place], "")])
        staging.remove_rejected_rows(outside)
    return matches


def _known_schools(
    columns: RosterColumns, places: list[RosterPlace], more_districts: list[str]
) -> tuple[dict[str, int], dict[tuple[int, str], int]]:
    """Look up districts by code or name, and schools within these districts."""
    fields = columns.fields
    codes = [place.district for place in places] + more_districts
    districts = _find_by_code(District.objects.all(), codes)
    if fields["district"] == fields.get("district_name"):
        districts |= _find_by_name(
            District.objects.all(), set(codes) - districts.keys()
        )
    schools: dict[tuple[int, str], int] = {}
    for pk in set(districts.values()):
        in_district = School.objects.filter(district=pk)
        named = {
            place.school for place in places if districts.get(place.district) == pk
        }
        known = _find_by_code(in_district, named)
        if fields["school"] == fields.get("school_name"):
            known |= _find_by_name(in_district, named - known.keys())
        schools |= {(pk, code): school for code, school in known.items()}
    return districts, schools


def _find_by_code(rows: QuerySet, codes: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    wanted = sorted(set(codes))
    for start in range(0, len(wanted), 500):
        some = rows.annotate(lower=Lower("code"))
        some = some.filter(lower__in=wanted[start : start + 500])
        found |= dict(some.values_list("lower", "pk"))
    return found


def _find_by_name(rows: QuerySet, names: set[str]) -> dict[str, int]:
    """Find districts or schools whose name is unique among `rows`."""
    if not names:
        return {}
    named = [(name.casefold(), pk) for pk, name in rows.values_list("pk", "name")]
    times = Counter(name for name, _ in named)
    return {name: pk for name, pk in named if name in names and times[name] == 1}


def create_new_schools(staging: Staging, matches: SchoolMatches) -> None:
    """Create missing districts and schools; point the rows to them."""
    if not matches.new_schools:
        return
    districts, schools = write_batch(lambda _: _insert_schools(matches))
    matches.rows = [
        (place, districts.get(district, district), schools.get(school, school))
        for place, district, school in matches.rows
    ]
    staging.execute("DELETE FROM roster_place")
    staging.copy_rows("roster_place", matches.rows)


def _insert_schools(matches: SchoolMatches) -> tuple[dict[int, int], dict[int, int]]:
    """Return the primary keys for the negative placeholders."""
    # Another import may have created some of them a moment ago.
    District.objects.bulk_create(
        matches.new_districts.values(), ignore_conflicts=True, batch_size=500
    )
    codes = [district.code for district in matches.new_districts.values()]
    by_code = _find_by_code(District.objects.all(), codes)
    districts = {
        placeholder: by_code[district.code]
        for placeholder, district in matches.new_districts.items()
    }
    by_district: dict[int, dict[int, School]] = {}
    for placeholder, school in matches.new_schools.items():
        district = matches.district_of_new[placeholder]
        school.district_id = districts.get(district, district)
        by_district.setdefault(school.district_id, {})[placeholder] = school
    School.objects.bulk_create(
        matches.new_schools.values(), ignore_conflicts=True, batch_size=500
    )
    schools: dict[int, int] = {}
    for district, new in by_district.items():
        in_district = School.objects.filter(district=district)
        by_code = _find_by_code(in_district, [school.code for school in new.values()])
        for placeholder, school in new.items():
            schools[placeholder] = by_code[school.code]
    return districts, schools
