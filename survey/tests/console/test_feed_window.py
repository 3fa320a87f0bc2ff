"""The chart of the last scan window, and the times of its stages."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from accounts.tests.logging_in import log_in
from survey.console.feeds.window_chart import (
    Stage,
    bars_of,
    count_bars,
    line_of,
    slowest_stage,
    time_stages,
)
from survey.models import FeedScan
from survey.tests.console.feed_cast import create_feed, create_scan

ONE = datetime(2027, 1, 12, 1, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return ONE + timedelta(seconds=seconds)


def stage(name: str, began: float, ended: float, **more: int) -> Stage:
    pool = "download" if name == "download" else "parse"
    amounts = {"bytes": 0, "rows": 0, **more}
    return Stage(name, pool, at(began), at(ended), **amounts)


def test_workers_are_idle_while_no_stage_keeps_them_busy():
    stages = [
        # Half of the first minute, and all of the second.
        stage("download", 30, 120),
        stage("parse", 60, 90),
    ]
    bars = count_bars(stages, [at(60), at(119), at(150)], {"download": 4, "parse": 2})
    assert [bar.scans for bar in bars] == [0, 2, 1]
    assert [bar.idle["download"] for bar in bars] == [3.5, 3, 4]
    assert [bar.idle["parse"] for bar in bars] == [2, 1.5, 2]


def test_a_long_window_has_several_minutes_to_a_bar():
    bars = count_bars([stage("parse", 0, 8 * 3600)], [at(10), at(20)], {"parse": 1})
    assert len(bars) == 120
    assert bars[1].begins - bars[0].begins == timedelta(minutes=4)
    assert bars[0].scans == 0.5
    assert [bar.idle["parse"] for bar in bars] == [0] * 120


def test_a_window_without_an_ended_stage_has_no_bars():
    assert count_bars([], [], {"parse": 1}) == []


def test_the_slowest_stage_is_the_one_that_took_most_time():
    times = time_stages(
        [
            stage("download", 0, 30, bytes=5),
            stage("download", 0, 50, bytes=7),
            stage("compare", 0, 60, rows=9),
            stage("apply", 0, 20),
        ],
        ("download", "parse", "compare", "apply"),
    )
    assert [time.name for time in times] == ["download", "compare", "apply"]
    first = times[0]
    assert (first.times, first.seconds, first.bytes) == (2, 80, 12)
    assert (first.share, first.median_s, first.longest_s) == (0.5, 40, 50)
    # One compare took longer than each download.
    slowest = slowest_stage(times)
    assert slowest
    assert slowest.name == "download"
    assert slowest_stage([]) is None


def test_the_highest_bar_fills_the_drawing():
    assert bars_of([1, 4]) == [(25, 75, 450, 25), (525, 0, 450, 100)]
    assert bars_of([0]) == [(50, 100, 900, 0)]
    assert line_of([2, 1], 4) == "0.0,50.0 500.0,50.0 500.0,75.0 1000.0,75.0"
    assert line_of([], 0) == ""


@pytest.mark.django_db
class TestPage:
    @pytest.fixture(autouse=True)
    def workers(self, settings):
        settings.JOB_WORKERS = {"downloads": 16, "scans": 2, "quick": 2}

    def scan(self, feed, night=date(2027, 1, 12), **more):
        return create_scan(feed, reason="night", night=night, began=ONE, **more)

    def test_the_slowest_stage_and_the_totals_are_shown(self, client, staff):
        feed = create_feed(staff.riverside, staff.dana)
        self.scan(feed, state="failed")
        self.scan(create_feed(staff.lakeside, staff.state), state="unchanged")
        # A former night, and a scan by hand, are not of this window.
        self.scan(feed, night=date(2027, 1, 11))
        create_scan(feed, began=ONE)
        page = log_in(client, staff.state).get("/console/feeds/window/")
        totals = dict(page.context["totals"])
        assert (totals["roster syncs scanned"], totals["failed"]) == ("2", "1")
        assert totals["rows compared"] == "2,400"
        text = page.content.decode()
        assert "Slowest stage: Download" in text
        assert "<rect" in text
        assert "<caption" in text
        assert "Idle: downloading" in text

    def test_a_district_sees_its_own_scans_only(self, client, staff):
        self.scan(create_feed(staff.riverside, staff.dana))
        self.scan(create_feed(staff.lakeside, staff.state))
        page = log_in(client, staff.dana).get("/console/feeds/window/")
        assert dict(page.context["totals"])["roster syncs scanned"] == "1"
        # What the others' scans keep busy is not shown either.
        assert b"Idle" not in page.content

    def test_what_is_confirmed_in_the_morning_is_not_of_the_night(self, client, staff):
        scan = self.scan(create_feed(staff.riverside, staff.dana))
        morning, end = at(8 * 3600), at(8 * 3600 + 60)
        FeedScan.objects.update(
            confirmed_by=staff.dana, confirmed_at=morning, ended_at=end
        )
        scan.stages.filter(stage="apply").update(started_at=morning, ended_at=end)
        page = log_in(client, staff.dana).get("/console/feeds/window/")
        assert page.context["ends"] == at(3)
        [minute] = page.context["minutes"]
        assert minute["scans"] == 1
        assert [stage["name"] for stage in page.context["stages"]] == [
            "Download",
            "Parse",
            "Compare",
        ]

    def test_without_a_nightly_scan_the_page_says_so(self, client, staff):
        create_scan(create_feed(staff.riverside, staff.dana))
        page = log_in(client, staff.dana).get("/console/feeds/window/")
        assert b"No nightly scan has run yet" in page.content

    @pytest.mark.parametrize("count", [1, 30])
    def test_the_page_costs_five_statements(
        self, client, staff, count, django_assert_num_queries
    ):
        for n in range(count):
            self.scan(create_feed(staff.riverside, staff.dana, name=f"Feed {n}"))
        log_in(client, staff.state)
        with django_assert_num_queries(5):
            client.get("/console/feeds/window/")
