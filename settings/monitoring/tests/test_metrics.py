"""Counting requests in several processes, and access to the metrics page."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import RequestFactory
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from settings.monitoring import dependency_checks, logs, metrics, metrics_page
from settings.monitoring.dependency_checks import read_commits
from settings.monitoring.job_queues import samples_of
from settings.monitoring.middleware import MonitoringMiddleware
from settings.tests.patience import patience
from survey.taking.page_save import PageReply
from survey.taking.unavailable import ServiceUnavailable
from survey.taking.without_javascript import forms
from survey.tests.conftest import FIRST_PAGE, code_of
from survey.tests.taking.test_plain_forms import start

pytestmark = pytest.mark.slow


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


@pytest.mark.django_db
def test_saves_without_javascript_are_counted_by_outcome(browser, maya, monkeypatch):
    first = {"safe": "3", "subjects": "sport", "age": "12"}

    def counted_by(action):
        names = ("saved", "retried", "superseded", "invalid", "unavailable", "refused")
        before = [counted("page_saves_total", outcome=name) for name in names]
        action()
        after = [counted("page_saves_total", outcome=name) for name in names]
        changed = zip(names, before, after, strict=True)
        return {name: new - old for name, old, new in changed if new != old}

    page = start(browser.log_in(maya))
    other_page = start(browser)
    assert counted_by(lambda: start(browser)) == {}
    # The answers without a problem are saved, and the page is shown again.
    assert counted_by(lambda: page.post(age="12")) == {"saved": 1}
    assert counted_by(lambda: page.post(age="12")) == {"retried": 1}
    assert counted_by(lambda: other_page.post(**first)) == {"superseded": 1}
    page = start(browser)
    assert counted_by(lambda: page.post("stop", **first)) == {"saved": 1}
    browser.log_in(maya)
    page = start(browser)
    invalid = PageReply(422, {"items": {"age": "not_whole"}}, "invalid")
    monkeypatch.setattr(forms, "process_page", lambda *_: invalid)
    assert counted_by(lambda: page.post(**first)) == {"invalid": 1}

    def fail(*_):
        raise ServiceUnavailable("again")

    monkeypatch.setattr(forms, "process_page", fail)
    assert counted_by(lambda: page.post(**first)) == {"unavailable": 1}


def test_clients_cannot_add_label_values():
    for _ in range(2):
        metrics.observed("admin:index", 0.1, 200, method="GET")
        metrics.observed("survey_display", 0.1, 200, method="BREW")
        metrics.observed("survey_change_page", 0.1, 200, outcome="ABCD-EFGH")
    text = generate_latest(metrics.registry).decode()
    assert 'view="other",' in text or 'view="other"}' in text
    for foreign in ("admin", "BREW", "ABCD"):
        assert foreign not in text


def test_a_view_can_report_an_outcome():
    before = counted("page_saves_total", outcome="retried")
    metrics.observed("survey_change_page", 0.01, 200, outcome="retried")
    assert counted("page_saves_total", outcome="retried") == before + 1


def test_errors_are_counted_by_view():
    labels = {"view": "survey_display", "status": "503"}
    before = counted("errors_total", **labels)
    metrics.observed("survey_display", 0.01, 503)
    metrics.observed("survey_display", 0.01, 404)
    assert counted("errors_total", **labels) == before + 1


# Access to the metrics page


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
def test_metrics_are_for_the_monitoring_port_only(client, keyed, key, address, status):
    response = client.get(
        "/metrics",
        headers={"X-Groundswell-Monitoring": key},
        REMOTE_ADDR=address,
    )
    assert response.status_code == status
    assert (b"groundswell_up" in response.content) is (status == 200)


def test_metrics_are_hidden_if_no_key_is_set(client, keyed, settings):
    settings.MONITORING_KEY = ""
    assert client.get("/metrics").status_code == 404


@pytest.mark.django_db
def test_the_metrics_page_can_be_parsed_and_is_documented():
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
        assert "groundswell_jobs_waiting" in families
        assert "groundswell_redis_memory_bytes" in families


@pytest.mark.skipif(not settings.SERVERS, reason="SQLite has the clock of its host")
@pytest.mark.parametrize("hours", [0, 1, -1])
def test_the_metrics_show_how_wrong_the_clock_of_a_host_is(monkeypatch, hours):
    real = time.time
    monkeypatch.setattr(dependency_checks.time, "time", lambda: real() + hours * 3600)
    samples = {name: value for name, value, _ in read_commits().samples}
    assert samples["clock_offset_seconds"] == pytest.approx(hours * 3600, abs=60)


# Many processes

COUNTING = """
import os, sys, time
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


def test_jobs_are_counted_by_queue_and_idle_workers_by_pool(settings):
    settings.JOB_WORKERS = {"downloads": 16, "scans": 3}
    queues = {
        "feed.download": "downloads",
        "feed.scan": "scans",
        "roster.check": "long",
    }
    rows = [
        {"kind": "feed.download", "count": 5, "runs": True},
        {"kind": "feed.download", "count": 880, "runs": False},
        {"kind": "feed.scan", "count": 2, "runs": True},
        {"kind": "roster.check", "count": 2, "runs": True},
        {"kind": "unknown", "count": 1, "runs": True},
    ]
    samples = {(name, *labels): n for name, n, labels in samples_of(rows, queues)}
    assert samples["jobs_waiting", "downloads"] == 880
    assert samples["jobs_running", "long"] == samples["jobs_running", "scans"] == 2
    assert samples["jobs_waiting", "confirmed"] == 0
    assert samples["workers_idle", "downloads"] == 11
    # A worker that is lent from another host is not below zero.
    assert samples["workers_idle", "scans"] == 0
    assert ("workers_idle", "quick") not in samples


