"""Request ids are passed on to tasks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker

from settings.monitoring import logs
from settings.tests.patience import patience

REQUEST_ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def seen():
    return SimpleNamespace(traces=[])


@pytest.fixture
def app(seen):
    app = Celery("tests", broker="memory://", backend="cache+memory://")
    app.conf.worker_hijack_root_logger = False

    @app.task(name="tests.look")
    def look():
        trace = logs.current()
        seen.traces.append((trace.request_id, trace.task))

    return app


def test_a_task_has_the_id_of_the_request_that_sent_it(app, seen):
    with start_worker(app, perform_ping_check=False, pool="solo"):
        logs.begin(REQUEST_ID)
        first = app.tasks["tests.look"].delay()
        logs.end()
        second = app.tasks["tests.look"].delay()
        first.get(timeout=patience(10))
        second.get(timeout=patience(10))
    assert seen.traces[0] == (REQUEST_ID, "tests.look")
    assert seen.traces[1][0] != REQUEST_ID
    assert logs.current() is None
