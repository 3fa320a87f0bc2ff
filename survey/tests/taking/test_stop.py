"""*Stop for now* and opening the login page end a person's use of this computer."""

from __future__ import annotations

import pytest

from survey.models import Administration, Response
from survey.taking import devices, resume_cookie, session, stop
from survey.tests.conftest import FIRST_PAGE, Browser
from survey.tests.taking.test_resume_cookie import (
    JSON,
    is_asked_for_a_code,
    lose,  # noqa: F401
    resumes_by,
    sessions_may_be_away,  # noqa: F401
    shown_tag,
    tag_of,
    take_away,  # noqa: F401
)

pytestmark = pytest.mark.django_db

STOP = "/take/stop/"


@pytest.fixture
def answering(browser, maya) -> Browser:
    """Maya's device, with an answer of hers."""
    browser.log_in(maya)
    reply = browser.save(1, FIRST_PAGE, browser.bootstrap()["revision"])
    assert reply.status_code == 200
    return browser


def stop_now(browser: Browser, respondent, **headers: str):
    headers = {**JSON, "X-Groundswell-Respondent": tag_of(respondent), **headers}
    return browser.post(STOP, headers=headers)


@pytest.mark.sqlite
def test_after_stopping_the_computer_is_free_and_the_code_continues(answering, maya):
    assert stop_now(answering, maya).json() == {"stopped": True}
    assert is_asked_for_a_code(answering)
    assert answering.get("/take/complete/")["Location"] == "/"
    late = answering.save(1, FIRST_PAGE, 10**15, tag=tag_of(maya))
    assert (late.status_code, late.json()["error"]) == (401, "session")

    shell = answering.log_in(maya).bootstrap()
    assert shell["answers"] == {}
    assert set(shell["earlier"]) == set(FIRST_PAGE)
    assert Response.objects.filter(value="colours").exists()


def test_without_forgetting_the_device_would_show_the_answers(
    answering, maya, monkeypatch
):
    monkeypatch.setattr(devices, "forget_device", lambda *args: None)
    stop_now(answering, maya)
    assert answering.log_in(maya).bootstrap()["answers"]["why_art"] == "colours"


def test_an_administration_that_allows_replay_shows_them_to_the_code(answering, maya):
    Administration.objects.update(replays_answers=True)
    stop_now(answering, maya)
    assert answering.log_in(maya).bootstrap()["answers"]["why_art"] == "colours"


def test_a_form_leads_to_the_page_that_says_so(answering, maya):
    reply = answering.post(STOP, {"for": tag_of(maya), "language": "es"}, follow=True)
    assert reply.redirect_chain == [("/take/stop/?language=es", 302)]
    assert "Las respuestas están guardadas" in reply.content.decode()
    assert shown_tag(answering) is None
    # Never the code, nor anything else about her.
    assert tag_of(maya) not in reply.content.decode()


def test_answers_that_were_not_sent_are_not_called_saved(browser):
    text = browser.get(STOP, {"unsent": "yes", "language": "en"}).content.decode()
    assert "Your answers are saved" not in text
    assert "not saved yet" in text


def test_stopping_again_is_answered_the_same_way(answering, maya):
    for _ in range(2):
        assert stop_now(answering, maya).json() == {"stopped": True}


def test_a_tab_does_not_stop_the_next_person(answering, maya, noor):
    answering.log_in(noor)
    reply = stop_now(answering, maya)
    assert (reply.status_code, reply.json()["error"]) == (403, "person")
    assert shown_tag(answering) == tag_of(noor)
    # The page that an old tab ends at does not touch them either.
    assert answering.get(STOP, {"language": "en"}).status_code == 200
    assert shown_tag(answering) == tag_of(noor)


def test_a_form_that_no_server_answered_leads_back_to_the_survey(answering, maya):
    """The page for 503 loads its own address again, without the form."""
    assert answering.get(STOP)["Location"] == "/take/"
    assert shown_tag(answering) == tag_of(maya)
    assert Browser().get(STOP, follow=True).redirect_chain[-1] == ("/", 302)


def test_another_site_stops_nobody(answering, maya):
    reply = stop_now(answering, maya, Origin="https://example.org")
    assert reply.status_code == 403
    assert shown_tag(answering) == tag_of(maya)
    assert stop_now(answering, maya, Origin="http://testserver").status_code == 200


