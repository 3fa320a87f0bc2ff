from __future__ import annotations

import re
import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.cache import cache, caches
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from survey.fieldwork.open_codes import lookup, starts
from survey.fieldwork.open_codes.codes import (
    code_of,
    replace_open_code,
    revoke_open_code,
)
from survey.models import (
    Administration,
    DeviceLogin,
    OpenCode,
    OpenCodeSeat,
    OpenDecline,
    Respondent,
    Response,
)
from survey.people.access_codes import LENGTH, format_code
from survey.taking import session
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser, enrol
from survey.tests.open_codes.cast import (
    begin,
    begin_and_lose_reply,
    form_of,
    open_code,
)
from survey.tests.taking.test_budgets import cost

pytestmark = pytest.mark.django_db


@pytest.mark.sqlite
def test_a_parent_begins_answers_and_finishes(browser, code, lincoln):
    page = browser.get("/open/")
    assert page.status_code == 200
    page = browser.post("/open/", {"code": format_code(code_of(code)).lower()})
    text = page.content.decode()
    assert "Lincoln invites you to answer this survey." in text
    assert "Our school" in text
    # Nothing is stored before Begin.
    assert not Respondent.objects.exists()
    assert "taking" not in browser.session

    reply = begin(browser, code)
    assert (reply.status_code, reply["Location"]) == (302, "/open/begun/")
    respondent = Respondent.objects.get()
    assert respondent.school == lincoln
    assert respondent.open_code == code
    assert respondent.administration == code.administration
    assert not hasattr(respondent, "identity")
    base = browser.bootstrap()["revision"]
    for n, answers in enumerate((FIRST_PAGE, SECOND_PAGE, {"last": None}), start=1):
        assert browser.save(n, answers, base + n).status_code == 200
    review = browser.get("/take/complete/")
    browser.post("/take/complete/", {"reviewed": review.context["reviewed"]})
    respondent.refresh_from_db()
    assert respondent.completed_at is not None
    assert Response.objects.filter(respondent_id=respondent.pk).exists()


def test_answers_come_back_after_a_reload(browser, code):
    begin(browser, code)
    base = browser.bootstrap()["revision"]
    browser.save(1, FIRST_PAGE, base)
    assert browser.bootstrap()["answers"]["safe"] == "3"


def test_begin_costs_two_statements_and_one_session_write(browser, code, monkeypatch):
    begin(Browser(), code)
    form = form_of(browser, code)
    with cost(monkeypatch) as spent:
        assert browser.post("/open/begin/", form).status_code == 302
    assert [sql.split()[:3] for sql in spent.statements] == [
        ["INSERT", "INTO", "survey_respondent"],
        ["INSERT", "INTO", "survey_devicelogin"],
    ]
    assert spent.counts["session writes"] == 1
    assert spent.counts["session reads"] == 0


def test_begin_asks_the_session_store_for_no_earlier_session(
    browser, code, monkeypatch
):
    """Sent again, it has to: the first session of the person ends."""
    sessions = caches[settings.SESSION_CACHE_ALIAS]
    read: list[str] = []
    get = sessions.get

    def count(key, *arguments):
        read.append(key.partition(".")[0])
        return get(key, *arguments)

    form = form_of(browser, code)
    monkeypatch.setattr(sessions, "get", count)
    first = begin_and_lose_reply(browser, form).session.session_key
    assert "live" not in read
    browser.post("/open/begin/", form)
    assert "live" in read
    assert browser.session.session_key != first
    assert not browser.session.exists(first)


def test_the_page_of_a_code_costs_nothing_when_warm(browser, code, monkeypatch):
    form_of(Browser(), code)
    with cost(monkeypatch) as spent:
        form_of(browser, code)
    assert spent.statements == []
    assert spent.counts["session writes"] == 0


def test_another_process_reads_the_code_from_the_cache(browser, code, monkeypatch):
    form_of(Browser(), code)
    lookup.forget_open_codes()
    with cost(monkeypatch) as spent:
        form_of(browser, code)
    assert spent.statements == []
    assert spent.counts["cache reads"] == 1
    cache.clear()
    lookup.forget_open_codes()
    with cost(monkeypatch) as spent:
        form_of(browser, code)
    assert [sql.split()[0] for sql in spent.statements] == ["SELECT", "SELECT"]


def test_a_damaged_cache_entry_is_read_again(browser, code, monkeypatch):
    form_of(Browser(), code)
    lookup.forget_open_codes()
    monkeypatch.setattr(lookup.cache, "get", lambda key: {"other": "release"})
    assert form_of(browser, code)


