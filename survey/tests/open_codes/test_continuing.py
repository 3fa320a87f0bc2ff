"""The personal code, another child, and a survey that was left unfinished."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from survey.fieldwork.open_codes.codes import code_of
from survey.models import Respondent
from survey.people.access_codes import format_code
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser, enrol
from survey.tests.open_codes.cast import (
    begin,
    begin_and_lose_reply,
    form_of,
    open_code,
)
from survey.tests.taking.test_budgets import cost

pytestmark = pytest.mark.django_db
CODE = re.compile(r"\b[A-Z2-9]{4}-[A-Z2-9]{4}-[A-Z2-9]{4}\b")


def finish(browser: Browser) -> str:
    """Answer and finish; return the page that says thank you."""
    base = browser.bootstrap()["revision"]
    for n, answers in enumerate((FIRST_PAGE, SECOND_PAGE, {"last": None}), start=1):
        assert browser.save(n, answers, base + n).status_code == 200
    review = browser.get("/take/complete/")
    browser.post("/take/complete/", {"reviewed": review.context["reviewed"]})
    return browser.get("/take/complete/").content.decode()


def test_a_parent_continues_on_a_phone_and_answers_for_two_children(browser, code):
    begin(browser, code)
    page = browser.get("/open/begun/").content.decode()
    [personal] = CODE.findall(page)
    phone = Browser()
    assert phone.post("/", {"code": personal})["Location"] == "/take/"
    base = phone.bootstrap()["revision"]
    assert phone.save(1, FIRST_PAGE, base).status_code == 200

    child = Browser()
    begin(child, code)
    thanks = finish(child)
    assert CODE.findall(thanks) == CODE.findall(
        child.get("/take/complete/").content.decode()
    )
    assert "Answer for another child" in thanks
    [form] = re.findall(r'<form method="post" action="/open/">.*?</form>', thanks, re.S)
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    assert sent["code"] == code_of(code)
    # It is finished, and so not offered again.
    reply = child.post("/open/", sent)
    assert "Continue that survey" not in reply.content.decode()
    assert begin(child, code).status_code == 302
    assert Respondent.objects.count() == 3


def test_the_personal_code_stays_the_same_when_a_form_is_sent_twice(browser, code):
    form = form_of(browser, code)
    lost = begin_and_lose_reply(browser, form)
    first = CODE.findall(lost.get("/open/begun/").content.decode())
    browser.post("/open/begin/", form)
    assert CODE.findall(browser.get("/open/begun/").content.decode()) == first


def test_showing_the_personal_code_costs_a_session_read(browser, code, monkeypatch):
    begin(browser, code)
    with cost(monkeypatch) as spent:
        assert browser.get("/open/begun/").status_code == 200
    assert (spent.statements, spent.counts["session reads"]) == ([], 1)


def test_nobody_sees_a_personal_code_without_a_start(browser, code, parents, lincoln):
    assert browser.get("/open/begun/")["Location"] == "/open/"
    browser.log_in(enrol(parents, lincoln))
    assert browser.get("/open/begun/")["Location"] == "/take/"


def test_an_unfinished_survey_is_offered_first(browser, code, monkeypatch):
    begin(browser, code)
    with cost(monkeypatch) as spent:
        page = browser.post("/open/", {"code": code_of(code)})
    assert len(spent.statements) == 1
    text = page.content.decode()
    assert text.index("Continue that survey") < text.index("Begin</button>")
    [address] = re.findall(r'href="(/take/\?for=\w+)"', text)
    assert browser.get(address).status_code == 200
    # Not on another device, nor once it is over.
    reply = Browser().post("/open/", {"code": code_of(code)})
    assert b"Continue that survey" not in reply.content
    Respondent.objects.update(withdrawn_at=timezone.now())
    gone = browser.post("/open/", {"code": code_of(code)})
    assert b"Continue that survey" not in gone.content


def test_an_unfinished_survey_of_another_code_is_not_offered(
    browser, code, parents, roosevelt
):
    begin(browser, code)
    typed = code_of(open_code(parents, roosevelt))
    page = browser.post("/open/", {"code": typed})
    assert b"Continue that survey" not in page.content


def test_a_person_with_a_card_sees_no_open_code(browser, code, parents, lincoln):
    browser.log_in(enrol(parents, lincoln))
    thanks = finish(browser)
    assert "Answer for another child" not in thanks
    assert format_code(code_of(code)) not in thanks


def test_a_tab_does_not_get_the_words_of_the_start_page(browser, code):
    begin(browser, code)
    words = browser.bootstrap()["messages"]
    assert "next" in words
    assert "start" in words
    assert "start_begin" not in words


def test_another_language_keeps_the_code_out_of_addresses(browser, code):
    html = browser.post("/open/", {"code": code_of(code)}).content.decode()
    [form] = re.findall(r'<form method="post" action="/open/">.*?</form>', html, re.S)
    buttons = re.findall(r'<button [^>]*name="language"[^>]*>', form)
    assert len(buttons) > 1
    # They belong to the form around them.
    assert not any("form=" in button for button in buttons)
    sent = {"code": code_of(code), "language": "es"}
    assert 'lang="es"' in browser.post("/open/", sent).content.decode()
