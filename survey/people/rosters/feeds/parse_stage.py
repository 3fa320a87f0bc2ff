"""Load a download into the feed's store, and write a roster per administration."""

from __future__ import annotations

import csv
import os
from datetime import datetime
from functools import partial
from pathlib import Path

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.models import Administration, FeedScan, FeedStage, RosterFeed, RosterUpload
from survey.people.rosters.feeds.download_stage import FOLDER
from survey.people.rosters.feeds.downloads import Download, load_into
from survey.people.rosters.feeds.outcomes import (
    cancel_replaced,
    delete_downloads,
    lock_running,
)
from survey.people.rosters.feeds.stages import end_stage, record_stage
from survey.people.rosters.oneroster.flat_rows import RowOptions
from survey.people.rosters.oneroster.other_districts import refuse_other_district
from survey.people.rosters.oneroster.store import OneRosterInvalid, OneRosterStore
from survey.people.rosters.private_files import private_file
from survey.people.rosters.retention import FOLDER as ROSTERS
from survey.people.rosters.retention import delete_files
from survey.work.files import keep, local_copy, new_name, path_of
from survey.work.jobs import JobRefused, Progress

# Rows between two looks at whether another worker has taken the job over.
CHECK_EVERY = 5000


def run_parse(scan: FeedScan, progress: Progress) -> None:
    """Replace the feed's store, and create an upload for each administration.

    Both happen in one transaction, after all files are written: a killed worker
    leaves the old store and no upload.
    """
    feed = scan.feed
    with record_stage(scan, FeedStage.Stage.PARSE) as stage:
        progress.begin_step(_("Reading the download"))
        store_name = new_name(FOLDER, ".sqlite")
        uploads: list[RosterUpload] = []
        try:
            store, notes = _load(scan, path_of(store_name))
            refuse_other_district(store, feed.district.code, feed.district.name)
            for administration in feed.administrations.order_by("pk"):
                uploads.append(
                    _write_roster(scan, store, administration, progress, notes)
                )
            if not uploads:
                raise JobRefused(
                    _("The roster sync has no survey rounds. Choose some.")
                )
            keep(path_of(store_name), store_name)
            with transaction.atomic():
                lock_running(scan)
                RosterUpload.objects.bulk_create(uploads)
                _replace_store(scan, store_name)
                cancel_replaced(scan)
                delete_downloads(scan)
                rows = sum(upload.report["rows"] for upload in uploads)
                size = sum(roster.size for roster in uploads)
                end_stage(stage, size=size, rows=rows, notes=notes)
                progress.confirm()
        except OneRosterInvalid as error:
            delete_files(store_name, *(upload.file for upload in uploads))
            raise JobRefused(str(error)[:500]) from error
        except JobRefused:
            delete_files(store_name, *(upload.file for upload in uploads))
            raise


def _load(scan: FeedScan, path: Path) -> tuple[OneRosterStore, list[str]]:
    """Return a store with the feed's data and the download, and what it ignored."""
    if scan.feed.store:
        # The store writes changes to a copy, and never into a linked file.
        with local_copy(scan.feed.store) as before:
            os.link(before, path)
    store = OneRosterStore(path)
    notes: list[str] = []
    values = dict(scan.download)
    if values["path"]:
        del values["began"]
        with local_copy(f"{scan.folder}/{values['path']}") as downloaded:
            notes = load_into(store, Download(**{**values, "path": downloaded}))
    return store, notes


def _write_roster(
    scan: FeedScan,
    store: OneRosterStore,
    administration: Administration,
    progress: Progress,
    notes: list[str],
) -> RosterUpload:
    """Write the people of an administration's role as a file of an upload.

    Adds to `notes` who was left out.
    """
    feed, name = scan.feed, new_name(ROSTERS, ".roster")
    options = RowOptions(
        feed.identity,
        feed.previous_identity,
        district=(feed.district.code, feed.district.name),
    )
    rows = 0
    try:
        with private_file(path_of(name)) as file:
            writer = csv.writer(file)
            writer.writerow(store.header(options))
            for row in store.rows(
                roles={administration.role}, options=options, notes=notes
            ):
                writer.writerow(row)
                rows += 1
                if rows % CHECK_EVERY == 0:
                    progress.advance(CHECK_EVERY)
        if not rows:
            raise JobRefused(
                _(
                    "The roster sync has nobody for %(title)s. If this is right, take"
                    " the survey round out of the roster sync."
                )
                % {"title": administration.title}
            )
    except BaseException:
        delete_files(name)
        raise
    size = path_of(name).stat().st_size
    keep(path_of(name), name)
    return RosterUpload(
        administration=administration,
        by=feed.by,
        district=feed.district,
        file=name,
        name=feed.name[:200],
        size=size,
        # The store always holds the whole district, also after a delta.
        complete_for=RosterUpload.CompleteFor.DISTRICTS,
        scan=scan,
        report={"rows": rows},
    )


def _replace_store(scan: FeedScan, store_name: str) -> None:
    feed = RosterFeed.objects.select_for_update().get(pk=scan.feed_id)
    old_store = feed.store
    feed.store, feed.is_store_applied = store_name, False
    if scan.download["path"]:
        feed.etag = scan.download["etag"][:500]
        feed.digest = scan.download["digest"]
        feed.loaded_at = datetime.fromisoformat(scan.download["began"])
        if not scan.download["is_delta"]:
            feed.last_full_at = timezone.now()
    feed.save(
        update_fields=[
            *("store", "is_store_applied", "etag", "digest"),
            *("loaded_at", "last_full_at"),
        ]
    )
    transaction.on_commit(partial(delete_files, old_store))
