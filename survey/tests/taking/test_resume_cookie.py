"""The resume cookie replaces a lost session, and never another person's."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from datetime import timedelta
from importlib import import_module

import pytest
from django.core.signing import Signer
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.models import Administration, DeviceLogin, Respondent, Response
from survey.people.new_codes import reissue
from survey.taking import login_session, resume_cookie, session, views
from survey.taking.middleware import SessionMiddleware
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser, code_of

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}
OURS = "survey.taking.middleware.SessionMiddleware"


@pytest.fixture(autouse=True)
def sessions_may_be_away(settings):
    settings.MIDDLEWARE = [
        OURS if name.endswith(".SessionMiddleware") else name
        for name in settings.MIDDLEWARE
    ]
    resume_cookie.forget_digests()
    yield
    resume_cookie.forget_digests()


def store(settings):
    return import_module(settings.RESPONDENT_SESSION_ENGINE).SessionStore


@pytest.fixture
def lose(settings):
    """Lose the session, as when Redis was emptied."""

    def lose(browser):
        store(settings)(browser.cookies["sessionid"].value).delete()

    return lose


@pytest.fixture
def take_away(settings, monkeypatch):
    """Make Redis stop answering."""

    def take_away(browser=None):
        def away(*args, **kwargs):
            raise ConnectionError

        def delete(self, session_key=None):
            # A new visitor has no session.
            if session_key or self.session_key:
                raise ConnectionError

        for name in ("load", "save", "create", "exists"):
            monkeypatch.setattr(store(settings), name, away)
        monkeypatch.setattr(store(settings), "delete", delete)

    return take_away


@pytest.fixture(params=["lose", "take_away"])
def without_session(request):
    return request.getfixturevalue(request.param)


def tag_of(respondent) -> str:
    return session.tag_for(respondent.pk)


def save_all(browser, respondent, base):
    tag = tag_of(respondent)
    for n, answers in enumerate((FIRST_PAGE, SECOND_PAGE, {"last": None}), start=1):
        assert browser.save(n, answers, base + n, tag=tag).status_code == 200


def is_asked_for_a_code(browser) -> bool:
    reply = browser.get("/take/", headers=JSON)
    return (reply.status_code, reply.json().get("error")) == (401, "session")


def test_a_survey_is_finished_without_its_session(browser, maya, without_session):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    without_session(browser)

    save_all(browser, maya, base)
    assert browser.bootstrap()["answers"]["age"] == "12"
    review = browser.get("/take/complete/")
    assert review.context["missing"] == []
    reply = browser.post(
        "/take/complete/", {"reviewed": review.context["reviewed"]}, follow=True
    )

    maya.refresh_from_db()
    assert maya.completed_at is not None
    assert reply.context["finished_at"] == maya.completed_at


def test_without_the_resume_cookie_a_lost_session_needs_a_login(
    browser, maya, without_session
):
    browser.log_in(maya)
    del browser.cookies[resume_cookie.COOKIE]
    without_session(browser)
    assert is_asked_for_a_code(browser)
    assert browser.save(1, FIRST_PAGE, 5, tag=tag_of(maya)).status_code == 401


def test_the_cookie_holds_ids_and_expiry_only(browser, maya, settings):
    settings.SESSION_COOKIE_SECURE = True
    browser.log_in(maya)
    cookie = browser.cookies[resume_cookie.COOKIE]
    respondent, administration, issue, expires = cookie.value.split(":")[0].split(".")
    assert (int(respondent), int(administration)) == (maya.pk, maya.administration_id)
    assert issue == "1"
    assert abs(int(expires) - time.time() - 4 * 60 * 60) < 60
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    # Not sent with content and files; ends with the browser, like the session.
    assert (cookie["secure"], cookie["path"], cookie["max-age"]) == (True, "/take/", "")

    settings.SESSION_COOKIE_SECURE = False
    browser.log_in(maya)
    assert not browser.cookies[resume_cookie.COOKIE]["secure"]


def test_a_resumed_session_uses_the_first_language_or_the_one_in_the_address(
    browser, maya, without_session
):
    browser.log_in(maya)
    assert browser.bootstrap()["language"] == "es"
    without_session(browser)
    assert browser.bootstrap()["language"] == "en"
    reply = browser.get("/take/", {"language": "es"}, headers=JSON)
    assert reply.json()["language"] == "es"


def test_a_resumed_save_costs_one_statement(browser, maya, lose):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    lose(browser)
    tag = tag_of(maya)
    browser.save(1, FIRST_PAGE, base, tag=tag)
    with CaptureQueriesContext(connection) as queries:
        assert browser.save(1, FIRST_PAGE, base + 1, tag=tag).status_code == 200
    # In the test's transaction, a savepoint is around the save.
    of_django = ("django_session", "SAVEPOINT")
    ours = [q["sql"] for q in queries if not any(o in q["sql"] for o in of_django)]
    assert ["INSERT INTO survey_response" in sql for sql in ours] == [True]


def test_the_outcome_of_a_save_is_counted(browser, maya, lose):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    tag = tag_of(maya)
    assert browser.save(1, FIRST_PAGE, base, tag=tag).outcome == "saved"
    assert browser.save(1, FIRST_PAGE, base, tag=tag).outcome == "retried"
    assert browser.save(1, FIRST_PAGE, base - 1, tag=tag).outcome == "superseded"
    lose(browser)
    assert browser.save(1, FIRST_PAGE, base + 1, tag=tag).outcome == "resumed"


def test_an_unknown_administration_is_not_cached(
    administration, django_assert_num_queries
):
    with django_assert_num_queries(2):
        assert resume_cookie.published_digest(10**9) is None
        assert resume_cookie.published_digest(10**9) is None
    with django_assert_num_queries(1):
        for _ in range(3):
            assert (
                resume_cookie.published_digest(administration.pk)
                == administration.published_id
            )


# Invalid cookies


def resumes(browser, value: str) -> bool:
    browser.cookies.clear()
    browser.cookies[resume_cookie.COOKIE] = value
    return not is_asked_for_a_code(browser)


def signed(*numbers: int, **changes: str) -> str:
    text = ".".join(map(str, numbers))
    return Signer(**{"salt": resume_cookie.SALT, **changes}).sign(text)


@pytest.fixture
def numbers(maya):
    return [maya.pk, maya.administration_id, 1, int(time.time()) + 60]


def test_a_signed_cookie_resumes(browser, numbers):
    assert resumes(browser, signed(*numbers))


@pytest.mark.parametrize("place", range(4))
def test_a_changed_number_does_not_resume(browser, numbers, noor, place):
    text, _, signature = signed(*numbers).rpartition(":")
    numbers[place] = noor.pk if place == 0 else numbers[place] + 1
    assert not resumes(browser, ".".join(map(str, numbers)) + f":{signature}")


def test_part_of_a_cookie_does_not_resume(browser, numbers):
    whole = signed(*numbers)
    assert not any(resumes(browser, whole[:n]) for n in range(0, len(whole), 3))


def test_a_cookie_of_another_installation_does_not_resume(browser, numbers):
    assert not resumes(browser, signed(*numbers, key="another installation's" * 3))


def test_a_value_signed_for_another_purpose_does_not_resume(browser, numbers):
    assert not resumes(browser, signed(*numbers, salt="survey.taking.reviewed"))


def test_an_expired_cookie_does_not_resume(browser, numbers):
    assert resumes(browser, signed(*numbers[:3], int(time.time()) + 2))
    assert not resumes(browser, signed(*numbers[:3], int(time.time())))


@pytest.mark.parametrize(
    "value", ["", "x", ":", "1.1.1.1", "\0", "é" * 3000, "1." * 5000, "-1.1.1.9:x"]
)
def test_no_cookie_value_is_an_error(browser, maya, value):
    assert not resumes(browser, value)
    for odd in (
        "",
        "1.2",
        "1.2.3.4.5",
        "a.1.1.9",
        "-1.1.1.9999999999",
        "²1.1.1.9999999999",
    ):
        assert not resumes(browser, Signer(salt=resume_cookie.SALT).sign(odd))


# The next child at the same computer


def test_a_login_replaces_the_last_persons_cookie(
    browser, maya, noor, administration, without_session
):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    browser.save(1, FIRST_PAGE, base)
    browser.log_in(noor)
    without_session(browser)

    assert browser.bootstrap()["tag"] == tag_of(noor)
    assert browser.bootstrap()["answers"] == {}
    # Maya's tab is still open.
    reply = browser.save(1, FIRST_PAGE, base + 1, tag=tag_of(maya))
    assert (reply.status_code, reply.json()["error"]) == (403, "person")


def test_without_a_new_cookie_noor_would_see_mayas_answers(
    browser, maya, noor, monkeypatch, lose
):
    browser.log_in(maya)
    browser.save(1, FIRST_PAGE, browser.bootstrap()["revision"])
    monkeypatch.setattr(resume_cookie, "set_resume_cookie", lambda *args: None)
    monkeypatch.setattr(resume_cookie, "delete_resume_cookie", lambda response: None)
    monkeypatch.setattr(session, "was_given_up", lambda token: False)
    browser.log_in(noor)
    lose(browser)
    assert browser.bootstrap()["answers"]["why_art"] == "colours"


@pytest.fixture(params=["a wrong code", "no sessions", "no database"])
def fail_to_log_in(request, monkeypatch, take_away):
    def fail(browser, respondent):
        code = code_of(respondent)
        if request.param == "a wrong code":
            code = code[:-1]
        elif request.param == "no sessions":
            take_away()
        else:

            def away(typed, device):
                raise OperationalError("the database system is starting up")

            monkeypatch.setattr(login_session, "log_in_respondent", away)
        reply = browser.post("/", {"code": code})
        assert reply.status_code in (422, 503)

    return fail


def test_a_login_that_fails_leaves_nothing_to_resume(
    browser, maya, noor, fail_to_log_in, take_away
):
    browser.log_in(maya)
    fail_to_log_in(browser, noor)
    take_away()
    assert is_asked_for_a_code(browser)


def test_with_the_old_cookie_left_noor_would_be_maya(
    browser, maya, noor, fail_to_log_in, take_away, monkeypatch
):
    browser.log_in(maya)
    monkeypatch.setattr(resume_cookie, "delete_resume_cookie", lambda response: None)
    monkeypatch.setattr(session, "was_given_up", lambda token: False)
    fail_to_log_in(browser, noor)
    take_away()
    assert browser.bootstrap()["tag"] == tag_of(maya)


def test_a_readable_session_wins_over_the_cookie(browser, maya, noor):
    browser.log_in(maya)
    of_maya = browser.cookies[resume_cookie.COOKIE].value
    browser.log_in(noor)
    browser.cookies[resume_cookie.COOKIE] = of_maya
    assert browser.bootstrap()["tag"] == tag_of(noor)


@pytest.mark.parametrize("visited_before", [True, False])
@pytest.mark.parametrize("headers", [{}, JSON])
def test_a_login_without_redis_gets_503_and_leaves_no_cookie(
    maya, noor, take_away, headers, visited_before
):
    browser = Browser()
    if visited_before:
        browser.log_in(noor)
    take_away()

    reply = browser.post("/", {"code": code_of(maya)}, headers=headers)

    assert reply.status_code == 503
    assert 1 <= int(reply["Retry-After"]) <= 5
    if headers:
        assert reply.json() == {"error": "sessions"}
    else:
        assert b"Many classes are starting" in reply.content
    for name in ("sessionid", resume_cookie.COOKIE):
        assert reply.cookies[name].value == ""
        assert reply.cookies[name]["max-age"] == 0
    assert reply.cookies[resume_cookie.COOKIE]["path"] == "/take/"


@pytest.fixture(params=["delete", "save"])
def fail_to_start(request, settings, monkeypatch):
    """Log in while Redis fails, at the first or the last step."""

    def begin(browser, respondent):
        def away(self, *args, **kwargs):
            raise ConnectionError

        with monkeypatch.context() as patch:
            patch.setattr(store(settings), request.param, away)
            reply = browser.post("/", {"code": code_of(respondent)}, headers=JSON)
        assert reply.status_code == 503

    return begin


def shown_tag(browser) -> str | None:
    """Return the tag of the respondent whose answers this browser shows."""
    return browser.get("/take/", headers=JSON).json().get("tag")


def test_the_last_childs_session_does_not_return_with_redis(
    browser, maya, noor, fail_to_start
):
    browser.log_in(maya)
    fail_to_start(browser, noor)
    assert shown_tag(browser) is None
    assert shown_tag(browser.log_in(noor)) == tag_of(noor)


def test_with_the_session_cookie_left_the_last_session_would_return(
    browser, maya, noor, settings, monkeypatch
):

    def away(self, *args, **kwargs):
        raise ConnectionError

    browser.log_in(maya)
    monkeypatch.setattr(resume_cookie, "delete_session_cookie", lambda response: None)
    with monkeypatch.context() as patch:
        patch.setattr(store(settings), "delete", away)
        browser.post("/", {"code": code_of(noor)}, headers=JSON)
    assert shown_tag(browser) == tag_of(maya)


@pytest.mark.parametrize("headers", [{}, JSON])
def test_a_wrong_code_ends_the_last_login(browser, maya, noor, headers):
    browser.log_in(maya)
    reply = browser.post("/", {"code": code_of(noor)[:-1]}, headers=headers)
    assert reply.status_code == 422
    assert shown_tag(browser) is None


def test_a_running_tab_logs_in_again_after_a_mistyped_code(maya, lose):
    tab = Browser(enforce_csrf_checks=True)

    def log_in(code):
        token = tab.get("/", headers=JSON).json()["csrf"]
        return tab.post("/", {"code": code}, headers={**JSON, "X-CSRFToken": token})

    assert log_in(code_of(maya)).status_code == 200
    base = tab.bootstrap()["revision"]
    lose(tab)
    assert log_in(code_of(maya)[:-1]).status_code == 422
    assert tab.save(1, FIRST_PAGE, base, tag=tag_of(maya)).status_code == 401
    assert log_in(code_of(maya)).json()["tag"] == tag_of(maya)
    assert tab.save(1, FIRST_PAGE, base, tag=tag_of(maya)).status_code == 200


def test_staff_keep_a_session_that_returns_with_redis(rf):
    """Their pages get 503 too, but are no respondent's login."""
    middleware = SessionMiddleware(lambda request: None)
    request = rf.post("/console/")
    reply = middleware.process_exception(request, ConnectionError())
    assert (reply.status_code, dict(reply.cookies)) == (503, {})


