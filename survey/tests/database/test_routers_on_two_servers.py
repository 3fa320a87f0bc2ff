"""Which server runs each statement: replica healthy, lagging, down or hung.

Every process here is cold: neither its memory nor Memcached has the survey.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import OperationalError, connections

from settings.tests.patience import patience
from survey.database.replica import health
from survey.database.routers import forced_reads
from survey.models import PublishedSurvey, Respondent
from survey.taking.published import forget_published, published_survey
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser, enrol
from survey.tests.two_servers import (
    Replica,
    StatementCounter,
    replica_alias,
    replica_routing,
    wait_until,
)

pytestmark = [
    pytest.mark.skipif(not settings.SERVERS, reason="needs PostgreSQL's two servers"),
    pytest.mark.django_db(transaction=True, databases=["default", "replica"]),
]

SURVEY = Counter({"read survey_publishedsurvey": 1})
DECISIONS = {
    # Logins and displays read the respondent and the devices used before.
    "login": Counter(
        {
            "read survey_devicelogin": 1,
            "change survey_respondent": 1,
            "save survey_devicelogin": 1,
        }
    ),
    "display": Counter({"read survey_devicelogin": 1}),
    "save": Counter({"save survey_response": 1}),
    "content": Counter(),
    "review": Counter({"read survey_devicelogin": 1}),
    "finish": Counter({"change survey_respondent": 1}),
}
NOTHING: Counter[str] = Counter()


# Django needs a test's databases before the test starts.
@pytest.fixture(scope="module", autouse=True)
def known(django_db_setup) -> Iterator[None]:
    with replica_alias():
        yield


@pytest.fixture
def replica(known, transactional_db, monkeypatch) -> Iterator[Replica]:
    monkeypatch.setattr(health, "RETRY_INTERVAL", 0.1)
    replica = Replica()
    replica.catch_up()
    with replica_routing():
        yield replica
    replica.catch_up()


@pytest.fixture
def watched(replica) -> StatementCounter:
    return StatementCounter()


def steps(browser: Browser, person: Respondent) -> Iterator[tuple[str, Callable]]:
    """Take a whole survey through the views."""
    yield "login", lambda: browser.log_in(person)
    shell: dict[str, Any] = {}
    yield "display", lambda: shell.update(browser.bootstrap())
    pages = iter(enumerate((FIRST_PAGE, SECOND_PAGE, {"last": None}), start=1))

    def save() -> None:
        n, answers = next(pages)
        reply = browser.save(n, answers, shell["revision"] + n, tag=shell["tag"])
        assert reply.status_code == 200, reply.content

    yield "save", save
    content = shell["urls"]["content"].replace("{language}", "en")
    yield "content", lambda: served(browser.get(content.replace("{n}", "1")))
    save()
    save()
    seen: dict[str, str] = {}

    def review() -> None:
        page = served(browser.get("/take/complete/"))
        seen["reviewed"] = page.context["reviewed"]

    yield "review", review
    yield "finish", lambda: browser.post("/take/complete/", seen)


def served(response: Any) -> Any:
    assert response.status_code == 200, response.content
    return response


def cold() -> None:
    forget_published()
    cache.clear()


def take(
    browser: Browser, person: Respondent, watched: StatementCounter
) -> dict[str, Any]:
    ran = {}
    for name, step in steps(browser, person):
        cold()
        ran[name] = watched.during(step)
        # Connections for the statements between the steps.
        published_survey(person.administration.published_id)
    person.refresh_from_db()
    assert person.completed_at is not None
    return ran


def test_the_survey_comes_from_a_healthy_replica_and_decisions_from_the_primary(
    browser, maya, replica, watched
):
    replica.catch_up()
    ran = take(browser, maya, watched)
    assert ran == {
        name: {"primary": decisions, "replica": SURVEY}
        for name, decisions in DECISIONS.items()
    }


def test_a_replica_that_lags_by_minutes_changes_nothing(
    browser, replica, watched, lincoln, request
):
    """The replica has none of this respondent's rows, not even the survey."""
    replica.stop_replaying()
    maya = request.getfixturevalue("maya")
    there = f"SELECT count(*) FROM survey_respondent WHERE id = {maya.pk}"
    assert replica.ask(there, database=watched.database) == [(0,)]

    ran = take(browser, maya, watched)
    assert ran == {
        name: {"primary": decisions + SURVEY, "replica": SURVEY}
        for name, decisions in DECISIONS.items()
    }
    assert health.is_up()
    assert replica.ask(there, database=watched.database) == [(0,)]


