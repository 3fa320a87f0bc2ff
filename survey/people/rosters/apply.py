"""Write a roster's changes in batches, so that page saves go on meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TextIO

from django.conf import settings
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.models import Administration, Respondent
from survey.people import access_codes
from survey.people.opt_outs.listed_ids import apply_listed_ids
from survey.people.rosters.batch_writes import parallel_writes, write_batch
from survey.people.rosters.change_record import (
    ChangeRecord,
    forget_changes_of,
    refuse_while_undoing,
)
from survey.people.rosters.counted_groups import (
    keep_groups_of_changed,
    keep_groups_of_new,
    keep_groups_of_withdrawn,
    schools_with_people,
)
from survey.people.rosters.diff import (
    IDENTITY_COLUMNS,
    RESPONDENT_COLUMNS,
    CompleteFor,
    ProgressCallback,
    RosterDiff,
    any_column_differs,
    columns_in_file,
    compare_roster,
    ignore_progress,
)
from survey.people.rosters.report import RosterReport, write_rejected_rows
from survey.people.rosters.row_parser import RosterPerson
from survey.people.rosters.schools import create_new_schools
from survey.people.rosters.scope import (
    TAKES_ROSTER,
    RosterRefused,
    RosterScope,
    check_takes_roster,
)
from survey.people.rosters.staging import (
    ADDED,
    BACK,
    CHANGED,
    MOVED,
    ExportedRows,
    Staging,
)
from survey.people.rosters.table import RosterTable

# Nobody waits for new people, so this is simply the fastest size.
ADD_AT_ONCE = 5000
# The page saves of these people wait until their batch is committed, a few
# hundredths of a second.
CHANGE_AT_ONCE = 500
# After so many new people the query planner's statistics are out of date.
MANY = 10_000


class SchoolsChanged(OperationalError):
    """The file has to be compared again, which the job does at its next attempt."""


# Columns of `roster_batch`, in its order.
_BATCH_COLUMNS = [
    name
    for name in RosterPerson._fields
    if name in ("external_id", *RESPONDENT_COLUMNS, *IDENTITY_COLUMNS)
]


def import_roster(
    *,
    administration: Administration,
    table: RosterTable,
    partial: bool = False,
    complete_for: str = CompleteFor.CHANGES,
    scope: RosterScope | None = None,
    rejects: TextIO | None = None,
    check_figures: Callable[[RosterReport], None] | None = None,
) -> RosterReport:
    """Import a roster into an administration without a confirmation.

    `check_figures` may raise before anything is imported.

    A person is identified by district and ID, and keeps respondent, access code
    and answers whatever else changes. If rows are rejected, nothing is imported,
    or with `partial` the valid rows. Rejected rows are written to `rejects` for
    correction; the report has the first reasons.

    Raises RosterUnreadable if the file is damaged, RosterRefused, and
    CodeKeyMissing; then nothing is imported. If it is interrupted later, a part
    has been imported, and the same import again does the rest.
    """
    # Raises here if the key is missing, and not after the whole file was read.
    access_codes.current_version()

    def get_scope() -> RosterScope:
        # Read after the lock was taken: it may have changed while waiting.
        administration.refresh_from_db(fields=TAKES_ROSTER)
        check_takes_roster(administration)
        if message := refuse_while_undoing(administration):
            raise RosterRefused(message)
        return scope or RosterScope()

    with compare_roster(
        administration=administration,
        table=table,
        get_scope=get_scope,
        complete_for=complete_for,
        lock=True,
    ) as diff:
        report = diff.report
        if rejects:
            write_rejected_rows(rejects, table.columns, table.rows, diff.rejections())
        if partial or not report.rejected:
            if check_figures:
                check_figures(report)
            forget_changes_of(administration)
            write_changes(diff)
            report.imported = True
        else:
            report.schools = []
            report.districts_created, report.schools_created = [], []
    return report


def write_changes(
    diff: RosterDiff,
    on_progress: ProgressCallback = ignore_progress,
    record: ChangeRecord | None = None,
) -> None:
    """Apply a comparison. After an interruption a new comparison finds the rest.

    People are withdrawn last, once those who replace them are there. With `record`,
    the changes can be undone.
    """
    if record:
        record.begin(diff)
    on_created = record.add_places if record else None
    create_new_schools(diff.staging, diff.schools, on_created)
    add_people(diff, on_progress, record)
    change_people(diff, on_progress, record)
    withdraw_people(diff, on_progress, record)
    if diff.report.added > MANY and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE survey_respondent, survey_identity")


def _export_batch(diff: RosterDiff, change: str, first: int, last: int) -> ExportedRows:
    columns = ", ".join(f"new.{name}" for name in _BATCH_COLUMNS)
    return diff.staging.export_rows(
        f"""
        SELECT m.row, m.respondent_id, p.district_id, p.school_id, {columns}
        FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        WHERE m.change = %s AND m.row BETWEEN %s AND %s
        """,  # noqa: S608
        [change, first, last],
    )


def add_people(
    diff: RosterDiff, on_progress: ProgressCallback, record: ChangeRecord | None
) -> None:
    """Insert new people with their access codes."""
    version, done = access_codes.current_version(), 0
    known = schools_with_people(diff)
    # While one connection inserts a batch, the next batch is prepared.
    with parallel_writes() as run:
        for batch in diff.staging.fetch_in_batches(
            f"SELECT row FROM roster_match WHERE change = '{ADDED}'"  # noqa: S608
            " AND row > %s ORDER BY row LIMIT %s",
            size=ADD_AT_ONCE,
        ):
            rows = [row for (row,) in batch]
            people = _export_batch(diff, ADDED, rows[0], rows[-1])
            insert = partial(
                _insert_people,
                diff.administration,
                version,
                rows,
                people,
                known,
                record,
            )
            run(partial(write_batch, insert))
            done += len(rows)
            on_progress(_("Adding people"), done)


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
    ON CONFLICT DO NOTHING
    """
