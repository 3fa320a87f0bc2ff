"""Undo an applied roster, as long as none of its new people has started.

Applying has recorded what it did to each person (`change_record`). Undoing goes
through these records in short transactions, each of which also deletes its records:
a run that was interrupted finds the rest, and nothing is undone twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import User
from accounts.permissions import Permissions
from survey.database.respondent_locks import lock_respondents
from survey.fieldwork.message_platforms.hooks import people_removed
from survey.models import (
    CardSet,
    EmailDelivery,
    Job,
    Respondent,
    RosterChange,
    RosterUndo,
    RosterUpload,
)
from survey.people.answered_people import answered_people
from survey.people.opt_outs.consents import people_with_consents
from survey.people.rosters.apply import CHANGE_AT_ONCE, update_rows
from survey.people.rosters.batch_writes import write_batch
from survey.people.rosters.counted_groups import (
    keep_groups_of_changed,
    keep_groups_of_withdrawn,
)
from survey.people.rosters.dry_run import upload_of_job
from survey.people.rosters.empty_places import (
    delete_empty_districts,
    delete_empty_schools,
)
from survey.people.rosters.scope import scope_of_upload
from survey.people.rosters.staging import Staging, open_staging, sql_keys
from survey.people.rosters.upload_state import (
    UploadConflict,
    change_state,
    record_action,
)
from survey.work.jobs import JobRefused, Progress, job, start

State = RosterUpload.State
Change = RosterChange.Change

NOT_RECORDED = gettext_noop(
    "What this roster changed is no longer stored, so it cannot be undone."
    " Records are kept for 30 days, and until a roster is imported without"
    " the console."
)
LATER_ROSTER = gettext_noop(
    "“{name}” of {date} was applied later, at least in part, and lists people"
    " of the same schools. Undo that roster first."
)
STARTED = gettext_noop(
    "At least one person whom this roster added or brought back has started"
    " the survey, so it cannot be undone. To remove people, upload a roster"
    " without them."
)
TOO_FEW = gettext_noop(
    "Nobody may see who has started this survey, and undoing a roster with so"
    " few new people would show it. To remove them, upload a roster without"
    " them."
)
NOT_PERMITTED = gettext_noop(
    "You may no longer manage rosters in the place of this roster."
)
# A roster that was not fully applied has records of the people whom it changed.
CAN_BE_UNDONE = (State.APPLIED, State.FAILED)
# As for login cards: among fewer people, each is known.
FEWEST_HIDDEN = CardSet.MIN_DRAWN

_RESPONDENT = ["school_id", "grade", "classroom", "language", "attributes"]
_IDENTITY = ["external_id", "given_name", "family_name", "email", "birth_date"]
_EARLIER_PEOPLE = """
    INSERT INTO roster_batch (row, respondent_id, {columns})
    SELECT row_number() OVER (ORDER BY respondent_id), respondent_id, {columns}
    FROM survey_rosterchange WHERE upload_id = %s AND respondent_id IN ({keys})
    """
_EARLIER_WITHDRAWAL = """
    UPDATE survey_respondent SET withdrawn_at = (
        SELECT c.withdrawn_at FROM survey_rosterchange AS c
        WHERE c.upload_id = %s AND c.respondent_id = survey_respondent.id)
    WHERE id IN ({keys})
    """


def count_changes(upload: RosterUpload) -> Counter[str]:
    """Return how many people of each change can be undone. 1 statement."""
    rows = RosterChange.objects.filter(upload=upload).values("change")
    return Counter(
        {row["change"]: row["people"] for row in rows.annotate(people=Count("change"))}
    )


def reason_not_to_undo(upload: RosterUpload) -> str:
    """Return why a roster cannot be undone, or an empty string. 5 statements."""
    undo = RosterUndo.objects.filter(upload=upload).first()
    if undo is None:
        return _(NOT_RECORDED)
    if later := _later_roster(upload, undo):
        uploaded_at = timezone.localtime(later.uploaded_at)
        return _(LATER_ROSTER).format(
            name=later.name, date=date_format(uploaded_at, "DATETIME_FORMAT")
        )
    changes = count_changes(upload)
    new = changes[Change.ADDED] + changes[Change.BACK]
    administration = upload.administration
    if (
        0 < new < FEWEST_HIDDEN
        and administration.is_completion_confidential
        and administration.opens_at <= timezone.now()
    ):
        return _(TOO_FEW)
    started = RosterChange.objects.filter(
        Q(change=Change.ADDED, respondent__started_at__isnull=False)
        | Q(change=Change.BACK, respondent__started_at__gte=undo.began_at),
        upload=upload,
    )
    return _(STARTED) if new and started.exists() else ""


def _later_roster(upload: RosterUpload, undo: RosterUndo) -> RosterUpload | None:
    """Return a roster applied since then that names one of the same schools."""
    jobs = Job.objects.filter(kind="roster.apply", subject_id=OuterRef("pk"))
    later = RosterUpload.objects.filter(
        Q(ended_at__gte=undo.began_at, state=State.APPLIED)
        | Q(state__in=(State.APPLYING, State.UNDOING))
        # Without a record, nothing of it was applied.
        | Q(state=State.FAILED, confirmed_at__isnull=False, undo__isnull=False)
        & (
            Q(scan__ended_at__gte=undo.began_at)
            | Exists(jobs.filter(ended_at__gte=undo.began_at))
        ),
        administration=upload.administration_id,
    ).exclude(pk=upload.pk)
    schools = set(undo.schools)
    for roster in later.select_related("undo").order_by("-pk"):
        record = getattr(roster, "undo", None)
        if record is None or not schools.isdisjoint(record.schools):
            return roster
    return None


@transaction.atomic
def start_undo(
    upload: RosterUpload, *, by: User, request: HttpRequest | None = None
) -> None:
    """Start undoing a roster, also one that was applied in part, or go on with it.

    Raises UploadConflict.
    """
    current = RosterUpload.objects.select_for_update().get(pk=upload.pk)
    if current.state == State.UNDOING:
        jobs = Job.objects.filter(kind="roster.undo", subject_id=upload.pk)
        if jobs.filter(ended_at=None).exists():
            raise UploadConflict(_("This roster is already being undone."))
    elif current.state in CAN_BE_UNDONE and (reason := reason_not_to_undo(upload)):
        raise UploadConflict(reason)
    change_state(
        upload,
        allowed=(*CAN_BE_UNDONE, State.UNDOING),
        values={"state": State.UNDOING, "message": ""},
    )
    RosterUndo.objects.filter(upload=upload).update(by=by)
    figures = {
        Change(change).name.lower(): people
        for change, people in sorted(count_changes(upload).items())
    }
    record_action("undo roster", upload, by=by, request=request, **figures)
    start(undo_roster, subject_id=upload.pk, by=by)


@job("roster.undo", long=True, stoppable=False)
def undo_roster(job: Job, progress: Progress) -> None:
    """Give everybody back what they had before a roster was applied."""
    upload = upload_of_job(job)
    with open_staging() as staging:
        progress.begin_step(_("Waiting for another roster of this survey round"))
        staging.lock(upload.administration_id)
        upload.refresh_from_db(fields=["state"])
        if upload.state != State.UNDOING:
            return
        undo = RosterUndo.objects.select_related("by").get(upload=upload)
        is_untouched = not (undo.removed + undo.withdrawn + undo.restored + undo.kept)
        if is_untouched and (reason := _refusal(upload, undo)):
            before = State.APPLIED if upload.ended_at else State.FAILED
            change_state(
                upload,
                allowed=(State.UNDOING,),
                values={"state": before, "message": reason},
            )
            raise JobRefused(reason)
        undo_changes(upload, undo, progress)
        delete_empty_schools(undo.new_schools)
        delete_empty_districts(undo.new_districts)
        with transaction.atomic():
            _finish(upload)
            progress.confirm()
    progress.message = _("Undone.")


def _refusal(upload: RosterUpload, undo: RosterUndo) -> str:
    by = undo.by
    if by is None or scope_of_upload(upload, Permissions(by)) is None:
        return _(NOT_PERMITTED)
    return reason_not_to_undo(upload)


def undo_changes(upload: RosterUpload, undo: RosterUndo, progress: Progress) -> None:
    """Undo all changes to people.

    New people first: until they are removed, they can start, and stay.
    """
    done = 0
    for changes, write in (
        ((Change.ADDED,), _remove_people),
        ((Change.BACK,), _withdraw_again),
        ((Change.CHANGED, Change.MOVED), _restore_people),
        ((Change.WITHDRAWN,), _bring_back),
    ):
        for ids in _in_batches(upload, changes):
            write_batch(partial(_undo_batch, undo, write, ids))
            done += len(ids)
            progress.begin_step(_("Undoing changes: %(done)s") % {"done": f"{done:,}"})


def _in_batches(upload: RosterUpload, changes: Collection[str]) -> Iterator[list[int]]:
    rows = RosterChange.objects.filter(upload=upload, change__in=changes)
    after = 0
    while batch := list(
        rows.filter(respondent__gt=after)
        .order_by("respondent")
        .values_list("respondent", flat=True)[:CHANGE_AT_ONCE]
    ):
        yield batch
        after = batch[-1]


def _undo_batch(
    undo: RosterUndo,
    write: Callable[[Staging, RosterUndo, list[int]], Counter[str]],
    ids: list[int],
    writer: Staging,
) -> tuple[None, list[int]]:
    counts = write(writer, undo, ids)
    rows = RosterChange.objects.filter(upload=undo.upload_id, respondent__in=ids)
    rows._raw_delete(rows.db)
    RosterUndo.objects.filter(pk=undo.pk).update(
        **{name: F(name) + number for name, number in counts.items()}
    )
    return None, ids


def not_started(ids: Collection[int]) -> list[int]:
    """Lock these people's rows; return those who have not started.

    A login writes `started_at` before the first answer can be saved, and a page save
    locks the person's row. So either this sees a start, or the person is gone when
    the answer arrives, and it is refused: no acknowledged answer is lost. Answers are
    looked for as well, because a start can be lost with a server, while its tab sends
    the answers again.
    """
    people = Respondent.objects.filter(pk__in=ids)
    rows = lock_respondents(people.values_list("pk", "started_at", "administration_id"))
    free = [pk for pk, started_at, _ in rows if started_at is None]
    with_answers = answered_people(rows[0][2], free) if free else set()
    return [pk for pk in free if pk not in with_answers]


def _remove_people(writer: Staging, undo: RosterUndo, ids: list[int]) -> Counter[str]:
    """Delete new people; withdraw those who were sent their code.

    Also those who have opted out, or whose consent was recorded, so that the next
    roster that lists them finds both.

    Deleting leaves nothing of a person who was never meant to be here. Primary keys
    are never given again, so a card that was printed opens no other person's survey.
    """
    free = not_started(ids)
    known = set(
        EmailDelivery.objects.filter(respondent__in=free).values_list(
            "respondent", flat=True
        )
    ) | set(
        CardSet.objects.filter(respondent__in=free).values_list("respondent", flat=True)
    )
    opted_out = Respondent.objects.filter(
        pk__in=free, opted_out_at__isnull=False, awaits_consent=False
    )
    known.update(opted_out.values_list("pk", flat=True), people_with_consents(free))
    if known:
        keep_groups_of_withdrawn(writer, sorted(known))
        Respondent.objects.filter(pk__in=known).update(withdrawn_at=timezone.now())
    removed = [pk for pk in free if pk not in known]
    Respondent.objects.filter(pk__in=removed).delete()
    people_removed(removed)
    return Counter(
        removed=len(removed), withdrawn=len(known), kept=len(ids) - len(free)
    )


def _withdraw_again(writer: Staging, undo: RosterUndo, ids: list[int]) -> Counter[str]:
    people = Respondent.objects.filter(pk__in=ids)
    free = [
        pk
        for pk, started_at in lock_respondents(people.values_list("pk", "started_at"))
        if started_at is None or started_at < undo.began_at
    ]
    if free:
        keep_groups_of_withdrawn(writer, free)
        _load_earlier(writer, undo, free)
        _update_from_batch(writer)
        writer.execute(
            _EARLIER_WITHDRAWAL.format(keys=sql_keys(free)), [undo.upload_id]
        )
    return Counter(restored=len(free), kept=len(ids) - len(free))


def _restore_people(writer: Staging, undo: RosterUndo, ids: list[int]) -> Counter[str]:
    _load_earlier(writer, undo, ids)
    keep_groups_of_changed(writer, _RESPONDENT, are_back=False)
    _update_from_batch(writer)
    return Counter(restored=len(ids))


def _bring_back(writer: Staging, undo: RosterUndo, ids: list[int]) -> Counter[str]:
    _load_earlier(writer, undo, ids)
    keep_groups_of_changed(writer, [], are_back=True)
    people = Respondent.objects.filter(pk__in=ids, opted_out_at=None)
    return Counter(restored=people.update(withdrawn_at=None))


def _load_earlier(writer: Staging, undo: RosterUndo, ids: Collection[int]) -> None:
    """Fill `roster_batch` with the recorded data of these people."""
    columns = ", ".join((*_RESPONDENT, *_IDENTITY))
    query = _EARLIER_PEOPLE.format(columns=columns, keys=sql_keys(ids))
    writer.execute(query, [undo.upload_id])


def _update_from_batch(writer: Staging) -> None:
    update_rows(writer, "survey_identity", "respondent_id", _IDENTITY)
    update_rows(writer, "survey_respondent", "id", _RESPONDENT)


def _finish(upload: RosterUpload) -> None:
    now = timezone.now()
    change_state(upload, allowed=(State.UNDOING,), values={"state": State.UNDONE})
    RosterUndo.objects.filter(upload=upload).update(ended_at=now)
    undo = RosterUndo.objects.select_related("by").get(upload=upload)
    record_action(
        "roster undone",
        upload,
        by=undo.by or upload.by,
        removed=undo.removed,
        withdrawn=undo.withdrawn,
        restored=undo.restored,
        kept=undo.kept,
    )
