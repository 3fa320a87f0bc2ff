"""Scan windows, the schedule, and downloads that are tried again."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import District
from survey.models import FeedScan, Job, RosterFeed
from survey.people.rosters.feeds import schedule
from survey.people.rosters.feeds.download_stage import source_of
from survey.people.rosters.feeds.windows import window_at
from survey.tests.rosters.feeds.feed_scans import (
    invited,
    offer,
    run_jobs,
    scan,
    students,
    while_open,
    zip_of,
)

CHICAGO = ZoneInfo("America/Chicago")


def feed_of(begins, ends, pk=1):
    return RosterFeed(
        pk=pk,
        district=District(),
        window_begins=time(*begins),
        window_ends=time(*ends),
    )


def at(*moment):
    return datetime(*moment, tzinfo=CHICAGO)


@pytest.mark.parametrize(
    ("moment", "night"),
    [
        (at(2026, 11, 22, 0, 59), None),
        (at(2026, 11, 22, 1), date(2026, 11, 22)),
        (at(2026, 11, 22, 3, 59), date(2026, 11, 22)),
        (at(2026, 11, 22, 4), None),
        # Clocks go back at 2:00: 1:30 comes twice, and is the same night.
        (at(2026, 11, 1, 1, 30), date(2026, 11, 1)),
        (at(2026, 11, 1, 1, 30).replace(fold=1), date(2026, 11, 1)),
        (at(2026, 11, 1, 3, 59), date(2026, 11, 1)),
        # Clocks go forward at 2:00.
        (at(2027, 3, 14, 3, 30), date(2027, 3, 14)),
        (at(2027, 3, 14, 4), None),
    ],
)
def test_a_window_is_open_in_the_time_of_the_state(moment, night):
    window = window_at(feed_of((1, 0), (4, 0)), moment.astimezone(UTC))
    assert (window and window.night) == night


@pytest.mark.parametrize("zone", ["Pacific/Honolulu", "Asia/Kolkata", "Europe/Berlin"])
def test_a_window_is_open_by_the_clocks_of_the_district(zone):
    feed = feed_of((1, 0), (4, 0))
    feed.district.time_zone = zone
    # Clocks go forward in Berlin.
    for day in (date(2026, 11, 22), date(2027, 3, 28)):
        for hour, is_open in ((0, False), (1, True), (3, True), (4, False)):
            moment = datetime.combine(day, time(hour, 30), ZoneInfo(zone))
            window = window_at(feed, moment.astimezone(UTC))
            assert (window is not None and window.night == day) == is_open, moment


def test_a_window_can_begin_before_midnight():
    feed = feed_of((23, 0), (2, 0))
    for moment in (at(2026, 11, 22, 23), at(2026, 11, 23, 1, 59)):
        assert window_at(feed, moment).night == date(2026, 11, 22)
    assert window_at(feed, at(2026, 11, 23, 2)) is None


def test_a_window_in_the_hour_that_spring_skips_is_an_hour_later():
    feed = feed_of((2, 15), (2, 45))
    assert window_at(feed, at(2027, 3, 14, 3, 20)).night == date(2027, 3, 14)
    # The twin whose end would be before its begin.
    feed = feed_of((2, 30), (3, 15))
    assert window_at(feed, at(2027, 3, 14, 3, 45)).night == date(2027, 3, 14)


def test_feeds_begin_at_times_of_their_own_in_the_first_half():
    moment = at(2026, 11, 22, 2)
    starts = []
    for pk in range(1, 901):
        feed = feed_of((1, 0), (4, 0), pk)
        starts.append(window_at(feed, moment).start_of(feed))
    minutes = [(start - at(2026, 11, 22, 1)) / timedelta(minutes=1) for start in starts]
    assert min(minutes) >= 0 and max(minutes) < 90
    per_minute = [sum(n <= m < n + 1 for m in minutes) for n in range(90)]
    assert max(per_minute) < 30


pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clock(monkeypatch):
    """Let a test set the time."""
    real = timezone.now
    moved = [timedelta(0)]
    monkeypatch.setattr(timezone, "now", lambda: real() + moved[0])

    def go_to(moment):
        moved[0] = moment - real()

    return go_to


@pytest.fixture
def nightly(feed):
    RosterFeed.objects.update(window_begins=time(1), window_ends=time(4))
    feed.refresh_from_db()
    return feed


def nights():
    return list(FeedScan.objects.order_by("night").values_list("night", flat=True))


def test_a_feed_is_scanned_once_a_night(nightly, sis, clock):
    offer(sis, zip_of(*students()))
    clock(at(2027, 1, 5, 0, 59))
    schedule.start_due()
    assert nights() == []
    # After an outage that ended within the window.
    clock(at(2027, 1, 5, 3, 0))
    schedule.start_due()
    run_jobs()
    schedule.start_due()
    clock(at(2027, 1, 5, 3, 50))
    schedule.start_due()
    assert nights() == [date(2027, 1, 5)]
    assert len(invited()) == 30
    clock(at(2027, 1, 6, 3, 0))
    schedule.start_due()
    assert nights() == [date(2027, 1, 5), date(2027, 1, 6)]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")
def test_of_two_schedulers_at_once_one_scans_a_feed(nightly, clock):
    """Also if the scan of the first is over when the second one asks."""

    def start_and_end():
        schedule.start_due()
        FeedScan.objects.update(state="failed", ended_at=timezone.now())

    clock(at(2027, 1, 5, 3, 0))
    assert while_open(start_and_end, schedule.start_due) is None
    assert nights() == [date(2027, 1, 5)]
    assert Job.objects.count() == 1


def test_the_statements_do_not_grow_with_the_feeds(
    nightly, clock, django_assert_num_queries
):
    clock(at(2027, 1, 5, 3, 0))
    schedule.start_due()
    with django_assert_num_queries(5):
        schedule.start_due()
    for name in ("Second", "Third"):
        nightly.pk, nightly.name = None, name
        nightly.save(force_insert=True)
        FeedScan.objects.create(
            feed=nightly,
            district=nightly.district,
            night=date(2027, 1, 5),
            state="applied",
            reason="night",
        )
    with django_assert_num_queries(5):
        schedule.start_due()
    assert FeedScan.objects.count() == 3


def test_paused_and_removed_feeds_are_not_scanned(nightly, clock):
    clock(at(2027, 1, 5, 3, 0))
    RosterFeed.objects.update(is_paused=True)
    schedule.start_due()
    RosterFeed.objects.update(is_paused=False, removed_at=timezone.now())
    schedule.start_due()
    assert nights() == []


def test_a_scan_does_not_begin_after_its_window(nightly, sis, clock):
    offer(sis, zip_of(*students()))
    clock(at(2027, 1, 5, 3, 59))
    schedule.start_due()
    # The workers were down.
    clock(at(2027, 1, 5, 4, 1))
    run_jobs()
    ended = FeedScan.objects.get()
    assert (ended.state, sis.requests) == ("failed", [])
    assert "window ended" in ended.message


def test_a_download_is_tried_again_without_keeping_the_worker(nightly, sis, clock):
    sis.give("/roster.zip", 503)
    clock(at(2027, 1, 5, 3, 0))
    schedule.start_due()
    run_jobs()
    ended = FeedScan.objects.get()
    assert (ended.state, Job.objects.filter(ended_at=None).count()) == ("waiting", 0)
    schedule.start_due()
    assert Job.objects.count() == 1
    offer(sis, zip_of(*students()))
    clock(at(2027, 1, 5, 3, 3))
    schedule.start_due()
    run_jobs()
    ended.refresh_from_db()
    assert (ended.state, len(invited())) == ("applied", 30)
    assert ended.stages.get(stage="download").attempts == 2


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")
def test_of_two_schedulers_at_once_one_tries_a_download_again(feed):
    ended = FeedScan.objects.create(
        feed=feed, district=feed.district, reason="now", retry_at=timezone.now()
    )
    while_open(schedule.retry_downloads, schedule.retry_downloads)
    ended.refresh_from_db()
    assert (ended.retry_at, Job.objects.count()) == (None, 1)


def test_a_download_is_given_up_after_three_tries(nightly, sis, clock):
    sis.give("/roster.zip", 503)
    for minute in (0, 3, 20):
        clock(at(2027, 1, 5, 3, minute))
        schedule.start_due()
        run_jobs()
    assert FeedScan.objects.get().state == "failed"
    assert RosterFeed.objects.get().failures_in_a_row == 1


def test_two_feeds_of_a_district_are_scanned_one_after_the_other(nightly, sis, clock):
    second = RosterFeed.objects.get()
    second.pk, second.name = None, "Staff"
    second.save()
    clock(at(2027, 1, 5, 3, 0))
    schedule.start_due()
    assert FeedScan.objects.count() == 1
    run_jobs()
    schedule.start_due()
    assert FeedScan.objects.count() == 2


def test_deltas_begin_a_day_before_the_last_download_with_a_weekly_full_scan(
    feed, sis, clock
):
    offer(sis, zip_of(*students()))
    assert source_of(feed).changed_since is None
    began = timezone.now()
    scan(feed)
    since = source_of(feed).changed_since
    assert abs(since - began + timedelta(days=1)) < timedelta(minutes=1)
    clock(began + timedelta(days=6, hours=13))
    assert source_of(feed).changed_since is None


def test_files_that_no_scan_names_are_deleted_after_a_day(feed, sis, clock, tmp_path):
    import os

    from survey.work.files import path_of

    offer(sis, zip_of(*students()))
    scan(feed)
    orphan = path_of("feeds/orphan.sqlite")
    orphan.write_text("")
    for path in (orphan, path_of(feed.store)):
        os.utime(path, (0, 0))
    schedule.delete_old_files()
    assert not orphan.exists()
    assert path_of(feed.store).exists()
