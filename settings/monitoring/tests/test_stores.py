"""How long requests wait for each store is measured, and page saves stay cheap."""

from __future__ import annotations

import json
import logging
from contextlib import closing
from itertools import count

import pytest
from django.core.cache import caches
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection, connections
from django.http import HttpResponse

from accounts.models import District
from settings.monitoring import logs, metrics, stores
from settings.monitoring.middleware import MonitoringMiddleware, finished
from survey.taking.fast_path import FastPath
from survey.tests.conftest import FIRST_PAGE, code_of
from survey.work import jobs


def counted(view, store):
    labels = {"view": view, "store": store}
    name = "groundswell_store_seconds_total"
    return metrics.registry.get_sample_value(name, labels) or 0


@pytest.fixture
def trace(monkeypatch):
    """A request that is measured, with a clock of a second for each look."""
    monkeypatch.setattr(stores, "clock", count().__next__)
    trace = logs.begin()
    stores.begin(trace)
    yield trace
    stores.finish()
    logs.end()


@pytest.mark.slow
@pytest.mark.django_db
def test_a_persons_requests_wait_for_the_primary_and_for_redis(browser, maya):
    before = {name: counted("survey_login", name) for name in stores.STORES}
    browser.post("/", {"code": code_of(maya)})
    after = {name: counted("survey_login", name) for name in stores.STORES}
    assert after["primary"] > before["primary"]
    assert after["redis"] > before["redis"]
    assert after["rabbitmq"] == before["rabbitmq"]
    saved = counted("survey_change_page", "primary")
    assert browser.save(1, FIRST_PAGE, 1).status_code == 200
    assert counted("survey_change_page", "primary") > saved


@pytest.mark.slow
@pytest.mark.django_db
def test_each_statement_and_the_commit_count(trace):
    District.objects.create(name="Riverside", code="R")
    assert trace.stores == {"primary": 1}
    # Django sends the commit, which waits for the disk, past its wrappers.
    with closing(connections.create_connection("default")) as another:
        another.set_autocommit(False)
        another.commit()
    assert trace.stores == {"primary": 2}


@pytest.mark.slow
def test_each_cache_and_files_count(trace):
    caches["default"].set("key", 1)
    caches["default"].get("key")
    assert trace.stores == {"memcached": 2}
    caches["sessions"].get("key")
    assert trace.stores == {"memcached": 2, "redis": 1}
    name = storages["private"].save("kept/note.txt", ContentFile(b"text"))
    storages["private"].delete(name)
    assert trace.stores["files"] == 2


def test_waking_a_worker_counts_also_when_the_broker_is_away(
    trace, settings, monkeypatch
):
    def refuse(*arguments, **options):
        raise OSError

    settings.JOBS_BY_MESSAGE = True
    monkeypatch.setattr("celery.canvas.Signature.apply_async", refuse)
    jobs.wake(1)
    assert trace.stores == {"rabbitmq": 1}


def test_a_replica_that_fails_is_not_charged_with_the_primarys_time(trace):
    with stores.timed("replica"), stores.timed("primary"):
        pass
    # Five looks at the clock: one second inside, two around it.
    assert trace.stores == {"primary": 1, "replica": 2}


def test_nothing_is_measured_outside_of_a_request():
    assert stores.measured() is None
    with stores.timed("redis"):
        pass
    trace = logs.begin()
    with stores.timed("redis"):
        pass
    assert trace.stores is None
    logs.end()


@pytest.mark.django_db
def test_a_request_leaves_no_wrapper_behind(rf):
    """One that stayed would time every later page save, and time it twice."""
    inside = []

    def view(request):
        inside.append(len(connection.execute_wrappers))
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            MonitoringMiddleware(view)(rf.get("/"))
    assert inside == [1, 1]
    assert connection.execute_wrappers == []


def test_one_page_save_in_sixteen_is_measured_and_counts_for_all(monkeypatch, rf):
    watched = []
    monkeypatch.setattr(
        stores,
        "begin",
        lambda trace: (
            watched.append(trace) or setattr(trace, "stores", {"primary": 0.5})
        ),
    )
    pool = FastPath()
    pool.django = lambda environ, start_response: [b""]

    def reply(*arguments):
        assert connection.execute_wrappers == []
        return _Saved()

    monkeypatch.setattr(pool, "_reply", reply)
    before = counted("survey_change_page", "primary")
    for _ in range(33):
        pool(rf.post("/take/pages/1/").environ, lambda *started: None)
    assert len(watched) == 3
    gained = counted("survey_change_page", "primary") - before
    assert gained == pytest.approx(3 * 0.5 * stores.SAMPLED)


class _Saved:
    status, outcome, content = 200, "saved", {}


def test_a_slow_request_says_in_the_log_what_it_waited_for(caplog, monkeypatch):
    trace = logs.begin()
    trace.view, trace.started = "console_home", trace.started - 2
    trace.stores = {"primary": 1.5, "files": 0.25}
    with caplog.at_level(logging.WARNING):
        finished(trace, 200, method="GET", outcome="")
    logs.end()
    [record] = [each for each in caplog.records if each.msg == "slow"]
    line = json.loads(logs.JsonFormatter().format(record))
    assert (line["primary_ms"], line["files_ms"]) == (1500, 250)
    assert tuple(f"{name}_ms" for name in stores.STORES) == logs.STORE_FIELDS


def test_a_view_that_fails_to_be_counted_is_answered(monkeypatch, rf):
    monkeypatch.setattr(metrics, "_stores", {})
    done = HttpResponse("saved")

    def view(request):
        logs.current().stores["redis"] = 0.1
        return done

    assert MonitoringMiddleware(view)(rf.get("/")) is done
