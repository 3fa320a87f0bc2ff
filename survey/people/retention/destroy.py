"""Destroy the names or the answers of an administration, in a job that can go on.

Names go in batches of people, each in a transaction of its own that also records what
it destroyed. Answers go at once: their partition is emptied, which locks no other
administration's. See docs/decisions/0194-retention.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import BinaryField, F, Func, Model, QuerySet, Value
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts import audit
from accounts.tables import Erasing
from survey.database import advisory_locks
from survey.database.code_routes import forget_routes
from survey.database.respondent_locks import lock_respondents
from survey.fieldwork.message_platforms.hooks import people_removed
from survey.models import DataKind, Destruction, Job, Respondent, Response
from survey.people.certificates.keys import signing_key
from survey.people.erasing.deletion import raw_delete
from survey.people.erasing.stored import person_fields, rows_of_people, rows_of_round
from survey.people.retention import certificates, round_files
from survey.people.retention.holds import OnHold, hold_on, refuse_if_held
from survey.people.retention.hooks import derived_rows, reason_to_wait
from survey.people.retention.row_digests import Tallies
from survey.people.retention.terms import WARNING, current_term
from survey.work.jobs import JobRefused, Progress, job

KIND = "retention.destroy"
# People of one transaction: within a second, so that a hold waits no longer.
BATCH = 1000
# Tries to lock the partition, each for a tenth of a second: somebody may read it.
TRIES = 50
GOES_ON = gettext_noop("This goes on by itself within an hour.")
RESPONDENTS = Respondent._meta.db_table
RESPONSES = Response._meta.db_table
# What a respondent loses; school, grade, groups and times stay for figures.
EMPTIED = ("id", "code_digest", "classroom")
DESTROY = "SELECT * FROM survey_destroy_answers(%s, %s, %s)"


class Paused(Exception):
    """A hold was placed and lifted meanwhile; the message says until when it waits."""


class UnknownDigest(Func):
    """A digest that no code has: of the code's digest and a salt that is not stored."""

    function = "sha256"
    arg_joiner = " || "
    output_field = BinaryField()

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        return "randomblob(32)", ()


@job(KIND, long=True, stoppable=False, waits=True)
def destroy_data(job: Job, progress: Progress) -> None:
    """Destroy what was ordered; do nothing where that has ended."""
    destruction = Destruction.objects.select_related(
        "administration__published__survey", "administration__district", "by"
    ).get(pk=job.subject_id or 0)
    if destruction.state != Destruction.State.RUNNING:
        return
    if reason := reason_to_pause(destruction):
        progress.message = reason
        return
    # What was under way when this was ordered. Nothing new begins since.
    if reason := reason_to_wait(destruction.administration, destruction.kind):
        progress.message = f"{reason} {_(GOES_ON)}"
        return
    if reason := certificates.reason_not_to_certify():
        raise JobRefused(reason)
    try:
        destroy_rows_of(destruction, progress)
    except OnHold as hold:
        raise JobRefused(str(hold)) from hold
    except Paused as paused:
        progress.message = str(paused)
        return
    except Destruction.DoesNotExist:
        # A worker that seemed dead has ended it.
        return
    progress.message = _("Destroyed.")


def reason_to_pause(destruction: Destruction) -> str:
    """Return why an ordered destruction waits for a month after a hold, or "".

    2 statements.
    """
    term = current_term(destruction.administration_id, destruction.kind)
    if term.warned_at is None:
        return _(
            "A hold was lifted, so administrators are warned anew. Nothing more is"
            " destroyed in the month after this warning."
        )
    if term.was_warned_long_ago(timezone.now()):
        return ""
    return warned_words(term.warned_at)


def _refuse_if_paused(destruction: Destruction) -> None:
    """Raise Paused if a hold came and went, which no look at current holds shows.

    Behind the lock by which holds wait: the answer stays true until the commit.
    """
    if reason := reason_to_pause(destruction):
        raise Paused(reason)


