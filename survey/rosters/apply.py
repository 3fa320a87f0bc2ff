"""A roster comes in: who is new, who changed, who cannot be taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TextIO

from django.db import transaction
from django.db.models.functions import Lower
from django.utils import timezone

from accounts.models import District, School
from survey.models import Administration
from survey.rosters import codes
from survey.rosters.people import Person, PersonReader, Place, Rejection
from survey.rosters.report import RejectionLog, RosterReport
from survey.rosters.staging import Staging, filling, open_staging
from survey.rosters.tables import Table

BATCH = 5000

# Field of the roster -> column; a column that the file lacks stays as it was.
RESPONDENT_COLUMNS = {
    "school": "school_id",
    "grade": "grade",
    "language": "language",
    "attributes": "attributes",
}
IDENTITY_COLUMNS = ("given_name", "family_name", "email", "birth_date")


class _Refused(Exception):
    """Takes back what was done, since rows were rejected."""


def import_roster(
    *,
    administration: Administration,
    table: Table,
    partial: bool = False,
    rejects: TextIO | None = None,
) -> RosterReport:
    """Bring the people of a roster into an administration, all or none.

    A person is known by district and ID, and keeps respondent, code and
    answers whatever else changes. Nobody is withdrawn for being absent. With
    rejected rows nothing is imported, or with `partial` the rest. All
    rejections are written to `rejects` as CSV; the report has the first.

    Raises RosterUnreadable where the file turns out to be damaged on the way,
    and CodeKeyMissing; then nothing is imported.
    """
    codes.current_version()
    log = RejectionLog(rejects)
    report = RosterReport(table.columns, table.description)
    reader = _reader_for(administration, table)
    with open_staging() as staging:
        with filling(staging):
            report.rows = _stage(staging, reader, table, log)
        _reject_duplicates(staging, table, log)
        _settle_date_order(staging, table, reader, log)
        if partial or not log.rows:
            try:
                with transaction.atomic():
                    _apply(staging, administration, reader, report, log)
                    if log.rows and not partial:
                        raise _Refused
                report.imported = True
            except _Refused:
                report.added = report.changed = report.unchanged = 0
                report.districts_created, report.schools_created = [], []
    report.rejected, report.rejections = log.rows, log.kept
    report.notes = dict(reader.notes)
    return report


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
    staging: Staging, reader: PersonReader, table: Table, log: RejectionLog
) -> int:
    """Copy all good rows in; the number of all rows."""
    seen = 0

    def people() -> Iterator[Person]:
        nonlocal seen
        for number, cells in table.rows:
            seen += 1
            person = reader.read(number, cells)
            if isinstance(person, Person):
                yield person
            else:
                log.add(person)

    stream = people()
    while batch := list(islice(stream, BATCH)):
        staging.copy("roster_row", batch)
    return seen


def _reject_duplicates(staging: Staging, table: Table, log: RejectionLog) -> None:
    staging.run(
        """
        CREATE TEMPORARY TABLE roster_duplicate AS
        SELECT row, first, external_id FROM (
            SELECT row, external_id,
                   min(row) OVER (PARTITION BY district, external_id) AS first
            FROM roster_row
        ) AS ranked
        WHERE row > first
        """
    )
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
        """,
    "": """
        UPDATE roster_row
        SET birth_date = coalesce(birth_date, birth_date_day_first),
            place = CASE WHEN birth_date <> birth_date_day_first THEN -1 ELSE place END
        """,
}


