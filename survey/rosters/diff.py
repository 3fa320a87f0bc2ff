"""What a roster would change: who is new, who changed, who is missing.

Nothing is written here. A dry run ends with the answer; applying goes on from
the same tables, in `rosters.apply`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from django.utils import timezone

from accounts.models import District, School
from survey.models import Administration, RosterUpload
from survey.rosters.file_reader import Table
from survey.rosters.people import Person, PersonReader, Rejection
from survey.rosters.places import Placing, place_people
from survey.rosters.report import Rejections, RosterReport, SchoolCounts
from survey.rosters.scope import ELSEWHERE, Reach
from survey.rosters.staging import Staging, filling, open_staging

CompleteFor = RosterUpload.CompleteFor
BATCH = 5000
# Step, and how many rows of it are done.
Tell = Callable[[str, int], None]

# Field of the roster -> column; a column that the file lacks stays as it was.
RESPONDENT_COLUMNS = {
    "grade": "grade",
    "classroom": "classroom",
    "language": "language",
    "attributes": "attributes",
}
IDENTITY_COLUMNS = ("given_name", "family_name", "email", "birth_date")

# What happens to the person of a row.
ADDED, CHANGED, MOVED, BACK, UNCHANGED = "a", "c", "m", "b", "u"
COUNTED = {
    ADDED: "added",
    CHANGED: "changed",
    MOVED: "moved",
    BACK: "back",
    UNCHANGED: "unchanged",
}


@dataclass
class Diff:
    """Alive while its tables are."""

    administration: Administration
    staging: Staging
    report: RosterReport
    placing: Placing

    def rejections(self) -> Iterator[Rejection]:
        """All of them, in the order of their rows."""
        after = (-1, -1)
        while batch := self.staging.all(
            "SELECT row, sequence, named, reason, cell FROM roster_rejection"
            " WHERE (row, sequence) > (%s, %s) ORDER BY row, sequence LIMIT 5000",
            after,
        ):
            for row, _, *words in batch:
                yield Rejection(row, *words)
            after = batch[-1][:2]


def _quiet(step: str, rows: int) -> None:
    """For who does not watch."""


@contextmanager
def compared(
    *,
    administration: Administration,
    table: Table,
    reach: Callable[[], Reach] = Reach,
    complete_for: str = CompleteFor.CHANGES,
    tell: Tell = _quiet,
    alone: bool = False,
) -> Iterator[Diff]:
    """Read the whole file and hold it against the people already there.

    `alone` waits for another roster of the administration that is being
    applied, and keeps further ones out until the end, and whoever would change
    whom it asks, or where. So `reach` is asked behind that, and may raise.

    Raises RosterUnreadable where the file turns out to be damaged on the way.
    """
    report = RosterReport(table.columns, table.description)
    with open_staging() as staging:
        if alone:
            tell("Waiting for another roster of this administration", 0)
            staging.lock(administration.pk)
        places = reach()
        reader = _reader_for(administration, table)
        log = Rejections(lambda batch: staging.copy("roster_rejection", batch))
        with filling(staging):
            _stage(staging, reader, table, log, report, tell)
        tell("Comparing with the people already there", report.rows)
        _reject_duplicates(staging, table, log)
        _settle_date_order(staging, table, reader, log)
        placing = place_people(staging, reader, table.columns, places, log)
        _reject_same_people(staging, table, log)
        _match(staging, administration, report)
        _reject_lost_zeros(staging, administration, report, places, log)
        _reject_others_people(staging, administration, report, places, log)
        _find_gone(staging, administration, report, places, complete_for)
        log.flush()
        # For a file of which every row is refused.
        staging.run(
            "CREATE INDEX roster_rejection_row ON roster_rejection (row, sequence)"
        )
        report.rejected, report.rejections = log.rows, log.first
        report.notes = dict(reader.notes)
        report.schools = _count(staging, administration, placing)
        report.districts_created = [one.code for one in placing.new_districts.values()]
        report.schools_created = [one.code for one in placing.new_schools.values()]
        yield Diff(administration, staging, report, placing)


def _reader_for(administration: Administration, table: Table) -> PersonReader:
    definition = json.loads(administration.published.definition)
    return PersonReader(
        table.columns,
        role=administration.role,
        languages={one["code"]: one["name"] for one in definition["languages"]},
        today=timezone.localdate(),
    )


# Reading --------------------------------------------------------------------


def _stage(
    staging: Staging,
    reader: PersonReader,
    table: Table,
    log: Rejections,
    report: RosterReport,
    tell: Tell,
) -> None:
    """Copy all good rows in."""
    # Whose rows were refused: they stay as they are.
    spared: list[tuple[str, str]] = []

    def people() -> Iterator[Person]:
        for number, cells in table.rows:
            report.rows += 1
            person = reader.read(number, cells)
            if isinstance(person, Person):
                yield person
                continue
            log.add(person.rejections)
            if person.district and person.external_id:
                spared.append((person.district, person.external_id))
            else:
                report.nameless += 1
            if len(spared) >= BATCH:
                staging.copy("roster_spared", spared)
                spared.clear()

    stream = people()
    while batch := list(islice(stream, BATCH)):
        staging.copy("roster_row", batch)
        tell("Reading the file", report.rows)
    staging.copy("roster_spared", spared)


def _reject_duplicates(staging: Staging, table: Table, log: Rejections) -> None:
    """Whoever is there twice, by the file's own words for their district."""
    _reject_second_rows(staging, table, log, "district", "roster_row")