# A login whose reply is lost


@pytest.mark.parametrize("headers", [{}, JSON])
def test_a_login_whose_reply_is_lost_leaves_no_resume_cookie(
    browser, maya, noor, headers
):
    browser.log_in(maya)
    lose_the_reply(browser, noor, headers)
    assert shown_tag(browser) is None


def lose_the_reply(browser, respondent, headers) -> None:
    browser.get("/", headers=headers)
    before = copy.deepcopy(browser.cookies)
    browser.post("/", {"code": code_of(respondent)}, headers=headers)
    browser.cookies = before


def test_with_the_cookie_left_by_the_login_page_maya_would_return(
    browser, maya, noor, monkeypatch
):
    browser.log_in(maya)
    monkeypatch.setattr(resume_cookie, "delete_resume_cookie", lambda response: None)
    monkeypatch.setattr(session, "was_given_up", lambda token: False)
    lose_the_reply(browser, noor, JSON)
    assert shown_tag(browser) == tag_of(maya)


# Sessions of another release


def rewrite(browser, change) -> None:
    stored = browser.session
    stored["taking"] = change(dict(stored["taking"]))
    stored.save()


def test_a_session_with_an_unknown_field_is_read(browser, maya):
    browser.log_in(maya)
    rewrite(browser, lambda fields: {**fields, "seat_row": 7})
    del browser.cookies[resume_cookie.COOKIE]
    assert shown_tag(browser) == tag_of(maya)


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: {name: fields[name] for name in fields if name != "digest"},
        lambda fields: list(fields),
        lambda fields: "a text",
    ],
)
def test_a_session_with_a_missing_field_is_ignored(browser, maya, change):
    browser.log_in(maya)
    rewrite(browser, change)
    assert shown_tag(browser) == tag_of(maya)
    del browser.cookies[resume_cookie.COOKIE]
    assert is_asked_for_a_code(browser)


