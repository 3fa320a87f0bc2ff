"""Two requests or jobs act on one feed, or on one district, at the same moment."""

from __future__ import annotations

import dataclasses

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from accounts.models import AuditEntry, QueuedEmail
from survey.models import FeedScan, Job, RosterFeed
from survey.people.rosters.apply_job import MORE_WITHDRAWN
from survey.people.rosters.feeds import download_stage, parse_stage, roster_stages
from survey.people.rosters.feeds.feeds import change_feed, create_feed, remove_feed
from survey.people.rosters.feeds.scans import (
    BUSY,
    ScanConflict,
    cancel_scan,
    start_scan,
)
from survey.tests.rosters.feeds.feed_scans import (
    confirm,
    in_a_thread,
    invited,
    offer,
    run_jobs,
    scan,
    students,
    while_open,
    zip_of,
)
from survey.tests.rosters.roster_imports import run_import

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer"),
]


def add_feed(feed, name, by, administrations=()):
    return create_feed(
        district=feed.district,
        kind="zip",
        name=name,
        address=feed.address,
        administrations=administrations,
        by=by,
    )


@pytest.fixture
def staff_feed(feed, administration, staff):
    """Another feed of the district, from before two feeds for one were refused."""
    second = add_feed(feed, "Staff", staff.dana)
    second.administrations.add(administration)
    return second


def entries(action):
    return AuditEntry.objects.filter(action=action).count()


def test_of_two_scans_of_a_district_at_once_one_starts(feed, staff_feed, staff):
    outcome = while_open(
        lambda: start_scan(feed, reason="now", by=staff.dana),
        lambda: start_scan(staff_feed, reason="now", by=staff.state),
    )
    assert (type(outcome), str(outcome)) == (ScanConflict, BUSY)
    assert FeedScan.objects.get().feed == feed
    assert (Job.objects.count(), entries("scan feed")) == (1, 1)


def test_of_two_scans_of_a_feed_at_once_one_starts(feed, staff):
    outcome = while_open(
        lambda: start_scan(feed, reason="now", by=staff.dana),
        lambda: start_scan(feed, reason="try", by=staff.dana),
    )
    assert (type(outcome), str(outcome)) == (ScanConflict, BUSY)
    assert (FeedScan.objects.count(), Job.objects.count()) == (1, 1)
    assert entries("try feed") == 0


def test_the_other_scan_starts_if_the_first_is_not_committed(feed, staff_feed, staff):
    """The twin: then there is nothing that it overlaps with."""
    with pytest.raises(KeyError), transaction.atomic():
        start_scan(feed, reason="now", by=staff.dana)
        wait = in_a_thread(lambda: start_scan(staff_feed, reason="now", by=staff.dana))
        raise KeyError
    assert wait() == FeedScan.objects.get()
    assert FeedScan.objects.get().feed == staff_feed


def test_a_held_scan_is_confirmed_once(held, staff):
    outcome = while_open(
        lambda: confirm(held, staff.dana), lambda: confirm(held, staff.state)
    )
    assert type(outcome) is ScanConflict
    assert str(outcome).startswith("This can't be done now. Status of this scan")
    assert Job.objects.filter(kind="feed.confirmed").count() == 1
    assert entries("confirm feed scan") == 1
    run_jobs()
    held.refresh_from_db()
    assert (held.state, held.confirmed_by) == ("applied", staff.dana)
    assert len(invited()) == 26


def test_a_scan_that_somebody_confirms_is_not_cancelled(held, staff):
    outcome = while_open(
        lambda: confirm(held, staff.dana), lambda: cancel_scan(held, by=staff.state)
    )
    assert type(outcome) is ScanConflict
    assert "is being applied" in str(outcome)
    run_jobs()
    held.refresh_from_db()
    assert (held.state, len(invited())) == ("applied", 26)


def test_a_scan_that_somebody_cancels_is_not_confirmed(held, staff):
    outcome = while_open(
        lambda: cancel_scan(held, by=staff.state), lambda: confirm(held, staff.dana)
    )
    assert type(outcome) is ScanConflict
    run_jobs()
    held.refresh_from_db()
    assert (held.state, len(invited())) == ("cancelled", 30)