def _reject_same_people(staging: Staging, table: Table, log: Rejections) -> None:
    """Once more where one district is called by its code and by its name."""
    [(words, districts)] = staging.all(
        "SELECT count(*), count(DISTINCT district_id) FROM roster_district"
    )
    if words > districts:
        rows = "roster_row JOIN roster_place USING (place)"
        _reject_second_rows(staging, table, log, "district_id", rows)


def _reject_second_rows(
    staging: Staging, table: Table, log: Rejections, district: str, rows: str
) -> None:
    staging.run("DROP TABLE IF EXISTS roster_duplicate")
    # Both texts are those of the two functions above.
    staging.run(
        f"""
        CREATE TEMPORARY TABLE roster_duplicate AS
        SELECT row, first, external_id FROM (
            SELECT row, external_id,
                   min(row) OVER (PARTITION BY {district}, external_id) AS first
            FROM {rows}
        ) AS ranked
        WHERE row > first
        """  # noqa: S608
    )
    staging.run("CREATE INDEX roster_duplicate_row ON roster_duplicate (row)")
    heading = table.columns.heading("external_id")
    for batch in staging.in_batches(
        "SELECT row, first, external_id FROM roster_duplicate"
        " WHERE row > %s ORDER BY row LIMIT %s"
    ):
        for row, first, external_id in batch:
            reason = f"is the same as in row {first}, in the same district"
            log.add([Rejection(row, heading, reason, external_id)])
    staging.run(
        "DELETE FROM roster_row WHERE row IN (SELECT row FROM roster_duplicate)"
    )


# A file whose dates are nearly all of one order has some mistakes; one with
# many of both was put together from two.
_FEW = 20

# Order -> which rows it cannot be true for, and what to make of the others.
_MARK_DATES = {
    "month first": """
        UPDATE roster_row SET place = -1
        WHERE birth_date IS NULL AND birth_date_day_first IS NOT NULL
        """,
    "day first": """
        UPDATE roster_row
        SET birth_date = birth_date_day_first,
            place = CASE WHEN birth_date IS NOT NULL AND birth_date_day_first IS NULL
                         THEN -1 ELSE place END
        WHERE birth_date IS NOT NULL OR birth_date_day_first IS NOT NULL
        """,
    "": """
        UPDATE roster_row
        SET birth_date = coalesce(birth_date, birth_date_day_first),
            place = CASE WHEN birth_date <> birth_date_day_first THEN -1 ELSE place END
        WHERE birth_date IS NULL AND birth_date_day_first IS NOT NULL
           OR birth_date <> birth_date_day_first
        """,
}