@pytest.mark.parametrize("was_lost", [False, True])
def test_a_copied_resume_cookie_ends_too(answering, maya, lose, was_lost):  # noqa: F811
    copy = answering.cookies[resume_cookie.COOKIE].value
    if was_lost:
        lose(answering)
        assert shown_tag(answering) == tag_of(maya)
    stop_now(answering, maya)
    assert answering.cookies[resume_cookie.COOKIE].value == ""
    assert not resumes_by(Browser(), copy)


def test_without_the_mark_a_copied_resume_cookie_would_go_on(
    answering, maya, monkeypatch
):
    copy = answering.cookies[resume_cookie.COOKIE].value
    monkeypatch.setattr(session, "was_given_up", lambda token: False)
    stop_now(answering, maya)
    assert resumes_by(Browser(), copy)


def cookies_of(browser: Browser) -> list[str]:
    return [browser.cookies[name].value for name in ("sessionid", resume_cookie.COOKIE)]


def test_stopping_while_redis_is_down_deletes_the_cookies(
    answering,
    maya,
    take_away,  # noqa: F811
):
    take_away()
    assert shown_tag(answering) == tag_of(maya)
    assert stop_now(answering, maya).status_code == 200
    assert cookies_of(answering) == ["", ""]
    assert shown_tag(answering) is None


def test_with_its_cookies_left_the_survey_would_stay_open(
    answering,
    maya,
    take_away,  # noqa: F811
    monkeypatch,
):
    monkeypatch.setattr(stop, "end_login", lambda *args, **options: None)
    take_away()
    stop_now(answering, maya)
    assert shown_tag(answering) == tag_of(maya)


# Opening the login page


def test_opening_the_login_page_ends_the_last_persons_session(answering, maya):
    copy = answering.cookies[resume_cookie.COOKIE].value
    assert answering.get("/").status_code == 200
    assert cookies_of(answering) == ["", ""]
    assert shown_tag(answering) is None
    assert not resumes_by(Browser(), copy)


def test_without_it_the_next_child_would_find_the_survey(answering, maya, monkeypatch):
    monkeypatch.setattr(session, "end_login", lambda *args, **options: None)
    answering.get("/")
    assert shown_tag(answering) == tag_of(maya)


def test_a_tab_goes_on_with_the_code_after_the_login_page_was_opened(answering, maya):
    """A second tab of the same person opened it by mistake."""
    base = answering.bootstrap()["revision"]
    answering.get("/")
    tag = tag_of(maya)
    refused = answering.save(1, FIRST_PAGE, base, tag=tag)
    assert (refused.status_code, refused.json()["error"]) == (401, "session")
    answering.get("/", headers=JSON)
    answering.log_in(maya)
    assert answering.save(1, FIRST_PAGE, base, tag=tag).status_code == 200
    # She has not stopped: this device still shows what was answered on it.
    assert answering.bootstrap()["answers"]["why_art"] == "colours"


def test_a_running_tab_and_programs_end_nothing(answering, maya):
    assert answering.get("/", headers=JSON).status_code == 200
    assert answering.session["taking"]["tag"] == tag_of(maya)
    answering.head("/")
    assert shown_tag(answering) == tag_of(maya)


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Purpose": "prefetch"},
        {"Sec-Purpose": "prefetch;prerender"},
        {"Purpose": "prefetch"},
        {"X-Moz": "prefetch"},
    ],
)
def test_a_page_that_is_loaded_ahead_ends_nothing_and_is_not_kept(
    answering, maya, headers
):
    cookies = cookies_of(answering)
    reply = answering.get("/", headers=headers)
    # Shown from the browser's memory later, it would end no session.
    assert (reply.status_code, reply.content) == (503, b"")
    assert cookies_of(answering) == cookies
    assert shown_tag(answering) == tag_of(maya)
    # Where nobody is logged in there is nothing to end.
    assert Browser().get("/", headers=headers).status_code == 200


def test_the_login_page_opens_while_redis_is_down(
    answering,
    maya,
    take_away,  # noqa: F811
):
    take_away()
    assert answering.get("/").status_code == 200
    assert cookies_of(answering) == ["", ""]
    assert shown_tag(answering) is None
