from __future__ import annotations

import time
from datetime import timedelta
from importlib import import_module

import pytest
from django.conf import settings
from django.core.cache import caches
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from accounts.tests.conftest import staff  # noqa: F401
from accounts.tests.logging_in import is_inside, type_password
from survey.models import Administration, Respondent
from survey.people.access_codes import format_code
from survey.people.new_codes import reissue
from survey.taking import login, login_session, saved_answers, session
from survey.tests.conftest import Browser, code_of, enrol

pytestmark = pytest.mark.django_db


def test_a_code_starts_the_survey(browser, maya):
    page = browser.get("/")
    assert page.status_code == 200
    response = browser.post("/", {"code": code_of(maya)})
    assert response.status_code == 302
    assert response["Location"] == "/take/"
    maya.refresh_from_db()
    assert maya.started_at is not None


@pytest.mark.parametrize(
    "change", [str.lower, format_code, lambda code: f" {code[:5]} {code[5:]} "]
)
def test_a_code_may_have_small_letters_spaces_and_dashes(browser, maya, change):
    assert browser.post("/", {"code": change(code_of(maya))}).status_code == 302


def test_the_first_start_is_stored_once(browser, maya):
    browser.log_in(maya)
    maya.refresh_from_db()
    first = maya.started_at
    Browser().log_in(maya)
    maya.refresh_from_db()
    assert maya.started_at == first


@pytest.mark.parametrize(
    "typed", ["", "   ", "ABC", "ABCDEFGHKLMN", "x" * 100_000, "\0" * 12, "🙂" * 12]
)
def test_a_wrong_code_shows_a_message_and_keeps_the_typed_text(browser, maya, typed):
    response = browser.post("/", {"code": typed})
    assert response.status_code == 422
    assert response.context["error"]
    assert "taking" not in browser.session


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("ABCD-EFGH-KLM", "A code has 12 letters and numbers. Type all of them."),
        ("ABCD-EFGH-KLMNP", "You typed more than 12."),
        ("A" * 100, "You typed more than 12."),
        ("ABC0-EFGH-KLMN", "Check character 4: a code never contains 0."),
        ("ABCD-EFGH-KLMNO", "Check character 13: a code never contains O."),
    ],
)
def test_what_is_wrong_with_a_code_is_named(browser, maya, typed, message):
    assert message in browser.post("/", {"code": typed}).content.decode()


def test_a_character_that_no_code_has_is_marked(browser, maya):
    response = browser.post("/", {"code": "ABCD.eFOH<KLMN"})
    text = response.content.decode()
    assert 'data-character="7"' in text and 'aria-invalid="true"' in text
    assert "ABCD.eF<mark>O</mark>H&lt;KLMN" in text
    response = browser.post(
        "/", {"code": "ABCD.eFOH"}, headers={"Accept": "application/json"}
    )
    assert response.json()["character"] == 7
    assert "never contains O" in response.json()["message"]


def test_a_login_without_csrf_token_is_refused(maya):
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/", {"code": code_of(maya)}).status_code == 403


def test_a_second_click_with_the_cookies_of_the_first_reply_leads_on(
    maya, noor, monkeypatch
):
    """Its token is the one that the first click has replaced."""
    strict = Client(enforce_csrf_checks=True)
    token = strict.get("/").cookies[settings.CSRF_COOKIE_NAME].value
    form = {"code": code_of(maya), "csrfmiddlewaretoken": token}
    for _ in range(3):
        reply = strict.post("/", form)
        assert (reply.status_code, reply["Location"]) == (302, "/take/")
    # The next child at this computer.
    assert strict.post("/", {**form, "code": code_of(noor)}).status_code == 403
    now = time.time()
    monkeypatch.setattr(session.time, "time", lambda: now + session.IMPATIENCE)
    assert strict.post("/", form).status_code == 403


def test_a_login_replaces_the_last_session(browser, maya, noor):
    browser.log_in(maya)
    first = browser.session.session_key
    token = browser.cookies["csrftoken"].value
    browser.log_in(noor)
    assert browser.session.session_key != first
    assert browser.cookies["csrftoken"].value != token
    assert browser.session["taking"]["respondent_id"] == noor.pk


def test_the_page_always_asks_for_a_code(browser, maya):
    browser.log_in(maya)
    response = browser.get("/")
    assert response.status_code == 200
    assert b'name="code"' in response.content


