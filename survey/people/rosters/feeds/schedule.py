"""Start the scans that are due, again those that failed to download, and clean up.

A periodic task calls this every half minute. After an outage within a window all
scans of the window start, and their jobs wait for each other.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from survey.models import FeedScan, Job, RosterFeed
from survey.people.rosters.feeds.download_stage import FOLDER
from survey.people.rosters.feeds.outcomes import fail_scan
from survey.people.rosters.feeds.scan_jobs import (
    apply_confirmed_scan,
    download_feed,
    process_scan,
)
from survey.people.rosters.feeds.scans import ScanConflict, start_scan
from survey.people.rosters.feeds.windows import window_at
from survey.work.files import delete_orphans
from survey.work.jobs import WORKER_DIED, start

log = logging.getLogger(__name__)

KINDS = (download_feed.name, process_scan.name, apply_confirmed_scan.name)
# A scan without a job that runs or waits, this long after it began.
ABANDONED_AFTER = timedelta(minutes=2)


def start_due() -> None:
    """Start scheduled scans and postponed downloads; end abandoned scans."""
    end_abandoned()
    retry_downloads()
    now = timezone.now()
    feeds = RosterFeed.objects.current().filter(
        is_paused=False, window_begins__isnull=False
    )
    feeds = feeds.select_related("district")
    # One query, however many feeds there are: it is asked twice a minute all night.
    recent = FeedScan.objects.filter(night__gte=now.date() - timedelta(days=2))
    scanned = set(recent.values_list("feed_id", "night"))
    for feed in feeds:
        window = window_at(feed, now)
        if window is None or now < window.start_of(feed):
            continue
        if (feed.pk, window.night) in scanned:
            continue
        try:
            start_scan(
                feed,
                reason=FeedScan.Reason.NIGHT,
                by=None,
                night=window.night,
                begins_before=window.ends,
            )
        except ScanConflict:
            # Another feed of the district is being scanned: half a minute later
            # this one is tried again.
            log.info("the feed %s waits for another one", feed.pk)


def retry_downloads() -> None:
    due = FeedScan.objects.filter(
        state=FeedScan.State.WAITING, retry_at__lte=timezone.now()
    )
    for scan in due:
        with transaction.atomic():
            # Of two processes at once, one starts the job.
            if due.filter(pk=scan.pk).update(retry_at=None):
                start(download_feed, subject_id=scan.pk)


def end_abandoned() -> None:
    """Fail scans whose job ended without them, such as after three dead workers."""
    unfinished = FeedScan.objects.filter(
        state__in=FeedScan.UNFINISHED,
        retry_at=None,
        created_at__lt=timezone.now() - ABANDONED_AFTER,
    )
    for scan in unfinished:
        jobs = Job.objects.filter(kind__in=KINDS, subject_id=scan.pk)
        if jobs.filter(ended_at=None).exists():
            continue
        last = jobs.order_by("-pk").first()
        fail_scan(scan, last.message if last and last.message else WORKER_DIED)


def delete_old_files() -> None:
    """Delete downloads and stores that no feed or scan names."""
    delete_orphans(FOLDER, _names_in_use)


def _names_in_use() -> set[str]:
    stores = RosterFeed.objects.exclude(store="").values_list("store", flat=True)
    folders = FeedScan.objects.exclude(folder="").values_list("folder", flat=True)
    return {*stores, *folders}