def test_a_held_scan_is_not_confirmed_while_another_one_of_the_district_runs(
    held, staff_feed, staff
):
    running = start_scan(staff_feed, reason="now", by=staff.dana)
    with pytest.raises(ScanConflict, match="is being scanned"):
        confirm(held, staff.dana)
    held.refresh_from_db()
    assert (held.state, held.uploads.get().state) == ("held", "checked")
    assert entries("confirm feed scan") == 0
    # The twin: the other one has ended.
    cancel_scan(running, by=staff.dana)
    confirm(held, staff.dana)
    run_jobs()
    assert len(invited()) == 26


def test_a_scan_is_held_if_others_would_be_withdrawn_than_it_has_compared(
    feed, sis, staff, administration, monkeypatch
):
    """Somebody adds a person by hand between the comparison and the lock."""
    offer(sis, zip_of(*students()))
    scan(feed)
    offer(sis, zip_of(*students(29)))
    apply_upload = roster_stages.apply_upload

    def add_and_apply(*args):
        row = "riverside,lincoln,by-hand"
        run_import(administration, "district,school,student ID", row)
        apply_upload(*args)

    with monkeypatch.context() as patch:
        patch.setattr(roster_stages, "apply_upload", add_and_apply)
        ended = scan(feed)
    assert (ended.state, ended.message) == ("held", MORE_WITHDRAWN)
    [upload] = ended.uploads.all()
    assert (upload.state, upload.withdrawn) == ("checked", 2)
    assert (upload.confirmed_by, len(invited())) == (None, 31)
    assert not feed.is_store_applied
    assert QueuedEmail.objects.get().kind == "feed scan held"

    confirm(ended, staff.dana)
    run_jobs()
    ended.refresh_from_db()
    assert (ended.state, len(invited())) == ("applied", 29)


def test_a_download_that_ends_after_a_change_belongs_to_the_old_settings(
    feed, sis, staff, monkeypatch
):
    offer(sis, zip_of(*students()))
    download = download_stage.download

    def download_and_change(*args, **options):
        downloaded = download(*args, **options)
        change_feed(feed, by=staff.dana, address="https://other.example.org/r.zip")
        return dataclasses.replace(downloaded, host_key="ssh-ed25519 SHA256:old")

    monkeypatch.setattr(download_stage, "download", download_and_change)
    ended = scan(feed)
    assert (ended.state, ended.message) == ("cancelled", "The roster sync was changed.")
    # Neither the key of the old server nor its people are those of the new one.
    assert (feed.host_key, feed.store, feed.etag) == ("", "", "")
    assert not Job.objects.filter(kind="feed.scan").exists()


@pytest.mark.parametrize("act", [change_feed, remove_feed])
def test_a_change_waits_for_a_stage_that_ends(feed, sis, staff, monkeypatch, act):
    """Each of them locks the scan and the feed."""
    offer(sis, zip_of(*students()))
    replace_store, waits = parse_stage._replace_store, []

    def replace_meanwhile(*args):
        waits.append(in_a_thread(lambda: act(feed, by=staff.dana)))
        replace_store(*args)

    monkeypatch.setattr(parse_stage, "_replace_store", replace_meanwhile)
    ended = scan(feed)
    assert waits[0]() is None
    ended.refresh_from_db()
    assert (ended.state, invited()) == ("cancelled", [])
    assert ended.stages.get(stage="parse").is_done
    assert (RosterFeed.objects.get().removed_at is None) is (act is change_feed)


def test_a_scan_that_starts_waits_for_one_that_ends(feed, sis, staff, monkeypatch):
    offer(sis, zip_of(*students()))
    end_scan, waits = roster_stages.end_scan, []

    def end_meanwhile(*args):
        end_scan(*args)
        waits.append(
            in_a_thread(lambda: start_scan(feed, reason="now", by=staff.state))
        )

    with monkeypatch.context() as patch:
        patch.setattr(roster_stages, "end_scan", end_meanwhile)
        first = start_scan(feed, reason="now", by=staff.dana)
        run_jobs("downloads")
        run_jobs("scans")
    second = waits[0]()
    assert isinstance(second, FeedScan), second
    first.refresh_from_db()
    assert (first.state, len(invited())) == ("applied", 30)
    run_jobs()
    second.refresh_from_db()
    assert second.state == "unchanged"


def test_of_two_feeds_at_once_for_one_administration_one_is_added(
    feed, staff, administration
):
    feed.administrations.clear()
    outcome = while_open(
        lambda: add_feed(feed, "North", staff.dana, [administration]),
        lambda: add_feed(feed, "South", staff.state, [administration]),
    )
    assert isinstance(outcome, ValidationError)
    assert "“North” already brings people" in str(outcome)
    assert [row.name for row in administration.feeds.all()] == ["North"]
