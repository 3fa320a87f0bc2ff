"""The survey as plain forms: the same rows as from the pages with JavaScript."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from survey.models import Item, Respondent, Response
from survey.tests.conftest import enrol, open_now, publish_items

pytestmark = pytest.mark.django_db

HIDDEN_FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


class PlainPage:
    """A page as a browser without scripts has it."""

    def __init__(self, browser: Client, response: Any) -> None:
        self.browser, self.response = browser, response
        self.html = response.content.decode()
        self.address = urlsplit(response.request["PATH_INFO"]).path

    @property
    def hidden(self) -> dict[str, str]:
        fields = HIDDEN_FIELD.findall(self.html)
        return {name: unescape(value) for name, value in fields}

    def has(self, name: str) -> bool:
        return f'id="item-{name}"' in self.html

    def post(self, go: str = "next", **answers: Any) -> Any:
        fields = {f"item-{name}": value for name, value in answers.items()}
        data = {**self.hidden, **fields, "go": go}
        return self.browser.post(self.address, data)

    def send(self, go: str = "next", **answers: Any) -> PlainPage:
        return follow(self.browser, self.post(go, **answers))


def follow(browser: Client, response: Any) -> PlainPage:
    while response.status_code == 302:
        response = browser.get(response["Location"])
    return PlainPage(browser, response)


def start(browser: Client) -> PlainPage:
    return follow(browser, browser.get("/take/plain/"))


def rows(respondent: Respondent) -> dict[str, tuple[str, str | None]]:
    names = dict(Item.objects.values_list("id", "name"))
    responses = Response.objects.filter(respondent_id=respondent.pk)
    return {
        names[item]: (Response.State(state).name.lower(), value)
        for item, state, value in responses.values_list("item_id", "state", "value")
    }


FIRST = {"safe": "3", "subjects": ["sport", "art"], "age": "12"}


def test_a_whole_survey_is_answered_without_javascript(browser, maya):
    page = start(browser.log_in(maya))
    assert page.address == "/take/plain/1/"
    assert not page.has("why_art")
    # Art makes a question of the same page relevant, so the page is shown again.
    page = page.send(**FIRST)
    assert page.address == "/take/plain/1/"
    assert page.has("why_art")
    assert "why_art" not in rows(maya)
    page = page.send(**FIRST, why_art="colours")
    assert page.address == "/take/plain/2/"
    assert not page.has("teen")
    page = page.send(born="2014-02-28", bus="15", promise="OK")
    assert page.address == "/take/plain/3/"
    page = page.send(last="Bye")
    assert page.address == "/take/complete/"
    assert rows(maya) == {
        "safe": ("answered", "3"),
        "subjects": ("answered", "art sport"),
        "age": ("answered", "12"),
        "why_art": ("answered", "colours"),
        "comment": ("skipped", None),
        "born": ("answered", "2014-02-28"),
        "bus": ("answered", "15"),
        # Its rule reads another page, so saving does not apply it.
        "teen": ("skipped", None),
        "promise": ("answered", "OK"),
        "last": ("answered", "Bye"),
    }
    assert page.address == "/take/complete/"
    done = page.send()
    assert "data-finished=" in done.html
    maya.refresh_from_db()
    assert maya.completed_at is not None


CHOICE = {"kind": "select_one", "option_set": "agree"}


def equal_to(name: str) -> dict[str, Any]:
    """Describe a choice whose only option is the answer of another item."""
    return CHOICE | {"choice_filter": ["=", ["col", "name"], ["$", name]]}


@pytest.fixture
def cascade(db, lincoln) -> Respondent:
    items = {
        "state": CHOICE,
        "county": equal_to("state"),
        "city": equal_to("county") | {"required": True},
    }
    administration = open_now(publish_items([items, {"last": {"kind": "text"}}]))
    return enrol(administration, lincoln, language="en")


def test_options_that_an_answer_of_the_same_page_brings_up_are_shown(browser, cascade):
    page = start(browser.log_in(cascade))
    assert "depend on another question on this page" in page.html
    # Neither skipped, nor missed as required: nothing could be chosen.
    page = page.send(state="2")
    assert page.address == "/take/plain/1/"
    assert page.response.status_code == 200
    assert "There are answers to choose from" in page.html
    assert 'name="item-county" value="2"' in page.html
    assert rows(cascade) == {"state": ("answered", "2")}
    page = page.send(state="2", county="2")
    assert page.address == "/take/plain/1/"
    page = page.send(state="2", county="2", city="2")
    assert page.address == "/take/plain/2/"
    assert [value for _, value in rows(cascade).values()] == ["2", "2", "2"]
    # Another state leaves no county of the old one.
    page = page.send("back").send(state="3", county="2", city="2")
    assert page.address == "/take/plain/1/"
    assert 'name="item-county" value="3"' in page.html
    page = page.send(state="3", county="3").send(state="3", county="3", city="3")
    assert [value for _, value in rows(cascade).values()] == ["3", "3", "3"]


def test_options_that_were_shown_are_skipped_like_any(browser, lincoln):
    items = {"state": CHOICE, "county": equal_to("state")}
    administration = open_now(publish_items([items, {"last": {"kind": "text"}}]))
    person = enrol(administration, lincoln, language="en")
    page = start(browser.log_in(person)).send(state="2").send(state="2")
    assert page.address == "/take/plain/2/"
    assert rows(person)["county"] == ("skipped", None)


NOTES = [
    {"hello": {"kind": "note"}},
    {"safe": CHOICE},
    {"detail": {"kind": "text", "relevant": ["=", ["$", "safe"], "1"]}},
    {"halfway": {"kind": "note"}},
    {"last": {"kind": "text"}},
    {"thanks": {"kind": "note"}},
]


def test_an_introduction_is_shown_until_something_is_stored(browser, lincoln):
    person = enrol(open_now(publish_items(NOTES)), lincoln, language="en")
    page = start(browser.log_in(person))
    assert page.address == "/take/plain/1/"
    assert page.send().address == "/take/plain/2/"
    assert start(browser).address == "/take/plain/1/"
    page = start(browser).send().send(safe="3")
    assert page.address == "/take/plain/4/"
    assert "Page 3 of 5" in page.html and 'max="5" value="3"' in page.html
    assert start(browser).address == "/take/plain/5/"
    page = page.send().send(last="Bye")
    assert "Page 5 of 5" in page.html
    assert page.send().address == "/take/complete/"
    assert start(browser).address == "/take/complete/"


def test_a_first_page_that_is_not_relevant_is_not_the_first(browser, lincoln):
    hidden = {"hello": {"kind": "note", "relevant": ["=", ["$", "safe"], "1"]}}
    pages = [hidden, {"teens": {"kind": "note"}}, {"safe": CHOICE}]
    person = enrol(open_now(publish_items(pages)), lincoln, language="en")
    assert start(browser.log_in(person)).address == "/take/plain/2/"


def test_problems_are_shown_at_their_items_and_the_rest_is_saved(browser, noor):
    page = start(browser.log_in(noor))
    page = page.send(subjects=["sport"], age="1x", comment="<b>")
    assert page.response.status_code == 422
    assert "2 answers need another look" in page.html
    assert (
        '<a href="#item-safe">About safe: Please answer this question.</a>' in page.html
    )
    assert 'value="1x"' in page.html
    assert "&lt;b&gt;" in page.html
    assert rows(noor) == {
        "subjects": ("answered", "sport"),
        "comment": ("answered", "<b>"),
    }
    page = page.send(subjects=["sport"], age="11", comment="<b>", safe="1")
    assert page.address == "/take/plain/2/"
    assert rows(noor)["age"] == ("answered", "11")
    assert rows(noor)["why_art"] == ("hidden", None)


def test_what_is_no_answer_never_replaces_one(browser, noor):
    page = start(browser.log_in(noor))
    page.send(**FIRST, why_art="colours")
    page = PlainPage(browser, browser.get("/take/plain/1/"))
    # Not with *Back* or another language either.
    for go in ("next", "back", "in-es", "review"):
        shown = page.send(go, **FIRST | {"age": "1x"}, why_art="colours")
        assert shown.response.status_code == 422
        assert 'value="1x"' in shown.html
        page = shown
    assert rows(noor)["age"] == ("answered", "12")


def test_a_page_that_is_left_with_back_is_asked_again(browser, noor):
    page = start(browser.log_in(noor)).send(safe="3")
    assert page.address == "/take/plain/2/"
    page = page.send("back", bus="15")
    assert page.address == "/take/plain/1/"
    # Only the answer; what is blank was not skipped.
    assert {"born", "promise"}.isdisjoint(rows(noor))
    assert rows(noor)["bus"] == ("answered", "15")
    assert start(browser).address == "/take/plain/2/"


def test_another_language_keeps_what_was_typed(browser, noor):
    page = start(browser.log_in(noor)).send("in-es", comment="hola")
    assert page.address == "/take/plain/1/"
    assert 'lang="es"' in page.html
    assert "De safe" in page.html and "Siguiente" in page.html
    assert 'value="hola"' in page.html
    assert rows(noor) == {"comment": ("answered", "hola")}


KINDS = {
    "count": {"kind": "integer"},
    "size": {"kind": "decimal"},
    "born": {"kind": "date"},
    "at": {"kind": "time"},
    "met": {"kind": "datetime"},
    "bus": {"kind": "range", "range": {"start": "0", "end": "60", "step": "5"}},
    "long": {"kind": "text", "appearance": ["multiline"]},
    "agree": {"kind": "select_one", "option_set": "agree", "appearance": ["minimal"]},
    "subjects": {"kind": "select_multiple", "option_set": "subjects"},
    "promise": {"kind": "acknowledge"},
}


def test_every_kind_of_answer_is_stored_as_it_is_elsewhere(browser, lincoln):
    person = enrol(open_now(publish_items([KINDS])), lincoln, language="en")
    page = start(browser.log_in(person)).send(
        count="\u0663",
        size="1,5",
        born=" 2014-02-28",
        at="10:42",
        met="2026-03-05 10:42",
        bus="15",
        long="one\r\ntwo",
        agree="2",
        subjects=["sport", "art"],
        promise="OK",
    )
    assert page.address == "/take/complete/"
    assert {name: value for name, (_, value) in rows(person).items()} == {
        "count": "3",
        "size": "1.5",
        "born": "2014-02-28",
        "at": "10:42",
        "met": "2026-03-05T10:42",
        "bus": "15",
        "long": "one\ntwo",
        "agree": "2",
        "subjects": "art sport",
        "promise": "OK",
    }
    shown = PlainPage(browser, browser.get("/take/plain/1/"))
    # What is shown again is what was stored, and is stored again as it is.
    assert shown.html.count(" checked") == 3
    assert shown.html.count(" selected") == 1
    assert "\none\ntwo</textarea>" in shown.html


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("count", "1.5", "whole number"),
        ("size", "much", "type a number"),
        ("born", "30.2.2014", "real date"),
        ("born", "05/01/15", "“05/01/15” can mean different days"),
        ("born", "0015-05-01", "all four digits of the year"),
        ("size", "1,200", "can mean two numbers. Please type 1200 or 1.2."),
        ("count", "1.200", "If you mean 1200,"),
        ("bus", "7", "from 0 to 60"),
        ("agree", "9", "choose one of the answers"),
        ("long", "x" * 5001, "The most is 5000"),
    ],
)
def test_answers_that_do_not_fit_are_refused(browser, lincoln, name, typed, message):
    person = enrol(open_now(publish_items([KINDS])), lincoln, language="en")
    page = start(browser.log_in(person)).send(**{name: typed})
    assert page.response.status_code == 422
    assert message in page.html
    if len(typed) < 5000:
        assert typed in page.html
    assert rows(person) == {}


def test_defaults_and_calculations(browser, lincoln):
    items = {
        "grade": {"kind": "integer", "default": "7"},
        "twice": {
            "kind": "integer",
            "calculation": ["*", ["$", "grade"], 2],
            "read_only": True,
        },
        "pets": {
            "kind": "select_one",
            "option_set": "subjects",
            "choice_filter": ["!=", ["$", "name"], "art"],
        },
        "quoted": {"kind": "text", "label": {"en": "Why ${grade}?"}},
    }
    person = enrol(open_now(publish_items([items])), lincoln, language="en")
    page = start(browser.log_in(person))
    assert 'name="item-grade" value="7"' in page.html
    assert ">7</span>?" in page.html
    page.send("back", grade="7")
    # Nobody has answered yet.
    assert rows(person) == {"twice": ("answered", "14")}
    start(browser).send(grade="8", twice="99", quoted="so")
    assert rows(person) == {
        "grade": ("answered", "8"),
        "twice": ("answered", "16"),
        "pets": ("skipped", None),
        "quoted": ("answered", "so"),
    }


def test_labels_of_options_repeat_an_answer_as_text(browser, lincoln, monkeypatch):
    label = {"en": "${who}’s sport", "es": "El deporte de ${who}"}
    sport = {"value": "sport", "label": label, "attributes": {}}
    monkeypatch.setattr("survey.tests.conftest.SUBJECTS", [sport])
    best = {"kind": "select_one", "option_set": "subjects"}
    pages = [
        {"who": {"kind": "text"}},
        # As a menu, it could not show the answer as text of its own.
        {"best": best | {"appearance": ["minimal"]}},
    ]
    person = enrol(open_now(publish_items(pages)), lincoln, language="en")
    page = start(browser.log_in(person)).send(who="<b>Noor</b> ${best}")
    filled = ">&lt;b&gt;Noor&lt;/b&gt; ${best}</span>"
    assert f"{filled}’s sport</span></label>" in page.html
    assert "<select" not in page.html
    page = page.send(best="sport")
    assert rows(person)["best"] == ("answered", "sport")
    assert "&lt;b&gt;Noor&lt;/b&gt; ${best}’s sport" in page.html


def test_a_required_question_that_appears_is_asked_without_an_error(browser, lincoln):
    items = {
        "pets": {"kind": "select_one", "option_set": "agree"},
        "why": {
            "kind": "text",
            "required": True,
            "relevant": ["=", ["$", "pets"], "3"],
            "local": ["relevant"],
        },
    }
    person = enrol(open_now(publish_items([items])), lincoln, language="en")
    page = start(browser.log_in(person)).send(pets="3")
    assert page.response.status_code == 200
    assert "There are new questions on this page" in page.html
    assert "Please answer this question" not in page.html
    assert page.send(pets="3").response.status_code == 422
    assert "why" not in rows(person)
    page.send(pets="1")
    assert rows(person)["why"] == ("hidden", None)


def test_options_with_a_seed_have_one_order_for_everybody(browser, lincoln):
    pets = {"kind": "select_one", "option_set": "agree", "randomize": True, "seed": 7}
    administration = open_now(publish_items([{"pets": pets}]))
    for language in ("en", "es"):
        person = enrol(administration, lincoln, language=language)
        page = start(browser.log_in(person))
        # The order that the browser gives them: see static/js/shuffle.js.
        assert re.findall(r'name="item-pets" value="(.)"', page.html) == list("231")


def test_an_answer_can_be_taken_back(browser, noor):
    start(browser.log_in(noor)).send(safe="3")
    page = start(browser).send(teen="", born="2014-02-28")
    page = PlainPage(browser, browser.get("/take/plain/1/"))
    assert 'value=""><span>Clear answer' in page.html
    page = page.send("back", safe="")
    assert rows(noor)["safe"] == ("skipped", None)
