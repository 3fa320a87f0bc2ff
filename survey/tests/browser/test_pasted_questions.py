"""A questionnaire is pasted in Chromium, changed in its preview, and inserted."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from survey.instrument.drafts.store import load_book
from survey.models import DraftChange, Survey
from survey.tests.browser.accessibility import DESK, PHONE, check_both
from survey.tests.browser.test_console_surveys import console  # noqa: F401
from survey.tests.browser.test_editor import choose, line, opened, paste, saved, texts
from survey.tests.console.test_survey_editor import ROWS
from survey.tests.console.test_surveys import draft_of
from survey.tests.drafts.test_pasted_questions import document

pytestmark = pytest.mark.django_db(transaction=True)
LINES = "1. How do you feel today?\nGood\nBad\n2. Why?"


def press_to(page: Page, name: str, role: str = "button") -> None:
    """Move the focus by the Tab key, as somebody without a mouse does."""
    target = page.get_by_role(role, name=name).first
    for _step in range(80):
        if target.evaluate("(element) => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} is not reached by the Tab key.")


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_a_questionnaire_is_pasted_into_a_new_survey(staff, console, size):  # noqa: F811
    page = console(staff.dana, viewport=size)
    page.goto(reverse("survey_new"))
    page.get_by_role("heading", name="From a document or an e-mail").click()
    page.get_by_label("Title").fill("Families")
    page.locator("[name=translations][value=es]").check()
    check_both(page, "start by pasting")
    page.get_by_role("button", name="Start the draft").click()
    page.get_by_label("Your questions in English").fill(
        document("families_en") + document("grid_table") + "\nPage 3 of 3\n"
    )
    page.get_by_label("The same in Español").fill(document("padres_es"))
    check_both(page, "paste")
    page.get_by_role("button", name="Show what it becomes").click()
    expect(page.locator("#paste-summary")).to_have_text("8 questions and 4 new pages")
    expect(page.locator(".paste-out")).to_contain_text("Page 3 of 3")
    expect(page.get_by_text("¿Algún comentario?")).to_be_visible()
    check_both(page, "preview of pasted questions")

    # Another type, and a line that is an answer of its own.
    kind = page.get_by_role("combobox", name="Type").first
    kind.select_option("select_multiple")
    expect(kind).to_have_value("select_multiple")
    page.get_by_role("button", name="Change lines: What grade is").click()
    page.get_by_role("combobox", name="c) Second").select_option("out")
    expect(page.locator(".paste-out").first).to_contain_text("c) Second")
    check_both(page, "lines of a pasted question")
    page.get_by_role("button", name="Insert").click()
    expect(page.locator("html.ed-ready")).to_be_attached()
    assert "What grade is your child in?" in texts(page)
    draft = Survey.objects.get()
    assert DraftChange.objects.filter(survey=draft).count() == 1
    choices = load_book(draft).sheet("choices")
    labels = [text for row in choices.rows for text in row.cells.values()]
    assert "First" in labels and "Second" not in labels
    page.get_by_role("button", name="Undo").first.click()
    expect(line(page, "What grade is your child in?")).to_have_count(0)


def test_questions_are_pasted_by_keys_only(staff, console):  # noqa: F811
    draft = draft_of(rows=ROWS)
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Why a ${pet}?")
    page.locator(".ed-add summary").focus()
    page.keyboard.press("Enter")
    press_to(page, "Paste questions", "link")
    page.keyboard.press("Enter")
    expect(page.locator(".purpose")).to_contain_text("below “Why a ${pet}?”")
    press_to(page, "Your questions in English", "textbox")
    page.keyboard.insert_text(LINES)
    press_to(page, "Show what it becomes")
    page.keyboard.press("Enter")
    expect(page.locator("#paste-summary")).to_have_text("2 questions")
    press_to(page, "Type", "combobox")
    # Between several letters, a slow machine begins anew.
    page.keyboard.press("S")
    expect(page.get_by_role("combobox", name="Type").first).to_have_value(
        "select_multiple"
    )
    press_to(page, "Required", "checkbox")
    page.keyboard.press("Space")
    press_to(page, "Insert 2 questions")
    page.keyboard.press("Enter")
    expect(page.locator("html.ed-ready")).to_be_attached()
    assert texts(page)[2:5] == ["Why a ${pet}?", "How do you feel today?", "Why?"]


def test_lines_in_a_question_are_offered_to_become_questions(staff, console):  # noqa: F811
    draft = draft_of(rows=ROWS)
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Why a ${pet}?")
    field = page.locator("#ed-settings textarea").first
    field.focus()
    page.keyboard.press("Control+End")
    paste(page, LINES)
    # A synthetic event pastes nothing by itself.
    page.keyboard.insert_text(LINES)
    toast = page.locator("#ed-toast")
    expect(toast).to_contain_text("Make 2 questions of these lines?")
    check_both(page, "offer to make questions")

    # Refused, the text stays in the question.
    toast.get_by_role("button", name="Close").click()
    saved(page)
    expect(field).to_have_value("Why a ${pet}?" + LINES)
    field.fill("Why a ${pet}?")
    saved(page)

    page.keyboard.press("Control+End")
    paste(page, LINES)
    page.keyboard.insert_text(LINES)
    toast.get_by_role("button", name="Make questions").click()
    expect(page.locator("#paste-summary")).to_have_text("2 questions")
    page.get_by_role("button", name="Insert 2 questions").click()
    expect(page.locator("html.ed-ready")).to_be_attached()
    assert texts(page)[2:5] == ["Why a ${pet}?", "How do you feel today?", "Why?"]


def test_a_sentence_that_is_pasted_into_a_question_is_a_text(staff, console):  # noqa: F811
    draft = draft_of(rows=ROWS)
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Why a ${pet}?")
    page.locator("#ed-settings textarea").first.focus()
    with page.expect_response("**/edit/paste/") as reply:
        paste(page, "Dear families,\nwe want to hear from you.")
    assert reply.value.json() == {"offer": ""}
    expect(page.locator("#ed-toast")).to_be_hidden()