def test_without_parsing_an_unknown_field_would_be_an_error(browser, maya, monkeypatch):
    browser.log_in(maya)
    monkeypatch.setattr(
        session,
        "parse_stored_session",
        lambda stored: session.RespondentSession(**stored),
    )
    rewrite(browser, lambda fields: {**fields, "seat_row": 7})
    with pytest.raises(TypeError, match="seat_row"):
        shown_tag(browser)


def test_redis_that_goes_away_during_a_login_gives_503(maya, settings, monkeypatch):
    def save(self, must_create=False):
        raise ConnectionError

    monkeypatch.setattr(store(settings), "save", save)
    browser = Browser(raise_request_exception=False)
    reply = browser.post("/", {"code": code_of(maya)})
    assert reply.status_code == 503
    assert not reply.cookies["sessionid"].value


# Finished


@pytest.fixture
def at_the_end(browser, maya):
    browser.log_in(maya)
    save_all(browser, maya, browser.bootstrap()["revision"])
    return browser


def finish(browser):
    seen = browser.get("/take/complete/").context["reviewed"]
    reply = browser.post("/take/complete/", {"reviewed": seen})
    assert (reply.status_code, reply["Location"]) == (302, "/take/complete/")
    return reply


def test_finishing_deletes_the_cookie(at_the_end, maya, lose):
    finish(at_the_end)
    assert at_the_end.cookies[resume_cookie.COOKIE].value == ""
    assert at_the_end.get("/take/complete/").context["finished_at"]
    # The session ends a few minutes later, and does not return.
    lose(at_the_end)
    assert at_the_end.get("/take/complete/")["Location"] == "/"