if connection.vendor == "postgresql":

    def test_beginning_locks_and_writes_no_shared_row(browser, code):
        """A lock leaves its transaction in the row, as a write does."""
        shared = ("survey_opencode", "survey_administration", "accounts_school")

        def marks():
            with connection.cursor() as cursor:
                rows = {}
                for table in shared:
                    cursor.execute(f"SELECT xmin::text, xmax::text FROM {table}")  # noqa: S608
                    rows[table] = cursor.fetchall()
                return rows

        before = marks()
        assert begin(browser, code).status_code == 302
        assert marks() == before
        # The test sees a lock, if there is one.
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM survey_opencode FOR KEY SHARE")
        assert marks() != before


@pytest.mark.sqlite
def test_sending_the_form_twice_makes_one_respondent(browser, code):
    form = form_of(browser, code)
    begin_and_lose_reply(browser, form)
    assert browser.post("/open/begin/", form).status_code == 302
    respondent = Respondent.objects.get()
    assert browser.session["taking"]["respondent_id"] == respondent.pk
    assert DeviceLogin.objects.count() == 1


def test_a_second_click_with_the_cookies_of_the_first_reply_leads_on(code, monkeypatch):
    """Its token is the one that the first click has replaced."""
    strict = Client(enforce_csrf_checks=True)
    token = strict.get("/open/").cookies[settings.CSRF_COOKIE_NAME].value
    typed = {"code": code_of(code), "csrfmiddlewaretoken": token}
    page = strict.post("/open/", typed).content.decode()
    form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
    other_tab = strict.post("/open/", typed).content.decode()
    other_form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', other_tab))
    for _ in range(3):
        reply = strict.post("/open/begin/", form)
        assert (reply.status_code, reply["Location"]) == (302, "/open/begun/")
    assert Respondent.objects.count() == 1
    # A second tab is for another child.
    assert strict.post("/open/begin/", other_form).status_code == 403
    # And after a while, the person who goes back to the page may be another one.
    now = time.time()
    monkeypatch.setattr(session.time, "time", lambda: now + session.IMPATIENCE)
    assert strict.post("/open/begin/", form).status_code == 403


def test_a_new_page_begins_for_another_child(browser, code):
    begin(browser, code)
    begin(browser, code)
    assert Respondent.objects.count() == 2
    assert len(set(Respondent.objects.values_list("code_digest", flat=True))) == 2


def test_a_second_tab_begins_for_another_child_after_one_more_click(browser, code):
    """Its form is of the turn that has ended, and must not open the first survey."""
    first, second = form_of(browser, code), form_of(browser, code)
    assert browser.post("/open/begin/", first).status_code == 302
    late = browser.post("/open/begin/", second)
    assert late.status_code == 422
    assert "This page was used before" in late.content.decode()
    new = dict(re.findall(r'name="(\w+)" value="([^"]*)"', late.content.decode()))
    assert browser.post("/open/begin/", new).status_code == 302
    assert Respondent.objects.count() == 2


def test_two_people_who_decline_in_one_browser_are_counted(browser, code):
    for _ in range(2):
        form = form_of(browser, code)
        # Each clicks twice.
        for _ in range(2):
            assert browser.post("/open/decline/", form).status_code == 200
    assert OpenDecline.objects.count() == 2


@pytest.mark.sqlite
def test_a_form_that_was_used_before_shows_the_page_again(browser, code):
    """The next person at a shared computer may go back to it."""
    form = form_of(browser, code)
    begin_and_lose_reply(browser, form)
    Respondent.objects.update(
        started_at=timezone.now() - starts.REPEATABLE - timedelta(seconds=1)
    )
    reply = browser.post("/open/begin/", form)
    assert reply.status_code == 422
    assert "This page was used before" in reply.content.decode()
    assert Respondent.objects.count() == 1
    new = dict(re.findall(r'name="(\w+)" value="([^"]*)"', reply.content.decode()))
    assert browser.post("/open/begin/", new).status_code == 302
    assert Respondent.objects.count() == 2


@pytest.mark.sqlite
def test_a_form_that_began_a_finished_survey_does_not_open_it(browser, code):
    form = form_of(browser, code)
    begin_and_lose_reply(browser, form)
    Respondent.objects.update(completed_at=timezone.now())
    assert browser.post("/open/begin/", form).status_code == 422


def test_a_form_that_nobody_made_stores_nothing(browser, code):
    valid = form_of(browser, code)
    for form in ("", "x", "1.2.3.4", "1.2.3.4:x", "\0", "é" * 5000):
        for address in ("/open/begin/", "/open/decline/"):
            reply = browser.post(address, {**valid, "form": form})
            assert reply.status_code == 422, form[:10]
    assert not Respondent.objects.exists()
    assert not OpenDecline.objects.exists()


