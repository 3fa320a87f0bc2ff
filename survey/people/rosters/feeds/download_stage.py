"""Download what a feed offers; the first stage of a scan."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.retry_delays import RetryDelays
from survey.models import FeedScan, FeedStage, RosterFeed
from survey.people.rosters.feeds.credentials import FeedKeyMissing, unseal
from survey.people.rosters.feeds.downloads import (
    Download,
    DownloadFailed,
    FeedSource,
    download,
)
from survey.people.rosters.feeds.outcomes import (
    delete_downloads,
    end_scan,
    lock_running,
    may_manage,
)
from survey.people.rosters.feeds.stages import end_stage, record_stage
from survey.work.files import exists, keep, new_name, path_of
from survey.work.job_kinds import JobKind
from survey.work.jobs import JobRefused, Progress, start

FOLDER = "feeds"
# A night's download is tried again after 2 and 10 minutes, while others use the worker.
DELAYS = RetryDelays(first=timedelta(minutes=2), factor=5, attempts=3)
# Deltas go back a day too far: clocks differ, and some systems store dates without
# a time. Merging an object twice changes nothing.
OVERLAP = timedelta(days=1)
# A little less than a week, so that it is every seventh night.
FULL_EVERY = timedelta(days=6, hours=12)

NOT_PERMITTED = gettext_noop(
    "The owner of this roster sync may no longer manage rosters in its district. Ask"
    " someone who may to add the roster sync again."
)
TOO_LATE = gettext_noop("The scan window ended before the scan could begin.")


def run_download(scan: FeedScan, progress: Progress, process: JobKind) -> None:
    """Download, then end the scan if nothing has changed, or start `process`."""
    feed = scan.feed
    with record_stage(scan, FeedStage.Stage.DOWNLOAD) as stage:
        if scan.begins_before and timezone.now() >= scan.begins_before:
            raise JobRefused(_(TOO_LATE))
        if not may_manage(feed.by, feed):
            raise JobRefused(_(NOT_PERMITTED))
        began = timezone.now()
        with transaction.atomic():
            lock_running(scan)
            # Of an attempt whose worker died.
            delete_downloads(scan)
            folder = new_name(FOLDER, "")
            FeedScan.objects.filter(pk=scan.pk).update(folder=folder)
        path_of(f"{folder}/any")
        progress.begin_step(_("Downloading"))
        try:
            source = source_of(feed)
        except FeedKeyMissing as error:
            raise JobRefused(str(error)) from error
        try:
            downloaded = download(source, path_of(folder), on_bytes=progress.advance)
        except DownloadFailed as error:
            FeedScan.objects.filter(pk=scan.pk).update(host_key=error.host_key)
            if not (error.may_retry and _postpone(scan, stage, error.message)):
                raise JobRefused(error.message) from error
            progress.message = _("The download is tried again later.")
            return
        if downloaded.path:
            keep(downloaded.path, f"{folder}/{downloaded.path.name}")
        with transaction.atomic():
            lock_running(scan)
            end_stage(stage, size=downloaded.size)
            _store(scan, feed, downloaded, began.isoformat(), process)
            progress.confirm()
    progress.message = _("Downloaded.")


def source_of(feed: RosterFeed) -> FeedSource:
    """Return where to download, and what the store holds already."""
    has_store = bool(feed.store) and exists(feed.store)
    is_full = not (
        has_store
        and feed.loaded_at
        and feed.last_full_at
        and timezone.now() - feed.last_full_at < FULL_EVERY
    )
    return FeedSource(
        kind=feed.kind,
        address=feed.address,
        credentials=unseal(bytes(feed.credentials)) if feed.credentials else {},
        options=feed.options,
        etag=feed.etag if has_store else "",
        digest=feed.digest if has_store else "",
        host_key=feed.host_key,
        changed_since=None
        if is_full or not feed.loaded_at
        else feed.loaded_at - OVERLAP,
    )


def _postpone(scan: FeedScan, stage: FeedStage, message: str) -> bool:
    """Let `schedule` start the download again later; return False if not."""
    delay = DELAYS.after(stage.attempts)
    if scan.reason != FeedScan.Reason.NIGHT or delay is None:
        return False
    retry_at = timezone.now() + delay
    if scan.begins_before and retry_at >= scan.begins_before:
        return False
    with transaction.atomic():
        lock_running(scan)
        end_stage(stage, message=message)
        FeedScan.objects.filter(pk=scan.pk).update(
            state=FeedScan.State.WAITING, retry_at=retry_at, message=message[:500]
        )
        delete_downloads(scan)
    return True


def _store(
    scan: FeedScan, feed: RosterFeed, result: Download, began: str, process: JobKind
) -> None:
    if result.host_key and not feed.host_key:
        RosterFeed.objects.filter(pk=feed.pk).update(host_key=result.host_key)
    is_shown = scan.reason == FeedScan.Reason.TRY
    if result.is_unchanged and feed.is_store_applied and not is_shown:
        end_scan(scan, FeedScan.State.UNCHANGED)
        return
    values = dataclasses.asdict(result)
    values["path"] = str(result.path.name) if result.path else None
    FeedScan.objects.filter(pk=scan.pk).update(download={**values, "began": began})
    start(process, subject_id=scan.pk, by=scan.by)
