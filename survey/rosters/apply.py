"""A roster's changes are written: batch by batch, and never in anybody's way."""

from __future__ import annotations

from functools import partial
from typing import TextIO

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from survey import access_codes
from survey.models import Administration, Respondent
from survey.rosters.diff import (
    ADDED,
    BACK,
    CHANGED,
    IDENTITY_COLUMNS,
    MOVED,
    RESPONDENT_COLUMNS,
    CompleteFor,
    Diff,
    Tell,
    _quiet,
    compared,
    differing,
    present_columns,
)
from survey.rosters.file_reader import Table
from survey.rosters.people import Person
from survey.rosters.places import create_places
from survey.rosters.report import RosterReport, write_rejected
from survey.rosters.scope import Reach
from survey.rosters.staging import Packed, Staging, in_brief, side_by_side

# Nobody waits for new people, so these are as many as go fast.
ADD_AT_ONCE = 5000
# Their own page saves wait for as long as one batch takes: a few hundredths of
# a second, where a save would wait for a whole one.
CHANGE_AT_ONCE = 500
# From so many on, the planner's own statistics are out of date.
MANY = 10_000

_OF_PERSON = ("external_id", *RESPONDENT_COLUMNS, *IDENTITY_COLUMNS)
# As in the table of a batch.
_BATCH_ORDER = [name for name in Person._fields if name in _OF_PERSON]


def import_roster(
    *,
    administration: Administration,
    table: Table,
    partial: bool = False,
    complete_for: str = CompleteFor.CHANGES,
    reach: Reach | None = None,
    rejects: TextIO | None = None,
    tell: Tell = _quiet,
) -> RosterReport:
    """Bring the people of a roster into an administration, asking nobody.

    A person is known by district and ID, and keeps respondent, code and
    answers whatever else changes. With rejected rows nothing is imported, or
    with `partial` the rest. The rejected rows are written to `rejects`, to be
    corrected; the report has the first reasons.

    Raises RosterUnreadable where the file turns out to be damaged on the way,
    and CodeKeyMissing; then nothing is imported. Broken off later, it has
    imported a part; the same import again does the rest.
    """
    access_codes.current_version()
    with compared(
        administration=administration,
        table=table,
        reach=lambda: reach or Reach(),
        complete_for=complete_for,
        tell=tell,
        alone=True,
    ) as diff:
        report = diff.report
        if rejects:
            write_rejected(rejects, table.columns, table.rows, diff.rejections())
        if partial or not report.rejected:
            write_changes(diff, tell)
            report.imported = True
        else:
            report.schools = []
            report.districts_created, report.schools_created = [], []
    return report


def write_changes(diff: Diff, tell: Tell = _quiet) -> None:
    """Make it so. Where it breaks off, a new comparison finds what is left.

    People are withdrawn last, when those are there who came in their place.
    """
    create_places(diff.staging, diff.placing)
    _add(diff, tell)
    _change(diff, tell)
    _withdraw(diff, tell)
    if diff.report.added > MANY and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE survey_respondent, survey_identity")


def _packed(diff: Diff, what: str, first: int, last: int) -> Packed:
    columns = ", ".join(f"new.{name}" for name in _BATCH_ORDER)
    return diff.staging.packed(
        f"""
        SELECT m.row, m.respondent_id, p.district_id, p.school_id, {columns}
        FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        WHERE m.what = %s AND m.row BETWEEN %s AND %s
        """,  # noqa: S608
        [what, first, last],
    )


# New people -----------------------------------------------------------------


def _add(diff: Diff, tell: Tell) -> None:
    """Insert the new people with their codes."""
    version, done = access_codes.current_version(), 0
    with side_by_side() as run:
        for batch in diff.staging.in_batches(
            f"SELECT row FROM roster_match WHERE what = '{ADDED}'"  # noqa: S608
            " AND row > %s ORDER BY row LIMIT %s",
            size=ADD_AT_ONCE,
        ):
            rows = [row for (row,) in batch]
            packed = _packed(diff, ADDED, rows[0], rows[-1])
            insert = partial(_insert, diff.administration, version, rows, packed)
            run(partial(in_brief, insert))
            done += len(rows)
            tell("Adding people", done)


