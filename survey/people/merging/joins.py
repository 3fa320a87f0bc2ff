"""Join two records of one person in an administration.

Somebody has compared the records on a page. A job checks again who has started, with
the rows of both records locked, and joins them in one transaction. From then on,
rosters find the person by either ID: see `survey.people.rosters.joined_ids`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.audit import record
from accounts.models import School, User
from accounts.permissions import Capability, Permissions
from survey.models import (
    Administration,
    Identity,
    Job,
    PlaceMerge,
    RecordJoin,
    Respondent,
    RosterChange,
    RosterUpload,
)
from survey.people.merging.people import (
    Pair,
    read_records,
    roster_lock,
    withdraw_duplicate,
)
from survey.people.rosters.batch_writes import write_batch
from survey.people.rosters.staging import Staging
from survey.work.jobs import JobRefused, Progress, job, start

State, Keep = RecordJoin.State, PlaceMerge.Keep
KIND = "people.join"
# With both, a user may see and change a person.
NEEDED = (Capability.SEE_IDENTITIES, Capability.MANAGE_ROSTERS)

HIDDEN = gettext_noop(
    "Nobody may see who has started this survey, and joining two records"
    " would show it. Records can be joined until the survey opens. To invite"
    " a person once, upload a roster without one of the two records."
)
FOR_DISTRICT = gettext_noop(
    "Individual progress is hidden in this survey round. Ask your district"
    " to join the two records before the survey opens."
)
GONE = gettext_noop(
    "One of the two records is no longer there, or was joined before. Nothing"
    " was changed."
)
NOT_PERMITTED = gettext_noop(
    "You may no longer join these records. Nothing was changed."
)
BOTH_STARTED = gettext_noop(
    "Both records have been started in the meantime. Nothing was changed."
    " Choose which one stays."
)


@dataclass(slots=True)
class JoinsOfPerson:
    """What a person's page tells about joins."""

    # IDs of records that were joined with this one, and withdrawn.
    other_ids: list[str] = field(default_factory=list)
    # The record that this one was joined with, after which it was withdrawn.
    joined_with: int | None = None
    # The job of a join that has not ended, or why the latest join failed.
    job: Job | None = None
    problem: str = ""


def joins_of(person: Respondent) -> JoinsOfPerson:
    """Return what has become of a person's joins. 1 statement; 2 after a request."""
    summary = JoinsOfPerson()
    joins = list(RecordJoin.objects.filter(Q(kept=person) | Q(other=person)))
    for join in joins:
        if join.state == State.JOINED and join.kept_id == person.pk:
            # Without a district, another person has this ID now.
            summary.other_ids += [join.external_id] if join.district_id else []
        elif join.state == State.JOINED:
            summary.joined_with = join.kept_id
    if joins and joins[0].state != State.JOINED:
        jobs = Job.objects.filter(kind=KIND, subject_id=joins[0].pk)
        latest = jobs.order_by("-pk").first()
        if latest and not latest.is_over:
            summary.job = latest
        else:
            summary.problem = joins[0].message or (latest.message if latest else "")
    return summary


def reason_not_to_join(
    administration: Administration, district_id: int, permissions: Permissions
) -> str:
    """Return why nobody, or this user, may join records here; or an empty string.

    The record that stays shows which one was started. And who joins a person with a
    record that has another e-mail address decides where the code is sent.
    """
    if not administration.is_completion_confidential:
        return ""
    if administration.opens_at <= timezone.now():
        return _(HIDDEN)
    places = permissions.places(*NEEDED)
    return "" if places.has_district(district_id) else _(FOR_DISTRICT)


@transaction.atomic
def request_join(
    target: Respondent,
    duplicate: Respondent,
    *,
    by: User,
    is_chosen: bool = False,
    request: HttpRequest | None = None,
) -> RecordJoin:
    """Start the job that joins two records.

    If one record has been started, that one stays, also instead of `target`. With
    `is_chosen`, somebody has chosen `target` knowing that both have been started.
    """
    join = RecordJoin.objects.create(
        administration_id=target.administration_id,
        kept=target,
        other=duplicate,
        is_chosen=is_chosen,
        by=by,
    )
    record(
        "confirm join of records",
        by=by,
        request=request,
        subject=target,
        school=target.school,
        after={"stays": str(target), "withdrawn": str(duplicate)},
    )
    start(join_records, subject_id=join.pk, by=by)
    return join