# On a cluster, where it refuses codes of other people: see `code_routes`.
_INSERT_ROUTES = """
    INSERT INTO survey_coderoute (digest, respondent_id)
    SELECT code_digest, respondent_id FROM roster_new
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
_NOT_INSERTED = """
    SELECT row, respondent_id FROM roster_new WHERE NOT EXISTS (
        SELECT 1 FROM survey_respondent WHERE id = roster_new.respondent_id)
    """


def _insert_people(
    administration: Administration,
    version: int,
    rows: list[int],
    people: ExportedRows,
    known: Sequence[int],
    record: ChangeRecord | None,
    writer: Staging,
) -> tuple[None, list[int]]:
    def digest(pk: int, issue: int) -> bytes:
        code = access_codes.code_for(pk, issue, version)
        return access_codes.digest_for(code, version)

    writer.import_batch(people)
    lock_schools_of_batch(writer)
    ids = writer.reserve_ids(len(rows))
    issue = 1
    writer.copy_rows(
        "roster_new",
        (
            (row, pk, issue, digest(pk, issue))
            for row, pk in zip(rows, ids, strict=True)
        ),
    )
    inserted = writer.execute(_INSERT_RESPONDENTS, [administration.pk, version, issue])
    # Where the code already belongs to another person, the next issue's is tried.
    while inserted < len(rows):
        issue += 1
        for row, pk in writer.fetch_all(_NOT_INSERTED):
            writer.execute(
                "UPDATE roster_new SET issue = %s, code_digest = %s WHERE row = %s",
                [issue, digest(pk, issue), row],
            )
        inserted += writer.execute(
            _INSERT_RESPONDENTS, [administration.pk, version, issue]
        )
    if settings.IS_DISTRIBUTED:
        writer.execute(_INSERT_ROUTES, [])
    writer.execute(_INSERT_IDENTITIES, [administration.pk])
    keep_groups_of_new(writer, known)
    if record:
        record.add_new_people(writer)
    apply_listed_ids(writer, administration, ids, are_new=True)
    return None, ids


def lock_schools_of_batch(writer: Staging) -> None:
    """Make sure that the schools of `roster_batch` exist until the batch is written.

    Respondents have no constraint that would do it: a school that was deleted or
    merged since the comparison would keep people whom nobody sees.
    """
    # PostgreSQL waits here for a deletion, and for nothing else.
    lock = "" if connection.vendor == "sqlite" else "FOR KEY SHARE"
    existing = writer.fetch_all(
        f"""
        SELECT id FROM accounts_school
        WHERE id IN (SELECT school_id FROM roster_batch) ORDER BY id {lock}
        """  # noqa: S608
    )
    named = writer.fetch_all("SELECT DISTINCT school_id FROM roster_batch")
    if len(existing) < len(named):
        raise SchoolsChanged(_("A school was deleted or merged after the comparison."))


def change_people(
    diff: RosterDiff, on_progress: ProgressCallback, record: ChangeRecord | None
) -> None:
    """Update people who differ in a column of the file, moved or came back."""
    of_respondent, of_identity = columns_in_file(diff.report)
    of_respondent = ["school_id", *of_respondent]
    done = 0
    for change in (CHANGED, MOVED, BACK):
        for batch in diff.staging.fetch_in_batches(
            f"SELECT row FROM roster_match WHERE change = '{change}'"  # noqa: S608
            " AND row > %s ORDER BY row LIMIT %s",
            size=CHANGE_AT_ONCE,
        ):
            people = _export_batch(diff, change, batch[0][0], batch[-1][0])

            def update(
                writer: Staging, change: str = change, people: ExportedRows = people
            ) -> tuple[None, list[int]]:
                writer.import_batch(people)
                lock_schools_of_batch(writer)
                if record:
                    record.add_changed_people(writer, change)
                keep_groups_of_changed(writer, of_respondent, are_back=change == BACK)
                update_rows(writer, "survey_identity", "respondent_id", of_identity)
                update_rows(writer, "survey_respondent", "id", of_respondent)
                if change == BACK:
                    writer.execute(
                        """
                        UPDATE survey_respondent SET withdrawn_at = NULL
                        WHERE id IN (SELECT respondent_id FROM roster_batch)
                          AND opted_out_at IS NULL
                        """
                    )
                rows = writer.fetch_all("SELECT respondent_id FROM roster_batch")
                ids = [pk for (pk,) in rows]
                apply_listed_ids(writer, diff.administration, ids)
                return None, ids

            write_batch(update)
            done += len(batch)
            on_progress(_("Changing people"), done)


def update_rows(writer: Staging, table: str, key: str, columns: list[str]) -> None:
    """Update the people of a batch who differ in one of these columns."""
    if not columns:
        return
    values = ", ".join(f"{column} = new.{column}" for column in columns)
    writer.execute(
        f"""
        UPDATE {table} AS old SET {values}
        FROM roster_batch AS new
        WHERE old.{key} = new.respondent_id
          AND ({any_column_differs("old", columns, writer)})
        """  # noqa: S608
    )


def withdraw_people(
    diff: RosterDiff, on_progress: ProgressCallback, record: ChangeRecord | None
) -> None:
    now, done = timezone.now(), 0
    for batch in diff.staging.fetch_in_batches(
        "SELECT row FROM roster_missing WHERE row > %s ORDER BY row LIMIT %s",
        size=CHANGE_AT_ONCE,
    ):
        ids = [pk for (pk,) in batch]
        # They are known by primary key, so no temporary table is needed.
        people = Respondent.objects.filter(pk__in=ids, withdrawn_at=None)

        def withdraw(
            writer: Staging,
            ids: list[int] = ids,
            people: QuerySet[Respondent] = people,
        ) -> tuple[None, list[int]]:
            if record:
                record.add_withdrawn_people(writer, ids)
            keep_groups_of_withdrawn(writer, ids)
            people.update(withdrawn_at=now)
            return None, ids

        write_batch(withdraw)
        done += len(ids)
        on_progress(_("Withdrawing people"), done)
