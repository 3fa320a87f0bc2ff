"""The cost of each respondents' view when warm. Change a number only on purpose.

Statements are counted by their text, without those of the session, which is
in the database only here and in the embedded installation; sessions and the
cache are counted at their stores. On PostgreSQL the server's own count is
asked as well.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from survey.models import Administration
from survey.taking.published import forget_published
from survey.taking.session import EXTENDED_AFTER
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser, code_of
from survey.tests.taking.test_plain_forms import start

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}

# In the test's transaction, a savepoint is around each save.
SAVEPOINTS = ("SAVEPOINT", "RELEASE", "ROLLBACK TO")


@dataclass
class Cost:
    statements: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@contextmanager
def cost(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cost]:
    spent = Cost()
    store = import_module(settings.RESPONDENT_SESSION_ENGINE).SessionStore

    def counted(owner, name, kind):
        original = getattr(owner, name)
        inside = False

        def count(*args, **kwargs):
            # The first save() calls itself through create(), but writes once.
            nonlocal inside
            if inside:
                return original(*args, **kwargs)
            spent.counts[kind] += 1
            inside = True
            try:
                return original(*args, **kwargs)
            finally:
                inside = False

        patch.setattr(owner, name, count)

    with monkeypatch.context() as patch, CaptureQueriesContext(connection) as queries:
        counted(store, "load", "session reads")
        counted(store, "save", "session writes")
        counted(cache, "get", "cache reads")
        counted(cache, "set", "cache writes")
        yield spent
    spent.statements += [
        query["sql"]
        for query in queries.captured_queries
        if "django_session" not in query["sql"]
        and not query["sql"].startswith(SAVEPOINTS)
    ]


@pytest.fixture
def warm(browser, maya, noor):
    """Let another respondent take the survey in this process first."""
    browser.get("/")
    browser.log_in(noor)
    browser.bootstrap()
    return browser


def test_a_first_login_reads_once_and_writes_twice_and_one_session(
    warm, maya, monkeypatch
):
    warm.cookies.clear()
    with cost(monkeypatch) as spent:
        warm.log_in(maya)
    statements = [sql.split()[0] for sql in spent.statements]
    # The first start, and the code on this device.
    assert statements == ["SELECT", "UPDATE", "INSERT"]
    # The session store's own cache is not counted; on SQLite it is the same one.
    assert spent.counts["session writes"] == 1
    assert spent.counts["session reads"] == 0


def test_a_later_login_only_reads(warm, maya, monkeypatch):
    warm.log_in(maya)
    with cost(monkeypatch) as spent:
        warm.post("/", {"code": code_of(maya)})
    assert [sql.split()[0] for sql in spent.statements] == ["SELECT"]


def test_a_login_on_another_device_writes_once(warm, maya, monkeypatch):
    warm.log_in(maya)
    warm.cookies.clear()
    with cost(monkeypatch) as spent:
        warm.post("/", {"code": code_of(maya)})
    assert [sql.split()[0] for sql in spent.statements] == ["SELECT", "INSERT"]


def test_display_is_one_read(warm, maya, monkeypatch):
    warm.log_in(maya)
    with cost(monkeypatch) as spent:
        assert warm.get("/take/").status_code == 200
    assert len(spent.statements) == 1
    assert "FROM survey_respondent" in spent.statements[0]
    assert spent.counts == {"session reads": 1}


def test_a_page_save_is_one_statement(warm, maya, monkeypatch):
    warm.log_in(maya)
    base = warm.bootstrap()["revision"]
    tag = warm.session["taking"]["tag"]
    with cost(monkeypatch) as spent:
        assert warm.save(1, FIRST_PAGE, base, tag=tag).status_code == 200
    assert len(spent.statements) == 1
    assert "INSERT INTO survey_response" in spent.statements[0]
    assert spent.counts == {"session reads": 1}


def test_a_retry_or_a_refusal_is_two_statements(warm, maya, monkeypatch):
    warm.log_in(maya)
    base = warm.bootstrap()["revision"]
    tag = warm.session["taking"]["tag"]
    warm.save(1, FIRST_PAGE, base, tag=tag)
    for revision, status in ((base, 200), (base - 1, 409)):
        with cost(monkeypatch) as spent:
            assert warm.save(1, FIRST_PAGE, revision, tag=tag).status_code == status
        assert len(spent.statements) == 2


def make_older(session) -> None:
    session["taking"] |= {"written_at": time.time() - EXTENDED_AFTER - 1}
    session.save()


def test_opening_the_survey_extends_session_and_resume_cookie(warm, maya, monkeypatch):
    warm.log_in(maya)
    make_older(warm.session)
    for is_extended in (True, False):
        with cost(monkeypatch) as spent:
            page = warm.get("/take/")
        assert spent.counts["session writes"] == int(is_extended)
        assert ("resume" in page.cookies) is is_extended


def test_a_session_in_use_is_extended_once_an_hour(warm, maya, monkeypatch):
    warm.log_in(maya)
    base = warm.bootstrap()["revision"]
    tag = warm.session["taking"]["tag"]
    make_older(warm.session)
    for n, writes in ((1, {"session writes": 1}), (2, {})):
        with cost(monkeypatch) as spent:
            assert warm.save(1, FIRST_PAGE, base + n, tag=tag).status_code == 200
        assert len(spent.statements) == 1
        assert spent.counts == {"session reads": 1, **writes}
    assert time.time() - warm.session["taking"]["written_at"] < EXTENDED_AFTER


def test_content_needs_no_query(warm, monkeypatch):
    address = warm.bootstrap()["urls"]["content"].replace("{language}", "en")
    for n in (0, 1, 2):
        with cost(monkeypatch) as spent:
            assert warm.get(address.replace("{n}", str(n))).status_code == 200
        assert spent.statements == []
        assert spent.counts == {}


def test_review_and_finish_are_one_statement_each(warm, maya, monkeypatch):
    warm.log_in(maya)
    base = warm.bootstrap()["revision"]
    for n, answers in enumerate((FIRST_PAGE, SECOND_PAGE, {"last": None}), start=1):
        assert warm.save(n, answers, base + n).status_code == 200
    with cost(monkeypatch) as spent:
        page = warm.get("/take/complete/")
    assert [sql.split()[0] for sql in spent.statements] == ["SELECT"]
    assert spent.counts == {"session reads": 1}

    with cost(monkeypatch) as spent:
        warm.post("/take/complete/", {"reviewed": page.context["reviewed"]})
    assert [sql.split()[0] for sql in spent.statements] == ["UPDATE"]
    assert spent.counts == {"session reads": 1, "session writes": 1}


def test_opening_the_login_page_costs_something_only_with_a_session(warm, monkeypatch):
    with cost(monkeypatch) as spent:
        assert Browser().get("/").status_code == 200
    assert (spent.statements, spent.counts) == ([], {})
    with cost(monkeypatch) as spent:
        assert warm.get("/").status_code == 200
    # The session store's own cache is not counted; on SQLite it is the same one.
    assert (spent.statements, spent.counts["session reads"]) == ([], 1)
    assert spent.counts["session writes"] == 0


def test_stopping_is_one_statement(warm, maya, monkeypatch):
    warm.log_in(maya)
    with cost(monkeypatch) as spent:
        assert warm.post("/take/stop/", headers=JSON).status_code == 200
    assert [sql.split()[0] for sql in spent.statements] == ["UPDATE"]
    assert spent.counts["session reads"] == 1
    assert spent.counts["session writes"] == 0
    with cost(monkeypatch) as spent:
        assert warm.get("/take/stop/?language=en").status_code == 200
    assert (spent.statements, spent.counts) == ([], {})


def test_declining_is_one_statement(warm, maya, monkeypatch):
    Administration.objects.update(allows_declining=True)
    warm.log_in(maya)
    with cost(monkeypatch) as spent:
        assert warm.get("/take/decline/").status_code == 200
    assert len(spent.statements) == 1
    assert spent.counts == {"session reads": 1}
    with cost(monkeypatch) as spent:
        assert warm.post("/take/decline/").status_code == 302
    assert [sql.split()[0] for sql in spent.statements] == ["UPDATE"]
    assert spent.counts["session reads"] == 1
    assert spent.counts["session writes"] == 0
    with cost(monkeypatch) as spent:
        assert warm.get("/take/decline/?declined&language=en").status_code == 200
    assert (spent.statements, spent.counts) == ([], {})


def test_a_plain_page_is_one_read_and_its_save_one_write_more(warm, maya, monkeypatch):
    page = start(warm.log_in(maya))
    with cost(monkeypatch) as spent:
        assert warm.get("/take/plain/1/").status_code == 200
    assert len(spent.statements) == 1
    assert spent.counts == {"session reads": 1}
    with cost(monkeypatch) as spent:
        assert page.post(safe="3", subjects=["sport"]).status_code == 302
    assert [sql.split()[0] for sql in spent.statements[:1]] == ["SELECT"]
    assert len(spent.statements) == 2
    assert "INSERT INTO survey_response" in spent.statements[1]
    assert spent.counts == {"session reads": 1}
    # Another tab was first: both sides are read again, to be shown.
    with cost(monkeypatch) as spent:
        assert page.post(safe="1").status_code == 409
    assert len(spent.statements) == 4
    assert spent.counts == {"session reads": 1}


def test_a_cold_process_reads_the_survey_from_the_cache(warm, maya, monkeypatch):
    warm.log_in(maya)
    base = warm.bootstrap()["revision"]
    tag = warm.session["taking"]["tag"]
    forget_published()
    with cost(monkeypatch) as spent:
        assert warm.save(1, FIRST_PAGE, base, tag=tag).status_code == 200
    assert len(spent.statements) == 1
    assert spent.counts == {"session reads": 1, "cache reads": 1}


if connection.vendor == "postgresql":

    def server_statements() -> Counter[str]:
        """Return the server's count of calls by text, without this query."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT s.query, sum(s.calls)::int FROM pg_stat_statements s"
                " JOIN pg_database d ON d.oid = s.dbid"
                " WHERE d.datname = current_database()"
                " AND s.query NOT LIKE '%%pg_stat_statements%%' GROUP BY 1"
            )
            calls = dict(cursor.fetchall())
        return Counter(
            {text: n for text, n in calls.items() if not text.startswith(SAVEPOINTS)}
        )

    def test_the_server_counts_the_same(warm, maya):
        """A health check or a BEGIN would be counted only here."""
        warm.log_in(maya)
        base = warm.bootstrap()["revision"]
        tag = warm.session["taking"]["tag"]
        steps = {
            "save": (lambda: warm.save(1, FIRST_PAGE, base, tag=tag), 1),
            "retry": (lambda: warm.save(1, FIRST_PAGE, base, tag=tag), 2),
            "shell": (lambda: warm.get("/take/"), 1),
            "review": (lambda: warm.get("/take/complete/"), 1),
            "login": (lambda: warm.post("/", {"code": code_of(maya)}), 1),
        }
        counted = {}
        for name, (step, _) in steps.items():
            before = server_statements()
            assert step().status_code < 400
            counted[name] = sum((server_statements() - before).values())
        assert counted == {name: budget for name, (_, budget) in steps.items()}