def test_a_form_works_only_for_its_code_and_on_its_device(
    browser, code, parents, roosevelt
):
    form = form_of(browser, code)
    foreign = code_of(open_code(parents, roosevelt))
    assert browser.post("/open/begin/", {**form, "code": foreign}).status_code == 422
    device = Browser()
    assert device.post("/open/begin/", form).status_code == 422
    form_of(device, code)
    assert device.post("/open/begin/", form).status_code == 422
    assert not Respondent.objects.exists()


def test_a_wrong_code_shows_a_message(browser, code):
    form = form_of(browser, code)
    wrong = ["", "   ", "ABC", "ABCDEFGHKLMN", "x" * 100_000, "\0" * 12, "🙂" * 12]
    for typed in wrong:
        for address in ("/open/", "/open/begin/", "/open/decline/"):
            reply = browser.post(address, {**form, "code": typed})
            assert reply.status_code == 422, typed[:12]
            assert reply.context["error"]
    assert not Respondent.objects.exists()


@pytest.mark.parametrize("language", ["", "xx", "\0", "é" * 5000, "es-MX", "../en"])
def test_no_language_is_an_error(browser, code, language):
    assert browser.get("/open/", {"language": language}).status_code == 200
    form = {**form_of(browser, code), "language": language}
    assert browser.post("/open/begin/", form).status_code == 302
    assert Respondent.objects.get().language in ("en", "es")


@pytest.mark.parametrize("address", ["/open/begin/", "/open/decline/"])
def test_a_page_that_is_loaded_again_asks_for_the_code(browser, db, address):
    assert browser.get(address)["Location"] == "/open/"


def test_begin_needs_the_token_of_the_page(code):
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/open/", {"code": code_of(code)}).status_code == 403
    assert strict.post("/open/begin/", {"code": code_of(code)}).status_code == 403


def test_a_character_that_no_code_has_is_named_and_marked(browser, code):
    typed = code_of(code)
    reply = browser.post("/open/", {"code": f"{typed[:4]}O{typed[5:]}"})
    text = reply.content.decode()
    assert reply.status_code == 422
    assert "Check character 5" in text
    assert 'data-character="4"' in text and "<mark>O</mark>" in text


def test_a_chosen_language_that_the_survey_lacks_is_said(browser, code):
    typed = code_of(code)
    for language, is_missing in (("ar", True), ("en", False)):
        reply = browser.post("/open/", {"code": typed, "language": language})
        assert ('id="language-missing" lang="ar"' in reply.text) is is_missing


def test_a_parent_begins_in_spanish(browser, code):
    page = browser.post("/open/", {"code": code_of(code), "language": "es"})
    assert "Nuestra escuela" in page.content.decode()
    begin(browser, code, language="es")
    assert Respondent.objects.get().language == "es"
    assert browser.bootstrap()["language"] == "es"


def test_the_language_of_a_code_wins_over_the_browsers(browser, parents, lincoln):
    spanish = open_code(parents, lincoln, language="es")
    page = browser.post("/open/", {"code": code_of(spanish)})
    assert page.context["survey_language"] == "es"


@pytest.mark.sqlite
def test_declining_is_counted_once_and_stores_nothing_else(browser, code, monkeypatch):
    form = form_of(browser, code)
    with cost(monkeypatch) as spent:
        page = browser.post("/open/decline/", form)
    assert page.status_code == 200
    assert "You have chosen not to take part" in page.content.decode()
    writes = [sql for sql in spent.statements if sql.startswith("INSERT")]
    assert len(writes) == len(spent.statements) == 1
    browser.post("/open/decline/", form)
    assert OpenDecline.objects.get().open_code == code
    assert not Respondent.objects.exists()
    assert not DeviceLogin.objects.exists()


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"opens_at": timedelta(hours=1)}, "is not open yet"),
        ({"closes_at": timedelta(minutes=-1)}, "closed on"),
    ],
)
@pytest.mark.parametrize("model", [OpenCode, Administration])
def test_a_code_begins_only_in_its_window(browser, code, model, change, words):
    form = form_of(browser, code)
    now = timezone.now()
    Administration.objects.update(opens_at=now - timedelta(days=9))
    model.objects.update(**{name: now + delta for name, delta in change.items()})
    # The caches do not know it yet: the statement decides.
    reply = browser.post("/open/begin/", form)
    assert reply.status_code == 422
    assert words in reply.context["error"]
    lookup.forget_open_codes()
    cache.clear()
    reply = browser.post("/open/", form)
    assert reply.status_code == 422
    assert words in reply.context["error"]
    assert not Respondent.objects.exists()