def _settle_date_order(
    staging: Staging, table: Table, reader: PersonReader, log: Rejections
) -> None:
    """Decide how 3/4/2015 was meant, by the dates that can be read one way only."""
    if "birth_date" not in table.columns.fields:
        return
    [(month_first, day_first, either)] = staging.all(
        """
        SELECT count(CASE WHEN birth_date_day_first IS NULL THEN birth_date END),
               count(CASE WHEN birth_date IS NULL THEN birth_date_day_first END),
               count(CASE WHEN birth_date <> birth_date_day_first THEN 1 END)
        FROM roster_row
        """
    )
    order, reason = "", "could be two dates: some rows have the month first, some not"
    if month_first >= day_first * _FEW:
        order, reason = "month first", "is no date, read month first as the others"
    elif day_first > month_first * _FEW:
        order, reason = "day first", "is no date, read day first as the others"
    staging.run(_MARK_DATES[order])
    heading = table.columns.heading("birth_date")
    for batch in staging.in_batches(
        "SELECT row FROM roster_row WHERE place = -1 AND row > %s ORDER BY row LIMIT %s"
    ):
        for (row,) in batch:
            log.add([Rejection(row, heading, reason, "")])
    staging.drop_rows("place = -1")
    if either and order:
        reader.notes[f"{heading}: dates such as 3/4/2015 were read {order}"] = either


# Comparing ------------------------------------------------------------------


def present_columns(report: RosterReport) -> tuple[list[str], list[str]]:
    """Those that the file has: of the respondent, of the identity."""
    present = {*report.columns.fields}
    if report.columns.attributes:
        present.add("attributes")
    if "name" in present:
        present |= {"given_name", "family_name"}
    return (
        [column for field, column in RESPONDENT_COLUMNS.items() if field in present],
        [one for one in IDENTITY_COLUMNS if one in present],
    )


def differing(old: str, columns: list[str], staging: Staging) -> str:
    parts = [f"{old}.{column} {staging.differs} new.{column}" for column in columns]
    return " OR ".join(parts) or "1 = 0"


def _match(
    staging: Staging, administration: Administration, report: RosterReport
) -> None:
    """Find who is already there, by district and ID, and what is to be done."""
    of_respondent, of_identity = present_columns(report)
    # The columns in this text are those that are named at the top.
    staging.run(
        f"""
        CREATE TEMPORARY TABLE roster_match AS
        SELECT new.row, r.id AS respondent_id, r.school_id AS old_school_id,
               CASE WHEN r.id IS NULL THEN '{ADDED}'
                    WHEN r.withdrawn_at IS NOT NULL THEN '{BACK}'
                    WHEN r.school_id <> p.school_id THEN '{MOVED}'
                    WHEN {differing("r", of_respondent, staging)}
                      OR {differing("i", of_identity, staging)} THEN '{CHANGED}'
                    ELSE '{UNCHANGED}' END AS what
        FROM roster_row AS new
        JOIN roster_place AS p ON p.place = new.place
        LEFT JOIN survey_identity AS i
               ON i.administration_id = %s AND i.district_id = p.district_id
              AND i.external_id = new.external_id
        LEFT JOIN survey_respondent AS r ON r.id = i.respondent_id
        """,  # noqa: S608
        [administration.pk],
    )
    staging.run("CREATE UNIQUE INDEX roster_match_row ON roster_match (what, row)")
    staging.run("CREATE INDEX roster_match_respondent ON roster_match (respondent_id)")
    staging.analyze("roster_match")


