"""What is counted, that it is counted once, and who may read it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import time

import pytest
from django.conf import settings
from django.test import RequestFactory
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from settings.monitoring import logs, metrics, metrics_page
from settings.monitoring.middleware import MonitoringMiddleware
from settings.tests.patience import patience
from survey.tests.conftest import FIRST_PAGE, code_of


def counted(name, **labels):
    return metrics.registry.get_sample_value(f"groundswell_{name}", labels) or 0


@pytest.mark.django_db
def test_a_person_is_counted_from_login_to_save(browser, maya):
    def state():
        return (
            counted("logins_total", outcome="admitted"),
            counted("logins_total", outcome="refused"),
            counted("page_saves_total", outcome="saved"),
            counted("page_saves_total", outcome="conflict")
            + counted("page_saves_total", outcome="superseded"),
            counted("page_saves_total", outcome="invalid"),
            counted("request_seconds_count", view="survey_change_page", method="POST"),
        )

    before = state()
    browser.post("/", {"code": "ABCD-EFGH-JKLM"})
    browser.post("/", {"code": code_of(maya)})
    base = browser.bootstrap()["revision"]
    assert browser.save(1, FIRST_PAGE, base + 1).status_code == 200
    assert browser.save(1, FIRST_PAGE, base).status_code == 409
    assert browser.save(1, {**FIRST_PAGE, "safe": "9"}, base + 2).status_code == 422
    after = state()
    assert [new - old for old, new in zip(before, after, strict=True)] == [
        1,
        1,
        1,
        1,
        1,
        3,
    ]


def test_labels_are_ours_alone():
    """Whatever a client sends as its method or asks for, it makes no series."""
    for _ in range(2):
        metrics.observed("admin:index", 0.1, 200, method="GET")
        metrics.observed("survey_display", 0.1, 200, method="BREW")
        metrics.observed("survey_change_page", 0.1, 200, outcome="ABCD-EFGH")
    text = generate_latest(metrics.registry).decode()
    assert 'view="other",' in text or 'view="other"}' in text
    for foreign in ("admin", "BREW", "ABCD"):
        assert foreign not in text


def test_a_view_may_say_more_than_its_status():
    before = counted("page_saves_total", outcome="retried")
    metrics.observed("survey_change_page", 0.01, 200, outcome="retried")
    assert counted("page_saves_total", outcome="retried") == before + 1


def test_errors_are_counted_by_view():
    labels = {"view": "survey_display", "status": "503"}
    before = counted("errors_total", **labels)
    metrics.observed("survey_display", 0.01, 503)
    metrics.observed("survey_display", 0.01, 404)
    assert counted("errors_total", **labels) == before + 1


# Who may read


@pytest.fixture
def keyed(settings, monkeypatch, monitored):
    settings.MONITORING_KEY = "a-key-of-the-monitoring-port"
    monkeypatch.setattr(metrics_page, "statistics", lambda: [("up", 1.0, ("primary",))])


@pytest.mark.parametrize(
    ("key", "address", "status"),
    [
        ("a-key-of-the-monitoring-port", "127.0.0.1", 200),
        ("a-key-of-the-monitoring-port", "", 200),
        ("a-key-of-the-monitoring-port", "10.0.0.9", 404),
        ("another", "127.0.0.1", 404),
        ("", "127.0.0.1", 404),
    ],
)
def test_metrics_are_for_the_monitoring_port(client, keyed, key, address, status):
    response = client.get(
        "/metrics",
        headers={"X-Groundswell-Monitoring": key},
        REMOTE_ADDR=address,
    )
    assert response.status_code == status
    assert (b"groundswell_up" in response.content) is (status == 200)


def test_without_a_key_set_nobody_reads(client, keyed, settings):
    settings.MONITORING_KEY = ""
    assert client.get("/metrics").status_code == 404


@pytest.mark.django_db
def test_the_page_can_be_parsed_and_explains_itself():
    families = {
        family.name: family
        for family in text_string_to_metric_families(metrics_page.exposition().decode())
    }
    assert {"groundswell_up", "groundswell_page_saves"} <= set(families)
    assert all(len(family.documentation) > 20 for family in families.values())
    up = {s.labels["dependency"]: s.value for s in families["groundswell_up"].samples}
    assert up["primary"] == 1
    assert ("redis" in up) is bool(settings.SERVERS)
    if settings.SERVERS:
        assert families["groundswell_commits"].samples[0].value > 0
        assert families["groundswell_wal_syncs"].samples[0].value > 0
        assert "groundswell_redis_memory_bytes" in families


# Many processes

COUNTING = """
import os, sys, time, django
django.setup()
from settings.monitoring import metrics, metrics_page
metrics.observed("survey_change_page", 0.01, 200)
if os.fork() == 0:
    for _ in range(10):
        metrics.observed("survey_change_page", 0.01, 200)
    os.write(1, b"%d\\n" % metrics.slot.number)
    time.sleep(float(sys.argv[1]))
    os._exit(0)
