"""Kill the process of a worker with SIGKILL in the middle of a scan."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from django.conf import settings as project

from settings.tests.patience import patience
from survey.people.rosters.feeds import scans
from survey.tests.rosters.feeds.feed_scans import (
    forget_heartbeats,
    invited,
    offer,
    run_jobs,
    scan,
    students,
    zip_of,
)
from survey.tests.test_jobs import environment

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not project.SERVERS, reason="SQLite's test database is in memory"
    ),
]

WORKER = """
import os, sys, time, django
django.setup()
from django.conf import settings
from django.db import connections
settings.JOBS_BY_MESSAGE = False
from survey.people.rosters.feeds import parse_stage, roster_stages
from survey.people.rosters import apply
module, name = {"parse": (parse_stage, "_replace_store"),
    "compare": (roster_stages, "reason_to_hold"),
    "apply": (apply, "withdraw_people")}[sys.argv[1]]
def stop(*args, **kwargs):
    open(sys.argv[2], "w").close()
    time.sleep(60)
setattr(module, name, stop)
from survey.work import jobs
from survey.work.job_turns import next_job
while (pk := next_job(jobs.SCANS)) is not None:
    jobs.run(pk)
"""


@pytest.mark.parametrize("stage", ["parse", "compare", "apply"])
def test_a_killed_process_applies_nothing_twice(feed, sis, staff, tmp_path, stage):
    offer(sis, zip_of(*students(40)))
    scan(feed)
    offer(sis, zip_of(*students(37), *students(3, first=50)))
    running = scans.start_scan(feed, reason="now", by=staff.dana)
    run_jobs("downloads")
    reached = tmp_path / "reached"
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", WORKER, stage, str(reached)],
        cwd=project.BASE_DIR,
        env={**environment(), "GROUNDSWELL_FILES": project.FILES_FOLDER},
    )
    try:
        deadline = time.monotonic() + patience(30)
        while not reached.exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    forget_heartbeats()
    run_jobs()

    running.refresh_from_db()
    assert running.state == "applied"
    assert running.stages.get(stage=stage).attempts == 2
    assert len(invited()) == 40
    [upload] = running.uploads.all()
    assert (upload.report["added"], upload.report["withdrawn"]) == (3, 3)