@pytest.mark.parametrize(
    ("opens", "closes", "key"),
    [(1, 2, "not_open_yet"), (-2, -1, "closed_on")],
)
def test_a_code_works_only_while_the_survey_is_open(browser, maya, opens, closes, key):
    now = timezone.now()
    Administration.objects.update(
        opens_at=now + timedelta(days=opens), closes_at=now + timedelta(days=closes)
    )
    response = browser.post(
        "/", {"code": code_of(maya)}, headers={"Accept": "application/json"}
    )
    assert response.status_code == 422
    assert response.json()["error"] == key
    maya.refresh_from_db()
    assert maya.started_at is None


@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has the clock of its host"
)
@pytest.mark.parametrize("hours", [1, -1])
def test_a_host_with_a_wrong_clock_keeps_nobody_out(browser, maya, monkeypatch, hours):
    now = timezone.now()
    half_an_hour = timedelta(minutes=30)
    Administration.objects.update(
        opens_at=now - half_an_hour, closes_at=now + half_an_hour
    )
    shift_clock(monkeypatch, hours)
    assert browser.post("/", {"code": code_of(maya)}).status_code == 302
    assert browser.get("/take/").status_code == 200
    maya.refresh_from_db()
    assert abs(maya.started_at - now) < half_an_hour


def test_the_clock_of_the_host_alone_would_keep_people_out(browser, maya, monkeypatch):
    now = timezone.now()
    half_an_hour = timedelta(minutes=30)
    for hours, words in ((1, "closed_on"), (-1, "not_open_yet")):
        Administration.objects.update(
            opens_at=now - half_an_hour, closes_at=now + half_an_hour
        )
        wrong = now + timedelta(hours=hours)
        text = "'%s'" % wrong.isoformat(" ")  # noqa: UP031
        clock = text + ("::timestamptz" if connection.vendor == "postgresql" else "")
        with monkeypatch.context() as patched:
            patched.setitem(login.CLOCK, connection.vendor, clock)
            shift_clock(patched, hours)
            answer = browser.post(
                "/", {"code": code_of(maya)}, headers={"Accept": "application/json"}
            )
        assert answer.json()["error"] == words


