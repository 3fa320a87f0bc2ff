"""A draft is translated by a file, and discussed by two people who edit it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.drafts.corrections import start_correction
from survey.models import DraftComment, Survey
from survey.tests.browser.accessibility import DESK, check_both
from survey.tests.browser.test_cards_journey import open_console
from survey.tests.browser.test_editor import paste
from survey.tests.console.test_surveys import draft_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def draft(server, staff) -> Survey:
    draft = draft_of()
    Survey.objects.filter(pk=draft.pk).update(district=staff.riverside)
    return draft


def test_a_file_is_translated_checked_saved_and_undone(
    device: Callable, server, staff, draft, tmp_path: Path
):
    page = open_console(device(viewport=DESK), staff.state, server.url)
    page.goto(f"/console/surveys/{draft.pk}/edit/texts/")
    page.get_by_role("link", name="Translate with a file").click()
    page.get_by_label("File type").select_option("XLIFF 1.2")
    check_both(page, "translate with a file")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    text = Path(download.value.path()).read_text()
    assert 'target-language="es"' in text
    file = tmp_path / download.value.suggested_filename
    text = text.replace("Gato", "Gatito").replace(">Its age?<", ">Age?<")
    file.write_text(text)

    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Check file").click()
    expect(page.get_by_role("heading", name="Check translations")).to_be_visible()
    expect(page.get_by_text("It is now: Its age?")).to_be_visible()
    check_both(page, "checked translations")
    page.get_by_role("button", name="Save 1 translation").click()
    expect(page.get_by_text("1 translation was saved.")).to_be_visible()
    field = page.get_by_label("Page 1: Which pet?, option, Español").first
    expect(field).to_have_value("Gatito")
    # Scripts save when a field is left: there is no button for it.
    expect(page.get_by_role("button", name="Save", exact=True)).to_have_count(0)
    field.fill("Minino")
    field.blur()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    for expected in ("Gatito", "Gato"):
        page.get_by_role("button", name="Undo").click()
        expect(field).to_have_value(expected)

    page.get_by_role("link", name="Remove Español").click()
    expect(page.get_by_text("5 texts in this language are deleted.")).to_be_visible()
    check_both(page, "remove a language")
    page.get_by_role("button", name="Remove language").click()
    expect(page.get_by_role("link", name="Español")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="Español", exact=True)).to_be_visible()


def test_texts_are_saved_while_they_are_typed_and_none_is_lost(
    device: Callable, server, staff, draft
):
    published = publish_survey(survey=draft)
    correction = start_correction(corrects=published, by=staff.state)
    address = f"/console/surveys/{correction.pk}/edit/texts/?language=es"
    context = device(viewport=DESK)
    page = open_console(context, staff.state, server.url)
    page.goto(address)
    field = page.get_by_label("Page 1: Which pet?, Español")
    field.fill("¿Qué")
    row = page.locator(".text-row", has=field)
    expect(row.get_by_role("status")).to_have_text("Saved")
    # The cursor stays where it was.
    expect(field).to_be_focused()
    field.press_sequentially(" animal?")
    page.reload()
    expect(field).to_have_value("¿Qué animal?")
    expect(row.get_by_role("status")).to_have_text("Saved")

    # Without a login, nothing but a link to it is shown, and the text stays.
    cookies = context.cookies()
    context.clear_cookies()
    field.fill("¿Qué mascota tienes?")
    expect(page.get_by_role("link", name="Log in in a new tab")).to_be_visible()
    expect(field).to_have_value("¿Qué mascota tienes?")
    expect(page.get_by_label("Password")).to_have_count(0)
    context.add_cookies(cookies)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(row.get_by_role("status")).to_have_text("Saved")

    # What was typed last is compared as well.
    field.fill("¿Cuál mascota?")
    page.get_by_role("link", name="Compare and publish").click()
    expect(page.get_by_text("1 changed text")).to_be_visible()
    expect(page.get_by_role("cell", name="Cuál mascota?")).to_be_visible()


def test_a_column_fills_the_texts_from_one_downwards(
    device: Callable, server, staff, draft
):
    page = open_console(device(viewport=DESK), staff.state, server.url)
    page.goto(f"/console/surveys/{draft.pk}/edit/texts/?language=es")
    missing = page.get_by_role("link", name="Missing (1)")
    expect(missing).to_be_visible()
    fields = page.locator(".text-row textarea")
    before = fields.evaluate_all("fields => fields.map((field) => field.value)")
    fields.first.focus()
    paste(page, 'Mascotas\r\n\r\n"Su\nmascota"\r\n')
    expect(page.get_by_role("link", name="Missing (0)")).to_be_visible()
    saved = page.locator(".text-row [role=status]", has_text="Saved")
    expect(saved).to_have_count(2)
    values = fields.evaluate_all("fields => fields.map((field) => field.value)")
    assert (values[0], values[2]) == ("Mascotas", "Su\nmascota") and values[1]
    expect(page.locator("#ed-notice")).to_contain_text("3 lines were pasted into 3")
    check_both(page, "a pasted column")
    page.get_by_role("button", name="Undo the paste").click()
    expect(page.get_by_role("link", name="Missing (1)")).to_be_visible()
    assert fields.first.input_value() != "Mascotas"
    fields.first.focus()
    paste(page, "Mascotas\nde todos")
    page.get_by_role("button", name="Put all lines into the first text").click()
    expect(fields.first).to_have_value("Mascotas\nde todos")
    values = fields.evaluate_all("fields => fields.map((field) => field.value)")
    assert values[1:] == before[1:]


def test_two_colleagues_see_each_other_and_settle_a_comment(
    device: Callable, server, staff, draft
):
    editor = f"/console/surveys/{draft.pk}/edit/"
    desk = open_console(device(viewport=DESK), staff.state, server.url)
    desk.goto(editor)
    desk.locator(".ed-entries a", has_text="Which pet?").click()
    desk.get_by_label("New comment").fill("Could it be “animal”?")
    # Typing in another field saves the draft, and leaves the comment alone.
    desk.get_by_label("Variable name", exact=True).fill("animal")
    desk.get_by_label("Variable name", exact=True).blur()
    expect(desk.locator("#ed-status")).to_have_attribute("data-state", "saved")
    expect(desk.get_by_label("New comment")).to_have_value("Could it be “animal”?")
    desk.get_by_role("button", name="Add comment").click()
    expect(desk.get_by_role("heading", name="Comments (1)")).to_be_visible()
    expect(desk.get_by_role("link", name="1 comment")).to_be_visible()
    check_both(desk, "comments in the editor")

    second = open_console(device(viewport=DESK), staff.dana, server.url)
    second.goto(f"{editor}comments/")
    check_both(second, "comments")
    second.get_by_role("link", name="Page 1: Which pet?").click()
    expect(second.get_by_text(f"{staff.state} is editing page 1")).to_be_visible()
    second.locator("summary", has_text="Reply").click()
    second.get_by_label("Reply").fill("Yes.")
    second.get_by_role("button", name="Send reply").click()
    expect(second.get_by_text("Yes.", exact=True)).to_be_visible()
    second.get_by_role("button", name="Resolve").click()
    expect(second.get_by_text("1 resolved comment")).to_be_visible()
    expect(second.get_by_role("link", name="Comments", exact=True)).to_be_visible()
    assert DraftComment.objects.get(replies_to=None).resolved_by == staff.dana
    # Asked for every ten seconds.
    expect(desk.get_by_text(f"{staff.dana} is editing page 1")).to_be_visible(
        timeout=15_000
    )


def test_a_comment_stays_when_its_author_is_logged_out(
    device: Callable, server, staff, draft
):
    context = device(viewport=DESK)
    page = open_console(context, staff.state, server.url)
    page.goto(f"/console/surveys/{draft.pk}/edit/")
    page.locator(".ed-entries a", has_text="Which pet?").click()
    page.get_by_label("New comment").fill("Could it be “animal”?")
    context.clear_cookies()
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator("#ed-notice")).to_be_visible()
    expect(page.get_by_label("New comment")).to_have_value("Could it be “animal”?")
    assert not DraftComment.objects.exists()


def test_a_comment_that_is_not_sent_waits_at_its_question(
    device: Callable, server, staff, draft
):
    page = open_console(device(viewport=DESK), staff.state, server.url)
    page.goto(f"/console/surveys/{draft.pk}/edit/")
    lines = page.locator(".ed-entries a")
    lines.filter(has_text="Which pet?").click()
    comment = page.get_by_label("New comment")
    comment.fill("Could it be “animal”?")
    lines.filter(has_text="Its age?").click()
    expect(page.locator("#ed-settings textarea").first).to_have_value("Its age?")
    expect(comment).to_have_value("")
    lines.filter(has_text="Which pet?").click()
    expect(comment).to_have_value("Could it be “animal”?")
    page.reload()
    expect(comment).to_have_value("Could it be “animal”?")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment-text")).to_have_text("Could it be “animal”?")
    expect(comment).to_have_value("")
    page.reload()
    expect(page.locator(".comment-text")).to_be_visible()
    expect(comment).to_have_value("")
