"""A page of the survey under a person's hands: what it shows and would save.

The HTML and the outline are those that the server makes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from survey.taking import messages, rendering
from survey.tests.chromium import TIMEOUT

FRUIT = [
    {"value": value, "label": {"en": value.title()}, "attributes": {"tree": tree}}
    for value, tree in (
        ("apple", "yes"),
        ("melon", "no"),
        ("pear", "yes"),
        ("plum", "yes"),
        ("fig", "yes"),
    )
]
HELPERS = [
    {"value": value, "label": {"en": label}, "attributes": {}}
    for value, label in (("teacher", "${name}’s teacher"), ("other", "Somebody else"))
]
ITEMS: dict[str, dict[str, Any]] = {
    "name": {"kind": "text"},
    "age": {
        "kind": "integer",
        "constraint": ["<=", ["$", "age"], 19],
        "constraint_message": {"en": "Nobody is older than 19, ${name}."},
        "local": ["constraint"],
    },
    "height": {"kind": "decimal"},
    "mood": {"kind": "range", "range": {"start": "0", "end": "10", "step": "1"}},
    "born": {"kind": "date"},
    "wakes": {"kind": "time"},
    "met": {"kind": "datetime"},
    "likes": {"kind": "select_one", "option_set": "fruit", "required": True},
    "picked": {
        "kind": "select_one",
        "option_set": "fruit",
        "appearance": ["minimal"],
        "choice_filter": ["=", ["col", "tree"], ["$", "tree"]],
        "required": ["=", ["$", "tree"], "no"],
    },
    "tree": {"kind": "text"},
    "eaten": {"kind": "select_multiple", "option_set": "fruit", "randomize": True},
    "why": {"kind": "text", "relevant": ["selected", ["$", "eaten"], "fig"]},
    "agrees": {"kind": "acknowledge"},
    "hello": {"kind": "note", "label": {"en": "Hello ${name}!"}},
    "usual": {"kind": "integer", "default": "7"},
    "doubled": {
        "kind": "integer",
        "read_only": True,
        "calculation": ["*", ["$", "usual"], 2],
    },
    "constructor": {"kind": "text"},
    "helped": {"kind": "select_multiple", "option_set": "helpers"},
    "chosen": {"kind": "note", "label": {"en": "You chose ${labels}."}},
    "labels": {
        "kind": "calculate",
        "calculation": ["jr:choice-name", ["$", "helped"], "helped"],
    },
}
for number, (item_name, item) in enumerate(ITEMS.items(), start=1):
    item |= {"id": number, "page": 1}
    item.setdefault("label", {"en": f"About {item_name}"})
DEFINITION: dict[str, Any] = {
    "format": 1,
    "title": {"en": "Fruit"},
    "languages": [{"code": "en", "name": "English", "direction": "ltr"}],
    "option_sets": {"fruit": FRUIT, "helpers": HELPERS},
    "pages": [
        {
            "name": "all",
            "title": {"en": "All kinds"},
            "blocks": [{"label": {}, "grid": False, "items": list(ITEMS)}],
        }
    ],
    "items": ITEMS,
    "order": [
        *(name for name in ITEMS if name not in ("picked", "why", "doubled")),
        *("picked", "why", "doubled"),
    ],
}
SHOW = """async ({ html, outline, words, answers, seed }) => {
  const { SurveyState } = await import("/js/survey_state.js");
  const { PageForm } = await import("/js/page_form.js");
  const { Messages } = await import("/js/messages.js");
  const { answerableItems } = await import("/js/answers.js");
  const { problemMessage, showProblems, focusItem } = await import("/js/problems.js");
  const page = new DOMParser().parseFromString(html, "text/html");
  const section = document.importNode(page.querySelector("section.page"), true);
  const moment = () => ({ today: "2027-03-01", now: "2027-03-01T10:42:00+00:00", language: "en" });
  const survey = new SurveyState({ outline, answers, moment });
  survey.fillDefaults(1);
  const spoken = new Messages(words, "en");
  globalThis.edits = 0;
  const form = new PageForm({
    section, n: 1, survey, seed, messages: spoken, edited: () => (globalThis.edits += 1),
  });
  document.body.replaceChildren(section);
  globalThis.survey = survey;
  globalThis.check = () => {
    const piped = (text) => (text ?? "").replace("${name}", survey.state.values.name);
    const listed = survey.problems(1).map(({ name, key, values }) => ({
      name, message: problemMessage(key, survey.item(name), spoken, piped, values),
    }));
    showProblems(section, listed, spoken, (name) => focusItem(section, name)).focus();
    return listed;
  };
}"""


class Shown:
    """The page in Chromium, and what it would send."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def show(self, answers: dict[str, Any] | None = None, seed: int = 5) -> Shown:
        self.page.evaluate(
            SHOW,
            {
                "html": rendering.render_page(DEFINITION, "en", 1),
                "outline": json.loads(json.dumps(rendering.outline(DEFINITION, "en"))),
                "words": dict(messages.messages_in("en")),
                "answers": answers or {},
                "seed": seed,
            },
        )
        return self

    def wire(self) -> dict[str, Any]:
        """Return what *Next* would send."""
        return json.loads(self.page.evaluate("survey.content(1, { passed: true })"))

    def left(self) -> dict[str, Any]:
        """Return what leaving the page in another way would send."""
        return json.loads(self.page.evaluate("survey.content(1)"))

    def problems(self) -> dict[str, str]:
        problems = self.page.evaluate("survey.problems(1)")
        return {problem["name"]: problem["key"] for problem in problems}

    def item(self, name: str):
        return self.page.locator(f"#item-{name}")

    def type(self, name: str, text: str) -> None:
        field = self.item(name).locator("input, textarea")
        field.fill(text)
        field.blur()

    def choose(self, name: str, value: str) -> None:
        self.item(name).locator(f'input[value="{value}"]').click()


