"""The respondents' pool: the fast path answers like Django, header by header."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from copy import deepcopy
from datetime import timedelta
from importlib import import_module
from io import BytesIO
from unittest.mock import Mock

import pytest
from django.conf import settings as django_settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_started
from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
)
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from settings.infrastructure.unusual_requests import refuse_unusual_requests
from settings.tests.test_stack import SECRETS, value_of  # noqa: F401 - a fixture
from survey.models import Administration, Respondent, Response
from survey.taking import fast_path, resume_cookie, security_headers, session
from survey.taking.fast_path import FastPath
from survey.taking.published import forget_published
from survey.taking.refusals import refusal
from survey.tests.conftest import FIRST_PAGE, Browser, code_of

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}
# Headers that identify one request or its time.
OWN = {"x-request-id", "expires"}
NAMES = ["MIDDLEWARE", "SECURE_HSTS_SECONDS", "SECURE_HSTS_INCLUDE_SUBDOMAINS"]


@pytest.fixture(scope="module")
def pools(value_of):  # noqa: F811
    """Return the settings of both pools, as in the stack."""
    values = f"{{name: globals()[name] for name in {NAMES}}}"
    return {pool: value_of(values, pool) for pool in ("stack", "respondent_pool")}


@pytest.fixture
def serve_as(settings, pools):
    def serve_as(module: str) -> None:
        for name, value in pools[module].items():
            setattr(settings, name, value)
        # Settings of the other pool that don't fit the test databases.
        settings.MIDDLEWARE = [
            name for name in settings.MIDDLEWARE if "Pinning" not in name
        ]

    return serve_as


def headers_of(response) -> dict[str, str]:
    headers = {name.lower(): value for name, value in response.items()}
    return {name: value for name, value in headers.items() if name not in OWN}


def cookies_of(response) -> dict[str, dict]:
    """Return the attributes of cookies, without their values."""
    return {
        name: {key: value for key, value in morsel.items() if key != "expires"}
        for name, morsel in response.cookies.items()
    }


@pytest.mark.parametrize("secure", [False, True])
def test_both_lists_of_middleware_send_the_same_headers(serve_as, maya, secure):
    answers = {}
    for module in ("stack", "respondent_pool"):
        serve_as(module)
        answers[module] = tour(Browser(), maya, secure)
    assert answers["respondent_pool"] == answers["stack"]
    for headers, _ in answers["respondent_pool"].values():
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert ("strict-transport-security" in headers) is secure


def tour(browser, respondent, secure) -> dict[str, tuple[dict, dict]]:
    """Return headers and cookies of the replies of each view."""
    given = {"secure": secure}
    origin = {"Origin": f"http{'s' * secure}://testserver"}
    steps = {
        "ask": browser.get("/", **given),
        "wrong": browser.post("/", {"code": "x"}, **given),
        "login": browser.post("/", {"code": code_of(respondent)}, **given),
        "shell": browser.get("/take/", **given),
    }
    shell = browser.get("/take/", headers=JSON, **given)
    content = shell.json()["urls"]["content"]
    steps["data"] = shell
    for n in (0, 1):
        address = content.replace("{language}", "en").replace("{n}", str(n))
        steps[f"content {n}"] = browser.get(address, **given)
    for name, answers in (("saved", FIRST_PAGE), ("refused", {"safe": "9"})):
        steps[name] = browser.post(
            "/take/pages/1/",
            json.dumps({"revision": shell.json()["revision"], "answers": answers}),
            content_type="application/json",
            headers={"X-Groundswell-Respondent": shell.json()["tag"], **origin},
            **given,
        )
    steps["review"] = browser.get("/take/complete/", **given)
    steps["no such page"] = browser.get("/take/nothing/", **given)
    for reply in steps.values():
        # Replies differ in these by a word or a token.
        del reply["Content-Length"]
    return {name: (headers_of(it), cookies_of(it)) for name, it in steps.items()}


def test_a_slash_redirect_has_the_security_headers_too(serve_as, browser):
    serve_as("respondent_pool")
    reply = browser.get("/take")
    assert (reply.status_code, reply["Location"]) == (301, "/take/")
    assert reply["X-Frame-Options"] == "DENY"


def test_the_headers_are_what_the_settings_say(settings):
    settings.X_FRAME_OPTIONS = "SAMEORIGIN"
    settings.SECURE_REFERRER_POLICY = "no-referrer"
    settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": {"default-src": ["https:"]}}
    settings.SECURE_HSTS_SECONDS = 60
    made = security_headers.SecurityHeaders(lambda request: None).headers
    assert made[False] == {
        "Content-Security-Policy": "default-src https:",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Frame-Options": "SAMEORIGIN",
    }
    assert made[True] == {**made[False], "Strict-Transport-Security": "max-age=60"}


# The fast path of page saves


@pytest.fixture
def paths(serve_as):
    """Return both WSGI applications: the fast path, and Django alone."""
    serve_as("respondent_pool")
    return {"django": WSGIHandler(), "fast": FastPath()}


def reply_of(application, environ: dict) -> tuple[str, dict[str, str], bytes]:
    reply: dict = {}

    def start_response(status, headers, exc_info=None):
        reply["status"] = status
        reply["headers"] = {
            name.lower(): value.strip()
            for name, value in headers
            if name.lower() not in OWN
        }

    # Like Django's test client: the connection belongs to the test.
    request_started.disconnect(close_old_connections)
    try:
        body = b"".join(application(environ, start_response))
    finally:
        request_started.connect(close_old_connections)
    # Django leaves this header to the server where its middleware was skipped.
    length = reply["headers"].pop("content-length", len(body))
    assert int(length) == len(body)
    return reply["status"], reply["headers"], body


class Save:
    """A WSGI request that saves a page; tests change it."""

    def __init__(self, browser, respondent, shell) -> None:
        self.path = "/take/pages/1/"
        self.method = "POST"
        self.body: object = {"revision": shell["revision"], "answers": FIRST_PAGE}
        self.kind = "application/json"
        self.secure = False
        self.headers = {
            "Origin": "http://testserver",
            "Sec-Fetch-Site": "same-origin",
            "X-Groundswell-Respondent": session.tag_for(respondent.pk),
        }
        self.cookies = {name: it.value for name, it in browser.cookies.items()}

    def environ(self) -> dict:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        request = RequestFactory().generic(
            self.method,
            self.path,
            body,
            content_type=self.kind,
            secure=self.secure,
            headers={**self.headers, "Cookie": cookies},
        )
        data = body if isinstance(body, bytes) else body.encode()
        return {**request.environ, "wsgi.input": BytesIO(data)}


@pytest.fixture
def save(browser, maya):
    return Save(browser.log_in(maya), maya, browser.bootstrap())


def test_both_paths_save_a_page_with_the_same_reply(paths, save):
    answers = {name: reply_of(path, save.environ()) for name, path in paths.items()}
    assert answers["fast"] == answers["django"]
    status, headers, body = answers["fast"]
    assert (status, json.loads(body)["saved"]) == ("200 OK", 5)
    assert headers["vary"] == "Cookie"
    assert Response.objects.count() == 5


def remove(name):
    return lambda save: save.headers.pop(name)


def change(**attributes):
    return lambda save: vars(save).update(attributes)


def header(name, value):
    return lambda save: save.headers.update({name: value})


def cookie(**values):
    return lambda save: save.cookies.update(values)


REQUESTS = {
    "another origin": (header("Origin", "https://evil.example"), 403),
    "no origin": (remove("Origin"), 403),
    "another site": (header("Sec-Fetch-Site", "cross-site"), 403),
    "no header of ours": (remove("X-Groundswell-Respondent"), 403),
    "another person": (header("X-Groundswell-Respondent", "x"), 403),
    "a form": (change(kind="application/x-www-form-urlencoded"), 415),
    "another host": (header("Host", "evil.example"), 400),
    "no host at all": (header("Host", "\x7f"), 400),
    "read": (change(method="GET"), 405),
    "put": (change(method="PUT"), 405),
    "no such page": (change(path="/take/pages/99/"), 404),
    "a page of digits": (change(path="/take/pages/" + "9" * 9 + "/"), 404),
    "far too many digits": (change(path="/take/pages/" + "9" * 30 + "/"), 404),
    "not a number": (change(path="/take/pages/x/"), 404),
    "no slash": (change(path="/take/pages/1", method="GET"), 301),
    "no answers": (change(body={"revision": 1, "answers": {}}), 200),
    "not json": (change(body=b"\xff{"), 422),
    "too large": (change(body=b" " * 1_000_001), 413),
    "a lost session": (cookie(sessionid="x" * 32), 200),
    "a lost session, nothing else": (cookie(sessionid="x" * 32, resume=""), 401),
}


def test_both_paths_answer_altered_requests_alike(paths, save, caplog):
    for name, (alter, status) in REQUESTS.items():
        altered = deepcopy(save)
        alter(altered)
        resume_cookie.forget_digests()
        answers = {path: reply_of(paths[path], altered.environ()) for path in paths}
        assert answers["fast"] == answers["django"], name
        assert answers["fast"][0].startswith(f"{status} "), name
        if status != 301:
            assert "content-security-policy" in answers["fast"][1], name
    # Odd requests must not fill the log.
    assert not [record for record in caplog.records if "fast_path" in record.name]


@pytest.fixture
def fast_only(paths, monkeypatch):
    """Return the fast path, without falling back to Django."""
    fast_only = paths["fast"]

    def refuse(*args):
        raise AssertionError("it fell back to Django")

    monkeypatch.setattr(fast_only, "django", refuse)
    return fast_only


def test_an_ordinary_save_stays_on_the_fast_path(fast_only, save):
    for _ in range(2):
        assert reply_of(fast_only, save.environ())[0] == "200 OK"


def make_refusal(maya, administration, reason):
    people = Respondent.objects.filter(pk=maya.pk)
    if reason == "withdrawn":
        people.update(withdrawn_at=timezone.now())
    if reason == "finished":
        people.update(completed_at=timezone.now())
    if reason == "reissued":
        people.update(issue=maya.issue + 1)
    if reason == "closed":
        earlier = timezone.now() - timedelta(days=2)
        Administration.objects.filter(pk=administration.pk).update(
            opens_at=earlier, closes_at=earlier + timedelta(days=1)
        )


@pytest.mark.parametrize(
    ("reason", "status"),
    [("withdrawn", 409), ("finished", 409), ("closed", 409), ("reissued", 401)],
)
def test_a_refusal_costs_two_statements_on_the_fast_path(
    paths, fast_only, save, maya, administration, reason, status
):
    make_refusal(maya, administration, reason)
    with CaptureQueriesContext(connection) as queries:
        answer = reply_of(fast_only, save.environ())
    # In the test's transaction, a savepoint is around the save.
    of_django = ("django_session", "SAVEPOINT")
    ours = [query for query in queries if not any(o in query["sql"] for o in of_django)]
    assert len(ours) == 2
    assert answer == reply_of(paths["django"], save.environ())
    assert answer[0].startswith(f"{status} ")
    assert json.loads(answer[2]) == refusal(reason)
    assert Response.objects.count() == 0


def test_invalid_answers_stay_on_the_fast_path(paths, fast_only, save):
    save.body["answers"] = {**FIRST_PAGE, "mood": "no such option"}
    answer = reply_of(fast_only, save.environ())
    assert answer == reply_of(paths["django"], save.environ())
    assert answer[0].startswith("422 ")


def failing(monkeypatch, error, *, lost: bool) -> list[int]:
    """Make saves fail, and count them."""
    tried = []

    def fail(**_):
        tried.append(1)
        raise error("gone")

    monkeypatch.setattr("survey.taking.page_save.save_page", fail)
    # The test's transaction still needs its connection.
    monkeypatch.setattr("survey.taking.unavailable._connection_was_lost", lambda: lost)
    return tried


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize(("lost", "times"), [(True, 2), (False, 1)])
def test_a_slow_database_gets_no_more_tries_than_through_django(
    paths, fast_only, save, monkeypatch, error, lost, times
):
    """A worker that waits for three timeouts serves no other request."""
    tried = failing(monkeypatch, error, lost=lost)
    answers = {}
    for path, serve in (("fast", fast_only), ("django", paths["django"])):
        tried.clear()
        answers[path] = reply_of(serve, save.environ())
        assert len(tried) == times
        assert 1 <= int(answers[path][1].pop("retry-after")) <= 5
    assert answers["fast"] == answers["django"]
    assert json.loads(answers["fast"][2]) == {"error": "database"}


def test_falling_back_after_an_error_would_try_again(paths, save, monkeypatch):
    """Falling back to Django after the failure would repeat it."""
    tried = failing(monkeypatch, OperationalError, lost=False)
    monkeypatch.setattr(fast_path, "run_with_retry", lambda act: act())
    assert reply_of(paths["fast"], save.environ())[0].startswith("503 ")
    assert len(tried) == 2


def test_a_defect_of_the_fast_path_is_logged_and_django_answers(
    paths, save, monkeypatch, caplog
):
    def fail(*args):
        raise RuntimeError("a defect")

    monkeypatch.setattr(fast_path, "published_in_memory", fail)
    assert reply_of(paths["fast"], save.environ())[0] == "200 OK"
    assert Response.objects.count() == 5
    assert [record.name for record in caplog.records] == ["survey.taking.fast_path"]


def test_the_resume_cookie_works_on_the_fast_path(paths, fast_only, save, monkeypatch):
    def away(self):
        raise ConnectionError

    monkeypatch.setattr(fast_only.sessions, "load", away)
    answer = reply_of(fast_only, save.environ())
    assert answer == reply_of(paths["django"], save.environ())
    assert answer[0] == "200 OK"


def test_a_survey_that_is_not_in_memory_falls_back_to_django(paths, save):
    forget_published()
    assert reply_of(paths["fast"], save.environ())[0] == "200 OK"
    assert Response.objects.count() == 5


def test_a_session_to_extend_falls_back_to_django_once(
    paths, save, browser, monkeypatch
):
    stored = browser.session
    stored["taking"] |= {"written_at": 0}
    stored.save()
    django = Mock(side_effect=paths["fast"].django)
    monkeypatch.setattr(paths["fast"], "django", django)
    for _ in range(2):
        assert reply_of(paths["fast"], save.environ())[0] == "200 OK"
    assert django.call_count == 1
    assert browser.session["taking"]["written_at"] > 0


def test_the_number_of_cached_origins_is_limited(paths, save, settings):
    settings.ALLOWED_HOSTS = ["*"]
    fast_only = paths["fast"]
    for n in range(fast_path.MOST_ORIGINS + 10):
        save.headers["Host"] = f"school{n}.example"
        save.headers["Origin"] = f"http://school{n}.example"
        assert reply_of(fast_only, save.environ())[0] == "200 OK"
    assert len(fast_only.origins) == fast_path.MOST_ORIGINS


def test_a_foreign_host_is_not_cached(paths, save):
    save.headers["Host"] = "evil.example"
    save.headers["Origin"] = "http://evil.example"
    for _ in range(2):
        assert reply_of(paths["fast"], save.environ())[0].startswith("400 ")
    assert not paths["fast"].origins


def test_plain_http_is_redirected_to_https(paths, save, settings):
    settings.SECURE_SSL_REDIRECT = True
    paths = {"django": WSGIHandler(), "fast": FastPath()}
    answers = {path: reply_of(paths[path], save.environ()) for path in paths}
    assert answers["fast"] == answers["django"]
    assert answers["fast"][0].startswith("301 ")
    assert answers["fast"][1]["location"] == "https://testserver/take/pages/1/"
    assert Response.objects.count() == 0


def test_an_internal_error_shows_the_error_page(paths, save, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("a defect")

    monkeypatch.setattr("survey.taking.page_save.check_page", fail)
    answers = {path: reply_of(paths[path], save.environ()) for path in paths}
    assert answers["fast"] == answers["django"]
    assert answers["fast"][0].startswith("500 ")
    assert b"defect" not in answers["fast"][2]


# Content types


def other_kinds() -> list[str]:
    return [
        "application/json; a*=nosuch''%41",
        "application/json; charset*=utf-8''%00",
        "application/json; charset*=hex''%41",
        "multipart/form-data; boundary=x; charset=hex",
        "text/plain; charset=unicode_escape",
        "application/json; charset=utf-8; charset=utf-8; charset=utf-8",
        "application/json;",
        "application/json\n",
        "json",
        "é/é",
        "a/" + "a" * 100_000,
    ]


@pytest.mark.parametrize("path", ["/", "/take/pages/1/", "/content/x/y/en/1/"])
def test_a_body_of_an_odd_content_type_is_not_read(path):
    def application(environ, start_response):
        raise AssertionError("it was passed on")

    for kind in other_kinds():
        environ = {"PATH_INFO": path, "CONTENT_TYPE": kind}
        entry = refuse_unusual_requests(application)
        status, headers, body = reply_of(entry, environ)
        assert status == "400 Bad Request", kind[:50]
        assert headers["content-type"].startswith("text/plain")
        assert len(body) < 100


@pytest.mark.parametrize("kind", other_kinds()[:2])
def test_passed_to_django_an_odd_content_type_would_get_no_reply(paths, save, kind):
    environ = {**save.environ(), "CONTENT_TYPE": kind}
    for path in paths.values():
        with pytest.raises((LookupError, ValueError)):
            reply_of(path, environ)
    assert reply_of(refuse_unusual_requests(path), environ)[0] == "400 Bad Request"


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "application/json",
        "application/json; charset=UTF-8",
        "application/x-www-form-urlencoded;charset=UTF-8",
        "multipart/form-data; boundary=----WebKitFormBoundaryE19zNvXGzXaLvS5C",
        "multipart/form-data; boundary=---------------------------974767299852498929",
        'multipart/form-data; boundary="a b"; charset=utf-8',
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ],
)
def test_usual_content_types_are_passed_on(kind):
    passed = []
    environ = {"PATH_INFO": "/"} | ({} if kind is None else {"CONTENT_TYPE": kind})
    refuse_unusual_requests(lambda *given: passed.append(given))(environ, None)
    assert passed == [(environ, None)]


@pytest.mark.parametrize(
    "path", ["/\n", "/take/pages/1/\n", "/a\0b", "/\x7f", "/\xc2\x85"]
)
def test_a_path_with_a_control_character_is_refused(path):
    def application(environ, start_response):
        raise AssertionError("it was passed on")

    entry = refuse_unusual_requests(application)
    status, _, body = reply_of(entry, {"PATH_INFO": path})
    assert status == "400 Bad Request"
    assert b"address" in body


def test_both_pools_check_requests_first():
    for module in ("settings.wsgi", "survey.taking.wsgi"):
        entry = import_module(module).application
        assert entry.__qualname__ == refuse_unusual_requests(None).__qualname__


# The console, and packages that only the console needs.
NOT_FOR_RESPONDENTS = (
    "allauth",
    "accounts.access",
    "accounts.console",
    "accounts.second_factor",
    "reports",
    "survey.console",
    "survey.work.jobs",
    "survey.people.rosters.apply",
    "survey.instrument.spreadsheets.xlsx_rows",
    "survey.instrument.xlsform",
    "openpyxl",
    "pyxform",
    "django.contrib.admin.sites",
)
# Starts like a worker, renders, and answers a request without a session.
SERVE = """
import json, sys
from io import BytesIO
from importlib import import_module

