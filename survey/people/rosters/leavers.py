"""Withdraw people whom a roster itself marks as having left.

Unlike people who are missing from the file, they are withdrawn whatever the file
is complete for. They are only withdrawn from the school of their row: a student who
left one school of the district can be on the roster of another.
"""

from __future__ import annotations

from collections import Counter

from survey.models import Administration
from survey.people.rosters.report import RosterReport
from survey.people.rosters.row_parser import RowParser
from survey.people.rosters.schools import PlaceMatcher
from survey.people.rosters.scope import RosterScope
from survey.people.rosters.staging import Staging

# In `roster_place`, for places that only rows of people who have left name.
NO_SCHOOL = 0


def remove_repeated_leavers(staging: Staging, report: RosterReport) -> None:
    """Keep one row of each person who has left, and none of people who are there."""
    if not report.left:
        return
    staging.execute("CREATE INDEX roster_left_person ON roster_left (external_id)")
    staging.execute(
        """
        DELETE FROM roster_left WHERE EXISTS (
            SELECT 1 FROM roster_row AS new
            WHERE new.district = roster_left.district
              AND new.external_id = roster_left.external_id)
        OR EXISTS (
            SELECT 1 FROM roster_left AS other
            WHERE other.district = roster_left.district
              AND other.external_id = roster_left.external_id
              AND other.place = roster_left.place AND other.row < roster_left.row)
        """
    )


def match_places_of_leavers(
    staging: Staging, parser: RowParser, scope: RosterScope
) -> None:
    """Add places to `roster_place` that no active person has; create none."""
    places = staging.fetch_all(
        """
        SELECT DISTINCT place FROM roster_left
        WHERE place NOT IN (SELECT place FROM roster_place)
          AND place NOT IN (SELECT place FROM roster_row)
        """
    )
    if not places:
        return
    matcher = PlaceMatcher(scope, {place: parser.places[place] for (place,) in places})
    rows = []
    for (place,) in places:
        district = matcher.district_key(matcher.district_of[place])
        if district > 0:
            school = matcher.schools[district].known.get(matcher.school_of[place])
            rows.append((place, district, school.keys[0] if school else NO_SCHOOL))
    staging.copy_rows("roster_place", rows)


def add_leavers_to_missing(
    staging: Staging, administration: Administration, scope: RosterScope
) -> None:
    """Withdraw people who have left, with those who are missing.

    Nobody is withdrawn who has another row in the file, even a rejected one. A row
    of an unknown school counts for any: PowerSchool moves graduates to a school of
    their own.
    """
    people = f"""
        FROM roster_left AS gone
        JOIN roster_place AS p ON p.place = gone.place
        JOIN survey_identity AS i
          ON i.administration_id = %s AND i.district_id = p.district_id
         AND i.external_id = gone.external_id
        JOIN {staging.people} AS r ON r.id = i.respondent_id
        WHERE r.withdrawn_at IS NULL
          AND p.school_id IN ({NO_SCHOOL}, r.school_id)
          AND NOT EXISTS (
              SELECT 1 FROM roster_match WHERE roster_match.respondent_id = r.id)
          AND NOT EXISTS (
              SELECT 1 FROM roster_exempt AS e
              JOIN roster_district AS d ON d.district = e.district
              WHERE d.district_id = i.district_id
                AND e.external_id = i.external_id)
        """  # noqa: S608
    pairs = staging.fetch_all(
        f"SELECT DISTINCT i.district_id, r.school_id {people}",  # noqa: S608
        [administration.pk],
    )
    schools = [pk for district, pk in pairs if scope.includes(district, pk)]
    for start in range(0, len(schools), 500):
        some = ", ".join(str(int(pk)) for pk in schools[start : start + 500])
        # They are no longer only missing.
        staging.execute(
            f"""
            DELETE FROM roster_missing WHERE school_id IN ({some}) AND row IN (
                SELECT r.id {people})
            """,  # noqa: S608
            [administration.pk],
        )
        staging.execute(
            f"""
            INSERT INTO roster_missing
            SELECT DISTINCT r.id, r.school_id, TRUE {people} AND r.school_id IN ({some})
            """,  # noqa: S608
            [administration.pk],
        )
    staging.analyze("roster_missing")


def count_leavers(staging: Staging, parser: RowParser, report: RosterReport) -> None:
    """Count the people who have left, by the school that the file names."""
    people: Counter[str] = Counter()
    for place, number in staging.fetch_all(
        "SELECT place, count(*) FROM roster_left GROUP BY place"
    ):
        named = parser.places[place]
        people[named.school_name or named.school] += number
    report.left = people.total()
    report.left_by_school = dict(sorted(people.items()))
    [(report.left_withdrawn,)] = staging.fetch_all(
        "SELECT count(*) FROM roster_missing WHERE has_left"
    )
