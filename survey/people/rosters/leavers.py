"""Withdraw people whom a roster itself marks as having left.

Unlike people who are missing from the file, they are withdrawn whatever the file
is complete for. They are only withdrawn from the school of their row: a student who
left one school of the district can be on the roster of another.
"""

from __future__ import annotations

from collections import Counter

from survey.people.rosters.comparison import Comparison
from survey.people.rosters.schools import PlaceMatcher
from survey.people.rosters.staging import NOT_IN_FILE, sql_keys

# In `roster_place`, for places that only rows of people who have left name.
NO_SCHOOL = 0


def remove_repeated_leavers(c: Comparison) -> None:
    """Keep one row of each person who has left, and none of people who are there."""
    if not c.report.left:
        return
    c.staging.execute("CREATE INDEX roster_left_person ON roster_left (external_id)")
    c.staging.execute(
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


def match_places_of_leavers(c: Comparison) -> None:
    """Add places to `roster_place` that no active person has; create none."""
    places = c.staging.fetch_all(
        """
        SELECT DISTINCT place FROM roster_left
        WHERE place NOT IN (SELECT place FROM roster_place)
          AND place NOT IN (SELECT place FROM roster_row)
        """
    )
    if not places:
        return
    matcher = PlaceMatcher(
        c.scope,
        {place: c.parser.places[place] for (place,) in places},
        c.table.layout.schools,
    )
    rows = []
    for (place,) in places:
        if place in matcher.chosen:
            if chosen := matcher.chosen[place]:
                rows.append((place, chosen.district_id, chosen.pk))
            continue
        district = matcher.district_key(matcher.district_of[place])
        if district > 0:
            school = matcher.schools[district].known.get(matcher.school_of[place])
            rows.append((place, district, school.keys[0] if school else NO_SCHOOL))
    c.staging.copy_rows("roster_place", rows)


def add_leavers_to_missing(c: Comparison) -> None:
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
        JOIN {c.staging.people} AS r ON r.id = i.respondent_id
        WHERE r.withdrawn_at IS NULL
          AND p.school_id IN ({NO_SCHOOL}, r.school_id)
          AND {NOT_IN_FILE}
        """  # noqa: S608
    pairs = c.staging.fetch_all(
        f"SELECT DISTINCT i.district_id, r.school_id {people}",  # noqa: S608
        [c.administration.pk],
    )
    schools = [pk for district, pk in pairs if c.scope.includes(district, pk)]
    for start in range(0, len(schools), 500):
        some = sql_keys(schools[start : start + 500])
        # They are no longer only missing.
        c.staging.execute(
            f"""
            DELETE FROM roster_missing WHERE school_id IN ({some}) AND row IN (
                SELECT r.id {people})
            """,  # noqa: S608
            [c.administration.pk],
        )
        c.staging.execute(
            f"""
            INSERT INTO roster_missing
            SELECT DISTINCT r.id, r.school_id, TRUE {people} AND r.school_id IN ({some})
            """,  # noqa: S608
            [c.administration.pk],
        )
    c.staging.analyze("roster_missing")


def count_leavers(c: Comparison) -> None:
    """Count the people who have left, by the school that the file names."""
    people: Counter[str] = Counter()
    for place, number in c.staging.fetch_all(
        "SELECT place, count(*) FROM roster_left GROUP BY place"
    ):
        named = c.parser.places[place]
        people[named.school_name or named.school] += number
    c.report.left = people.total()
    c.report.left_by_school = dict(sorted(people.items()))
    [(c.report.left_withdrawn,)] = c.staging.fetch_all(
        "SELECT count(*) FROM roster_missing WHERE has_left"
    )
