"""The health checks for load balancers and for engineers on call."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from django.conf import settings

from settings.monitoring import dependency_checks
from settings.monitoring.answers import NOT_SET_UP, Answer
from settings.monitoring.health import CONSEQUENCES, readiness
from settings.tests.patience import patience

PASSWORD = "hunter2-the-password"
# Without these, pages can't be saved for good.
NEEDED = ("primary", "durability")


def test_healthz_sends_no_query(client, monitored):
    # This test has no django_db mark, so a query would fail.
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")
    assert not response.cookies
    assert "Vary" not in response.headers


@pytest.mark.parametrize(
    ("key", "address", "answer"),
    [
        ("the-key", "127.0.0.1", b"ok groundswell 1.2.3\n"),
        ("the-key", "", b"ok groundswell 1.2.3\n"),
        ("the-key", "10.0.0.9", b"ok\n"),
        ("another", "127.0.0.1", b"ok\n"),
        ("", "127.0.0.1", b"ok\n"),
    ],
)
def test_only_the_monitoring_port_learns_the_version(
    client, monitored, settings, key, address, answer
):
    settings.MONITORING_KEY, settings.VERSION = "the-key", "1.2.3"
    headers = {"X-Groundswell-Monitoring": key}
    response = client.get("/healthz", headers=headers, REMOTE_ADDR=address)
    assert (response.status_code, response.content) == (200, answer)
    assert response.headers["Content-Length"] == str(len(answer))


def test_healthz_answers_on_an_ip_address_over_plain_http(client, monitored, settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["survey.example"]
    assert client.get("/healthz", headers={"Host": "10.2.3.4"}).status_code == 200
    # All other pages redirect or refuse such a request.
    assert client.get("/", headers={"Host": "10.2.3.4"}).status_code in (301, 400)


@pytest.mark.django_db
def test_readyz_reports_each_dependency(client, monitored):
    response = client.get("/readyz")
    state = response.json()
    assert response.status_code == 200
    assert state["ready"] is True
    assert set(state["checks"]) == set(CONSEQUENCES)
    assert state["checks"]["replica"]["detail"] == "not set up here"
    here = bool(settings.SERVERS) or None
    assert state["checks"]["redis"]["ok"] is here
    assert state["checks"]["memcached"]["ok"] is here
    assert "Cache-Control" in response.headers


@pytest.mark.parametrize("name", CONSEQUENCES)
def test_only_the_primary_and_its_durability_affect_the_status(
    client, monitored, monkeypatch, name
):
    answers = {dependency: Answer(True, "fine") for dependency in CONSEQUENCES}
    answers[name] = Answer(False, "no answer within 0.5 s")
    monkeypatch.setattr(dependency_checks, "ask_dependencies", lambda: answers)
    response = client.get("/readyz")
    assert response.status_code == (503 if name in NEEDED else 200)
    assert response.json()["degraded"] == [CONSEQUENCES[name]]
    assert (
        name in NEEDED
        or "Page saves go on" in CONSEQUENCES[name]
        or ("page saves go on" in CONSEQUENCES[name])
    )


def test_dependencies_that_are_not_configured_are_not_faults(monkeypatch):
    answers = dict.fromkeys(CONSEQUENCES, NOT_SET_UP)
    monkeypatch.setattr(dependency_checks, "ask_dependencies", lambda: answers)
    assert readiness()["degraded"] == []


# Servers that are down or do not respond


@contextmanager
def silent_servers(folder):
    """Accept every connection and never respond, like a stopped process."""
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local:
        tcp.bind(("127.0.0.1", 0))
        path = folder / ".s.PGSQL.6432"
        local.bind(str(path))
        for server in (tcp, local):
            server.listen(50)
        yield SimpleNamespace(port=tcp.getsockname()[1], path=path)


def configured(settings, *, folder, path, port):
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": str(folder),
        "PORT": 6432,
        "NAME": "groundswell",
        "USER": "groundswell",
        "PASSWORD": PASSWORD,
        "OPTIONS": {},
    }
    settings.CACHES = {
        "default": {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveMemcached",
            "LOCATION": [f"unix:{path}"],
        },
        "sessions": {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveRedis",
            "LOCATION": f"unix://:{PASSWORD}@{path}",
        },
    }
    settings.CELERY_BROKER_URL = f"amqp://guest:{PASSWORD}@127.0.0.1:{port}//"
    return database


class Aliases(dict):
    """Replace django.db.connections by connections to the test's servers."""

    def __init__(self, database):
        parameters = {
            "host": database["HOST"],
            "port": database["PORT"],
            "dbname": database["NAME"],
            "user": database["USER"],
            "password": database["PASSWORD"],
        }
        connection = SimpleNamespace(
            vendor="postgresql", get_connection_params=lambda: parameters
        )
        super().__init__(default=connection, replica=connection)


@pytest.fixture
def configure_servers(settings, monkeypatch):
    def configure_servers(**where):
        database = configured(settings, **where)
        monkeypatch.setattr(dependency_checks, "connections", Aliases(database))
        monkeypatch.setattr(
            dependency_checks,
            "settings",
            SimpleNamespace(
                DATABASES={"default": database, "replica": database},
                CACHES=settings.CACHES,
                CELERY_BROKER_URL=settings.CELERY_BROKER_URL,
                MONITORED_SOCKETS=[],
            ),
        )

    return configure_servers


FIVE = ("primary", "replica", "memcached", "redis", "rabbitmq")