def _reject_lost_zeros(
    staging: Staging,
    administration: Administration,
    report: RosterReport,
    reach: Reach,
    log: Rejections,
) -> None:
    """Refuse 123 where a roster before this one had 00123.

    Excel drops the zeros when it opens a CSV file; everybody would be there
    twice. A file that has both means two people. An ID that is on the roster of
    somebody else's school is not told.
    """
    seen = "TRUE"
    if not _has_districts(reach):
        seen = f"r.school_id IN ({_own_schools(reach)})"
    staging.run(
        f"""
        CREATE TEMPORARY TABLE roster_zero AS
        SELECT new.row, new.external_id, min(i.external_id) AS known, new.district,
               min(CASE WHEN {seen} THEN i.external_id END) AS told
        FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        JOIN survey_identity AS i
          ON i.administration_id = %s AND i.district_id = p.district_id
         AND ltrim(i.external_id, '0') = ltrim(new.external_id, '0')
        JOIN survey_respondent AS r ON r.id = i.respondent_id
        WHERE m.what = '{ADDED}' AND NOT EXISTS (
            SELECT 1 FROM roster_match
            WHERE roster_match.respondent_id = i.respondent_id)
        GROUP BY new.row, new.external_id, new.district
        """,  # noqa: S608
        [administration.pk],
    )
    staging.run("CREATE INDEX roster_zero_row ON roster_zero (row)")
    heading = report.columns.heading("external_id")
    for batch in staging.in_batches(
        "SELECT row, external_id, told FROM roster_zero"
        " WHERE row > %s ORDER BY row LIMIT %s"
    ):
        for row, given, told in batch:
            reason = f"is {told} but for the zeros, who is already on the roster"
            if told is None:
                reason = f"but for its zeros {ELSEWHERE}"
            log.add([Rejection(row, heading, reason, given)])
    # The one with the zeros stays as they are.
    staging.run("INSERT INTO roster_spared SELECT district, known FROM roster_zero")
    staging.run(
        f"DELETE FROM roster_match WHERE what = '{ADDED}'"  # noqa: S608
        " AND row IN (SELECT row FROM roster_zero)"
    )


def _reject_others_people(
    staging: Staging,
    administration: Administration,
    report: RosterReport,
    reach: Reach,
    log: Rejections,
) -> None:
    """Nobody takes people from a school that is not theirs to manage.

    Otherwise a coordinator could print the login card of anybody in the
    district, by their ID.
    """
    if _has_districts(reach):
        # Matched by the district's own IDs: they come from there.
        return
    own = _own_schools(reach)
    heading = report.columns.heading("external_id")
    for batch in staging.in_batches(
        f"""
        SELECT m.row, new.external_id
        FROM roster_match AS m JOIN roster_row AS new ON new.row = m.row
        WHERE m.what = '{MOVED}' AND m.old_school_id NOT IN ({own})
          AND m.row > %s ORDER BY m.row LIMIT %s
        """,  # noqa: S608
    ):
        for row, given in batch:
            log.add([Rejection(row, heading, ELSEWHERE, given)])
    staging.run(
        f"DELETE FROM roster_match WHERE what = '{MOVED}'"  # noqa: S608
        f" AND old_school_id NOT IN ({own})"
    )


def _has_districts(reach: Reach) -> bool:
    return reach.places.state or bool(reach.places.districts)


def _own_schools(reach: Reach) -> str:
    """For the brackets of an IN."""
    return ", ".join(str(int(pk)) for pk in sorted(reach.places.schools)) or "0"


def _find_gone(
    staging: Staging,
    administration: Administration,
    report: RosterReport,
    reach: Reach,
    complete_for: str,
) -> None:
    """Who is missing from places that the file is complete for.

    Nobody whose row was refused, and nobody at all as long as rows do not say
    whose they are; nor anybody for missing in a file of corrections.
    """
    complete_for = str(complete_for)
    if report.nameless or report.columns.is_correction:
        complete_for = CompleteFor.CHANGES
    staging.run(
        "CREATE TEMPORARY TABLE roster_gone (row bigint PRIMARY KEY, school_id bigint)"
    )
    if complete_for == CompleteFor.CHANGES:
        return
    schools = _complete_schools(staging, reach, complete_for)
    for start in range(0, len(schools), 500):
        some = ", ".join(str(int(pk)) for pk in schools[start : start + 500])
        staging.run(
            f"""
            INSERT INTO roster_gone
            SELECT r.id, r.school_id
            FROM survey_respondent AS r
            JOIN survey_identity AS i ON i.respondent_id = r.id
            WHERE r.administration_id = %s AND r.withdrawn_at IS NULL
              AND r.school_id IN ({some})
              AND NOT EXISTS (
                  SELECT 1 FROM roster_match WHERE roster_match.respondent_id = r.id)
              AND NOT EXISTS (
                  SELECT 1 FROM roster_spared AS s
                  JOIN roster_district AS d ON d.district = s.district
                  WHERE d.district_id = i.district_id
                    AND s.external_id = i.external_id)
            """,  # noqa: S608
            [administration.pk],
        )
    staging.analyze("roster_gone")