def test_the_thanks_end_even_if_the_finishing_reply_was_lost(at_the_end, maya, lose):
    cookie = at_the_end.cookies[resume_cookie.COOKIE].value
    finish(at_the_end)
    at_the_end.cookies[resume_cookie.COOKIE] = cookie
    lose(at_the_end)
    assert at_the_end.get("/take/complete/").context["finished_at"]

    finish_long_ago(maya)
    assert at_the_end.get("/take/complete/")["Location"] == "/"
    assert is_asked_for_a_code(at_the_end)


def finish_long_ago(respondent) -> None:
    moment = timezone.now() - timedelta(seconds=session.SECONDS_AFTER_FINISHING + 1)
    Respondent.objects.filter(pk=respondent.pk).update(
        started_at=moment, completed_at=moment
    )
    DeviceLogin.objects.filter(respondent=respondent).update(first_at=moment)


@pytest.mark.parametrize("is_sent_again", [True, False])
def test_a_repeated_finish_shortens_the_session(
    at_the_end, maya, is_sent_again, monkeypatch
):
    """Its first reply was lost, or the connection just after the commit.

    Without a repeated finish the session stays for hours.
    """
    seen = at_the_end.get("/take/complete/").context["reviewed"]
    with monkeypatch.context() as patch:

        def fail(*args):
            raise OperationalError("the pool was restarted")

        patch.setattr(views, "shorten_session", fail)
        reply = at_the_end.post("/take/complete/", {"reviewed": seen})
    assert reply.status_code == 503
    maya.refresh_from_db()
    assert maya.completed_at is not None

    if is_sent_again:
        reply = at_the_end.post("/take/complete/", {"reviewed": seen})
        assert reply.context["finished_at"] == maya.completed_at
    ends_in = at_the_end.session.get_expiry_age()
    assert (ends_in <= session.SECONDS_AFTER_FINISHING) is is_sent_again
    assert (at_the_end.cookies[resume_cookie.COOKIE].value == "") is is_sent_again


