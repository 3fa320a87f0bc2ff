"""Kill workers in the middle of scans: nothing is lost or applied twice."""

from __future__ import annotations

import pytest

from survey.models import FeedStage, Job
from survey.people.rosters import apply
from survey.people.rosters.feeds import (
    download_stage,
    parse_stage,
    roster_stages,
    scan_jobs,
    scans,
    schedule,
)
from survey.tests.rosters.feeds.feed_scans import (
    Killed,
    invited,
    offer,
    run_jobs,
    run_until_killed,
    scan,
    students,
    user,
    world,
    zip_of,
)
from survey.work import jobs

pytestmark = pytest.mark.django_db(transaction=True)

# Where the worker is killed, and the stages that are attempted twice then.
POINTS = {
    "nowhere": (None, "", "before", ""),
    "after the download": (download_stage, "download", "after", "download"),
    "while the download is stored": (download_stage, "start", "after", "download"),
    "after the download was stored": (jobs, "_end", "before", ""),
    "after the store was written": (parse_stage, "load_into", "after", "parse"),
    "while the store is replaced": (parse_stage, "cancel_replaced", "after", "parse"),
    "before the comparison": (roster_stages, "check_upload", "before", "compare"),
    "after the comparison": (roster_stages, "check_upload", "after", "compare"),
    "while it is decided": (roster_stages, "reason_to_hold", "after", "compare"),
    "before people are added": (apply, "add_people", "before", "apply"),
    "before people are changed": (apply, "change_people", "before", "apply"),
    "before people are withdrawn": (apply, "withdraw_people", "before", "apply"),
    "after people were withdrawn": (apply, "withdraw_people", "after", "apply"),
    "after the roster was finished": (roster_stages, "end_scan", "before", "apply"),
    "while the scan ends": (roster_stages, "end_scan", "after", "apply"),
}


def kill_once(monkeypatch, module, name, when):
    original, killed = getattr(module, name), []

    def killing(*args, **kwargs):
        if killed:
            return original(*args, **kwargs)
        killed.append(True)
        if when == "after":
            original(*args, **kwargs)
        raise Killed

    monkeypatch.setattr(module, name, killing)


@pytest.mark.parametrize("point", POINTS)
def test_a_scan_killed_anywhere_has_the_same_result(
    feed, sis, staff, monkeypatch, point
):
    module, name, when, repeated = POINTS[point]
    offer(sis, zip_of(*students(40)))
    scan(feed)
    rows = [user(0, given_name="Zoe"), *students(37, first=1), *students(3, first=50)]
    offer(sis, zip_of(*rows))
    running = scans.start_scan(feed, reason="now", by=staff.dana)
    if module is not None:
        with monkeypatch.context() as patch:
            kill_once(patch, module, name, when)
            run_until_killed()
    run_jobs()

    assert world() == {
        "people": [
            (f"u{number:04}", given, "lincoln", "07", 1, number not in (38, 39))
            for number, given in [
                (0, "Zoe"),
                *((n, "Ali") for n in (*range(1, 40), 50, 51, 52)),
            ]
        ],
        "entries": [
            ("add feed", staff.dana.email, shown_feed()),
            ("apply roster", "roster roster sync", counts(added=40)),
            (
                "apply roster",
                "roster roster sync",
                counts(added=3, changed=1, withdrawn=2, unchanged=37),
            ),
        ],
        "scans": [("applied", ""), ("applied", "")],
    }
    assert running.uploads.count() == 1
    attempts = dict(running.stages.values_list("stage", "attempts"))
    assert attempts == {
        stage: 2 if stage == repeated else 1 for stage in FeedStage.Stage.values
    }


def test_a_scan_that_fails_while_its_worker_dies_is_not_applied(
    feed, sis, staff, monkeypatch
):
    def fail(*_):
        raise RuntimeError

    offer(sis, zip_of(*students(5)))
    running = scans.start_scan(feed, reason="now", by=staff.dana)
    with monkeypatch.context() as patch:
        patch.setattr(apply, "add_people", fail)
        kill_once(patch, scan_jobs, "fail_scan", "before")
        run_until_killed()
    run_jobs()
    running.refresh_from_db()
    assert (running.state, running.message) == ("failed", "A roster was not applied.")
    assert invited() == []


def shown_feed():
    return {
        "name": "PowerSchool",
        "kind": "zip",
        "identity": "sourcedId",
        "administrations": ["students-2027"],
        "window": "",
    }


def counts(**given):
    names = ("added", "changed", "moved", "back", "withdrawn", "unchanged", "rejected")
    zeros = dict.fromkeys(names, 0)
    return {**zeros, **given, "administration": "students-2027"}


def test_a_scan_ends_when_three_workers_died(feed, sis, staff, monkeypatch):
    offer(sis, zip_of(*students()))
    running = scans.start_scan(feed, reason="now", by=staff.dana)

    def kill(*args, **kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(parse_stage, "load_into", kill)
        for _ in range(3):
            run_until_killed()
    run_jobs()
    assert Job.objects.get(kind="feed.scan").message == jobs.WORKER_DIED
    running.refresh_from_db()
    assert running.state == "running"

    monkeypatch.setattr(schedule, "ABANDONED_AFTER", -schedule.ABANDONED_AFTER)
    schedule.start_due()
    running.refresh_from_db()
    assert (running.state, running.message) == ("failed", jobs.WORKER_DIED)
    # The next one can start.
    assert scan(feed).state == "applied"