@job(KIND, long=True, stoppable=False)
def join_records(job: Job, progress: Progress) -> None:
    """Join two records, or say why not."""
    joins = RecordJoin.objects.select_related("administration", "by")
    join = joins.filter(pk=job.subject_id or 0).first()
    if join is None:
        raise JobRefused(_(GONE))
    if join.state != State.WAITING:
        return
    progress.begin_step(_("Waiting for a roster of this survey round"))
    try:
        with roster_lock(join.administration):
            write_batch(partial(_join, join, progress))
    except JobRefused as refused:
        RecordJoin.objects.filter(pk=join.pk, state=State.WAITING).update(
            state=State.REFUSED, message=str(refused)[:500], ended_at=timezone.now()
        )
        raise
    progress.message = _("Joined.")


def _join(
    join: RecordJoin, progress: Progress, writer: Staging
) -> tuple[None, list[int]]:
    """Join in the transaction of a batch. Raises JobRefused."""
    keys = (join.kept_id, join.other_id)
    records, started = read_records(join.administration, keys, lock=True)
    identities = Identity.objects.in_bulk(records)
    schools = _check(join, records, identities)
    pair = Pair(
        duplicate=records[join.other_id],
        target=records[join.kept_id],
        duplicate_started=join.other_id in started,
        kept_started=join.kept_id in started,
    )
    survivor = pair.survivor(Keep.KEPT if join.is_chosen else Keep.BOTH)
    if survivor is None:
        raise JobRefused(_(BOTH_STARTED))
    withdrawn = pair.duplicate if survivor is pair.target else pair.target
    changed = withdraw_duplicate(writer, withdrawn, survivor)
    _forget_changes(join.administration, keys)
    alias = {
        "district": identities[withdrawn.pk].district_id,
        "external_id": identities[withdrawn.pk].external_id,
    }
    # Somebody may have been given an ID that was joined before.
    earlier = RecordJoin.objects.filter(administration=join.administration, **alias)
    earlier.update(district=None)
    RecordJoin.objects.filter(pk=join.pk).update(
        kept=survivor,
        other=withdrawn,
        state=State.JOINED,
        ended_at=timezone.now(),
        **alias,
    )
    record(
        "join records",
        by=join.by,
        subject=survivor,
        school=schools[survivor.school_id],
        after={"stays": str(survivor), "withdrawn": str(withdrawn)},
    )
    progress.confirm()
    return None, changed


def _check(
    join: RecordJoin, records: dict[int, Respondent], identities: dict[int, Identity]
) -> dict[int, School]:
    """Return the schools of both records. Raises JobRefused."""
    # A record without an identity was joined before, or is nobody's.
    if len(records) < 2 or len(identities) < 2:
        raise JobRefused(_(GONE))
    districts = {identity.district_id for identity in identities.values()}
    schools = School.objects.in_bulk({person.school_id for person in records.values()})
    permissions = Permissions(join.by)
    places = permissions.places(*NEEDED)
    if len(districts) > 1 or not all(map(places.has_school, schools.values())):
        raise JobRefused(_(NOT_PERMITTED))
    join.administration.refresh_from_db()
    reason = reason_not_to_join(join.administration, min(districts), permissions)
    if reason:
        raise JobRefused(reason)
    return schools


def _forget_changes(administration: Administration, people: tuple[int, int]) -> None:
    """Let no earlier roster that is undone bring back or delete one of the records."""
    uploads = RosterUpload.objects.filter(
        administration=administration, undo__isnull=False, undo__ended_at=None
    )
    changes = RosterChange.objects.filter(
        upload__in=list(uploads.values_list("pk", flat=True)), respondent__in=people
    )
    changes._raw_delete(changes.db)