def test_without_the_limit_the_thanks_would_stay_for_hours(
    at_the_end, maya, lose, monkeypatch
):
    monkeypatch.setattr(session, "SECONDS_AFTER_FINISHING", 4 * 60 * 60)
    cookie = at_the_end.cookies[resume_cookie.COOKIE].value
    finish(at_the_end)
    at_the_end.cookies[resume_cookie.COOKIE] = cookie
    lose(at_the_end)
    moment = timezone.now() - timedelta(minutes=30)
    Respondent.objects.filter(pk=maya.pk).update(completed_at=moment)
    assert at_the_end.get("/take/complete/").context["finished_at"]


def test_finishing_without_redis_deletes_the_session_cookie(
    at_the_end, maya, settings, monkeypatch
):
    """Redis still has the session, and may return within four hours."""
    key = at_the_end.cookies["sessionid"].value
    with monkeypatch.context() as patch:

        def away(*args, **kwargs):
            raise ConnectionError

        patch.setattr(store(settings), "load", away)
        patch.setattr(store(settings), "save", away)
        finish(at_the_end)
        assert at_the_end.cookies["sessionid"].value == ""
        assert at_the_end.get("/take/complete/").context["finished_at"]
    assert store(settings)(key).get("taking") is not None

    finish_long_ago(maya)
    assert at_the_end.get("/take/complete/")["Location"] == "/"