from survey.taking.wsgi import application
replies = []
environ = {
    "REQUEST_METHOD": "GET",
    "PATH_INFO": "/take/",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "HTTP_HOST": "localhost",
    "wsgi.url_scheme": "http",
    "wsgi.input": BytesIO(),
}
import_module("django.template").engines["django"].from_string("")
application(environ, lambda status, headers, *error: replies.append(status))
print(json.dumps([replies, sorted(sys.modules)]))
"""


def not_for_respondents(modules: Iterable[str]) -> set[str]:
    return {
        unwanted
        for unwanted in NOT_FOR_RESPONDENTS
        for module in modules
        if f"{module}.".startswith(f"{unwanted}.")
    }


def run_in_pool(program: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a program with the settings of the respondents' pool."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GROUNDSWELL_", "DJANGO_"))
    }
    pool = {"DJANGO_SETTINGS_MODULE": "settings.respondent_pool"}
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=django_settings.BASE_DIR,
        env={**inherited, **SECRETS, **pool, **environment},
        capture_output=True,
        text=True,
    )


def test_the_respondents_pool_does_not_import_the_console():
    done = run_in_pool(SERVE, GROUNDSWELL_TLS="off")
    assert done.returncode == 0, done.stderr
    [replies, modules] = json.loads(done.stdout.splitlines()[-1])
    assert replies == ["302 Found"]
    assert not_for_respondents(modules) == set()


def test_in_a_process_with_the_console_they_are_found():
    """Shows that the test above would find them."""
    import_module("settings.urls")
    modules = not_for_respondents(sys.modules)
    assert {"allauth", "reports", "accounts.console", "survey.console"} <= modules


class HungUp(BytesIO):
    def read(self, *size):
        raise ConnectionResetError


def test_a_browser_that_hangs_up_is_not_logged_as_an_error(paths, save, caplog):
    for path in paths.values():
        environ = {**save.environ(), "wsgi.input": HungUp()}
        assert reply_of(path, environ)[0] == "400 Bad Request"
    assert not [record for record in caplog.records if "fast_path" in record.name]
    assert Response.objects.count() == 0


def test_other_addresses_go_to_django(paths):
    environ = RequestFactory().get("/").environ
    status, _, body = reply_of(paths["fast"], environ)
    assert status == "200 OK"
    assert b'name="code"' in body


# Checks the settings, and then what it finds if a cookie is not secure.
CHECK = """
import django
from django.conf import settings
from django.core.management import CommandError, call_command

django.setup()
call_command("check", deploy=True, fail_level="WARNING")
settings.SESSION_COOKIE_SECURE = False
try:
    call_command("check", deploy=True, fail_level="WARNING")
except CommandError as error:
    print(error)
"""


def test_the_deploy_check_passes_for_the_respondents_pool():
    done = run_in_pool(CHECK)
    assert done.returncode == 0, done.stderr
    assert "SESSION_COOKIE_SECURE" in done.stdout


if connection.vendor == "postgresql":

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("lost", [1, 2])
    def test_a_lost_connection_is_replaced_on_the_fast_path_too(paths, save, lost):
        for _ in range(lost):
            connection.connection.close()
            assert reply_of(paths["fast"], save.environ())[0] == "200 OK"
