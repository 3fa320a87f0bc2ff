"""Request, check, confirm and do a merge of two districts or two schools.

The dry run changes nothing. A person looks at its figures, types the name of the
duplicate and confirms; then a second job does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import connection, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.audit import record
from accounts.models import District, School, User
from accounts.permissions import Capability, Permissions
from survey.database import advisory_locks
from survey.models import Job, PlaceMerge
from survey.people.merging.choices import choices_of, store_choices
from survey.people.merging.dry_run import MergeReport, check_districts, check_schools
from survey.people.merging.people import DistrictMerge
from survey.people.merging.places import merge_districts, merge_schools
from survey.people.rosters.staging import PostgreSQLStaging, open_staging
from survey.work.jobs import JobRefused, Progress, job, start

State, Kind, Keep = PlaceMerge.State, PlaceMerge.Kind, PlaceMerge.Keep
KINDS = ("places.check", "places.merge")
# A merge that stopped is still being merged, without a job that runs.
CONFIRMABLE = (State.CHECKED, State.PARTLY, State.MERGING)

GONE = gettext_noop("One of the two no longer exists. It may have been merged already.")
NOT_SAME_DISTRICT = gettext_noop(
    "The two schools are in different districts. Merge these first."
)
NOT_PERMITTED = gettext_noop("You may no longer merge these.")
CHANGED = gettext_noop(
    "More has changed since this check than answers. Check the figures and"
    " confirm again."
)
DECISION_NEEDED = gettext_noop(
    "{left} people have started with both of their records. These records are"
    " left as they are. Choose which one stays, and confirm again."
)


class MergeConflict(Exception):
    """The merge has changed meanwhile, or its name was typed wrongly."""


def may_merge(permissions: Permissions, kind: str, district_id: int) -> bool:
    """Districts are merged by the state, schools also by their district."""
    places = permissions.places(Capability.MANAGE_STAFF)
    if kind == Kind.DISTRICTS:
        return places.state
    return places.has_district(district_id)


@transaction.atomic
def request_merge(
    duplicate: District | School,
    target: District | School,
    *,
    by: User,
    request: HttpRequest | None = None,
) -> PlaceMerge:
    """Start the dry run of a merge."""
    is_school = isinstance(target, School)
    district = target.district if isinstance(target, School) else target
    merge = PlaceMerge.objects.create(
        kind=Kind.SCHOOLS if is_school else Kind.DISTRICTS,
        district=district,
        kept_id=target.pk,
        kept_name=target.name,
        duplicate_id=duplicate.pk,
        duplicate_name=duplicate.name,
        duplicate_code=duplicate.code,
        by=by,
    )
    _record("check merge", merge, by=by, request=request)
    start(check_merge, subject_id=merge.pk, by=by)
    return merge


@transaction.atomic
def confirm_merge(
    merge: PlaceMerge,
    *,
    by: User,
    typed: str,
    keep: str = Keep.BOTH,
    request: HttpRequest | None = None,
) -> None:
    """Start a merge that was checked, or go on with one that was interrupted.

    `typed` is the name of the duplicate. Raises MergeConflict.
    """
    if typed.strip().casefold() != merge.duplicate_name.strip().casefold():
        raise MergeConflict(
            _("Type the name of the duplicate: %(duplicate_name)s")
            % {"duplicate_name": merge.duplicate_name}
        )
    job = latest_job(merge)
    if job and not job.is_over:
        raise MergeConflict(_("This merge is already being processed."))
    _change_state(
        merge,
        allowed=CONFIRMABLE,
        state=State.MERGING,
        message="",
        keep=keep,
        confirmed_by=by,
        confirmed_at=timezone.now(),
    )
    figures = {name: merge.report.get(name) for name in ("people", "pairs")}
    _record("confirm merge", merge, by=by, request=request, keep=keep, **figures)
    start(apply_merge, subject_id=merge.pk, by=by)


@transaction.atomic
def cancel_merge(
    merge: PlaceMerge, *, by: User, request: HttpRequest | None = None
) -> None:
    """Cancel a merge that was not confirmed. Raises MergeConflict."""
    _change_state(
        merge,
        allowed=(State.CHECKING, State.CHECKED),
        state=State.CANCELLED,
        ended_at=timezone.now(),
    )
    _record("cancel merge", merge, by=by, request=request)


@transaction.atomic
def choose_records(
    merge: PlaceMerge,
    keep_of: Mapping[int, str],
    *,
    by: User,
    request: HttpRequest | None = None,
) -> None:
    """Choose which records of single people stay. Raises MergeConflict.

    `keep_of` has the choice by the respondent of the duplicate; without a text, the
    choice for all of them counts.
    """
    # Confirming waits for this, and then uses these choices.
    current = PlaceMerge.objects.select_for_update().get(pk=merge.pk)
    job = latest_job(merge)
    if current.state not in CONFIRMABLE or (job and not job.is_over):
        raise MergeConflict(
            _("This merge is being processed. Choose when it has ended.")
        )
    people = store_choices(current, keep_of)
    _record("choose records", current, by=by, request=request, people=people)


def latest_job(merge: PlaceMerge) -> Job | None:
    jobs = Job.objects.filter(kind__in=KINDS, subject_id=merge.pk)
    return jobs.order_by("-pk").first()


@job("places.check", long=True)
def check_merge(job: Job, progress: Progress) -> None:
    """Count what a merge would change."""
    merge = PlaceMerge.objects.get(pk=job.subject_id or 0)
    if merge.state != State.CHECKING:
        return
    try:
        report = _compare(merge, progress)
    except JobRefused as refused:
        _change_state(
            merge,
            allowed=(State.CHECKING,),
            state=State.REFUSED,
            message=str(refused)[:500],
            ended_at=timezone.now(),
        )
        raise
    with transaction.atomic():
        _change_state(
            merge,
            allowed=(State.CHECKING,),
            state=State.CHECKED,
            report=report.as_dict(),
        )
        progress.confirm()
    progress.message = _("Checked.")


@job("places.merge", long=True, stoppable=False)
def apply_merge(job: Job, progress: Progress) -> None:
    """Do a confirmed merge, or ask to confirm it again."""
    with _one_merge_at_a_time(progress):
        merge = PlaceMerge.objects.select_related("confirmed_by", "district").get(
            pk=job.subject_id or 0
        )
        if merge.state != State.MERGING:
            return
        try:
            left = _merge(merge, progress)
        except JobRefused as refused:
            # Nothing is lost: what was moved stays moved, and the rest can follow.
            _change_state(
                merge,
                allowed=(State.MERGING,),
                state=State.CHECKED,
                message=str(refused)[:500],
            )
            raise
        with transaction.atomic():
            values: dict[str, object] = {
                "state": State.MERGED,
                "ended_at": timezone.now(),
            }
            if left:
                message = _(DECISION_NEEDED).format(left=f"{left:,}")
                values = {"state": State.PARTLY, "message": message}
            _change_state(merge, allowed=(State.MERGING,), **values)
            _record("merge", merge, by=merge.confirmed_by or merge.by, left=left)
            progress.confirm()
    progress.message = _("Merged.") if not left else _("Partly merged.")


def _merge(merge: PlaceMerge, progress: Progress) -> int:
    """Merge; return how many people are left for a decision. Raises JobRefused."""
    by = merge.confirmed_by
    if by is None or not may_merge(Permissions(by), merge.kind, merge.district_id):
        raise JobRefused(_(NOT_PERMITTED))
    if _is_done(merge):
        # The worker died between the last step and this job's end.
        return 0
    report = _compare(merge, progress)
    if merge.kind == Kind.SCHOOLS:
        progress.begin_step(_("Moving people"))
        duplicate, target = _schools(merge)
        merge_schools(duplicate, target)
        return 0
    # Schools that an interrupted run has merged are no longer in the report.
    shown = {tuple(pair) for pair in merge.report["merged_schools"]}
    if not set(report.merged_schools) <= shown:
        merge.report = report.as_dict()
        merge.save(update_fields=["report"])
        raise JobRefused(_(CHANGED))
    progress.begin_step(_("Moving people"))
    return merge_districts(
        DistrictMerge(
            District.objects.get(pk=merge.duplicate_id),
            District.objects.get(pk=merge.kept_id),
            schools=dict(report.merged_schools),
            choices=choices_of(merge),
            keep=merge.keep,
        )
    )


def _compare(merge: PlaceMerge, progress: Progress) -> MergeReport:
    if merge.kind == Kind.SCHOOLS:
        return check_schools(*_schools(merge))
    districts = District.objects.in_bulk([merge.duplicate_id, merge.kept_id])
    if len(districts) < 2:
        raise JobRefused(_(GONE))
    return check_districts(
        districts[merge.duplicate_id],
        districts[merge.kept_id],
        lambda people: progress.begin_step(
            _("Comparing people: %(people)s") % {"people": f"{people:,}"}
        ),
    )


def _schools(merge: PlaceMerge) -> tuple[School, School]:
    schools = School.objects.in_bulk([merge.duplicate_id, merge.kept_id])
    if len(schools) < 2:
        raise JobRefused(_(GONE))
    duplicate, target = schools[merge.duplicate_id], schools[merge.kept_id]
    if not duplicate.district_id == target.district_id == merge.district_id:
        raise JobRefused(_(NOT_SAME_DISTRICT))
    return duplicate, target


def _is_done(merge: PlaceMerge) -> bool:
    """Tell whether the duplicate is gone, and its code leads to the other place."""
    model = School if merge.kind == Kind.SCHOOLS else District
    if model._default_manager.filter(pk=merge.duplicate_id).exists():
        return False
    merged = model._default_manager.filter(
        pk=merge.kept_id, aliases__code=merge.duplicate_code
    )
    return merged.exists()


@contextmanager
def _one_merge_at_a_time(progress: Progress) -> Iterator[None]:
    with open_staging() as staging:
        if isinstance(staging, PostgreSQLStaging) and connection.vendor == "postgresql":
            progress.begin_step(_("Waiting for another merge"))
            staging.execute(
                "SELECT pg_advisory_xact_lock(%s, 0)", [advisory_locks.MERGES]
            )
        yield


def _change_state(
    merge: PlaceMerge, *, allowed: tuple[str, ...], **values: object
) -> None:
    current = PlaceMerge.objects.filter(pk=merge.pk, state__in=allowed)
    if not current.update(**values):
        merge.refresh_from_db()
        raise MergeConflict(
            _("This can't be done now. Status of this merge: %(state)s.")
            % {"state": merge.get_state_display()}
        )
    for name, value in values.items():
        setattr(merge, name, value)


def _record(
    action: str,
    merge: PlaceMerge,
    *,
    by: User,
    request: HttpRequest | None = None,
    **after: object,
) -> None:
    """Write an audit entry that the administrators of the place that stays can see."""
    record(
        f"{action} of {merge.kind}" if action == "merge" else action,
        by=by,
        request=request,
        subject=merge,
        district=merge.district,
        before={merge.kind: [merge.duplicate_name, merge.kept_name]},
        after={**after, merge.kind: [merge.kept_name]},
    )