def test_finishing_succeeds_when_redis_fails_in_between(
    at_the_end, maya, settings, monkeypatch
):
    def away(*args, **kwargs):
        raise ConnectionError

    seen = at_the_end.get("/take/complete/").context["reviewed"]
    monkeypatch.setattr(store(settings), "save", away)
    reply = at_the_end.post("/take/complete/", {"reviewed": seen})
    assert reply.status_code == 302
    maya.refresh_from_db()
    assert maya.completed_at is not None


def test_a_login_after_finishing_sets_no_resume_cookie(browser, maya, noor):
    browser.log_in(maya)
    browser.log_in(noor)
    finish_long_ago(maya)
    browser.log_in(maya)
    assert browser.cookies[resume_cookie.COOKIE].value == ""
    assert browser.get("/take/complete/").context["finished_at"]


# Respondents who may not continue


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"withdrawn_at": "now"}, 409, "withdrawn"),
        (
            {"started_at": "now", "completed_at": "now"},
            409,
            "finished",
        ),
        ({"issue": 2}, 401, "reissued"),
    ],
)
def test_a_resumed_save_that_is_refused_names_the_reason(
    browser, maya, lose, change, status, error
):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    lose(browser)
    # The parameters were made when the tests were collected, minutes ago.
    now = timezone.now()
    change = {name: now if value == "now" else value for name, value in change.items()}
    Respondent.objects.filter(pk=maya.pk).update(**change)
    saved = browser.save(1, FIRST_PAGE, base, tag=tag_of(maya))
    shell = browser.get("/take/", headers=JSON)
    for reply in (saved, shell):
        assert (reply.status_code, reply.json()["error"]) == (status, error)
    assert Response.objects.count() == 0


def test_a_reissued_code_ends_the_cookie(browser, maya, lose):
    browser.log_in(maya)
    old = browser.cookies[resume_cookie.COOKIE].value
    new = reissue(respondent=maya)
    lose(browser)
    assert browser.get("/take/")["Location"] == "/"
    browser.post("/", {"code": new})
    assert browser.bootstrap()["tag"] == tag_of(maya)
    assert not resumes_by(browser, old)


