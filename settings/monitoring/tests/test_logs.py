"""The log contains no answers, names, codes or cookies."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from contextlib import contextmanager
from logging.config import dictConfig

import pytest
from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection

from settings.monitoring import logs
from settings.monitoring.gunicorn import JsonLogger
from survey.taking import views
from survey.tests.conftest import FIRST_PAGE, code_of

ANSWER = "my brother hits me"
NAME = "Maya Rosalind Okafor"
HOT = ("login", "display", "change_page", "content", "complete")


@contextmanager
def captured_logs(formatter):
    """Capture the output of all loggers at level DEBUG."""
    root = logging.getLogger()
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatter)
    loggers = [root] + [
        logger
        for logger in root.manager.loggerDict.values()
        if isinstance(logger, logging.Logger)
    ]
    before = [
        (captured, captured.level, captured.propagate, captured.disabled)
        for captured in loggers
    ]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.propagate, logger.disabled = True, False
    root.addHandler(handler)
    connection.force_debug_cursor = True
    try:
        yield written
    finally:
        connection.force_debug_cursor = False
        root.removeHandler(handler)
        for logger, level, propagate, disabled in before:
            logger.setLevel(level)
            logger.propagate, logger.disabled = propagate, disabled


class Refused(Exception):
    """An error like psycopg2's, with a message that quotes the row."""

    pgcode = "23514"


def refuse(*args, **kwargs):
    text = f"DETAIL:  Failing row contains (17, a, {ANSWER}, {NAME}, {args} {kwargs})."
    try:
        raise Refused(text)
    except Refused as cause:
        raise IntegrityError(text) from cause


@pytest.fixture
def code(maya):
    return code_of(maya)


@pytest.fixture
def inside(browser, maya):
    browser.log_in(maya)
    browser.base = browser.bootstrap()["revision"]
    browser.content = browser.bootstrap()["urls"]["content"].replace("{language}", "en")
    browser.tag = browser.session["taking"]["tag"]
    return browser


def fail(inside, view, code, monkeypatch):
    """Cause a 500 in a view, with an answer, a name and a code in the request."""
    breaks = {
        "login": "log_in",
        "display": "read_saved_answers",
        "change_page": "process_page",
        "content": "published_survey",
        "complete": "finish",
    }
    monkeypatch.setattr(views, breaks[view], refuse)
    typed = f"?code={code}&name={NAME}&answer={ANSWER}"
    if view == "login":
        return inside.post(f"/{typed}", {"code": code, "name": NAME})
    if view == "display":
        return inside.get(f"/take/{typed}", headers={"X-Name": NAME})
    if view == "change_page":
        answers = {**FIRST_PAGE, "comment": ANSWER, "why_art": f"{NAME} {code}"}
        return inside.save(1, answers, inside.base, tag=inside.tag)
    if view == "content":
        return inside.get(inside.content.replace("{n}", "1") + typed)
    return inside.post(f"/take/complete/{typed}", {"reviewed": f"{ANSWER} {code}"})