def test_stages_of_scans_are_observed():
    def observed():
        return [
            counted("feed_stage_seconds_count", stage="parse", result="done"),
            counted("feed_stage_seconds_count", stage="parse", result="failed"),
            counted("feed_stage_rows_sum", stage="parse"),
            counted("feed_stage_bytes_sum", stage="parse"),
        ]

    before = observed()
    metrics.observe_feed_stage("parse", 2.0, "done", rows=50, size=1000)
    metrics.observe_feed_stage("parse", 0.5, "failed", rows=7, size=7)
    counts = zip(observed(), before, strict=True)
    assert [after - earlier for after, earlier in counts] == [1, 1, 50, 1000]


def test_processes_share_counters_and_new_ones_continue_them(tmp_path):
    # A parent that counted before its fork and its child, then two new processes.
    assert sorted(processes(COUNTING, tmp_path, "0.2")) == ["0", "1"]
    assert processes(SUMMING, tmp_path) == ["12.0"]
    files = sorted(tmp_path.iterdir())
    processes(COUNTING, tmp_path, "0.2")
    assert processes(SUMMING, tmp_path) == ["24.0"]
    assert sorted(tmp_path.iterdir()) == files


def _acquire_slot_and_sleep(folder, ready):
    mine = metrics.Slot()
    mine.acquire(folder)
    ready.send(mine.number)
    time.sleep(60)


def test_a_slot_is_free_again_after_its_process_is_killed(tmp_path):
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe()
    holder = forking.Process(target=_acquire_slot_and_sleep, args=(tmp_path, theirs))
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
def test_requests_succeed_if_nothing_can_be_counted(
    settings, tmp_path, monkeypatch, full
):
    # The disk is full, or the folder cannot be created.
    settings.METRICS_FOLDER = str(tmp_path / "metrics")
    if full:
        monkeypatch.setattr(os, "posix_fallocate", _raise_disk_full)
    else:
        (tmp_path / "metrics").write_text("a file")
    children = metrics.Children(metrics.saves)
    for _ in range(2):
        children["saved"].inc()
    assert children == {"saved": metrics.NULL_METRIC}


def _raise_disk_full(*where):
    raise OSError(28, "No space left on device")


# Files damaged by a power failure

SHOWING = """
import django
django.setup()
from settings.monitoring import metrics, metrics_page
print(*metrics_page.exposition().decode().split(), sep="\\n")
"""
# Turns off the check for damaged files.
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
    """Keep the length, but replace the content by zeros."""
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


@pytest.fixture(scope="module")
def counted_once(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("counts")
    processes(COUNTING, folder, "0.2")
    return folder


@pytest.fixture
def counts(counted_once, tmp_path) -> Path:
    """Return a folder in which two processes have counted."""
    return Path(shutil.copytree(counted_once, tmp_path / "counts"))


# Loads the project once, because that takes seconds, and then runs a program for each
# folder in a process of its own.
FOR_EACH_FOLDER = """
import os, sys, django
django.setup()
from django.conf import settings
from settings.monitoring import metrics, metrics_page
program, *folders = sys.argv[1:]
sys.argv[1:] = ["0.2"]
for folder in folders:
    if os.fork() == 0:
        print("folder", folder, flush=True)
        settings.METRICS_FOLDER = os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        exec(program, {})
        sys.stdout.flush()
        # Python's own way to end would copy the memory that it shares: 0.4 s.
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.fixture(scope="module")
def shown_despite(counted_once, tmp_path_factory) -> dict[str, list[str]]:
    """Damage a file in each way; return what is shown, counted and shown then."""
    folder = tmp_path_factory.mktemp("damaged")
    folders = [str(folder / damage.__name__) for damage in DAMAGES]
    for damage, name in zip(DAMAGES, folders, strict=True):
        damage(Path(shutil.copytree(counted_once, name)) / "counter_0.db")
    program = SHOWING + COUNTING + SHOWING
    words = iter(processes(FOR_EACH_FOLDER, folder, program, *folders))
    shown: dict[str, list[str]] = {}
    for word in words:
        if word == "folder":
            name = Path(next(words)).name
            shown[name] = []
        else:
            shown[name].append(word)
    return shown


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_skipped_and_then_replaced(shown_despite, damage):
    shown = shown_despite[damage.__name__]

    name = 'groundswell_page_saves_total{outcome="saved"}'
    before, after = (
        float(value)
        for key, value in zip(shown, shown[1:], strict=False)
        if key == name
    )
    # The other process's count is still shown.
    assert before in (2, 10)
    assert after >= 14


@pytest.mark.parametrize("program", [UNCHECKED + SHOWING, SUMMING])
def test_an_unchecked_damaged_file_would_break_the_metrics_page(counts, program):
    lose_its_pages(counts / "counter_0.db")
    with pytest.raises(subprocess.CalledProcessError):
        processes(program, counts)


class _DamagedMetric:
    """A metric whose file is damaged."""

    def labels(self, *labels):
        raise RuntimeError("Read beyond file size detected, file is corrupted.")


def test_a_failed_count_does_not_replace_the_response(monkeypatch, rf):
    assert metrics.Children(_DamagedMetric())["saved"] is metrics.NULL_METRIC

    monkeypatch.setattr(metrics, "_seconds", {})
    with pytest.raises(KeyError):
        metrics.observed("survey_change_page", 0.01, 200)
    done = HttpResponse("saved")
    request = rf.post("/take/pages/1/")
    assert MonitoringMiddleware(lambda request: done)(request) is done


# What it costs


def test_monitoring_a_request_takes_microseconds(settings):
    # The budget is 15 µs on an idle machine. The limit is higher, because the
    # machine that runs the tests may be busy.
    response = HttpResponse()
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