def _settle_date_order(
    staging: Staging, table: Table, reader: PersonReader, log: RejectionLog
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
    staging.run("DELETE FROM roster_row WHERE place = -1")
    if either and order:
        reader.notes[f"{heading}: dates such as 3/4/2015 were read {order}"] = either


# Writing --------------------------------------------------------------------


def _apply(
    staging: Staging,
    administration: Administration,
    reader: PersonReader,
    report: RosterReport,
    log: RejectionLog,
) -> None:
    staging.lock(administration.pk)
    _place_people(staging, reader.places, report)
    _match(staging, administration)
    _reject_lost_zeros(staging, administration, report, log)
    [(people,)] = staging.all("SELECT count(*) FROM roster_match")
    report.added = _add(staging, administration)
    # Last, since a changed respondent's own page saves wait from here on.
    report.changed = _change(staging, report)
    report.unchanged = people - report.added - report.changed


def _place_people(staging: Staging, places: list[Place], report: RosterReport) -> None:
    """Find or create the districts and schools of the rows that are left."""
    used = [row for (row,) in staging.all("SELECT DISTINCT place FROM roster_row")]
    # In one order everywhere, so that two imports cannot wait for each other.
    wanted = sorted(
        ((places[index], index) for index in used),
        key=lambda one: (one[0].district, one[0].school),
    )
    district_ids = _districts([place for place, _ in wanted], report)
    school_ids = _schools([place for place, _ in wanted], district_ids, report)
    staging.copy(
        "roster_place",
        [
            (index, district_ids[one.district], school_ids[one.district, one.school])
            for one, index in wanted
        ],
    )


def _districts(places: list[Place], report: RosterReport) -> dict[str, int]:
    names: dict[str, str] = {}
    for place in places:
        names.setdefault(place.district, place.district_name)
    known = _known_districts(names)
    missing = [
        District(code=code, name=name)
        for code, name in names.items()
        if code not in known
    ]
    if missing:
        # Another import may have created one a moment ago.
        District.objects.bulk_create(missing, ignore_conflicts=True)
        report.districts_created = [district.code for district in missing]
        known = _known_districts(names)
    return known


def _known_districts(names: dict[str, str]) -> dict[str, int]:
    found = District.objects.annotate(lower=Lower("code")).filter(lower__in=names)
    return dict(found.values_list("lower", "pk"))


def _schools(
    places: list[Place], district_ids: dict[str, int], report: RosterReport
) -> dict[tuple[str, str], int]:
    known = _known_schools(district_ids)
    missing = [
        School(
            district_id=district_ids[place.district],
            code=place.school,
            name=place.school_name,
        )
        for place in places
        if (place.district, place.school) not in known
    ]
    if missing:
        School.objects.bulk_create(missing, ignore_conflicts=True)
        report.schools_created = [school.code for school in missing]
        known = _known_schools(district_ids)
    return known


def _known_schools(district_ids: dict[str, int]) -> dict[tuple[str, str], int]:
    codes = {pk: code for code, pk in district_ids.items()}
    found = School.objects.filter(district__in=district_ids.values()).annotate(
        lower=Lower("code")
    )
    return {
        (codes[district], lower): pk
        for district, lower, pk in found.values_list("district_id", "lower", "pk")
    }


def _match(staging: Staging, administration: Administration) -> None:
    """Find who is already there, by district and ID."""
    staging.run(
        """
        CREATE TEMPORARY TABLE roster_match AS
        SELECT roster_row.*, roster_place.district_id, roster_place.school_id,
               survey_identity.respondent_id
        FROM roster_row
        JOIN roster_place ON roster_place.place = roster_row.place
        LEFT JOIN survey_identity
               ON survey_identity.administration_id = %s
              AND survey_identity.district_id = roster_place.district_id
              AND survey_identity.external_id = roster_row.external_id
        """,
        [administration.pk],
    )
    staging.run("CREATE UNIQUE INDEX roster_match_row ON roster_match (row)")
    staging.run("CREATE INDEX roster_match_respondent ON roster_match (respondent_id)")
    staging.analyze("roster_match")


def _reject_lost_zeros(
    staging: Staging,
    administration: Administration,
    report: RosterReport,
    log: RejectionLog,
) -> None:
    """Refuse 123 where a roster before this one had 00123.

    Excel drops the zeros when it opens a CSV file; everybody would be there
    twice. A file that has both means two people.
    """
    staging.run(
        """
        CREATE TEMPORARY TABLE roster_absent AS
        SELECT district_id, external_id, ltrim(external_id, '0') AS bare
        FROM survey_identity
        WHERE administration_id = %s AND NOT EXISTS (
            SELECT 1 FROM roster_match
            WHERE roster_match.respondent_id = survey_identity.respondent_id
        )
        """,
        [administration.pk],
    )
    staging.run("CREATE INDEX roster_absent_bare ON roster_absent (bare)")
    staging.analyze("roster_absent")
    heading = report.columns.heading("external_id")
    for batch in staging.in_batches(
        """
        SELECT row, roster_match.external_id, min(roster_absent.external_id)
        FROM roster_match
        JOIN roster_absent ON roster_absent.district_id = roster_match.district_id
             AND roster_absent.bare = ltrim(roster_match.external_id, '0')
        WHERE roster_match.respondent_id IS NULL AND row > %s
        GROUP BY row, roster_match.external_id
        ORDER BY row LIMIT %s
        """
    ):
        for row, given, known in batch:
            reason = f"is {known} but for the zeros, who is already on the roster"
            log.add([Rejection(row, heading, reason, given)])
        staging.many(
            "DELETE FROM roster_match WHERE row = %s", [(row,) for row, *_ in batch]
        )


def _add(staging: Staging, administration: Administration) -> int:
    """Insert the new people with their codes; how many."""
    version, added = codes.current_version(), 0
    for batch in staging.in_batches(
        "SELECT row FROM roster_match"
        " WHERE respondent_id IS NULL AND row > %s ORDER BY row LIMIT %s"
    ):
        rows = [row for (row,) in batch]
        ids = staging.take_ids(len(rows))
        digests = (
            codes.digest_for(codes.code_for(id_, 1, version), version) for id_ in ids
        )
        staging.copy("roster_new", zip(rows, ids, [1] * len(ids), digests, strict=True))
        added += len(rows)
    if added:
        staging.analyze("roster_new")
        _insert_respondents(staging, administration, version, added)
        staging.run(_INSERT_IDENTITIES, [administration.pk])
    return added


_INSERT_RESPONDENTS = """
    INSERT INTO survey_respondent (
        id, administration_id, school_id, grade, language, attributes,
        issue, code_digest, code_key_version
    )
    SELECT roster_new.respondent_id, %s, roster_match.school_id, roster_match.grade,
           roster_match.language, roster_match.attributes,
           roster_new.issue, roster_new.code_digest, %s
    FROM roster_new
    JOIN roster_match ON roster_match.row = roster_new.row
    WHERE roster_new.issue = %s
    ON CONFLICT (code_digest) DO NOTHING
    """
_INSERT_IDENTITIES = """
    INSERT INTO survey_identity (
        respondent_id, administration_id, district_id, external_id,
        given_name, family_name, email, birth_date
    )
    SELECT roster_new.respondent_id, %s, roster_match.district_id,
           roster_match.external_id, roster_match.given_name,
           roster_match.family_name, roster_match.email, roster_match.birth_date
    FROM roster_new
    JOIN roster_match ON roster_match.row = roster_new.row
    """


def _insert_respondents(
    staging: Staging, administration: Administration, version: int, people: int
) -> None:
    """Whoever's code is somebody else's already is given issue 2, or 3."""
    issue = 1
    inserted = staging.run(_INSERT_RESPONDENTS, [administration.pk, version, issue])
    while inserted < people:
        issue += 1
        left = staging.all(
            """
            SELECT row, respondent_id FROM roster_new WHERE NOT EXISTS (
                SELECT 1 FROM survey_respondent WHERE id = roster_new.respondent_id)
            """
        )
        staging.many(
            "UPDATE roster_new SET issue = %s, code_digest = %s WHERE row = %s",
            [
                (
                    issue,
                    codes.digest_for(codes.code_for(id_, issue, version), version),
                    row,
                )
                for row, id_ in left
            ],
        )
        inserted += staging.run(
            _INSERT_RESPONDENTS, [administration.pk, version, issue]
        )


def _change(staging: Staging, report: RosterReport) -> int:
    """Update whoever differs in a column that the file has; how many."""
    present = {*report.columns.fields}
    if report.columns.attributes:
        present.add("attributes")
    if "name" in present:
        present |= {"given_name", "family_name"}
    of_identity = [one for one in IDENTITY_COLUMNS if one in present]
    of_respondent = [
        column for field, column in RESPONDENT_COLUMNS.items() if field in present
    ]
    # The columns in these texts are those that are named at the top.
    [(changed,)] = staging.all(
        f"""
        SELECT count(*)
        FROM roster_match AS new
        JOIN survey_respondent AS r ON r.id = new.respondent_id
        JOIN survey_identity AS i ON i.respondent_id = new.respondent_id
        WHERE {_differing("r", of_respondent, staging)}
           OR {_differing("i", of_identity, staging)}
        """  # noqa: S608
    )
    if changed:
        _update(staging, "survey_identity", "respondent_id", of_identity)
        _update(staging, "survey_respondent", "id", of_respondent)
    return changed


def _update(staging: Staging, table: str, key: str, columns: list[str]) -> None:
    if not columns:
        return
    values = ", ".join(f"{column} = new.{column}" for column in columns)
    staging.run(
        f"""
        UPDATE {table} AS old SET {values}
        FROM roster_match AS new
        WHERE old.{key} = new.respondent_id AND ({_differing("old", columns, staging)})
        """  # noqa: S608
    )


def _differing(old: str, columns: list[str], staging: Staging) -> str:
    parts = [f"{old}.{column} {staging.differs} new.{column}" for column in columns]
    return " OR ".join(parts) or "1 = 0"