def personal_data(browser, code):
    typed = [code, code.replace("-", ""), *ANSWER.split(), *NAME.split()]
    return [word for word in typed if len(word) > 2] + [
        cookie.value for cookie in browser.cookies.values()
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("view", HOT)
def test_a_500_is_logged_without_personal_data(inside, view, code, monkeypatch):
    secrets = personal_data(inside, code)
    with captured_logs(logs.JsonFormatter()) as written:
        response = fail(inside, view, code, monkeypatch)
    assert response.status_code == 500
    for secret in secrets:
        assert secret not in written.getvalue()

    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    (line,) = [line for line in lines if "error" in line]
    assert line["view"] == f"survey_{view}"
    assert (line["status"], line["event"]) == (500, "Internal Server Error")
    assert line["request_id"] == response.headers["X-Request-ID"]
    assert line["error"]["type"] == "django.db.utils.IntegrityError"
    assert line["error"]["sqlstate"] == "23514"
    assert any(f"survey_{view}" in frame for frame in line["error"]["stack"])


@pytest.mark.django_db
@pytest.mark.parametrize("view", HOT)
def test_the_plain_formatter_would_log_personal_data(inside, view, code, monkeypatch):
    with captured_logs(logging.Formatter("%(message)s")) as written:
        fail(inside, view, code, monkeypatch)
    assert ANSWER in written.getvalue()
    assert NAME in written.getvalue()


@pytest.mark.django_db
@pytest.mark.skipif(not settings.SERVERS, reason="SQLite quotes nothing")
@pytest.mark.parametrize(
    ("formatter", "tells"),
    [(logs.JsonFormatter(), False), (logging.Formatter("%(message)s"), True)],
)
def test_a_row_quoted_by_postgresql_is_not_logged(formatter, tells):
    with captured_logs(formatter) as written:
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO survey_survey (name, version) VALUES (%s, NULL)",
                    [ANSWER],
                )
        except DatabaseError:
            logging.getLogger("survey").exception("not stored")
    assert (ANSWER in written.getvalue()) is tells
    if not tells:
        line = json.loads(written.getvalue().splitlines()[-1])
        assert line["error"]["sqlstate"] == "23502"


@pytest.mark.django_db
def test_a_code_in_the_url_is_not_logged(browser, code):
    with captured_logs(logs.JsonFormatter()) as written:
        assert browser.get(f"/{code}").status_code == 404
        assert browser.get("/", headers={"Host": f"{code}.example"}).status_code == 400
    assert "Not Found" in written.getvalue()
    assert "Bad Request" in written.getvalue()
    assert code not in written.getvalue()


# One line


def line_of(log_name="survey", level=logging.INFO, msg="saved", args=(), **extra):
    record = logging.LogRecord(log_name, level, __file__, 1, msg, args, None)
    record.__dict__.update(extra)
    return json.loads(logs.JsonFormatter().format(record))


@pytest.mark.parametrize(
    ("log_name", "level", "msg", "args", "event"),
    [
        ("survey", logging.WARNING, "replica marked down", (), "replica marked down"),
        ("gunicorn.error", logging.INFO, "Booting %s", (17,), "Booting 17"),
        ("celery.app", logging.INFO, "Task %(name)s", ({"name": "t"},), "Task t"),
        ("survey", logging.INFO, "Task %(name)s", ({"name": NAME},), "Task …"),
        (
            "celery.app.trace",
            logging.ERROR,
            "Task %(name)s[%(id)s] raised: %(exc)s",
            ({"name": "t", "id": "7-f", "exc": NAME},),
            "Task t[7-f] raised: …",
        ),
        ("survey", logging.INFO, "%s wrote %d", (NAME, 3), "… wrote 3"),
        ("survey", logging.INFO, "%d people", (NAME,), "%d people"),
        ("survey", logging.INFO, "%s and %s", (NAME,), "%s and %s"),
        ("gunicorn.error", logging.WARNING, f"'GET /?c={NAME}'", (), logs.WITHHELD),
        ("gunicorn.error", logging.ERROR, ValueError(NAME), (), logs.WITHHELD),
    ],
)
def test_messages_are_logged_without_their_arguments(log_name, level, msg, args, event):
    line = line_of(log_name, level, msg, args)
    assert line["event"] == event
    assert line["at"] == "settings/monitoring/tests/test_logs.py:1"


def test_only_known_fields_with_harmless_values_are_logged():
    line = line_of(count=3, ms=1.5, dependency="redis", answer=ANSWER, outcome=ANSWER)
    assert (line["count"], line["ms"], line["dependency"]) == (3, 1.5, "redis")
    assert "answer" not in line
    assert "outcome" not in line


