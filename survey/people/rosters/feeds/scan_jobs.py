"""Run scans in the background: a job that downloads, and one for the other stages.

Each stage stores its result in one transaction with its end, so a job that is run
again goes on with the first stage that is not done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.models import FeedScan, FeedStage, Job
from survey.people.rosters.feeds.download_stage import run_download
from survey.people.rosters.feeds.outcomes import fail_scan
from survey.people.rosters.feeds.parse_stage import run_parse
from survey.people.rosters.feeds.roster_stages import run_apply, run_compare
from survey.people.rosters.feeds.stages import is_done
from survey.work.jobs import (
    CONFIRMED,
    DOWNLOADS,
    FAILED,
    RUN_AGAIN,
    SCANS,
    Cancelled,
    JobRefused,
    Progress,
    job,
)

Stage = FeedStage.Stage


@job("feed.download", queue=DOWNLOADS, waits=True)
def download_feed(job: Job, progress: Progress) -> None:
    with running_scan(job) as scan:
        if scan and not is_done(scan, Stage.DOWNLOAD):
            run_download(scan, progress, process_scan)


# Not stoppable as a job: a part may have been applied. `cancel_scan` cancels
# scans, and knows when it is too late.
@job("feed.scan", queue=SCANS, stoppable=False, waits=True)
def process_scan(job: Job, progress: Progress) -> None:
    """Parse, compare and apply, each unless it is done."""
    with running_scan(job) as scan:
        if scan and not is_done(scan, Stage.PARSE):
            run_parse(scan, progress)
        if scan and not is_done(scan, Stage.COMPARE):
            run_compare(scan, progress)
        apply_if_running(scan, progress)


@job("feed.confirmed", queue=CONFIRMED, stoppable=False, waits=True)
def apply_confirmed_scan(job: Job, progress: Progress) -> None:
    with running_scan(job) as scan:
        apply_if_running(scan, progress)


def apply_if_running(scan: FeedScan | None, progress: Progress) -> None:
    """Apply a scan that is neither held nor only tried."""
    if scan is None:
        return
    scan.refresh_from_db(fields=["state"])
    if scan.state == FeedScan.State.RUNNING:
        run_apply(scan, progress)
        progress.message = _("Scanned.")


@contextmanager
def running_scan(job: Job) -> Iterator[FeedScan | None]:
    """Yield the job's scan, or None if it is over; store why it failed."""
    scans = FeedScan.objects.filter(pk=job.subject_id or 0)
    if not scans.filter(state__in=FeedScan.UNFINISHED).update(
        state=FeedScan.State.RUNNING,
        started_at=Coalesce("started_at", timezone.now()),
        retry_at=None,
        message="",
    ):
        yield None
        return
    scan = scans.select_related("feed__by", "feed__district").get()
    try:
        yield scan
    except (*RUN_AGAIN, Cancelled):
        # The job is run again, or the scan was cancelled.
        raise
    except JobRefused as refused:
        fail_scan(scan, str(refused))
        raise
    except Exception:
        fail_scan(scan, FAILED)
        raise
