"""Plain forms beside other tabs, devices and people, and when servers fail."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import signing
from django.test import Client

from survey.models import Administration, Response
from survey.taking.storage import TABS
from survey.taking.unavailable import ServiceUnavailable
from survey.taking.without_javascript import forms
from survey.taking.without_javascript import tab as plain_tab
from survey.tests.conftest import Browser, code_of
from survey.tests.taking.test_plain_forms import FIRST, PlainPage, rows, start

pytestmark = pytest.mark.django_db


def open_page(browser: Client, n: int) -> PlainPage:
    return PlainPage(browser, browser.get(f"/take/plain/{n}/"))


def test_a_stale_page_replaces_nothing_until_the_person_chooses(browser, noor):
    start(browser.log_in(noor)).send(**FIRST).send(**FIRST, why_art="colours")
    stale = open_page(browser, 1)
    open_page(browser, 1).send(**FIRST | {"age": "13"}, why_art="lines", comment="new")
    page = stale.send(**FIRST | {"age": "14"}, why_art="colours")
    assert page.response.status_code == 409
    assert rows(noor)["age"] == ("answered", "13")
    # What was not changed here is taken from the other tab.
    assert 'value="lines"' in page.html and 'value="new"' in page.html
    assert 'value="14"' in page.html
    assert "Saved on the other device or in the other tab: 13" in page.html
    page.send(**FIRST | {"age": "14"}, why_art="lines", comment="new")
    assert rows(noor)["age"] == ("answered", "14")
    assert rows(noor)["comment"] == ("answered", "new")


def test_without_the_sight_of_the_page_the_stale_one_would_win(
    browser, noor, monkeypatch
):
    """The other half of the test above: it is what the form has seen that protects."""
    page_save = forms.PageSave

    def blind(**fields):
        later = fields["revision"] + 10 * TABS
        return page_save(revision=later, answers=fields["answers"])

    start(browser.log_in(noor)).send(**FIRST, why_art="colours")
    stale = open_page(browser, 1)
    open_page(browser, 1).send(**FIRST | {"age": "13"}, why_art="lines")
    monkeypatch.setattr(forms, "PageSave", blind)
    assert stale.post(**FIRST | {"age": "14"}).status_code == 302
    assert rows(noor)["age"] == ("answered", "14")


def test_a_form_that_is_sent_twice_is_saved_once(browser, noor):
    page = start(browser.log_in(noor))
    replies = [page.post(**FIRST) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [302, 302]
    assert rows(noor)["age"] == ("answered", "12")


def test_another_persons_form_is_refused_and_not_saved(browser, maya, noor):
    page = start(browser.log_in(noor))
    browser.log_in(maya)
    reply = page.post(**FIRST)
    assert reply.status_code == 403
    assert "Someone else is using this computer" in reply.content.decode()
    assert rows(maya) == rows(noor) == {}
    assert browser.get(f"/take/plain/1/?for={page.hidden['for']}").status_code == 403


def test_a_form_needs_its_token(noor):
    browser = Browser(enforce_csrf_checks=True)
    token = browser.get("/") and browser.cookies["csrftoken"].value
    browser.post("/", {"code": code_of(noor), "csrfmiddlewaretoken": token})
    page = start(browser)
    hidden = page.hidden
    del hidden["csrfmiddlewaretoken"]
    assert browser.post("/take/plain/1/", hidden | {"go": "next"}).status_code == 403
    assert page.post(**FIRST).status_code == 302


def of_another_release(shown: PlainPage, /, **changes: object) -> str:
    """Return the token of a page with other fields; None takes one away."""
    fields = signing.loads(shown.hidden["form"], salt=plain_tab.FORM_SALT) | changes
    fields = {name: value for name, value in fields.items() if value is not None}
    return signing.dumps(fields, salt=plain_tab.FORM_SALT)


def send_fields(page: PlainPage, fields: dict[str, Any]) -> PlainPage:
    """Send a page with changed hidden fields; None takes one away."""
    names = page.hidden
    answers = {
        name if name in names else f"item-{name}": value
        for name, value in fields.items()
    }
    data = names | answers | {"go": "next"}
    data = {name: value for name, value in data.items() if value is not None}
    return PlainPage(page.browser, page.browser.post(page.address, data))


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": "unknown"},
        {"seen": None},
        {"before": None, "digests": {}},
        {"before": ["safe"]},
        {"shown": "1"},
    ],
)
def test_a_form_of_another_release_comes_back_with_what_was_typed(
    browser, noor, changes
):
    page = start(browser.log_in(noor))
    typed = FIRST | {"form": of_another_release(page, **changes), "comment": "<b>"}
    shown = send_fields(page, typed | {"age": "1x"})
    assert shown.response.status_code == 409
    assert "Your answers on this page are not saved yet" in shown.html
    assert 'value="1x"' in shown.html and "&lt;b&gt;" in shown.html
    assert shown.html.count(" checked") == 3
    assert "Saved before" not in shown.html
    assert rows(noor) == {}
    shown.send(**FIRST, comment="<b>", why_art="colours")
    assert rows(noor)["comment"] == ("answered", "<b>")


@pytest.mark.parametrize(
    "fields",
    [{"form": None}, {"form": ""}, {"form": "x:y:z"}, {"form": None, "plain": None}],
)
def test_without_a_token_nothing_is_saved_or_lost(browser, noor, fields):
    start(browser.log_in(noor)).send(**FIRST).send(**FIRST, why_art="colours")
    page = open_page(browser, 1)
    shown = send_fields(page, FIRST | {"age": "14", "why_art": ""} | fields)
    assert rows(noor)["age"] == ("answered", "12")
    assert 'value="14"' in shown.html and "Saved before: 12" in shown.html
    shown.send(**FIRST | {"age": "14"}, why_art="colours")
    assert rows(noor)["age"] == ("answered", "14")


def test_a_form_of_another_release_replaces_no_newer_answer(browser, noor):
    start(browser.log_in(noor)).send(**FIRST).send(**FIRST, why_art="colours")
    stale = open_page(browser, 1)
    open_page(browser, 1).send(**FIRST | {"age": "13"}, why_art="lines")
    token = of_another_release(stale, colour="unknown")
    shown = send_fields(stale, FIRST | {"age": "14", "form": token})
    assert rows(noor)["age"] == ("answered", "13")
    assert "Saved before: 13" in shown.html
    # Answered once more elsewhere, before the person goes on.
    open_page(browser, 1).send(**FIRST | {"age": "15"}, why_art="lines")
    assert shown.send(**FIRST | {"age": "14"}).response.status_code == 409
    assert rows(noor)["age"] == ("answered", "15")


def test_a_form_of_another_page_shows_its_answers_nowhere(browser, noor):
    page = start(browser.log_in(noor))
    shown = send_fields(
        page, FIRST | {"form": of_another_release(page, page=2), "comment": "other"}
    )
    assert shown.response.status_code == 302
    assert rows(noor) == {}


def test_a_tab_of_another_release_is_opened_anew(browser, noor):
    page = start(browser.log_in(noor))
    tab = plain_tab._signer(noor.pk).sign("v2-17")
    send_fields(page, FIRST | {"plain": tab})
    assert rows(noor)["age"] == ("answered", "12")


def test_a_new_device_shows_only_what_was_answered_on_it(browser, noor):
    start(browser.log_in(noor)).send(**FIRST, why_art="secret", comment="secret")
    device = Browser().log_in(noor)
    assert start(device).address == "/take/plain/2/"
    page = open_page(device, 1)
    assert "Answered earlier" in page.html
    assert " checked" not in page.html
    assert 'value="12"' not in page.html
    page = page.send(age="18")
    assert page.address == "/take/plain/2/"
    # Blank answers replace none, and the pages depend on what was answered here.
    assert rows(noor)["safe"] == ("answered", "3")
    assert rows(noor)["age"] == ("answered", "18")
    assert page.has("teen")
    page = page.send("back")
    assert 'value="18"' in page.html and "secret" not in page.html


@pytest.mark.parametrize("is_older", [False, True])
def test_a_new_tab_of_a_new_device_knows_no_answer_of_before(
    browser, noor, monkeypatch, is_older
):
    """Not even if its bits are those of the tab that answered.

    If it were as old as that tab, it would know them.
    """
    start(browser.log_in(noor)).send(**FIRST)
    answered = Response.objects.values_list("revision", flat=True)[0]

    def open_tab(session, saved):
        bits = (answered - saved.revision) % TABS
        base = answered if is_older else saved.revision + bits
        return plain_tab.PlainTab(base, session.respondent_id)

    monkeypatch.setattr(forms, "open_tab", open_tab)
    page = open_page(Browser().log_in(noor), 1)
    assert (" checked" in page.html) is is_older


def test_a_tab_of_another_person_shows_nothing(browser, maya, noor):
    tab = start(Browser().log_in(maya)).hidden["plain"]
    Administration.objects.update(replays_answers=False)
    browser.log_in(noor)
    page = PlainPage(browser, browser.get("/take/plain/1/", {"plain": tab}))
    assert page.hidden["plain"] != tab


def test_answers_come_back_when_the_session_is_over(browser, noor):
    page = start(browser.log_in(noor))
    del browser.cookies["sessionid"], browser.cookies["resume"]
    answered = PlainPage(browser, page.post(**FIRST))
    assert answered.response.status_code == 401
    assert rows(noor) == {}
    fields = {**answered.hidden, "item-subjects": FIRST["subjects"]}
    wrong = browser.post("/take/plain/1/", {**fields, "code": "AAAA"})
    assert wrong.status_code == 401 and "A code has 12" in wrong.content.decode()
    assert rows(noor) == {}
    reply = browser.post("/take/plain/1/", {**fields, "code": code_of(noor)})
    assert reply.status_code == 302
    assert rows(noor)["age"] == ("answered", "12")
    assert browser.get(reply["Location"]).status_code == 200


def test_answers_come_back_when_a_server_is_down(browser, noor, monkeypatch):
    page = start(browser.log_in(noor))

    def fail(*args):
        raise ServiceUnavailable("database")

    with monkeypatch.context() as patch:
        patch.setattr(forms, "process_page", fail)
        answered = PlainPage(browser, page.post(**FIRST))
    assert answered.response.status_code == 503
    assert "Refresh" not in answered.response
    answered.send(subjects=FIRST["subjects"])
    assert rows(noor)["age"] == ("answered", "12")


def test_a_person_who_has_finished_meanwhile_is_told(browser, noor):
    page = start(browser.log_in(noor))
    device = Browser().log_in(noor)
    review = start(device).send(safe="1").send().send()
    assert "Thank you" in review.send().html
    reply = page.post(**FIRST)
    assert reply.status_code == 409
    assert "already finished" in reply.content.decode()


def test_the_review_leads_to_plain_pages_and_back(browser, noor):
    review = start(browser.log_in(noor)).send(safe="1").send().send()
    assert review.address == "/take/complete/"
    assert "#page-" not in review.html
    link = review.html.split("/take/plain/2/", 1)[1].split('"')[0].replace("&amp;", "&")
    page = PlainPage(browser, browser.get("/take/plain/2/" + link.split("#")[0]))
    assert "Back to the review" in page.html
    assert page.send("review", bus="15").address == "/take/complete/"
    assert rows(noor)["bus"] == ("answered", "15")


def test_stopping_saves_the_page_and_ends_the_session(browser, noor):
    page = start(browser.log_in(noor))
    stopped = page.send("stop", safe="3", age="1x")
    assert "Your answers are saved" in stopped.html
    # What is no answer can't be kept; the rest is.
    assert rows(noor) == {"safe": ("answered", "3")}
    assert browser.get("/take/plain/").status_code == 302
    assert "taking" not in browser.session


def test_the_page_with_javascript_leads_to_the_plain_one(browser, noor):
    html = browser.log_in(noor).get("/take/").content.decode()
    head = html.split("</head>")[0]
    assert '<noscript><meta http-equiv="refresh" content="0; url=/take/plain/' in head
    assert '<a href="/take/plain/?' in html.split('id="simple-version"')[1]