def _complete_schools(staging: Staging, reach: Reach, complete_for: str) -> list[int]:
    column = "school_id" if complete_for == CompleteFor.SCHOOLS else "district_id"
    found = staging.all(
        f"""
        SELECT DISTINCT p.{column} FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        """  # noqa: S608
    )
    named = {pk for (pk,) in found if pk > 0}
    if complete_for == CompleteFor.SCHOOLS:
        return sorted(named)
    schools = School.objects.values_list("district_id", "pk")
    if complete_for == CompleteFor.DISTRICTS:
        schools = schools.filter(district__in=named)
    return sorted(pk for district, pk in schools if reach.has(district, pk))


# Counting -------------------------------------------------------------------


def _count(
    staging: Staging, administration: Administration, placing: Placing
) -> list[SchoolCounts]:
    counts: dict[int, SchoolCounts] = {}
    numbers: list[tuple[int, str, int]] = []
    for school, what, number in staging.all(
        """
        SELECT p.school_id, m.what, count(*)
        FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        GROUP BY p.school_id, m.what
        """
    ):
        numbers.append((school, COUNTED[what], number))
    for school, number in staging.all(
        "SELECT old_school_id, count(*) FROM roster_match"
        " WHERE what = %s GROUP BY old_school_id",
        [MOVED],
    ):
        numbers.append((school, "moved_away", number))
    for school, number in staging.all(
        "SELECT school_id, count(*) FROM roster_gone GROUP BY school_id"
    ):
        numbers.append((school, "withdrawn", number))
    described = _described({school for school, _, _ in numbers}, placing)
    for school, name, number in numbers:
        one = counts.setdefault(school, SchoolCounts(school, *described[school]))
        setattr(one, name, getattr(one, name) + number)
    for school, number in _people(staging, administration, counts):
        counts[school].people = number
    return sorted(counts.values(), key=lambda one: (one.district_name, one.name))


def _described(schools: set[int], placing: Placing) -> dict[int, tuple[str, int, str]]:
    """Name, district and its name, of schools there are and of new ones."""
    found: dict[int, tuple[str, int, str]] = {}
    districts = dict(District.objects.values_list("pk", "name"))
    districts |= {pk: one.name for pk, one in placing.new_districts.items()}
    for pk, one in placing.new_schools.items():
        district = placing.district_of_new[pk]
        found[pk] = one.name, district, districts[district]
    known = sorted(pk for pk in schools if pk > 0)
    for start in range(0, len(known), 500):
        some = School.objects.filter(pk__in=known[start : start + 500])
        for pk, name, district in some.values_list("pk", "name", "district_id"):
            found[pk] = name, district, districts[district]
    return found


# Of more schools, reading the whole administration is the shorter way.
_FEW_SCHOOLS = 300


def _people(
    staging: Staging, administration: Administration, counts: dict[int, SchoolCounts]
) -> list[tuple[int, int]]:
    """Who can log in, by school; of one school, not by counting a state."""
    known = [pk for pk in counts if pk > 0]
    only = ""
    if len(known) <= _FEW_SCHOOLS:
        only = f"AND school_id IN ({', '.join(map(str, known)) or '0'})"
    found = staging.all(
        f"""
        SELECT school_id, count(*) FROM survey_respondent
        WHERE administration_id = %s AND withdrawn_at IS NULL {only}
        GROUP BY school_id
        """,  # noqa: S608
        [administration.pk],
    )
    return [(school, number) for school, number in found if school in counts]
