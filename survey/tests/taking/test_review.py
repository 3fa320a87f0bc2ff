"""The review: each page with its answers, and how many pages are stored."""

from __future__ import annotations

import pytest

from survey.taking import review
from survey.taking.published import published_survey
from survey.taking.review import ReviewedItem
from survey.templatetags.respondent_words import escape_all
from survey.tests.conftest import (
    FIRST_PAGE,
    PAGES,
    SECOND_PAGE,
    SUBJECTS,
    Browser,
    enrol,
    open_now,
    publish_items,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def at_review(browser, maya):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    assert browser.save(1, FIRST_PAGE, base).status_code == 200
    assert browser.save(2, SECOND_PAGE, base + 1).status_code == 200
    return browser


def review_of(browser: Browser, language: str = "en"):
    page = browser.get(f"/take/complete/?language={language}")
    assert page.status_code == 200
    return page


def test_each_page_is_listed_with_its_answers(at_review):
    page = review_of(at_review)
    review = page.context["review"]
    assert [
        (listed.title, {item.name: item.answer for item in listed.items})
        for listed in review.pages
    ] == [
        (
            "Page 1",
            {
                "safe": "agree",
                # In the order of the survey, as labels.
                "subjects": "art, sport",
                "age": "12",
                "why_art": "colours",
                "comment": "",
            },
        ),
        # Only who is 13 or older is asked about being a teen.
        ("Page 2", {"born": "Feb. 28, 2014", "bus": "15", "promise": "OK"}),
        # Not opened.
        ("Page 3", {}),
    ]
    text = page.content.decode()
    assert "colours" in text and "About safe" in text
    assert 'href="/take/#page-1/comment"' in text


def test_an_empty_survey_is_not_praised(browser, maya):
    browser.log_in(maya)
    for n, answers in enumerate(({**FIRST_PAGE}, {**SECOND_PAGE}, {"last": None}), 1):
        blank = dict.fromkeys(answers) | ({"safe": "1"} if n == 1 else {})
        assert browser.save(n, blank, browser.bootstrap()["revision"]).json()["saved"]
    text = review_of(browser).content.decode()
    # subjects, age, comment; born, bus, promise; last.
    assert "You left 7 questions blank" in text
    assert "You answered every question" not in text
    assert 'href="/take/#page-1/subjects"' in text


def test_a_complete_survey_is_praised(at_review):
    base = at_review.bootstrap()["revision"]
    at_review.save(1, {**FIRST_PAGE, "comment": "hello"}, base)
    at_review.save(3, {"last": "bye"}, base + 1)
    text = review_of(at_review).content.decode()
    assert "You answered every question" in text
    assert "blank" not in text


def test_a_page_that_was_never_opened_is_named_and_not_counted(at_review, maya):
    page = review_of(at_review)
    assert [listed.is_stored for listed in page.context["review"].pages] == [
        True,
        True,
        False,
    ]
    text = page.content.decode()
    assert "Not opened: one question" in text
    # One line with a link: its question is not listed.
    assert '<a href="/take/#page-3/last">Page 3</a>' in text
    assert "About last" not in text
    # comment and last.
    assert "You left 2 questions blank" in text
    form = {"reviewed": page.context["reviewed"], "language": "en"}
    done = at_review.post("/take/complete/", form, follow=True)
    assert "2 of 3 pages saved at" in done.content.decode()
    assert "All 3 pages" not in done.content.decode()


def test_a_half_answered_page_is_not_counted(browser, maya):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    browser.save(1, {"safe": "3"}, base)
    page = review_of(browser)
    first = page.context["review"].pages[0]
    assert (first.stored, first.is_stored) == (1, False)
    assert "not gone through this page to the end" in page.content.decode()


def test_labels_and_answers_are_in_the_language_of_the_review(at_review):
    text = review_of(at_review, "es").content.decode()
    assert "De safe" in text
    assert "28 de febrero de 2014" in text


def test_answers_are_shown_as_text(browser, lincoln):
    labels = {"en": "Why, ${who}?"}
    items = {
        "who": {"kind": "text"},
        "why": {"kind": "text", "label": labels, "required": True},
    }
    person = enrol(open_now(publish_items([items, *PAGES[1:]])), lincoln)
    browser.log_in(person)
    browser.save(1, {"who": "<b>Noor</b>", "why": None}, 1)
    text = review_of(browser).content.decode()
    assert "<b>Noor" not in text
    # Among what is missing, and among the answers.
    assert text.count("Why, &lt;b&gt;Noor&lt;/b&gt;?") == 2


def test_labels_of_options_repeat_answers_as_text(browser, lincoln, monkeypatch):
    label = {"en": "${who}’s sport", "es": "El deporte de ${who}"}
    sport = {"value": "sport", "label": label, "attributes": {}}
    monkeypatch.setattr("survey.tests.conftest.SUBJECTS", [*SUBJECTS[:1], sport])
    items = {
        "who": {"kind": "text"},
        "best": {"kind": "select_one", "option_set": "subjects"},
        "all": {"kind": "select_multiple", "option_set": "subjects"},
    }
    person = enrol(open_now(publish_items([items])), lincoln)
    browser.log_in(person)
    typed = "<b>Noor</b> ${best}"
    browser.save(1, {"who": typed, "best": "sport", "all": ["art", "sport"]}, 1)
    page = review_of(browser)
    [shown] = page.context["review"].pages
    assert [item.answer for item in shown.items] == [
        *(typed, f"{typed}’s sport", f"art, {typed}’s sport")
    ]
    assert "<b>Noor" not in page.content.decode()
    [shown] = review_of(browser, "es").context["review"].pages
    assert shown.items[1].answer == f"El deporte de {typed}"


def seen_by_the_second_person(lincoln, monkeypatch) -> str:
    """Let two people answer the same, of whom the first one types a placeholder."""
    sport = {"value": "sport", "label": {"en": "${who}’s sport"}, "attributes": {}}
    monkeypatch.setattr("survey.tests.conftest.SUBJECTS", [sport])
    items = {
        "who": {"kind": "text"},
        "best": {"kind": "select_one", "option_set": "subjects"},
    }
    administration = open_now(publish_items([items]))
    text = ""
    for typed in ("${who}", "Noor"):
        browser = Browser()
        browser.log_in(enrol(administration, lincoln))
        browser.save(1, {"who": typed, "best": "sport"}, 1)
        text = review_of(browser).content.decode()
        assert typed in text
    return text


def test_what_repeats_an_answer_is_not_kept_for_the_next_person(lincoln, monkeypatch):
    text = seen_by_the_second_person(lincoln, monkeypatch)
    assert "Noor’s sport" in text and "${who}’s" not in text


def test_otherwise_the_next_person_would_read_it(lincoln, monkeypatch):
    monkeypatch.setattr(review, "REPEATS", "nothing")
    text = seen_by_the_second_person(lincoln, monkeypatch)
    assert "Noor’s sport" not in text and "${who}’s sport" in text


def test_only_chosen_options_are_kept(at_review, maya):
    review_of(at_review)
    reviewed = (
        published_survey(maya.administration.published_id).texts_in("en").reviewed
    )
    options = {name: list(values) for name, values in reviewed.items() if values}
    assert options == {"safe": ["3"]}
    # The second review is the same page.
    first, second = (review_of(at_review).context["review"] for _ in range(2))
    assert first.pages == second.pages


@pytest.mark.parametrize("name", ["x", "x\0y", "\0"])
def test_texts_with_any_character_stay_apart(name):
    """They are escaped in one call, joined by a character that no text should have."""
    items = [ReviewedItem(name, "<label>", "&"), ReviewedItem("b", "c", "d")]
    assert list(escape_all(items)) == [
        (name, "&lt;label&gt;", "&amp;"),
        ("b", "c", "d"),
    ]
