"""Count what a roster changes in each school."""

from __future__ import annotations

from accounts.models import District, School
from survey.people.rosters.comparison import Comparison
from survey.people.rosters.report import SchoolCounts
from survey.people.rosters.schools import SchoolMatches
from survey.people.rosters.staging import (
    ADDED,
    BACK,
    CHANGED,
    MOVED,
    UNCHANGED,
    sql_keys,
)

_NAME_OF_CHANGE = {
    ADDED: "added",
    CHANGED: "changed",
    MOVED: "moved",
    BACK: "back",
    UNCHANGED: "unchanged",
}
# With more schools, counting the whole administration is faster.
_FEW_SCHOOLS = 300


def count_by_school(c: Comparison, matches: SchoolMatches) -> list[SchoolCounts]:
    """Count changes from the temporary tables, and the people before them."""
    numbers: list[tuple[int, str, int]] = []
    for school, change, number in c.staging.fetch_all(
        """
        SELECT p.school_id, m.change, count(*)
        FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        GROUP BY p.school_id, m.change
        """
    ):
        numbers.append((school, _NAME_OF_CHANGE[change], number))
    for school, number in c.staging.fetch_all(
        "SELECT old_school_id, count(*) FROM roster_match"
        " WHERE change = %s GROUP BY old_school_id",
        [MOVED],
    ):
        numbers.append((school, "moved_away", number))
    for school, number in c.staging.fetch_all(
        "SELECT school_id, count(*) FROM roster_missing GROUP BY school_id"
    ):
        numbers.append((school, "withdrawn", number))

    counts = _empty_counts({school for school, _, _ in numbers}, matches)
    for school, name, number in numbers:
        setattr(counts[school], name, getattr(counts[school], name) + number)

    # New schools, whose numbers are negative, have nobody yet.
    known = [pk for pk in counts if pk > 0]
    only = ""
    if len(known) <= _FEW_SCHOOLS:
        only = f"AND school_id IN ({sql_keys(known)})"
    for school, number in c.staging.fetch_all(
        f"""
        SELECT school_id, count(*) FROM survey_respondent
        WHERE administration_id = %s AND withdrawn_at IS NULL
          AND open_code_id IS NULL {only}
        GROUP BY school_id
        """,  # noqa: S608
        [c.administration.pk],
    ):
        if school in counts:
            counts[school].people = number
    return sorted(counts.values(), key=lambda count: (count.district_name, count.name))


def _empty_counts(schools: set[int], matches: SchoolMatches) -> dict[int, SchoolCounts]:
    """Return counts of zero with the names of known and of new schools."""
    counts: dict[int, SchoolCounts] = {}
    districts = dict(District.objects.values_list("pk", "name"))
    districts |= {pk: new.name for pk, new in matches.new_districts.items()}
    for pk in schools & matches.new_schools.keys():
        district = matches.district_of_new[pk]
        name = matches.new_schools[pk].name
        counts[pk] = SchoolCounts(pk, name, district, districts[district])
    known = sorted(pk for pk in schools if pk > 0)
    for start in range(0, len(known), 500):
        some = School.objects.filter(pk__in=known[start : start + 500])
        for pk, name, district in some.values_list("pk", "name", "district_id"):
            counts[pk] = SchoolCounts(pk, name, district, districts[district])
    return counts
