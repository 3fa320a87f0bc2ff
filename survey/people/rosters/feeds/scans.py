"""Start, confirm and cancel the scans of feeds."""

from __future__ import annotations

from datetime import date, datetime

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.audit import record
from accounts.models import User
from survey.models import FeedScan, Job, RosterFeed, RosterUpload
from survey.people.rosters.feeds.feeds import lock_feed
from survey.people.rosters.feeds.outcomes import delete_downloads, drop_uploads
from survey.people.rosters.feeds.scan_jobs import apply_confirmed_scan, download_feed
from survey.people.rosters.uploads import check_typed_number
from survey.work.job_turns import TooManyJobs, refuse_many
from survey.work.jobs import request_cancel, start

State = FeedScan.State
Reason = FeedScan.Reason
Upload = RosterUpload.State

BUSY = gettext_noop(
    "A roster sync of this district is being scanned. Wait until the scan has ended."
)
OVER = gettext_noop("This can't be done now. Status of this scan: {}.")


class ScanConflict(Exception):
    """The scan cannot be started, confirmed or cancelled now; says why."""


def start_scan(
    feed: RosterFeed,
    *,
    reason: str,
    by: User | None,
    request: HttpRequest | None = None,
    night: date | None = None,
    begins_before: datetime | None = None,
) -> FeedScan:
    """Start a scan. Scans of one district never overlap.

    Raises ScanConflict if one is running, or if the feed was scanned in this
    `night` before.
    """
    if by:
        try:
            refuse_many(by)
        except TooManyJobs as error:
            raise ScanConflict(str(error)) from error
    try:
        with transaction.atomic():
            if lock_feed(feed).removed_at is not None:
                raise ScanConflict(_("This roster sync was removed."))
            scan = FeedScan.objects.create(
                feed=feed,
                district_id=feed.district_id,
                reason=reason,
                by=by,
                night=night,
                begins_before=begins_before,
            )
            if by:
                action = "try feed" if reason == Reason.TRY else "scan feed"
                record_scan(action, scan, by=by, request=request)
            start(download_feed, subject_id=scan.pk, by=by)
    except IntegrityError as error:
        raise ScanConflict(_(BUSY)) from error
    return scan


def confirm_scan(
    scan: FeedScan,
    *,
    by: User,
    seen: str,
    typed: str,
    request: HttpRequest | None = None,
) -> None:
    """Apply a held scan, before all other waiting jobs.

    `seen` and `typed` are the number of people to withdraw, as for uploads.
    Raises ScanConflict, and WrongNumberTyped of `rosters.uploads`.
    """
    try:
        with transaction.atomic():
            current = FeedScan.objects.select_for_update().get(pk=scan.pk)
            if current.state != State.HELD:
                raise ScanConflict(_(OVER).format(current.get_state_display()))
            uploads = list(current.uploads.filter(state=Upload.CHECKED))
            withdrawn = sum(upload.withdrawn for upload in uploads)
            if seen != str(withdrawn):
                raise ScanConflict(
                    _("The figures have changed. Check them again before you confirm.")
                )
            typed = check_typed_number(
                typed,
                withdrawn,
                must_be_typed=any(upload.must_be_typed for upload in uploads),
            )
            now = timezone.now()
            current.uploads.filter(state=Upload.CHECKED).update(
                state=Upload.APPLYING,
                confirmed_by=by,
                confirmed_at=now,
                typed=typed,
                message="",
            )
            FeedScan.objects.filter(pk=scan.pk).update(
                state=State.WAITING,
                confirmed_by=by,
                confirmed_at=now,
                typed=typed,
                ended_at=None,
                message="",
            )
            record_scan(
                "confirm feed scan",
                scan,
                by=by,
                request=request,
                withdrawn=withdrawn,
                typed=typed,
            )
            start(apply_confirmed_scan, subject_id=scan.pk, by=by)
    except IntegrityError as error:
        raise ScanConflict(_(BUSY)) from error


@transaction.atomic
def cancel_scan(
    scan: FeedScan, *, by: User, request: HttpRequest | None = None
) -> None:
    """Cancel a scan that is not being applied. Raises ScanConflict."""
    current = FeedScan.objects.select_for_update().get(pk=scan.pk)
    applying = current.uploads.filter(state__in=(Upload.APPLYING, Upload.APPLIED))
    is_applying = current.state in FeedScan.UNFINISHED and applying.exists()
    cancellable = (*FeedScan.UNFINISHED, State.HELD, State.TRIED)
    if current.state not in cancellable or is_applying:
        raise ScanConflict(
            _("This scan is being applied and can no longer be cancelled.")
            if is_applying
            else _(OVER).format(current.get_state_display())
        )
    FeedScan.objects.filter(pk=scan.pk).update(
        state=State.CANCELLED, message="Cancelled.", ended_at=timezone.now()
    )
    drop_uploads(current)
    delete_downloads(current)
    jobs = Job.objects.filter(kind=download_feed.name, subject_id=scan.pk)
    for job in jobs.filter(ended_at=None):
        request_cancel(job)
    record_scan("cancel feed scan", scan, by=by, request=request)


def record_scan(
    action: str,
    scan: FeedScan,
    *,
    by: User,
    request: HttpRequest | None,
    **after: object,
) -> None:
    record(
        action,
        by=by,
        request=request,
        subject=scan,
        district=scan.district,
        after={"feed": scan.feed.name, **after},
    )