def warned_words(warned_at: datetime) -> str:
    return _(
        "Administrators were warned on %(warned)s. Nothing is destroyed before"
        " %(earliest)s."
    ) % {
        "warned": date_format(localtime(warned_at), "DATE_FORMAT"),
        "earliest": date_format(localtime(warned_at + WARNING), "DATE_FORMAT"),
    }


def destroy_rows_of(destruction: Destruction, progress: Progress | None = None) -> None:
    """Destroy what is left of an ordered destruction.

    Raises OnHold, and SigningKeyMissing before anything is destroyed. With `progress`
    also Paused: without, as after a restore, nobody is warned.
    """
    signing_key()
    if destruction.kind == DataKind.IDENTITIES:
        destroy_identities(destruction, progress)
    else:
        destroy_answers(destruction, progress)


def destroy_identities(destruction: Destruction, progress: Progress | None) -> None:
    """Destroy who took part, and cut what joins a record with others for good."""
    people = destruction.administration.respondents.filter(pk__gt=destruction.position)
    if progress:
        total = people.count()
        progress.begin_step(_("Destroying names and access codes"), total=total)
    while done := destroy_batch(destruction, progress):
        if progress:
            progress.advance(done)
    _delete_files(destruction, progress)
    with transaction.atomic(), connection.cursor() as cursor:
        current = _locked(destruction, cursor)
        advisory_locks.lock(advisory_locks.ROSTER, current.administration_id)
        refuse_if_held([current.administration_id])
        if progress:
            _refuse_if_paused(current)
        tallies = _tallies(current)
        # IDs on lists, and what a request in flight wrote after its batch.
        for model, rows in rows_of_round(current.administration_id, Erasing.RELEASED):
            _destroy_rows(tallies, rows, person_fields(model))
        for model, rows in rows_of_round(current.administration_id, Erasing.DELETED):
            if model is not Response:
                _destroy_rows(tallies, rows, ())
        _end(current, progress)


def destroy_batch(destruction: Destruction, progress: Progress | None = None) -> int:
    """Destroy the names of the next people in 1 transaction; return how many."""
    with transaction.atomic(), connection.cursor() as cursor:
        current = _locked(destruction, cursor)
        administration = current.administration_id
        # No roster is applied and nobody is erased or joined at the same time.
        advisory_locks.lock(advisory_locks.ROSTER, administration)
        refuse_if_held([administration])
        if progress:
            _refuse_if_paused(current)
        people = Respondent.objects.filter(
            administration=administration, pk__gt=current.position
        )
        keys = list(people.order_by("pk").values_list("pk", flat=True)[:BATCH])
        if keys:
            _destroy_people(keys, administration, _tallies(current))
            current.position = keys[-1]
            current.save(update_fields=["position", "tables"])
    return len(keys)


def _locked(destruction: Destruction, cursor: CursorWrapper) -> Destruction:
    """Return the row as it is, locked against another worker, without time limits."""
    if connection.vendor == "postgresql":
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SET LOCAL lock_timeout = 0")
    if settings.IS_DISTRIBUTED:
        cursor.execute("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")
    running = Destruction.objects.filter(state=Destruction.State.RUNNING)
    return running.select_for_update().get(pk=destruction.pk)


def _tallies(destruction: Destruction) -> Tallies:
    """Return what was destroyed up to now, to add to; saving the row stores it."""
    return Tallies(destruction.tables, bytes(destruction.digest_key or b""))


def _destroy_people(keys: Sequence[int], administration: int, tallies: Tallies) -> None:
    people = Respondent.objects.filter(pk__in=keys)
    lock_respondents(people.only("pk"))
    for model, rows in rows_of_people(keys, administration, Erasing.RELEASED):
        _destroy_rows(tallies, rows, person_fields(model))
    for model, rows in rows_of_people(keys, administration, Erasing.DELETED):
        if model is not Response:
            _destroy_rows(tallies, rows, ())
    values = list(people.order_by("pk").values_list(*EMPTIED))
    tallies.add_values(RESPONDENTS, values)
    forget_routes(bytes(digest) for _key, digest, _classroom in values)
    salt = Value(secrets.token_bytes(32), output_field=BinaryField())
    people.update(classroom="", code_digest=UnknownDigest(F("code_digest"), salt))
    people_removed(keys)