metrics.observed("survey_change_page", 0.01, 200)
os.write(1, b"%d\\n" % metrics.slot.number)
os.wait()
"""
SUMMING = """
import django
django.setup()
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
registry = CollectorRegistry()
MultiProcessCollector(registry)
print(registry.get_sample_value("groundswell_page_saves_total", {"outcome": "saved"}))
"""


def processes(program, folder, *arguments):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=settings.BASE_DIR,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.test",
            "PROMETHEUS_MULTIPROC_DIR": str(folder),
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


@pytest.mark.once
def test_processes_count_together_and_the_next_ones_count_on(tmp_path):
    """A parent that counted before its fork, its child, and then two others."""
    assert sorted(processes(COUNTING, tmp_path, "0.2")) == ["0", "1"]
    assert processes(SUMMING, tmp_path) == ["12.0"]
    files = sorted(tmp_path.iterdir())
    processes(COUNTING, tmp_path, "0.2")
    assert processes(SUMMING, tmp_path) == ["24.0"]
    assert sorted(tmp_path.iterdir()) == files


def _hold(folder, ready):
    mine = metrics.Slot()
    mine.acquire(folder)
    ready.send(mine.number)
    time.sleep(60)


@pytest.mark.once
def test_a_number_is_free_again_when_its_process_is_killed(tmp_path):
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe()
    holder = forking.Process(target=_hold, args=(tmp_path, theirs))
    holder.start()
    assert ours.poll(patience(10))
    assert ours.recv() == 0
    second = metrics.Slot()
    second.acquire(tmp_path)
    assert second.number == 1

    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    third = metrics.Slot()
    third.acquire(tmp_path)
    assert third.number == 0
    second.forget()
    third.forget()


@pytest.mark.parametrize("full", [True, False])
def test_where_nothing_can_be_counted_requests_go_on(
    settings, tmp_path, monkeypatch, full
):
    """A disk that is full, or a folder that cannot be made."""
    settings.METRICS_FOLDER = str(tmp_path / "metrics")
    if full:
        monkeypatch.setattr(os, "posix_fallocate", _no_room)
    else:
        (tmp_path / "metrics").write_text("a file")
    children = metrics.Children(metrics.saves)
    for _ in range(2):
        children["saved"].inc()
    assert children == {"saved": metrics.NULL_METRIC}


def _no_room(*where):
    raise OSError(28, "No space left on device")


# What a power loss leaves

SHOWING = """
import django
django.setup()
from settings.monitoring import metrics, metrics_page
print(*metrics_page.exposition().decode().split(), sep="\\n")
"""
# No file is looked at, as if all were whole.
UNCHECKED = """
import django
django.setup()
from settings.monitoring import metrics, metrics_page
metrics_page.is_whole = lambda path: True
"""


def cut_short(path):
    path.write_bytes(path.read_bytes()[:100])


def empty(path):
    path.write_bytes(b"")


def lose_its_pages(path):
    """The length was written, what it counts was not."""
    content = path.read_bytes()
    path.write_bytes(content[:8] + b"\0" * (len(content) - 8))


def garble(path):
    content = path.read_bytes()
    path.write_bytes(content[:8] + b"\x7f" * (len(content) - 8))


def claim_more_than_there_is(path):
    path.write_bytes(struct.pack("i", 1 << 30) + path.read_bytes()[4:])


def claim_less_than_nothing(path):
    path.write_bytes(struct.pack("i", -5) + path.read_bytes()[4:])


def count_no_number(path):
    content = bytearray(path.read_bytes())
    length = struct.unpack_from("i", content, 8)[0]
    place = 12 + length + 8 - (length + 4) % 8
    content[place : place + 8] = struct.pack("d", float("nan"))
    path.write_bytes(content)


DAMAGES = [cut_short, empty, lose_its_pages, garble]
DAMAGES += [claim_more_than_there_is, claim_less_than_nothing, count_no_number]


@pytest.mark.once
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_torn_file_is_left_out_and_then_begun_anew(tmp_path, damage):
    processes(COUNTING, tmp_path, "0.2")
    damage(tmp_path / "counter_0.db")
    shown = processes(SHOWING, tmp_path)
    # The other process's, and all that was timed.
    assert value_in(shown, 'groundswell_page_saves_total{outcome="saved"}') in (2, 10)

    processes(COUNTING, tmp_path, "0.2")
    shown = processes(SHOWING, tmp_path)
    assert value_in(shown, 'groundswell_page_saves_total{outcome="saved"}') >= 14


def value_in(shown, name) -> float:
    return float(shown[shown.index(name) + 1])


@pytest.mark.once
@pytest.mark.parametrize("program", [SHOWING, SUMMING])
def test_one_that_is_not_looked_at_would_leave_nothing_to_be_read(tmp_path, program):
    """The twin."""
    processes(COUNTING, tmp_path, "0.2")
    lose_its_pages(tmp_path / "counter_0.db")
    with pytest.raises(subprocess.CalledProcessError):
        processes(UNCHECKED + program, tmp_path)


class _Torn:
    """A metric whose file is."""

    def labels(self, *labels):
        raise RuntimeError("Read beyond file size detected, file is corrupted.")


def test_a_count_that_fails_replaces_no_reply(monkeypatch, rf):
    assert metrics.Children(_Torn())["saved"] is metrics.NULL_METRIC

    monkeypatch.setattr(metrics, "_seconds", {})
    with pytest.raises(KeyError):
        metrics.observed("survey_change_page", 0.01, 200)
    done = metrics.HttpResponse("saved")
    request = rf.post("/take/pages/1/")
    assert MonitoringMiddleware(lambda request: done)(request) is done


# What it costs


def test_a_request_is_watched_for_a_few_microseconds(settings):
    """15 µs is the budget on a quiet machine; this is for an order of more."""
    response = metrics.HttpResponse()
    watched = MonitoringMiddleware(lambda request: response)
    request = RequestFactory().post("/take/pages/1/")
    request.resolver_match = None
    request.META["HTTP_X_REQUEST_ID"] = "0123456789abcdef0123456789abcdef"

    def lap(call, times=2000):
        started = time.process_time()
        for _ in range(times):
            call(request)
        return (time.process_time() - started) / times

    cost = min(lap(watched) - lap(watched.get_response) for _ in range(5))
    assert cost < 0.000_1
    assert logs.current() is None