def test_an_error_is_logged_with_its_causes():
    try:
        try:
            raise KeyError(ANSWER)
        except KeyError as missing:
            raise ValueError(NAME) from missing
    except ValueError as error:
        described = logs._describe_error(error)
    assert described["type"] == "builtins.ValueError"
    assert described["causes"][0].startswith("builtins.KeyError settings/monitoring/")


def test_a_failed_write_does_not_print_the_arguments(capsys):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    record = logging.LogRecord("survey", logging.INFO, "", 1, "%s", (ANSWER,), None)
    for handler, tells in (
        (logs.Lines(Full()), False),
        (logging.StreamHandler(Full()), True),
    ):
        handler.emit(record)
        assert (ANSWER in capsys.readouterr().err) is tells


# The request's id


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        ("0123456789abcdef0123456789abcdef", True),
        ("", False),
        ("ABCD-EFGH-JKLM", False),
        ("0123456789abcdef\n", False),
        ("f" * 33, False),
    ],
)
def test_only_a_valid_request_id_is_kept(given, is_kept):
    request_id = logs.begin(given).request_id
    logs.end()
    assert (request_id == given) is is_kept
    assert logs.REQUEST_ID.fullmatch(request_id)


@pytest.mark.django_db
def test_log_lines_contain_the_request_id(browser, monkeypatch):
    def say(*args):
        logging.getLogger("survey").warning("looking")
        return ""

    monkeypatch.setattr(views, "login_page", say)
    sent = "0123456789abcdef0123456789abcdef"
    with captured_logs(logs.JsonFormatter()) as written:
        response = browser.get("/", headers={"X-Request-ID": sent})
        logging.getLogger("survey").warning("nobody's")
    assert response.headers["X-Request-ID"] == sent
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    looking = [line for line in lines if line["event"] == "looking"]
    assert {(line["request_id"], line["view"]) for line in looking} == {
        (sent, "survey_login")
    }
    assert "request_id" not in lines[-1]


# The settings


def test_the_stack_logs_only_json():
    program = (
        "import django; django.setup(); import json, logging;"
        "loggers = [logging.getLogger()] + [l for l in"
        " logging.getLogger().manager.loggerDict.values()"
        " if isinstance(l, logging.Logger)];"
        "print(json.dumps([[type(h).__name__, type(h.formatter).__name__]"
        " for l in loggers for h in l.handlers"
        " if not isinstance(h, logging.NullHandler)]));"
        "print(logging.getLogger('django.db.backends').isEnabledFor(logging.DEBUG));"
        "logging.getLogger('django.request').error('%s', 'x', "
        "extra={'status_code': 503})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env={
            "DJANGO_SETTINGS_MODULE": "settings.stack",
            "GROUNDSWELL_SECRET_KEY": "a-secret-of-the-stack-" * 3,
            "GROUNDSWELL_ACCESS_CODE_KEYS": "1=the-first-key-of-the-stack",
            "GROUNDSWELL_TIME_ZONE": "America/Chicago",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    handlers, debug = ran.stdout.splitlines()
    assert json.loads(handlers) == [["Lines", "JsonFormatter"]]
    assert debug == "False"
    assert json.loads(ran.stderr)["event"] == "Service Unavailable"


def test_gunicorn_logs_json_and_no_access_log(capsys):
    from gunicorn.config import Config

    logger = JsonLogger(Config())
    try:
        raise ValueError(ANSWER)
    except ValueError:
        logger.exception("Error handling request %s", f"/?code={NAME}")
    line = json.loads(capsys.readouterr().err)
    assert line["event"] == "Error handling request …"
    assert line["at"].startswith("settings/monitoring/tests/test_logs.py:")
    assert line["error"]["type"] == "builtins.ValueError"
    assert not logger.access_log.handlers


def test_the_logging_settings_are_valid():
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        dictConfig({**logs.LOGGING, "loggers": {}})
        assert isinstance(root.handlers[0], logs.Lines)
    finally:
        root.handlers[:], root.level = before
