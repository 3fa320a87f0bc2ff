"""Count what would be destroyed, and change nothing."""

from __future__ import annotations

from django.db import connection, transaction

from accounts.models import User
from accounts.tables import Erasing
from survey.models import (
    Administration,
    DataKind,
    Destruction,
    Job,
    Respondent,
    Response,
)
from survey.people.erasing.stored import rows_of_round
from survey.people.retention.destroy import RESPONDENTS, RESPONSES
from survey.people.retention.hooks import derived_rows
from survey.people.retention.round_files import count_files
from survey.work.jobs import Progress, job, start

State = Destruction.State


@transaction.atomic
def request_count(
    administration: Administration, kind: str, *, by: User
) -> Destruction:
    """Start counting; an earlier count of this kind is forgotten."""
    Destruction.objects.filter(
        administration=administration,
        kind=kind,
        state__in=(State.COUNTING, State.COUNTED),
    ).delete()
    trial = Destruction.objects.create(
        administration=administration, kind=kind, state=State.COUNTING, by=by
    )
    start(count_data, subject_id=trial.pk, by=by)
    return trial


@job("retention.count", long=True, waits=True)
def count_data(job: Job, progress: Progress) -> None:
    trial = Destruction.objects.filter(
        pk=job.subject_id or 0, state=State.COUNTING
    ).first()
    if trial is None:
        return
    counts = count_rows(trial.administration_id, trial.kind)
    tables = {name: {"rows": rows} for name, rows in sorted(counts.items()) if rows}
    with transaction.atomic():
        Destruction.objects.filter(pk=trial.pk).update(
            state=State.COUNTED,
            tables=tables,
            files=count_files(trial.administration_id, trial.kind),
        )
        progress.confirm()


def count_rows(administration: int, kind: str) -> dict[str, int]:
    """Return the rows of each table that would be destroyed."""
    counts: dict[str, int] = {}
    if kind == DataKind.IDENTITIES:
        for erasing in (Erasing.RELEASED, Erasing.DELETED):
            for model, rows in rows_of_round(administration, erasing):
                if model is not Response:
                    counts[model._meta.db_table] = rows.count()
        people = Respondent.objects.filter(administration=administration)
        counts[RESPONDENTS] = people.count()
        return counts
    counts[RESPONSES] = _count_answers(administration)
    for derived in derived_rows(administration):
        table = derived.rows.model._meta.db_table
        counts[table] = counts.get(table, 0) + derived.rows.count()
    return counts


def _count_answers(administration: int) -> int:
    """Let a function of the tables' owner count answers: migration 0020."""
    if connection.vendor != "postgresql":
        return Response.objects.filter(administration_id=administration).count()
    with transaction.atomic(), connection.cursor() as cursor:
        # Some hundred million rows take minutes.
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SELECT survey_count_answers(%s)", [administration])
        [(rows,)] = cursor.fetchall()
    return int(rows)