@pytest.fixture(scope="module")
def tab(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page()
    page.set_default_timeout(TIMEOUT)
    yield page
    page.close()


@pytest.fixture
def show(tab: Page, modules: str) -> Callable[..., Shown]:
    # A new document, which costs a third of a new tab.
    tab.goto(modules)
    return Shown(tab).show


BLANK = {
    name: None
    for name, item in ITEMS.items()
    if item["kind"] not in ("note", "calculate")
} | {"usual": "7", "doubled": "14"}


def test_every_kind_of_item_is_answered_and_sent(show):
    shown = show()
    shown.type("name", "Maya")
    shown.type("age", "12")
    shown.type("height", "1.5")
    shown.item("mood").locator("input").press("ArrowRight")
    shown.type("born", "2014-02-28")
    shown.type("wakes", "06:30")
    shown.type("met", "2027-03-01T10:42")
    shown.choose("likes", "melon")
    shown.type("tree", "yes")
    shown.item("picked").locator("select").select_option("pear")
    shown.choose("eaten", "plum")
    shown.choose("eaten", "apple")
    shown.item("agrees").locator("input").check()
    shown.type("usual", "4")
    shown.type("constructor", "a word of the language")
    assert shown.wire() == {
        "name": "Maya",
        "age": "12",
        "height": "1.5",
        "mood": "6",
        "born": "2014-02-28",
        "wakes": "06:30",
        "met": "2027-03-01T10:42",
        "likes": "melon",
        "picked": "pear",
        "tree": "yes",
        # In the order of the options, not of the clicks.
        "eaten": ["apple", "plum"],
        "why": None,
        "agrees": "OK",
        "usual": "4",
        "doubled": "8",
        "constructor": "a word of the language",
        "helped": None,
    }
    assert shown.problems() == {}
    # The same answers, from the server, are shown again.
    reloaded = show(shown.wire())
    assert reloaded.wire() == shown.wire()
    assert reloaded.item("mood").locator("output").inner_text() == "6"
    assert reloaded.page.evaluate("edits") == 0


def test_an_untouched_page_sends_every_item_with_next(show):
    shown = show()
    assert shown.wire() == BLANK
    # The default and what follows from it were not confirmed by anybody.
    assert shown.left() == {"doubled": "14"}


def test_a_page_that_is_left_sends_what_was_answered(show):
    shown = show({"name": "Maya", "tree": None})
    shown.choose("likes", "fig")
    shown.type("usual", "7")
    shown.type("age", "12")
    shown.type("age", "")
    assert shown.left() == {
        "name": "Maya",
        "tree": None,
        "likes": "fig",
        "usual": "7",
        "doubled": "14",
    }


def test_incomplete_input_keeps_what_was_saved(show):
    shown = show({"age": "12", "born": "2014-02-28"})
    for typed in ("1x", "20"):
        shown.type("age", typed)
        assert shown.left()["age"] == shown.wire()["age"] == "12"
        assert shown.page.evaluate("survey.hasWithheld()") is True
    shown.type("age", "13")
    shown.item("born").locator("input").press("Backspace")
    assert shown.left()["born"] == "2014-02-28"
    assert shown.problems()["born"] == "not_a_date"


def test_saved_answers_are_shown(show):
    shown = show(
        {"name": "Maya", "likes": "fig", "eaten": ["fig", "plum"], "mood": "3"}
    )
    assert shown.item("name").locator("input").input_value() == "Maya"
    assert shown.item("likes").locator("input:checked").input_value() == "fig"
    assert shown.item("eaten").locator("input:checked").count() == 2
    expect(shown.item("why")).to_be_visible()
    assert shown.item("mood").locator("output").inner_text() == "3"


@pytest.mark.parametrize(
    ("name", "typed", "sent", "problem"),
    [
        ("age", " 12 ", "12", None),
        ("age", "+12", "12", None),
        ("age", "١٢", "12", None),
        ("age", "007", "007", None),
        ("age", "1.5", None, "not_whole"),
        ("age", "twelve", None, "not_a_number"),
        ("age", "1e3", None, "not_a_number"),
        ("age", "20", None, "constraint"),
        ("age", "1" * 16, None, "not_a_number"),
        ("height", "1,5", "1.5", None),
        ("height", ".5", "0.5", None),
        ("height", "-2.", "-2", None),
        ("height", "1.2.3", None, "not_a_number"),
        ("height", "1,200.5", "1200.5", None),
        ("height", "1,200", None, "ambiguous_number"),
        ("height", "１，２００", None, "ambiguous_number"),
        ("age", "1,200", None, "ambiguous_whole"),
        ("born", "0015-05-01", None, "year_incomplete"),
        ("met", "0015-05-01T10:42", None, "year_incomplete"),
        ("name", "   ", None, None),
        ("name", " Maya ", " Maya ", None),
        ("name", "🍕" * 5, "🍕" * 5, None),
    ],
)
def test_typed_text_becomes_an_answer_or_a_problem(show, name, typed, sent, problem):
    shown = show({"likes": "fig"})
    shown.type(name, typed)
    assert shown.wire().get(name) == sent
    assert shown.problems().get(name) == problem


def test_a_text_with_two_meanings_is_asked_and_stays(show):
    shown = show({"height": "1.1", "likes": "fig"})
    shown.type("height", "1,200")
    shown.page.evaluate("check()")
    error = "“1,200” can mean two numbers. Please type 1200 or 1.2."
    expect(shown.page.locator("#height-error")).to_have_text(error)
    expect(shown.item("height").locator("input")).to_have_value("1,200")
    assert shown.wire()["height"] == "1.1"
    shown.type("height", "1200")
    assert shown.wire()["height"] == "1200"


def test_a_stored_year_that_would_be_refused_is_not_sent_again(show):
    shown = show({"born": "0015-05-01", "likes": "fig"})
    assert shown.problems() == {"born": "year_incomplete"}
    assert "born" not in shown.wire()
    shown.type("born", "2015-05-01")
    assert shown.wire()["born"] == "2015-05-01"


def test_invalid_text_stays_on_the_screen(show):
    shown = show()
    shown.type("age", "twelve")
    shown.choose("likes", "fig")
    assert shown.item("age").locator("input").input_value() == "twelve"
    shown.type("age", "12")
    assert shown.wire()["age"] == "12"


def test_characters_are_counted_before_the_limit(show):
    shown = show()
    counter = shown.item("name").locator(".counter")
    shown.type("name", "x" * 4499)
    expect(counter).to_have_count(0)
    shown.type("name", "x" * 4990)
    expect(counter).to_have_text("10 characters left")
    shown.type("name", "x")
    expect(counter).to_be_empty()


def test_a_consent_box_is_named_by_its_text(show):
    box = show().item("agrees").locator("input")
    expect(box).to_have_accessible_name("About agrees OK")


def test_characters_that_a_database_cannot_store_are_replaced(show):
    cleaned = show().page.evaluate(
        """async () => {
          const { canonical } = await import("/js/answers.js");
          return [canonical("text", "a\\0b\\ud800c🍕"), canonical("text", "\\0 ")];
        }"""
    )
    assert cleaned == ["ab\ufffdc🍕", ""]


def test_a_scale_has_no_answer_until_the_first_touch(show):
    shown = show()
    slider = shown.item("mood").locator("input")
    assert shown.wire()["mood"] is None
    assert slider.get_attribute("aria-valuetext") == "Not answered yet"
    # A click at the thumb moves nothing, but counts as an answer.
    box = slider.bounding_box()
    shown.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert shown.wire()["mood"] == "5"
    assert slider.get_attribute("aria-valuetext") is None
    shown.item("mood").locator("button.clear").click()
    assert shown.wire()["mood"] is None
    slider.press("Enter")
    assert shown.wire()["mood"] == "5"


def test_a_choice_can_be_cleared_by_keyboard(show):
    shown = show()
    clear = shown.item("likes").locator("button.clear")
    expect(clear).to_be_hidden()
    shown.choose("likes", "fig")
    clear.focus()
    shown.page.keyboard.press("Enter")
    assert shown.wire()["likes"] is None
    # The focus is not lost with the button.
    assert shown.page.evaluate("document.activeElement.name") == "likes"


def test_a_hidden_item_sends_null_and_keeps_its_answer(show):
    shown = show()
    expect(shown.item("why")).to_be_hidden()
    shown.choose("eaten", "fig")
    shown.type("why", "sweet")
    assert shown.wire()["why"] == "sweet"
    shown.choose("eaten", "fig")
    expect(shown.item("why")).to_be_hidden()
    assert shown.wire()["why"] is None
    shown.choose("eaten", "fig")
    assert shown.wire()["why"] == "sweet"
    assert shown.item("why").locator("input").input_value() == "sweet"


def test_an_option_that_is_not_offered_does_not_count(show):
    shown = show({"tree": "yes", "picked": "pear"})
    assert shown.wire()["picked"] == "pear"
    offered = shown.item("picked").locator("option:not([disabled])")
    assert [option.get_attribute("value") for option in offered.all()] == [
        "",
        "apple",
        "pear",
        "plum",
        "fig",
    ]
    shown.type("tree", "no")
    assert shown.wire()["picked"] is None
    assert shown.item("picked").locator("select").input_value() == ""
    shown.type("tree", "yes")
    assert shown.wire()["picked"] == "pear"


def test_a_conditionally_required_item_is_marked_when_required(show):
    shown = show({"likes": "fig"})
    mark = shown.item("picked").locator(".required-mark")
    expect(mark).to_be_hidden()
    assert shown.problems() == {}
    shown.type("tree", "no")
    expect(mark).to_be_visible()
    select = shown.item("picked").locator("select")
    assert select.get_attribute("aria-required") == "true"
    assert shown.problems() == {"picked": "required"}


def test_randomised_options_keep_their_order_for_each_respondent(show):
    def order(seed: int) -> list[str]:
        inputs = show(seed=seed).item("eaten").locator("input").all()
        return [radio.get_attribute("value") for radio in inputs]

    orders = [order(seed) for seed in range(8)]
    assert orders[3] == order(3)
    assert len({tuple(values) for values in orders}) > 1
    assert all(sorted(values) == sorted(o["value"] for o in FRUIT) for values in orders)


def test_an_item_with_a_seed_has_one_order_for_everybody(show, monkeypatch):
    monkeypatch.setitem(ITEMS["eaten"], "seed", 3)
    for seed in range(4):
        inputs = show(seed=seed).item("eaten").locator("input").all()
        order = [radio.get_attribute("value") for radio in inputs]
        assert order == ["pear", "fig", "melon", "apple", "plum"]


def test_a_default_is_filled_in_once_and_can_be_cleared(show):
    shown = show()
    assert shown.wire()["usual"] == "7"
    shown.type("usual", "")
    shown.page.evaluate("survey.fillDefaults(1)")
    assert shown.wire()["usual"] is None
    # An answer that was saved as blank is not filled again.
    assert show({"usual": None}).wire()["usual"] is None


def test_a_piped_answer_is_inserted_as_text_only(show):
    shown = show()
    shown.type("name", "<img src=x onerror=alert(1)>")
    assert shown.item("hello").inner_text() == "Hello <img src=x onerror=alert(1)>!"
    assert shown.page.locator("img").count() == 0


def test_problems_are_shown_at_the_item_and_in_a_summary(show):
    shown = show()
    shown.type("name", "Maya")
    shown.type("age", "20")
    shown.page.evaluate("check()")
    summary = shown.page.locator(".error-summary")
    assert summary.get_attribute("role") == "alert"
    assert shown.page.evaluate("document.activeElement.className") == "error-summary"
    assert summary.locator("li").all_inner_texts() == [
        "About age: Nobody is older than 19, Maya.",
        "About likes: Please answer this question.",
    ]
    age = shown.item("age").locator("input")
    assert age.get_attribute("aria-invalid") == "true"
    described = age.get_attribute("aria-describedby").split()
    assert "age-error" in described
    expect(shown.page.locator("#age-error")).to_be_visible()
    assert shown.item("likes").get_attribute("aria-invalid") == "true"

    summary.get_by_text("About age").click()
    assert shown.page.evaluate("document.activeElement.id") == "age-input"
    summary.get_by_text("About likes").click()
    assert shown.page.evaluate("document.activeElement.name") == "likes"

    shown.type("age", "19")
    expect(shown.page.locator("#age-error")).to_be_hidden()
    assert age.get_attribute("aria-invalid") is None
    # The summary has what is still wrong, and goes with the last of it.
    assert summary.locator("li").all_inner_texts() == [
        "About likes: Please answer this question."
    ]
    shown.item("likes").locator("input").first.check()
    expect(summary).to_have_count(0)


def test_labels_of_options_repeat_an_answer_as_text(show):
    shown = show()
    shown.type("name", "<b>Noor</b> & ${age}")
    label = "<b>Noor</b> & ${age}’s teacher"
    option = shown.item("helped").get_by_role("checkbox", name=label)
    option.check()
    shown.choose("helped", "other")
    expect(shown.item("chosen")).to_have_text(f"You chose {label}, Somebody else.")
    assert shown.wire()["helped"] == ["teacher", "other"]
    shown.type("name", "Maya")
    expect(shown.item("helped").locator(".option").first).to_have_text("Maya’s teacher")
    expect(shown.item("chosen")).to_have_text(
        "You chose Maya’s teacher, Somebody else."
    )
    assert shown.wire()["helped"] == ["teacher", "other"]