def shift_clock(monkeypatch, hours: int) -> None:
    """Let this process, and not the database, have a wrong time of day."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + hours * 3600)
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(hours=hours))
    monkeypatch.setattr(
        saved_answers,
        "now_in_microseconds",
        lambda: int(timezone.now().timestamp() * 1_000_000),
    )


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_refusal_names_its_moment_with_a_time_zone(browser, maya, language):
    tomorrow = timezone.localtime() + timedelta(days=1)
    opens_at = tomorrow.replace(hour=21, minute=34, second=0)
    Administration.objects.update(opens_at=opens_at)
    page = browser.post("/", {"code": code_of(maya), "language": language})
    assert page.context["error"].endswith(f", 9:34 PM ({opens_at:%Z}).")


def test_a_respondent_who_had_started_may_return_in_the_closing_minutes(
    browser, maya, noor
):
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(started_at=now - timedelta(hours=1))
    Administration.objects.update(closes_at=now - timedelta(minutes=5))
    assert browser.post("/", {"code": code_of(maya)}).status_code == 302
    assert browser.post("/", {"code": code_of(noor)}).status_code == 422


def test_a_withdrawn_respondent_cannot_log_in(browser, maya):
    Respondent.objects.update(withdrawn_at=timezone.now())
    assert browser.post("/", {"code": code_of(maya)}).status_code == 422


def test_a_reissued_code_ends_the_old_one(browser, maya):
    old = code_of(maya)
    new = reissue(respondent=maya)
    assert browser.post("/", {"code": old}).status_code == 422
    assert browser.post("/", {"code": new}).status_code == 302


def test_a_respondent_who_has_finished_sees_the_thanks(browser, maya):
    browser.log_in(maya)
    Respondent.objects.update(completed_at=timezone.now())
    response = browser.post("/", {"code": code_of(maya)})
    assert response["Location"] == "/take/complete/"


def test_a_running_tab_logs_in_again_by_json(browser, maya):
    browser.log_in(maya)
    tag = browser.bootstrap()["tag"]
    browser.session.flush()
    token = browser.get("/", headers={"Accept": "application/json"}).json()["csrf"]
    response = browser.post(
        "/",
        {"code": code_of(maya), "csrfmiddlewaretoken": token},
        headers={"Accept": "application/json"},
    )
    assert response.status_code == 200
    assert response.json()["tag"] == tag


def test_a_database_that_is_down_gives_the_503_page(browser, maya, monkeypatch):
    def fail(typed, device):
        raise OperationalError("the database system is starting up")

    monkeypatch.setattr(login_session, "log_in_respondent", fail)
    response = browser.post("/", {"code": code_of(maya)})
    assert response.status_code == 503
    assert 1 <= int(response["Retry-After"]) <= 5
    assert b"database" not in response.content
    # A reload would show the form without the code.
    assert b"Your code was not read yet" in response.content
    assert "Refresh" not in response


def test_a_chosen_language_wins_over_the_rosters_and_stays(browser, maya):
    assert b'name="language"' not in browser.get("/").content
    page = browser.get("/?language=en").content.decode()
    assert '<input type="hidden" name="language" value="en">' in page
    browser.post("/", {"code": code_of(maya), "language": "en"})
    assert browser.bootstrap()["language"] == "en"
    # A wrong code keeps the choice.
    visitor = Browser()
    wrong = visitor.post("/", {"code": "ABCD", "language": "en"}).content.decode()
    assert '<input type="hidden" name="language" value="en">' in wrong


def test_the_rosters_language_wins_over_the_browsers(browser, maya, noor):
    english = {"Accept-Language": "en-US"}
    browser.post("/", {"code": code_of(maya)}, headers=english)
    assert browser.bootstrap()["language"] == "es"
    Respondent.objects.filter(pk=noor.pk).update(language="")
    spanish = {"Accept-Language": "es-MX, en;q=0.5"}
    browser.post("/", {"code": code_of(noor)}, headers=spanish)
    assert browser.bootstrap()["language"] == "es"


def test_nothing_about_a_login_is_stored_by_a_cache(browser, maya):
    assert "no-store" in browser.get("/")["Cache-Control"]
    browser.log_in(maya)
    assert "no-store" in browser.get("/take/")["Cache-Control"]
    assert "no-store" in browser.get("/take/complete/")["Cache-Control"]


@pytest.mark.parametrize(
    "language", ["", "xx", "\0", "é" * 5000, "es-MX", "../en", "🙂"]
)
def test_no_language_parameter_is_an_error(browser, maya, language):
    assert browser.get("/", {"language": language}).status_code == 200
    code = code_of(maya)
    response = browser.post("/", {"code": code, "language": language})
    assert response.status_code == 302
    for address in ("/take/", "/take/complete/"):
        assert browser.get(address, {"language": language}).status_code == 200


@pytest.mark.parametrize("header", ["", ";", "*", "es;q=x", "\xff", "a" * 9000])
def test_no_accept_language_header_is_an_error(browser, header):
    assert browser.get("/", headers={"Accept-Language": header}).status_code == 200


def test_a_form_of_megabytes_gets_the_error_page(browser, db):
    assert browser.post("/", {"code": "x" * 3_000_000}).status_code == 400
    many = {f"field{n}": "x" for n in range(1500)}
    assert browser.post("/", many).status_code == 400


def test_a_respondent_has_one_live_session_however_often_the_code_is_typed(maya):
    browsers = [Browser().log_in(maya) for _ in range(5)]
    live = [browser for browser in browsers if "taking" in browser.session]
    assert live == browsers[-1:]
    # The other devices go on with their resume cookies.
    assert all(browser.bootstrap() for browser in browsers)


def test_a_code_that_is_typed_too_often_is_refused_for_the_rest_of_the_hour(
    maya, noor, monkeypatch
):
    monkeypatch.setattr(login, "MOST_LOGINS_PER_HOUR", 3)
    answers = [Browser().post("/", {"code": code_of(maya)}) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [302, 302, 302, 422, 422]
    assert "too many times" in answers[-1].context["error"]
    assert Browser().post("/", {"code": code_of(noor)}).status_code == 302
    new = reissue(respondent=maya)
    assert Browser().post("/", {"code": new}).status_code == 302


def test_a_full_session_store_keeps_no_staff_out(
    staff,  # noqa: F811
    administration,
    monkeypatch,
):
    """A Redis that is full or down refuses respondents only."""

    def full(*args, **kwargs):
        raise ConnectionError

    store = import_module(settings.RESPONDENT_SESSION_ENGINE).SessionStore
    if store is import_module(settings.SESSION_ENGINE).SessionStore:
        pytest.skip("one store for both, without Redis")
    monkeypatch.setattr(caches[settings.SESSION_CACHE_ALIAS], "_ask", full)
    respondent = enrol(administration, staff.lincoln)
    assert Browser().post("/", {"code": code_of(respondent)}).status_code == 503
    console = Client()
    assert type_password(console, "dana@example.org").status_code == 302
    assert is_inside(console)
