"""Reports of crashes tell where the code failed, and nothing about people."""

from __future__ import annotations

import gzip
import json
import logging
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import brotli
import pytest
import sentry_sdk
from django.conf import settings
from django.db import DatabaseError, connection

from settings.monitoring import logs
from settings.monitoring.error_tracking import MOST_EVENTS, ErrorTracker
from settings.monitoring.tests.test_logs import (
    ANSWER,
    HOT,
    NAME,
    code,  # noqa: F401
    fail,
    inside,  # noqa: F401
    personal_data,
    refuse,
)
from settings.tests.test_stack import SECRETS

FRAME = {"filename", "function", "lineno"}
RELEASE = "groundswell@1.2.3"


class Collector(HTTPServer):
    """Receives what Sentry would."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.bodies: list[bytes] = []
        self.dsn = f"http://key@127.0.0.1:{self.server_port}/1"

    def events(self) -> list[dict]:
        return [json.loads(body.splitlines()[-1]) for body in self.bodies]


class Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        unpack = {"br": brotli.decompress, "gzip": gzip.decompress}
        body = unpack[self.headers["Content-Encoding"]](body)
        self.server.bodies.append(f"{self.headers}\n".encode() + body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def collector():
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def tracked(collector):
    """Report what is logged meanwhile."""
    tracker = ErrorTracker(collector.dsn, RELEASE)
    root = logging.getLogger()
    root.addHandler(tracker)
    sentry_sdk.add_breadcrumb(message=ANSWER, data={"name": NAME})
    try:
        yield tracker
        tracker.client.flush(5)
    finally:
        root.removeHandler(tracker)
        tracker.client.close(1)


def is_harmless(event: dict) -> bool:
    """Return whether an event has the fields of the allow list, and no other."""
    assert {*event} <= {
        *("event_id", "timestamp", "platform", "level", "release", "transaction"),
        "exception",
    }
    for value in event["exception"]["values"]:
        assert {*value} == {"type", "module", "stacktrace"}
        assert {*value["stacktrace"]} == {"frames"}
        assert all({*frame} == FRAME for frame in value["stacktrace"]["frames"])
    return True


@pytest.mark.django_db
@pytest.mark.parametrize("view", HOT)
def test_a_crash_of_a_view_is_reported_without_personal_data(
    inside,  # noqa: F811
    view,
    code,  # noqa: F811
    monkeypatch,
    collector,
):
    secrets = personal_data(inside, code)
    with tracked(collector):
        response = fail(inside, view, code, monkeypatch)
    assert response.status_code == 500
    (body,) = collector.bodies
    for secret in secrets:
        assert secret.encode() not in body
    (event,) = collector.events()
    assert is_harmless(event)
    assert (event["release"], event["transaction"]) == (RELEASE, f"survey_{view}")
    first, last = event["exception"]["values"]
    assert (first["type"], last["type"]) == ("Refused", "IntegrityError")
    assert last["module"] == "django.db.utils"
    frames = last["stacktrace"]["frames"]
    (ours,) = [frame for frame in frames if frame["function"] == "refuse"]
    assert ours["filename"] == "settings/monitoring/tests/test_logs.py"
    assert ours["lineno"] > 1
    # No path of this machine.
    assert str(settings.BASE_DIR).encode() not in body


def test_messages_variables_and_arguments_of_the_log_stay_here(collector):
    def crash(answer: str) -> None:
        typed_name = NAME
        raise ValueError(f"{typed_name} typed {answer}")

    with tracked(collector):
        try:
            crash(ANSWER)
        except ValueError:
            logging.getLogger("survey").exception("job %s failed", NAME)
    (body,) = collector.bodies
    for word in (*ANSWER.split(), *NAME.split(), "typed_name"):
        assert len(word) < 3 or word.encode() not in body
    (event,) = collector.events()
    assert is_harmless(event)


@pytest.mark.django_db
def test_statements_and_rows_stay_here(collector):
    with tracked(collector):
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO survey_survey (name, version) VALUES (%s, NULL)",
                    [ANSWER],
                )
        except DatabaseError:
            logging.getLogger("survey").exception("not stored")
    (body,) = collector.bodies
    assert b"INSERT" not in body
    assert not any(word.encode() in body for word in ("brother", "hits"))
    assert is_harmless(collector.events()[0])


def test_the_library_alone_would_send_them(collector):
    """The twin: there is something to leak."""
    client = sentry_sdk.Client(collector.dsn, default_integrations=False)
    try:
        refuse(code="7B2F")
    except Exception as error:
        event, hint = sentry_sdk.utils.event_from_exception(
            error, client_options=client.options
        )
        client.capture_event(event, hint)
    client.close(5)
    (body,) = collector.bodies
    assert ANSWER.encode() in body and NAME.encode() in body


def test_only_some_events_are_sent_in_a_minute(collector):
    with tracked(collector):
        for _number in range(MOST_EVENTS + 5):
            try:
                raise ValueError
            except ValueError:
                logging.getLogger("survey").exception("again")
    assert len(collector.bodies) == MOST_EVENTS


def test_errors_without_an_exception_and_of_the_sender_are_not_sent(collector):
    with tracked(collector):
        logging.getLogger("survey").error("no crash")
        try:
            raise OSError
        except OSError:
            logging.getLogger("urllib3.connectionpool").exception("not sent")
            logging.getLogger("survey").warning("The replica is down.", exc_info=True)
    assert collector.bodies == []


def test_a_server_that_is_away_costs_nothing():
    tracker = ErrorTracker("http://key@127.0.0.1:9/1", RELEASE)
    try:
        raise ValueError
    except ValueError:
        record = logging.LogRecord("survey", 40, __file__, 1, "x", (), sys.exc_info())
        tracker.handle(record)
    tracker.client.close(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["stack", "respondent_pool"])
@pytest.mark.parametrize("dsn", ["", "https://key@sentry.example/1"])
def test_the_library_is_imported_only_with_a_dsn(module, dsn):
    program = (
        "import sys, django, logging; django.setup();"
        "print('sentry_sdk' in sys.modules, len(logging.getLogger().handlers))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env={
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("GROUNDSWELL_", "DJANGO_"))
            },
            **SECRETS,
            "GROUNDSWELL_SENTRY_DSN": dsn,
            "DJANGO_SETTINGS_MODULE": f"settings.{module}",
        },
        capture_output=True,
        text=True,
    )
    assert done.stdout == ("True 2\n" if dsn else "False 1\n"), done.stderr


def test_without_a_dsn_logging_is_as_before():
    assert logs.logging_with("", "1.2.3") is logs.LOGGING
