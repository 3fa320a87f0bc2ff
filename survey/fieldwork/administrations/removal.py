"""Remove an administration that was opened by mistake, while nobody has started.

Everything that is about it alone is deleted with it; audit entries, surveys, waves
and schools stay. See the decisions in `survey/fieldwork/administrations/README.md`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain

from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Model, Q, QuerySet, Sum
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts import audit
from accounts.models import User
from survey.fieldwork.administrations import checks
from survey.fieldwork.administrations.changes import lock_administration
from survey.fieldwork.administrations.checks import (
    LOCK_NOT_AVAILABLE,
    ChangeBlocked,
    ConfirmationRequired,
)
from survey.fieldwork.administrations.queries import has_started
from survey.fieldwork.message_platforms.hooks import (
    administration_removed,
    people_removed,
)
from survey.models import (
    Administration,
    CardSet,
    Consent,
    CountedGroup,
    DeviceLogin,
    EmailDelivery,
    EmailSchedule,
    EmailStep,
    ErasedRecord,
    Identity,
    Job,
    ListedId,
    OpenCodeBatch,
    OpenCodeFile,
    OpenCodeSeat,
    OpenDecline,
    OptOut,
    PairChoice,
    PersonFile,
    RecordJoin,
    Respondent,
    Response,
    RosterChange,
    RosterMissing,
)
from survey.people.rosters.roster_lock import RosterIsRunning, hold_off_rosters
from survey.work.files import delete_files

# All in one transaction, within the 15 seconds of a request.
MOST_PEOPLE = 20_000
# Tries to get the locks of the last step, each for a tenth of a second. Page saves
# of all administrations wait meanwhile, so there are pauses between them.
TRIES = 10
PAUSE = 0.2
# PostgreSQL's error code, raised by the function that drops the partition.
RESTRICT_VIOLATION = "23001"

STARTED = gettext_noop(
    "People have started, so it can't be removed. Close it, or change its dates."
)

Hook = Callable[[Administration], None]
_hooks: list[Hook] = []


def before_removal(hook: Hook) -> Hook:
    """Register a function that deletes what another app keeps of an administration.

    It is called in the transaction, and may raise ChangeBlocked.
    """
    _hooks.append(hook)
    return hook


def remove_administration(
    *,
    administration: Administration,
    seen: int | None,
    confirmed: str,
    by: User | str,
    request: HttpRequest | None = None,
) -> None:
    """Delete an administration and its people, cards, codes, e-mails and rosters.

    `seen` is the number of changes that the user's page had loaded; `confirmed` is
    the short name, which the user typed.

    Raises PermissionDenied, ChangeBlocked, ConfirmationRequired, EditConflict and
    DatabaseBusy, and Administration.DoesNotExist if it was removed meanwhile.
    """
    with checks.refuse_lock_timeouts(), transaction.atomic():
        # New rosters, cards and codes wait for this lock, because they refer to it.
        current = lock_administration(administration, by=by, seen=seen, no_key=False)
        _refuse_to_remove(current, confirmed)
        people = current.respondents.count()
        audit.record(
            "remove administration",
            by=by,
            request=request,
            subject=current,
            district=current.district,
            before={"title": current.title, "respondents": people},
        )
        for hook in _hooks:
            hook(current)
        key = {"administration": current}
        names = [
            *CardSet.objects.filter(**key).values_list("file_name", flat=True),
            *OpenCodeFile.objects.filter(**key).values_list("file_name", flat=True),
            *chain(*current.rosters.values_list("file", "rejected_file")),
        ]
        transaction.on_commit(partial(delete_files, *names))
        people_removed(list(current.respondents.values_list("pk", flat=True)))
        running = _unfinished_jobs(current)
        _delete_people(current)
        # Jobs that were started before the lock was taken can be seen now.
        if running.exists():
            raise ChangeBlocked(
                _(
                    "A job of this survey round has not ended, such as a file of"
                    " cards or an e-mail. Try again when it has."
                )
            )
        # People come to a module as they begin with a code: without a row to lock.
        has_codes = current.module_of_id is not None or current.open_codes.exists()
        pk = current.pk
        administration_removed(pk)
        _delete_open_codes(current)
        current.rosters.all().delete()
        current.delete()
        if connection.vendor == "postgresql":
            _drop_partition(pk, has_codes=has_codes)


def _refuse_to_remove(current: Administration, confirmed: str) -> None:
    """Raise ChangeBlocked or ConfirmationRequired, or hold off its rosters."""
    if reason := reason_not_to_remove(current):
        raise ChangeBlocked(reason)
    if confirmed != current.name:
        words = _("To confirm, type its short name: %(name)s")
        raise ConfirmationRequired({"confirmed": words % {"name": current.name}})
    try:
        hold_off_rosters(current)
    except RosterIsRunning as error:
        raise ChangeBlocked(str(error)) from error


def _delete_open_codes(administration: Administration) -> None:
    """Delete its open codes with what refers to them."""
    codes = Q(open_code__in=administration.open_codes.values("pk"))
    _delete_rows(OpenCodeSeat.objects.filter(codes))
    _delete_rows(OpenDecline.objects.filter(codes))
    OpenCodeFile.objects.filter(administration=administration).delete()
    OpenCodeBatch.objects.filter(administration=administration).delete()
    administration.open_codes.all().delete()


def reason_not_to_remove(administration: Administration) -> str:
    """Return why it cannot be removed, or "". 4 statements."""
    if has_started(administration):
        return _(STARTED)
    feeds = administration.feeds.filter(removed_at=None)
    if names := ", ".join(feeds.values_list("name", flat=True)):
        return _(
            "Roster syncs bring people to it: %(names)s."
            " Take it out of these roster syncs first."
        ) % {"names": names}
    modules = administration.modules.order_by("district__name")
    if names := ", ".join(modules.values_list("district__name", flat=True)):
        return _(
            "Districts have added questions to it: %(names)s. They remove them first."
        ) % {"names": names}
    people = administration.respondents.count()
    if people > MOST_PEOPLE:
        return _(
            "It has %(people)s people, and at most %(most)s can be deleted at once."
            " Undo its rosters first."
        ) % {"people": f"{people:,}", "most": f"{MOST_PEOPLE:,}"}
    return ""


@dataclass(frozen=True, slots=True)
class RemovalCounts:
    """What would be deleted, and what people may hold in their hands."""

    people: int
    # In files, so maybe printed; a person may have several.
    cards: int
    open_codes: int
    emails: int
    opt_outs_and_consents: int
    rosters: int


def count_removed(administration: Administration) -> RemovalCounts:
    """Count what removing it would delete. 9 statements."""
    sets = administration.card_sets.filter(made_at__isnull=False)
    codes_by_email = sets.filter(format=CardSet.Format.EMAIL)
    cards = sets.exclude(format=CardSet.Format.EMAIL)
    sent = EmailDelivery.objects.filter(
        step__schedule__administration=administration,
        state=EmailDelivery.State.SENT,
    )
    of_people = Q(respondent__administration=administration)
    return RemovalCounts(
        people=administration.respondents.count(),
        cards=cards.aggregate(sum=Sum("people"))["sum"] or 0,
        open_codes=administration.open_codes.filter(revoked_at=None).count(),
        emails=sent.count() + (codes_by_email.aggregate(n=Sum("people"))["n"] or 0),
        opt_outs_and_consents=(
            OptOut.objects.filter(of_people).count()
            + Consent.objects.filter(of_people).count()
            + ListedId.objects.filter(administration=administration).count()
        ),
        rosters=administration.rosters.count(),
    )


def _unfinished_jobs(administration: Administration) -> QuerySet[Job]:
    """Return the jobs about it, by keys that are read before the rows are deleted."""

    def keys(rows: QuerySet[Model], name: str = "pk") -> list[int]:
        return list(rows.order_by().values_list(name, flat=True))

    rosters = administration.rosters.all()
    schedules = EmailSchedule.objects.filter(administration=administration)
    templates = "steps__templates"
    subjects = Q()
    for kind, ids in (
        ("roster.", keys(rosters)),
        ("feed.", keys(rosters.filter(scan__isnull=False), "scan")),
        ("cards.make", keys(administration.card_sets.all())),
        ("results.count", [administration.pk]),
        ("scores.", [administration.pk]),
        ("emails.send", keys(schedules)),
        ("emails.test", keys(schedules.exclude(**{templates: None}), templates)),
        (
            "open_codes.file",
            keys(OpenCodeFile.objects.filter(administration=administration)),
        ),
        (
            "open_codes.create",
            keys(OpenCodeBatch.objects.filter(administration=administration)),
        ),
        (
            "people.erase",
            keys(ErasedRecord.objects.filter(administration=administration), "erasure"),
        ),
        (
            "people.stored",
            keys(PersonFile.objects.filter(respondent__administration=administration)),
        ),
        ("people.join", keys(RecordJoin.objects.filter(administration=administration))),
    ):
        subjects |= Q(kind__startswith=kind, subject_id__in=ids)
    return Job.objects.filter(subjects, ended_at=None)


def _delete_people(administration: Administration) -> None:
    """Delete everybody, or raise ChangeBlocked if somebody has started.

    A login writes `started_at` before the first answer can be saved. This waits for
    those that have the row, and sees their start; those that come later wait for
    this, and find nobody.
    """
    of_administration = Q(administration=administration)
    steps = EmailStep.objects.filter(schedule__administration=administration)
    of_rosters = Q(upload__in=administration.rosters.values("pk"))
    of_people = Q(respondent__in=administration.respondents.values("pk"))
    for model, rows in (
        (CardSet, of_administration),
        (CountedGroup, of_administration),
        (DeviceLogin, of_administration),
        (RecordJoin, of_administration),
        (RosterChange, of_rosters),
        (RosterMissing, of_rosters),
        (EmailDelivery, Q(step__in=steps.values("pk"))),
        (Consent, of_people),
        (OptOut, of_people),
        (PairChoice, of_people),
        (PersonFile, of_people),
        (ErasedRecord, of_administration),
        (Identity, of_administration),
    ):
        _delete_rows(model._default_manager.filter(rows))
    _delete_rows(
        Respondent.objects.filter(administration=administration, started_at=None)
    )
    if administration.respondents.exists():
        raise ChangeBlocked(_(STARTED))
    # The console's role reads no responses: on PostgreSQL, the function does.
    answers = Response.objects.filter(administration_id=administration.pk)
    if connection.vendor != "postgresql" and answers.exists():
        raise ChangeBlocked(_(STARTED))


def _delete_rows(rows: QuerySet[Model]) -> None:
    """Delete rows in 1 statement; those that refer to them are deleted apart."""
    rows._raw_delete(rows.db)


def _drop_partition(pk: int, *, has_codes: bool) -> None:
    """Drop the partition as the last step, because its locks last until the commit.

    Raises ChangeBlocked and DatabaseBusy.
    """
    with connection.cursor() as cursor:
        # Otherwise constraints would be checked at the commit, under these locks.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL lock_timeout = '100ms'")
        for remaining in reversed(range(TRIES)):
            try:
                with transaction.atomic():
                    # Starts with an open code lock nothing, and one in flight may
                    # have found the code before it was deleted.
                    if has_codes:
                        cursor.execute("LOCK TABLE survey_respondent IN SHARE MODE")
                    # A function that runs as the tables' owner: migration 0002.
                    cursor.execute("SELECT survey_drop_partition(%s)", [pk])
                return
            except OperationalError as error:
                is_locked = getattr(error.__cause__, "pgcode", "") == LOCK_NOT_AVAILABLE
                if not is_locked or not remaining:
                    raise
            except IntegrityError as error:
                if getattr(error.__cause__, "pgcode", "") != RESTRICT_VIOLATION:
                    raise
                raise ChangeBlocked(_(STARTED)) from error
            time.sleep(PAUSE)