def _insert(
    administration: Administration,
    version: int,
    rows: list[int],
    packed: Packed,
    writer: Staging,
) -> None:
    writer.unpack(packed)
    ids = writer.take_ids(len(rows))
    digests = (
        access_codes.digest_for(access_codes.code_for(id_, 1, version), version)
        for id_ in ids
    )
    writer.copy("roster_new", zip(rows, ids, [1] * len(ids), digests, strict=True))
    _insert_respondents(writer, administration, version, len(rows))
    writer.run(_INSERT_IDENTITIES, [administration.pk])


_INSERT_RESPONDENTS = """
    INSERT INTO survey_respondent (
        id, administration_id, school_id, grade, classroom, language, attributes,
        issue, code_digest, code_key_version
    )
    SELECT new.respondent_id, %s, batch.school_id, batch.grade, batch.classroom,
           batch.language, batch.attributes, new.issue, new.code_digest, %s
    FROM roster_new AS new
    JOIN roster_batch AS batch ON batch.row = new.row
    WHERE new.issue = %s
    ON CONFLICT (code_digest) DO NOTHING
    """
_INSERT_IDENTITIES = """
    INSERT INTO survey_identity (
        respondent_id, administration_id, district_id, external_id,
        given_name, family_name, email, birth_date
    )
    SELECT new.respondent_id, %s, batch.district_id, batch.external_id,
           batch.given_name, batch.family_name, batch.email, batch.birth_date
    FROM roster_new AS new
    JOIN roster_batch AS batch ON batch.row = new.row
    """


def _insert_respondents(
    writer: Staging, administration: Administration, version: int, people: int
) -> None:
    """Whoever's code is somebody else's already is given issue 2, or 3."""
    issue = 1
    inserted = writer.run(_INSERT_RESPONDENTS, [administration.pk, version, issue])
    while inserted < people:
        issue += 1
        left = writer.all(
            """
            SELECT row, respondent_id FROM roster_new WHERE NOT EXISTS (
                SELECT 1 FROM survey_respondent WHERE id = roster_new.respondent_id)
            """
        )
        for row, id_ in left:
            digest = access_codes.digest_for(
                access_codes.code_for(id_, issue, version), version
            )
            writer.run(
                "UPDATE roster_new SET issue = %s, code_digest = %s WHERE row = %s",
                [issue, digest, row],
            )
        inserted += writer.run(_INSERT_RESPONDENTS, [administration.pk, version, issue])


# People who are there -------------------------------------------------------


def _change(diff: Diff, tell: Tell) -> None:
    """Update whoever differs in a column that the file has."""
    of_respondent, of_identity = present_columns(diff.report)
    of_respondent = ["school_id", *of_respondent]
    done = 0
    for what in (CHANGED, MOVED, BACK):
        for batch in diff.staging.in_batches(
            f"SELECT row FROM roster_match WHERE what = '{what}'"  # noqa: S608
            " AND row > %s ORDER BY row LIMIT %s",
            size=CHANGE_AT_ONCE,
        ):
            packed = _packed(diff, what, batch[0][0], batch[-1][0])

            def update(
                writer: Staging, what: str = what, packed: Packed = packed
            ) -> None:
                writer.unpack(packed)
                _update(writer, "survey_identity", "respondent_id", of_identity)
                _update(writer, "survey_respondent", "id", of_respondent)
                if what == BACK:
                    writer.run(_LET_BACK)

            in_brief(update)
            done += len(batch)
            tell("Changing people", done)


_LET_BACK = """
    UPDATE survey_respondent SET withdrawn_at = NULL
    WHERE id IN (SELECT respondent_id FROM roster_batch)
    """


def _update(writer: Staging, table: str, key: str, columns: list[str]) -> None:
    if not columns:
        return
    values = ", ".join(f"{column} = new.{column}" for column in columns)
    writer.run(
        f"""
        UPDATE {table} AS old SET {values}
        FROM roster_batch AS new
        WHERE old.{key} = new.respondent_id AND ({differing("old", columns, writer)})
        """  # noqa: S608
    )


def _withdraw(diff: Diff, tell: Tell) -> None:
    now, done = timezone.now(), 0
    for batch in diff.staging.in_batches(
        "SELECT row FROM roster_gone WHERE row > %s ORDER BY row LIMIT %s",
        size=CHANGE_AT_ONCE,
    ):
        ids = [pk for (pk,) in batch]
        here = Respondent.objects.filter(pk__in=ids, withdrawn_at=None)

        def withdraw(_: Staging, here: QuerySet[Respondent] = here) -> int:
            return here.update(withdrawn_at=now)

        in_brief(withdraw)
        done += len(ids)
        tell("Withdrawing people", done)