def resumes_by(browser, value: str) -> bool:
    browser.cookies.clear()
    browser.cookies[resume_cookie.COOKIE] = value
    return browser.get("/take/", headers=JSON).status_code == 200


def test_a_resumed_session_ends_with_the_window(browser, maya, lose):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    lose(browser)
    Administration.objects.update(closes_at=timezone.now() - timedelta(minutes=11))
    reply = browser.save(1, FIRST_PAGE, base, tag=tag_of(maya))
    assert (reply.status_code, reply.json()["error"]) == (409, "closed")


@pytest.fixture
def copied(browser, maya):
    """A copy of Maya's cookie in another browser."""
    browser.log_in(maya)
    thief = Browser()
    thief.cookies[resume_cookie.COOKIE] = browser.cookies[resume_cookie.COOKIE].value
    return thief


def test_a_copied_cookie_ends_with_the_next_login_at_the_computer(
    browser, maya, copied, noor
):
    # The twin: as long as Maya sits there, the copy works.
    assert copied.get("/take/", headers=JSON).status_code == 200
    browser.log_in(noor)
    assert is_asked_for_a_code(copied)
    assert copied.save(1, FIRST_PAGE, 10**18, tag=tag_of(maya)).status_code == 401
    assert not Response.objects.filter(respondent_id=maya.pk).exists()


def test_a_copied_cookie_ends_with_a_failed_login_at_the_computer(browser, copied):
    browser.post("/", {"code": "ABCD-EFGH-KLMN"})
    assert is_asked_for_a_code(copied)


def test_a_copied_cookie_ends_too_where_another_device_has_ended_the_session(
    browser, maya, copied, noor
):
    Browser().log_in(maya)
    assert copied.get("/take/", headers=JSON).status_code == 200
    browser.log_in(noor)
    assert is_asked_for_a_code(copied)


@pytest.mark.parametrize("knows_when", [True, False])
def test_a_copied_cookie_ends_also_by_the_clock_of_a_host_that_is_behind(
    browser, noor, copied, monkeypatch, knows_when
):
    """The twin: the host that does not know when Maya logged in lets it work."""
    if not knows_when:
        parse = session.parse_stored_session
        monkeypatch.setattr(
            session,
            "parse_stored_session",
            lambda stored: (parsed := parse(stored)) and replace(parsed, written_at=0),
        )
    with monkeypatch.context() as behind:
        an_hour_ago = time.time() - 3600
        behind.setattr(resume_cookie.time, "time", lambda: an_hour_ago)
        # Browsers don't send it to the login page.
        del browser.cookies[resume_cookie.COOKIE]
        browser.log_in(noor)
    assert is_asked_for_a_code(copied) is knows_when


def test_the_same_person_may_log_in_again_and_keep_another_device(
    browser, maya, copied
):
    browser.log_in(maya)
    assert copied.get("/take/", headers=JSON).status_code == 200


def test_a_person_who_comes_back_later_has_a_valid_cookie(
    browser, maya, copied, noor, lose, monkeypatch
):
    browser.log_in(noor)
    later = time.time() + 60
    monkeypatch.setattr(resume_cookie.time, "time", lambda: later)
    browser.log_in(maya)
    lose(browser)
    assert browser.get("/take/", headers=JSON).status_code == 200
    assert is_asked_for_a_code(copied)


def test_an_open_tab_saves_after_its_cookies_were_renamed(browser, maya, settings):
    """The deploy that gave the cookies their prefix."""
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    settings.SESSION_COOKIE_NAME = "__Host-sessionid"
    settings.CSRF_COOKIE_NAME = "__Host-csrftoken"
    assert browser.save(1, FIRST_PAGE, base + 1).status_code == 200
    assert browser.bootstrap()["answers"]["age"] == "12"
