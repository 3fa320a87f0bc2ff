"""Exports while other processes and threads write, which need committed rows."""

# Fixtures are imported, and then arguments of the same name.
# ruff: noqa: F811

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from django.conf import settings
from django.db import connection, connections
from django.utils import timezone

from reports.answers import snapshot
from reports.tests.exports.conftest import (
    FIRST,
    answer,
    made,
    published,
    requested,
    with_release,
)
from reports.tests.exports.test_formats import content, rows_of
from reports.tests.exports.test_job import people  # noqa: F401
from settings.tests.patience import patience
from survey.models import Job, Response
from survey.work import jobs

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def first_survey(transactional_db):
    return published(FIRST, "1")


WORKER = """
import sys, time, django
django.setup()
import reports.tasks
from reports.exports import anonymise
from survey.work import jobs
anonymise.MEMORY = 100
add = anonymise.Shuffle.add
def slow(self, respondent, line):
    add(self, respondent, line)
    if self.count == 6:
        print("halfway", flush=True)
        time.sleep(60)
anonymise.Shuffle.add = slow
jobs.run(int(sys.argv[1]))
"""


def test_another_worker_makes_the_export_of_a_killed_one(staff, fall, people):
    with_release(fall)
    export = requested(staff.state, fall)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(export.job_id)],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
            "GROUNDSWELL_TEST_DATABASE": str(connection.settings_dict["NAME"]),
            "GROUNDSWELL_TEST_SERVERS": settings.SERVERS,
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout.readline() == "halfway\n"
    worker.send_signal(signal.SIGKILL)
    worker.wait(patience(10))
    worker.stdout.close()
    export.refresh_from_db()
    assert export.file_name == ""
    Job.objects.filter(pk=export.job_id).update(
        heartbeat_at=timezone.now() - 2 * jobs.DEAD_AFTER
    )
    jobs.run(export.job_id)
    export.refresh_from_db()
    assert export.rows == len(rows_of(export)) == 12
    assert Job.objects.get(pk=export.job_id).attempts == 2


def test_answers_saved_while_reading_are_not_exported(staff, fall, people, monkeypatch):
    read = snapshot.Snapshot.read

    def read_and_save_more(self, *args, **options):
        if not meanwhile:
            thread = Thread(target=save_more)
            thread.start()
            thread.join()
        read(self, *args, **options)

    meanwhile = []

    def save_more():
        answer(people[0], {"last": "late"})
        meanwhile.append(True)
        connections.close_all()

    monkeypatch.setattr(snapshot.Snapshot, "read", read_and_save_more)
    export = made(staff.state, fall)
    assert meanwhile
    assert Response.objects.count() == 25
    assert export.responses == 24
    assert b"late" not in content(export)