def test_misses_on_a_lagging_replica_are_not_cached(replica, watched, request):
    replica.stop_replaying()
    digest = request.getfixturevalue("publish")().digest

    def ask() -> None:
        forget_published()
        with forced_reads(PublishedSurvey):
            published_survey(digest)

    both = {"primary": SURVEY, "replica": SURVEY}
    assert watched.during(ask) == both
    assert watched.during(ask) == both
    replica.catch_up()
    assert watched.during(ask) == {"primary": NOTHING, "replica": SURVEY}
    assert watched.during(ask) == {"primary": NOTHING, "replica": NOTHING}


def test_a_decision_read_from_a_lagging_replica_would_be_wrong(
    administration, lincoln, replica
):
    """This is why logins are read on the primary."""
    replica.stop_replaying()
    late = enrol(administration, lincoln, grade="08")
    with forced_reads(Respondent):
        assert not Respondent.objects.filter(pk=late.pk).exists()
    with forced_reads(PublishedSurvey):
        assert Respondent.objects.filter(pk=late.pk).exists()


def test_a_replica_that_is_down_delays_no_request(browser, maya, replica, watched):
    connect(maya)
    replica.stop()
    try:
        ran = take(browser, maya, watched)
    finally:
        replica.start()
    assert {name: on["primary"] for name, on in ran.items()} == {
        name: decisions + SURVEY for name, decisions in DECISIONS.items()
    }

    wait_until(health.is_up)
    replica.catch_up()
    statements = watched.during(lambda: request_survey(maya))
    assert statements["replica"]["read survey_publishedsurvey"] == 1
    assert not statements["primary"]["read survey_publishedsurvey"]


def connect(person: Respondent) -> None:
    """Connect to the replica, as a process does for its first page."""
    request_survey(person)
    assert connections["replica"].connection is not None


def request_survey(person: Respondent) -> None:
    cold()
    with forced_reads(PublishedSurvey):
        published_survey(person.administration.published_id)


def seconds(act: Callable[[], Any]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


@pytest.mark.parametrize("connected", [True, False])
def test_a_hung_replica_costs_a_process_one_second_once(
    browser, maya, replica, watched, connected
):
    replica.catch_up()
    connect(maya)
    if not connected:
        connections["replica"].close()
    replica.hang()
    try:
        assert 0.8 < seconds(lambda: request_survey(maya)) < patience(2.5)
        # Ten more waits would take eight seconds.
        assert seconds(lambda: [request_survey(maya) for _ in range(10)]) < patience(1)
        time.sleep(3 * health.RETRY_INTERVAL)
        assert not health.is_up()
        cold()
        assert seconds(lambda: browser.log_in(maya)) < patience(0.5)
    finally:
        replica.resume()
    wait_until(health.is_up)
    statements = watched.during(lambda: request_survey(maya))
    assert statements["replica"]["read survey_publishedsurvey"] == 1


def test_without_a_fallback_a_hung_replica_blocks(maya, replica):
    """A report has no fallback, because no request waits for it."""
    replica.catch_up()
    connect(maya)
    replica.hang()
    threading.Timer(2, replica.resume).start()
    assert seconds(lambda: PublishedSurvey.objects.using("replica").count()) > 1.5
    assert health.is_up()


def test_a_report_fails_when_its_replica_fails(maya, replica):
    """The primary serves respondents; a report can be made later."""
    replica.stop()
    try:
        with pytest.raises(OperationalError):
            list(PublishedSurvey.objects.using("replica"))
    finally:
        replica.start()
    assert health.is_up()