@pytest.mark.sqlite
def test_a_revoked_code_begins_nothing_at_once(browser, code):
    form = form_of(browser, code)
    revoke_open_code(code=code, by="a test")
    reply = browser.post("/open/begin/", form)
    assert reply.status_code == 422
    assert "can no longer be used" in reply.context["error"]
    assert not Respondent.objects.exists()


def test_a_revoked_code_shows_its_page_for_seconds(browser, code, monkeypatch):
    form_of(browser, code)
    revoke_open_code(code=code, by="a test")
    assert browser.post("/open/", {"code": code_of(code)}).status_code == 200
    monkeypatch.setattr(lookup, "SECONDS_IN_MEMORY", 0)
    lookup.forget_open_codes()
    cache.clear()
    assert browser.post("/open/", {"code": code_of(code)}).status_code == 422


def test_a_replaced_code_begins_nothing_and_the_new_one_does(browser, code):
    form = form_of(browser, code)
    replaced = replace_open_code(code=code, by="a test")
    assert code_of(replaced) != code_of(code)
    assert browser.post("/open/begin/", form).status_code == 422
    assert not Respondent.objects.exists()
    assert begin(browser, replaced).status_code == 302
    assert Respondent.objects.get().open_code == code


@pytest.mark.sqlite
def test_people_who_have_begun_go_on_after_their_code_was_revoked(browser, code):
    begin(browser, code)
    revoke_open_code(code=code, by="a test")
    base = browser.bootstrap()["revision"]
    assert browser.save(1, FIRST_PAGE, base).status_code == 200


@pytest.mark.sqlite
def test_a_device_begins_only_so_often_in_an_hour(browser, code, monkeypatch):
    monkeypatch.setattr(starts, "MOST_PER_DEVICE_AND_HOUR", 2)
    replies = [begin(browser, code) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [302, 302, 422]
    assert "Too many surveys" in replies[-1].context["error"]
    # Other devices at the same address begin.
    assert begin(Browser(), code).status_code == 302
    assert Respondent.objects.count() == 3


def test_a_database_that_is_down_gives_the_503_page(browser, code, monkeypatch):
    form = form_of(browser, code)

    def fail(*args):
        raise OperationalError("the database system is starting up")

    monkeypatch.setattr(starts, "_insert", fail)
    reply = browser.post("/open/begin/", form)
    assert reply.status_code == 503
    assert b"enter it once more" in reply.content
    # Another try with the same form is safe.
    monkeypatch.undo()
    assert browser.post("/open/begin/", form).status_code == 302


def test_beginning_replaces_the_session_of_the_person_before(
    browser, code, parents, lincoln
):
    maya = enrol(parents, lincoln)
    browser.log_in(maya)
    first = browser.session.session_key
    begin(browser, code)
    assert browser.session.session_key != first
    assert browser.session["taking"]["respondent_id"] != maya.pk


@pytest.mark.sqlite
def test_a_limited_code_admits_as_many_as_it_has_seats(parents, lincoln, monkeypatch):
    code = open_code(parents, lincoln, limit=2)
    assert OpenCodeSeat.objects.filter(open_code=code).count() == 2
    replies = [begin(Browser(), code) for _ in range(2)]
    late = Browser()
    # Where the code is typed, which reads what the state shows.
    late.get("/open/")
    form = form_of(late, code)
    with cost(monkeypatch) as spent:
        replies.append(late.post("/open/begin/", form))
    assert [reply.status_code for reply in replies] == [302, 302, 422]
    assert "All the places for this code are taken" in replies[-1].context["error"]
    assert "taking" not in late.session
    assert [sql.split()[0] for sql in spent.statements] == ["INSERT", "UPDATE"]
    assert Respondent.objects.count() == 2
    assert OpenCodeSeat.objects.filter(respondent=None).count() == 0


@pytest.mark.sqlite
def test_a_form_that_is_sent_twice_takes_one_seat(browser, parents, lincoln):
    code = open_code(parents, lincoln, limit=2)
    form = form_of(browser, code)
    begin_and_lose_reply(browser, form)
    assert browser.post("/open/begin/", form).status_code == 302
    assert OpenCodeSeat.objects.filter(respondent=None).count() == 1


def test_an_open_code_is_no_personal_code(browser, code):
    assert len(code_of(code)) == LENGTH
    assert browser.post("/", {"code": code_of(code)}).status_code == 422
