"""Compare and apply the rosters of a scan, as those that people upload."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.models import FeedScan, FeedStage, RosterFeed, RosterUpload
from survey.people.rosters.apply_job import ConfirmAgain, apply_upload, finish
from survey.people.rosters.dry_run import check_upload, select_upload
from survey.people.rosters.feeds.hold import reason_to_hold
from survey.people.rosters.feeds.outcomes import end_scan, hold_scan, lock_running
from survey.people.rosters.feeds.stages import end_stage, record_stage
from survey.work.jobs import JobRefused, Progress

State = FeedScan.State
Upload = RosterUpload.State
CHANGES = ("added", "changed", "moved", "back", "withdrawn")


def run_compare(scan: FeedScan, progress: Progress) -> None:
    """Check every upload; then hold or show the scan, or let it be applied."""
    with record_stage(scan, FeedStage.Stage.COMPARE) as stage:
        for upload in uploads_of(scan):
            # An earlier attempt may have checked some.
            if upload.state == Upload.CHECKING:
                check_upload(upload, progress)
                upload.refresh_from_db()
            if upload.state != Upload.CHECKED:
                raise JobRefused(
                    upload.message
                    or _("The roster of this roster sync cannot be read.")
                )
        with transaction.atomic():
            lock_running(scan)
            uploads = uploads_of(scan)
            rows = sum(upload.report.get("rows", 0) for upload in uploads)
            end_stage(stage, rows=rows, size=sum(upload.size for upload in uploads))
            if scan.reason == FeedScan.Reason.TRY:
                end_scan(scan, State.TRIED)
            elif reason := reason_to_hold(uploads):
                hold_scan(scan, reason)
            else:
                scan.uploads.update(
                    state=Upload.APPLYING,
                    confirmed_by=scan.feed.by,
                    confirmed_at=timezone.now(),
                )
            progress.confirm()


def run_apply(scan: FeedScan, progress: Progress) -> None:
    """Apply the uploads one after the other. A repeated run applies the rest."""
    with record_stage(scan, FeedStage.Stage.APPLY) as stage:
        for upload in uploads_of(scan):
            if upload.state == Upload.FAILED:
                # The worker died before it could store that the scan failed too.
                raise JobRefused(upload.message or _("A roster was not applied."))
            if upload.state != Upload.APPLYING:
                continue
            if not any(upload.report.get(name) for name in CHANGES):
                with transaction.atomic():
                    finish(upload)
                    progress.confirm()
                continue
            try:
                apply_upload(upload, progress)
            except ConfirmAgain as error:
                with transaction.atomic():
                    lock_running(scan)
                    end_stage(stage, message=str(error))
                    hold_scan(scan, str(error))
                    progress.confirm()
                return
        with transaction.atomic():
            lock_running(scan)
            uploads = uploads_of(scan)
            changes = (row.report.get(name, 0) for row in uploads for name in CHANGES)
            end_stage(stage, rows=sum(changes))
            end_scan(scan, State.APPLIED)
            RosterFeed.objects.filter(pk=scan.feed_id).update(
                is_store_applied=True, previous_identity=""
            )
            progress.confirm()


def uploads_of(scan: FeedScan) -> list[RosterUpload]:
    return list(select_upload().filter(scan=scan).order_by("pk"))