def _destroy_rows(
    tallies: Tallies, rows: QuerySet[Any], released: Sequence[str]
) -> None:
    """Digest rows, and delete them or release them from their person."""
    model: type[Model] = rows.model
    tallies.add_rows(rows, *person_fields(model)[:1])
    if released:
        rows.update(**dict.fromkeys(released))
    else:
        raw_delete(rows)


def destroy_answers(destruction: Destruction, progress: Progress | None) -> None:
    """Destroy what people answered, and what was made of single people's answers.

    Until the end, other sessions can read the answers, and nobody writes them.
    """
    _delete_files(destruction, progress)
    try:
        _destroy_answers_and_derived(destruction, progress)
    except IntegrityError as error:
        # The database refuses: a hold was placed while answers were read.
        if hold := hold_on([destruction.administration_id]):
            raise OnHold(hold) from error
        # And lifted since.
        if progress:
            _refuse_if_paused(destruction)
        raise


@transaction.atomic
def _destroy_answers_and_derived(
    destruction: Destruction, progress: Progress | None
) -> None:
    with connection.cursor() as cursor:
        current = _locked(destruction, cursor)
        administration = current.administration_id
        # Without the lock by which new holds would wait for minutes.
        if hold := hold_on([administration]):
            raise OnHold(hold)
        tallies = _tallies(current)
        if progress:
            progress.begin_step(_("Reading what is destroyed"))
        for derived in derived_rows(administration):
            tallies.add_rows(derived.rows)
            if derived.emptied:
                derived.rows.update(**derived.emptied)
            else:
                raw_delete(derived.rows)
        # Last, because nobody reads the partition from then on until the commit.
        if connection.vendor == "postgresql":
            _empty_partition(cursor, administration, tallies)
        else:
            answers = Response.objects.filter(administration_id=administration)
            tallies.add_rows(answers, "respondent_id")
            raw_delete(answers)
        if progress:
            _refuse_if_paused(current)
        _end(current, progress)


def _empty_partition(
    cursor: CursorWrapper, administration: int, tallies: Tallies
) -> None:
    """Let a function of the tables' owner digest the answers, and empty their table.

    Nothing else is locked: migration 0020. Raises OperationalError where somebody reads
    the table for long: the job is repeated.
    """
    key = tallies.digest_of(RESPONSES)
    cursor.execute(DESTROY, [administration, key, TRIES])
    [(digest, rows)] = cursor.fetchall()
    tallies.store(RESPONSES, rows, bytes(digest))


def _delete_files(destruction: Destruction, progress: Progress | None) -> None:
    """Delete files in 1 transaction, in which no hold begins.

    Raises OnHold, and with `progress` Paused.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        current = _locked(destruction, cursor)
        refuse_if_held([current.administration_id])
        if progress:
            _refuse_if_paused(current)
        deleted = round_files.delete_round_files(
            current.administration_id, current.kind
        )
        rows = Destruction.objects.filter(pk=current.pk)
        rows.update(files=F("files") + deleted)


def _end(destruction: Destruction, progress: Progress | None) -> None:
    """Record what was destroyed, in the transaction that destroys the last of it."""
    destruction.state = Destruction.State.DONE
    destruction.destroyed_at = timezone.now()
    destruction.tables = dict(sorted(destruction.tables.items()))
    certificates.certify(destruction)
    destruction.save(update_fields=["state", "destroyed_at", "tables", "digest_key"])
    administration = destruction.administration
    audit.record(
        "destroy data",
        by=destruction.by or round_files.BY,
        subject=administration,
        district=administration.district,
        after={
            "data": destruction.kind,
            "rows": destruction.rows,
            "files": destruction.files,
        },
    )
    if progress:
        progress.confirm()