def test_hung_servers_time_out(configure_servers, tmp_path):
    with silent_servers(tmp_path) as silent:
        configure_servers(folder=tmp_path, path=silent.path, port=silent.port)
        started = time.monotonic()
        state = readiness()
        assert time.monotonic() - started < patience(1.5)
        assert dependency_checks.statistics()
    assert state["ready"] is False
    for name in FIVE:
        assert state["checks"][name]["ok"] is False
        assert state["checks"][name]["detail"].startswith("no answer within"), name
    assert state["checks"]["worker"]["detail"] == "only RabbitMQ knows"
    assert len(state["degraded"]) == 5


def test_unreachable_servers_are_reported_at_once(configure_servers, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configure_servers(folder=tmp_path, path=tmp_path / "nobody.sock", port=port)
    started = time.monotonic()
    state = readiness()
    assert time.monotonic() - started < patience(0.5)
    assert [state["checks"][name]["ok"] for name in FIVE] == [False] * 5
    shown = json.dumps(state)
    for private in (PASSWORD, str(tmp_path), str(port), "guest"):
        assert private not in shown


def test_an_error_is_reported_by_its_type(monkeypatch):
    def away():
        raise ConnectionRefusedError(f"postgres://{PASSWORD}@10.0.0.5")

    answer = dependency_checks.run_check(away)
    assert (answer.ok, answer.detail) == (False, "ConnectionRefusedError")


def test_a_slow_check_is_cut_off(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(dependency_checks, "TOTAL_TIMEOUT", 0.5)
    answers = dependency_checks.run_checks(
        {"slow": lambda: over.wait(patience(5)), "quick": lambda: Answer(True, "fine")}
    )
    over.set()
    assert answers["quick"].ok is True
    assert answers["slow"].detail == "no answer within 0.5 s"


# What the answers mean


@pytest.mark.parametrize(
    ("primary", "replica", "age", "ok", "detail"),
    [
        (1000, 1000, 3600.0, True, "0.0 s and 0 bytes behind"),
        (1000, 1016, 3600.0, True, "0.0 s and 0 bytes behind"),
        (9000, 1000, 2.0, True, "2.0 s and 8000 bytes behind"),
        (9000, 1000, 120.0, False, "120.0 s and 8000 bytes behind"),
        (None, 1000, 120.0, True, "replays"),
    ],
)
def test_replica_lag_is_reported(primary, replica, age, ok, detail):
    answer = dependency_checks.add_lag(
        Answer(primary is not None, "", position=primary),
        Answer(True, "replays", position=replica, age=age),
    )
    assert (answer.ok, answer.detail) == (ok, detail)


@pytest.mark.parametrize(("consumers", "ok"), [((1.0, 2.0), True), ((1.0, 0.0), False)])
def test_a_queue_without_consumers_is_reported(consumers, ok):
    samples = [
        ("queue_consumers", value, (queue,))
        for queue, value in zip(("celery", "urgent"), consumers, strict=True)
    ]
    answer = dependency_checks.worker_answer(Answer(True, "", samples=samples))
    assert answer.ok is ok
    assert ok or answer.detail == "no worker listens to urgent"


def test_requests_waiting_at_a_socket_are_counted(tmp_path, settings):
    path = tmp_path / "taking.sock"
    with (
        socket.socket(socket.AF_UNIX) as listening,
        socket.socket(socket.AF_UNIX) as caller,
    ):
        listening.bind(str(path))
        listening.listen(7)
        caller.connect(str(path))
        settings.MONITORED_SOCKETS = [str(path)]
        samples = dependency_checks.read_sockets().samples
    assert samples == [
        ("listen_queue", 1.0, ("taking",)),
        ("listen_backlog", 7.0, ("taking",)),
    ]


# The two pools


@pytest.mark.parametrize(
    ("pool", "pages"),
    [
        ("stack", ["/healthz", "/readyz", "/metrics"]),
        ("embedded", ["/healthz", "/readyz", "/metrics"]),
        ("respondent_pool", ["/healthz", "/durability"]),
    ],
)
def test_each_pool_has_its_monitoring_pages(pool, pages, tmp_path):
    program = (
        "import json; from django.conf import settings as s;"
        "print(json.dumps([list(s.MONITORING), s.MIDDLEWARE[0],"
        " [m for m in s.MIDDLEWARE if 'monitoring' in m]]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env={
            **{k: v for k, v in os.environ.items() if "GROUNDSWELL" not in k},
            "DJANGO_SETTINGS_MODULE": f"settings.{pool}",
            "GROUNDSWELL_SECRET_KEY": "a-secret-of-the-stack-" * 3,
            "GROUNDSWELL_DATA": str(tmp_path),
            "GROUNDSWELL_ACCESS_CODE_KEYS": "1=the-first-key-of-the-stack",
            "GROUNDSWELL_TIME_ZONE": "America/Chicago",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    watched = "settings.monitoring.middleware.MonitoringMiddleware"
    assert json.loads(ran.stdout) == [pages, watched, [watched]]


@pytest.mark.django_db
@pytest.mark.skipif(not settings.SERVERS, reason="stops a server")
def test_a_stopped_memcached_is_reported_as_degraded(tmp_path, monkeypatch):
    path = tmp_path / "memcached.sock"
    server = subprocess.Popen(
        ["memcached", "-u", "root", "-s", str(path)], stderr=subprocess.DEVNULL
    )
    try:
        while not path.exists():
            time.sleep(0.02)
        monkeypatch.setitem(settings.CACHES["default"], "LOCATION", [f"unix:{path}"])
        assert readiness()["checks"]["memcached"]["ok"] is True
        server.send_signal(signal.SIGSTOP)
        state = readiness()
    finally:
        server.send_signal(signal.SIGCONT)
        server.terminate()
        server.wait()
    assert state["ready"] is True
    assert state["degraded"] == [CONSEQUENCES["memcached"]]
