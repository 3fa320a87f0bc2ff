"""A survey is written in Chromium, by keys, in two tabs and without a connection."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import Membership, User
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import load_book
from survey.models import Survey
from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.test_console_surveys import console  # noqa: F401
from survey.tests.console.test_survey_editor import ROWS
from survey.tests.console.test_surveys import draft_of

pytestmark = pytest.mark.django_db(transaction=True)
DESK = {"width": 1440, "height": 900}
NARROW = {"width": 390, "height": 844}
WITH_PET = "${pet} = 'cat'"
COLUMN = "Walking\nBy bike\nBy bus 🚌\nBy car\n"


@pytest.fixture
def draft() -> Survey:
    return draft_of(rows=ROWS)


@pytest.fixture
def colleague() -> User:
    pat = User.objects.create(email="pat@example.org")
    Membership.objects.create(user=pat, role=Membership.Role.STATE)
    return pat


def opened(page: Page, draft: Survey) -> Page:
    page.goto(reverse("survey_edit", args=[draft.pk]))
    expect(page.locator("html.ed-ready")).to_be_attached()
    return page


def line(page: Page, text: str):
    return page.locator(".ed-line > a", has=page.get_by_text(text, exact=True))


def choose(page: Page, text: str) -> None:
    line(page, text).click()
    field = page.locator("#ed-settings textarea").first
    expect(field).to_have_value(text)


def add(page: Page, kind: str) -> None:
    page.locator(".ed-add summary").click()
    page.get_by_role("button", name=kind, exact=True).click()
    expect(page.locator("#ed-settings textarea").first).to_be_focused()


def saved(page: Page) -> None:
    expect(page.locator("#ed-status")).to_have_attribute("data-state", "saved")


def paste(page: Page, text: str) -> None:
    page.evaluate(
        """(text) => {
            const data = new DataTransfer();
            data.setData("text/plain", text);
            data.setData("text/html", "<p class=MsoNormal>" + text + "</p>");
            const options = { clipboardData: data, bubbles: true, cancelable: true };
            document.activeElement.dispatchEvent(new ClipboardEvent("paste", options));
        }""",
        text,
    )


def texts(page: Page) -> list[str]:
    return page.locator(".ed-text").all_inner_texts()


def test_a_survey_is_written_by_keys_and_nothing_is_lost(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    canvas = page.frame_locator("#ed-canvas")
    choose(page, "Why a ${pet}?")
    expect(canvas.locator(".ed-badge")).to_contain_text("Shown if")

    add(page, "One choice")
    page.keyboard.type("How do you get to school?")
    expect(canvas.locator(".ed-selected")).to_contain_text("How do you get to school?")
    page.keyboard.press("Tab")
    name = page.locator("[name^='f:survey'][name$=':name:']")
    expect(name).to_have_value("get_school")
    page.locator(".ed-options textarea").first.focus()
    page.keyboard.press("Control+A")
    paste(page, COLUMN)
    expect(canvas.locator(".ed-selected .option")).to_have_text(
        ["Walking", "By bike", "By bus 🚌", "By car"]
    )
    # Enter adds an option, Backspace deletes an empty one, Alt and arrows move it.
    option = page.locator(".ed-options textarea")
    option.nth(3).press("Enter")
    expect(option.nth(4)).to_be_focused()
    page.keyboard.type("Other")
    expect(canvas.locator(".ed-selected .option").nth(4)).to_have_text("Other")
    page.keyboard.press("Alt+ArrowUp")
    expect(canvas.locator(".ed-selected .option").nth(3)).to_have_text("Other")
    expect(option.nth(3)).to_be_focused()
    option.nth(4).fill("")
    option.nth(4).press("Backspace")
    expect(option).to_have_count(4)

    # A rule, chosen in words.
    page.locator("#ed-rule-relevant > summary").click()
    page.select_option("#ed-rule-relevant [name$='-item']", "pet")
    page.locator("#ed-rule-relevant select[name$='-value']").select_option("dog")
    expect(canvas.locator(".ed-selected .ed-badge")).to_contain_text("Dog")

    # Control and Enter add another question, of the same kind.
    page.keyboard.press("Control+Enter")
    expect(page.locator("#ed-settings textarea").first).to_be_focused()
    expect(page.locator("#ed-wrong")).to_be_empty()
    page.keyboard.type("Which way is best?")
    expect(line(page, "Which way is best?")).to_be_visible()
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Add page").click()
    expect(page.locator("#ed-settings textarea").first).to_be_focused()
    page.keyboard.type("Last")
    expect(line(page, "Last")).to_be_visible()
    line(page, "No text yet").click()
    expect(page.locator("#ed-settings h2")).to_contain_text("Question")
    page.locator("#ed-settings textarea").first.fill("Is there anything else?")
    saved(page)
    page.locator(".ed-add summary").click()
    page.get_by_role("button", name="Grid: statements with one scale").click()
    expect(page.locator("#ed-settings textarea").first).to_be_focused()
    page.keyboard.type("How much do you agree?")
    row = page.locator("#ed-rows textarea").first
    row.focus()
    paste(page, "I feel safe.\r\nI am heard.\r\nThe rules are fair.")
    expect(line(page, "The rules are fair.")).to_be_visible()
    saved(page)

    # Lines move by keys, and the focus stays.
    before = ["Pets", "Which pet?", "Why a ${pet}?", "How do you get to school?"]
    before += ["Which way is best?", "Last"]
    grid = ["How much do you agree?", "I feel safe.", "I am heard."]
    grid.append("The rules are fair.")
    question, after = "Is there anything else?", ["More", "How much?", "First?"]
    after.append("Second?")
    line(page, "Is there anything else?").focus()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.locator(".ed-text")).to_have_text([*before, *grid, question, *after])
    expect(line(page, "Is there anything else?")).to_be_focused()
    page.keyboard.press("Control+Z")
    expect(page.locator(".ed-text")).to_have_text([*before, question, *grid, *after])
    page.keyboard.press("Delete")
    expect(page.locator("#ed-toast")).to_contain_text("1 question is deleted.")
    page.locator("#ed-toast").get_by_role("button", name="Undo").click()
    expect(line(page, "Is there anything else?")).to_be_visible()

    # What is wrong is said while it is typed.
    choose(page, "Why a ${pet}?")
    page.locator("#ed-settings textarea").first.fill("Why a ${cat}?")
    expect(canvas.locator(".ed-wrong")).to_contain_text("cat")
    expect(page.locator("#ed-wrong")).to_contain_text("1 question with a problem")
    page.locator("#ed-settings textarea").first.fill("Why a ${pet}?")
    expect(page.locator("#ed-wrong")).not_to_contain_text("problem")

    written = texts(page)
    page.reload()
    assert texts(page) == written
    draft.refresh_from_db()
    assert not read_rows_of(draft).problems


def test_typing_without_a_connection_is_kept_and_saved(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    page.context.set_offline(True)
    page.locator("#ed-settings textarea").first.fill("Which animal?")
    expect(page.locator("#ed-status")).to_contain_text("no connection")
    # The tab is lost meanwhile, and another one is opened.
    page.close()
    tab = page.context.new_page()
    tab.context.set_offline(False)
    opened(tab, draft)
    expect(line(tab, "Which animal?")).to_be_visible()
    saved(tab)
    assert (
        tab.evaluate("Object.keys(localStorage).filter(k => k.includes(':label'))")
        == []
    )


def test_a_text_that_the_server_cannot_save_does_not_block_the_others(
    staff,
    console,  # noqa: F811
    draft,
):
    page = opened(console(staff.state, viewport=DESK), draft)

    def answer(route):
        if "poison" in (route.request.post_data or ""):
            route.fulfill(status=500, content_type="text/html", body="<p>Sorry.</p>")
        else:
            route.continue_()

    page.route("**/edit/change/", answer)
    choose(page, "Which pet?")
    text, hint = (page.locator("#ed-settings textarea").nth(n) for n in range(2))
    text.fill("poison")
    hint.fill("Furry or not.")
    expect(page.locator(".ed-problem", has_text="could not be saved")).to_be_visible()
    status = page.locator("#ed-status")
    expect(status).to_have_attribute("data-state", "refused")
    row = load_book(draft).sheet("survey").rows[1]
    assert "Furry or not." in row.cells.values()
    # After a warning, and another attempt that fails, the rest can still be saved.
    kinds = []
    page.on("dialog", lambda dialog: (kinds.append(dialog.type), dialog.accept()))
    page.reload()
    assert kinds == ["beforeunload"]
    expect(text).to_have_value("poison")
    page.unroute("**/edit/change/")
    text.fill("Which animal?")
    saved(page)
    page.reload()
    assert kinds == ["beforeunload"]
    expect(text).to_have_value("Which animal?")


def test_half_a_rule_survives_a_reload(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "First?")
    rule = page.locator("#ed-rule-relevant")
    rule.locator("summary").first.click()
    rule.get_by_label("Question", exact=True).select_option("pet")
    expect(rule.get_by_label("Answer", exact=True)).to_have_value("")
    status = page.locator("#ed-status")
    expect(status).to_have_text("Saved, but a rule is not finished")
    expect(page.locator(".ed-unfinished")).to_contain_text("does not count yet")
    page.locator("#ed-check").click()
    notice = page.locator("#ed-notice")
    expect(notice.get_by_role("link")).to_have_text(
        ["First?", "Check and publish anyway"]
    )
    notice.get_by_role("button", name="Close").click()
    page.reload()
    expect(rule.get_by_label("Question", exact=True)).to_have_value("pet")
    choose(page, "Second?")
    expect(rule.get_by_label("Question", exact=True)).to_have_value("")
    choose(page, "First?")
    answer = rule.get_by_label("Answer", exact=True)
    expect(rule.get_by_label("Question", exact=True)).to_have_value("pet")
    answer.select_option("dog")
    expect(rule.locator("summary").first).to_contain_text("Dog")
    saved(page)
    sheet = load_book(draft).sheet("survey")
    rules = [sheet.value(row, "relevant") for row in sheet.rows]
    assert rules.count("${pet} = 'dog'") == 1
    assert page.evaluate(STORED_RULES) == []


def test_a_rule_that_cannot_be_stored_says_so(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    rule = page.locator("#ed-rule-relevant")
    rule.locator("summary").first.click()
    rule.locator(".rule-code summary").click()
    code = rule.get_by_label("Expression")
    # A question that comes later is shown, though it is not offered.
    code.fill("${why} = 'x'")
    expect(rule.get_by_label("Answer", exact=True)).to_have_value("x")
    expect(rule.get_by_label("Question", exact=True)).to_have_value("why")
    code.fill("true()")
    expect(rule.get_by_text("says more than conditions can")).to_be_visible()
    saved(page)
    sheet = load_book(draft).sheet("survey")
    assert sheet.value(sheet.rows[1], "relevant") == "true()"

    choose(page, "First?")
    rule.locator("summary").first.click()
    rule.get_by_label("Question", exact=True).select_option("why")
    rule.get_by_label("Answer", exact=True).fill("both ${")
    status = page.locator("#ed-status")
    expect(status).to_have_attribute("data-state", "refused")
    choose(page, "Second?")
    expect(status).to_have_attribute("data-state", "refused")
    page.reload()
    expect(status).to_have_attribute("data-state", "refused")
    choose(page, "First?")
    expect(rule.get_by_text("Remove “${”")).to_be_visible()
    rule.get_by_label("Answer", exact=True).fill("both")
    saved(page)

    # A group stays, with its conditions inside of the settings.
    rule.get_by_role("button", name="Add group").click()
    group = rule.locator(".rule-group")
    group.get_by_label("Question", exact=True).select_option("pet")
    group.locator("select[name$='-value']").select_option("dog")
    saved(page)
    edge = page.locator("#ed-settings").bounding_box()
    box = group.get_by_label("Answer", exact=True).bounding_box()
    assert edge and box and box["x"] + box["width"] < edge["x"] + edge["width"]
    page.locator("#ed-settings textarea").first.fill("First of all?")
    expect(line(page, "First of all?")).to_be_visible()
    expect(group.get_by_label("Answer", exact=True)).to_have_value("dog")


STORED_RULES = "Object.keys(localStorage).filter(k => k.includes(':rule:'))"


def test_two_people_type_into_one_field(staff, console, colleague, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    pat = opened(console(colleague, viewport=DESK), draft)
    for tab in (page, pat):
        choose(tab, "Which pet?")
    pat.locator("#ed-settings textarea").first.fill("Which animal?")
    saved(pat)
    mine = page.locator("#ed-settings textarea").first
    mine.fill("Which pets?")
    box = page.locator(".ed-conflict")
    expect(box).to_contain_text("pat@example.org changed this at")
    expect(box).to_contain_text("Which animal?")
    expect(mine).to_have_value("Which pets?")
    mine.fill("Which pets or animals?")
    box.get_by_role("button", name="Keep mine").click()
    expect(box).to_have_count(0)
    saved(page)
    expect(line(page, "Which pets or animals?")).to_be_visible()
    pat.locator("#ed-settings textarea").first.fill("Which one?")
    pat.get_by_role("button", name="Take theirs").click()
    expect(pat.locator("#ed-settings textarea").first).to_have_value(
        "Which pets or animals?"
    )
    saved(pat)


def test_a_login_that_ends_keeps_the_text(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    cookies = page.context.cookies()
    page.context.clear_cookies()
    page.locator("#ed-settings textarea").first.fill("Which animal?")
    notice = page.locator("#ed-notice")
    expect(notice).to_contain_text("no longer logged in")
    expect(notice.get_by_role("link")).to_have_attribute("target", "_blank")
    page.context.add_cookies(cookies)
    expect(notice).to_be_hidden()
    saved(page)
    expect(line(page, "Which animal?")).to_be_visible()


def test_a_right_that_is_withdrawn_keeps_the_text(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    Membership.objects.filter(user=staff.state).delete()
    field = page.locator("#ed-settings textarea").first
    field.fill("Which animal?")
    expect(page.locator("#ed-notice")).to_contain_text("You may no longer edit")
    expect(field).to_have_value("Which animal?")


def test_a_question_deleted_meanwhile_gives_its_text_back(
    staff,
    console,  # noqa: F811
    colleague,
    draft,
):
    page = opened(console(staff.state, viewport=DESK), draft)
    pat = opened(console(colleague, viewport=DESK), draft)
    choose(page, "Why a ${pet}?")
    line(pat, "Why a ${pet}?").focus()
    pat.keyboard.press("Delete")
    expect(line(pat, "Why a ${pet}?")).to_have_count(0)
    field = page.locator("#ed-settings textarea").first
    waiting = []
    page.route("**/edit/change/", lambda route: waiting.append(route))
    with page.expect_request("**/edit/change/"):
        field.fill("A long text")
    field.fill("A long text, and more")
    waiting[0].continue_()
    page.unroute("**/edit/change/")
    notice = page.locator("#ed-notice")
    expect(notice).to_contain_text("deleted this meanwhile")
    expect(notice.locator("textarea")).to_have_value("A long text, and more")
    # The notice covers no button.
    page.locator("summary", has_text="More actions").click(trial=True)


def test_a_question_moves_by_its_menu(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    page.locator("#ed-settings textarea").first.fill("Which animal?")
    more = page.get_by_role("button", name="Actions for question 2: Why")
    line(page, "Why a ${pet}?").hover()
    more.click()
    # The answer to what was typed does not close the menu.
    saved(page)
    page.get_by_role("menuitem", name="Move to …").click()
    page.select_option("#ed-place", label="At the start of page 2: More")
    page.get_by_role("button", name="Move", exact=True).click()
    expect(page.locator(".ed-text").nth(3)).to_have_text("Why a ${pet}?")
    expect(line(page, "Why a ${pet}?")).to_be_focused()


def test_dragging_moves_a_question(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    pet, why = line(page, "Which pet?"), line(page, "Why a ${pet}?")
    pet.hover()
    page.mouse.down()
    box = why.bounding_box()
    assert box
    page.mouse.move(box["x"] + 40, box["y"] + 10, steps=5)
    page.mouse.move(box["x"] + 40, box["y"] + box["height"] - 2, steps=5)
    page.mouse.up()
    expect(page.locator("#ed-live")).to_have_text("Moved.")
    sheet = load_book(draft).sheet("survey")
    assert [sheet.value(row, "name") for row in sheet.rows][1:3] == ["why", "pet"]


def test_the_editor_is_accessible_and_reads_on_a_phone(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    screens = [
        {"viewport": DESK},
        {"viewport": DESK, "color_scheme": "dark"},
        {"viewport": NARROW},
    ]
    for text in ("Which pet?", "How much?", "Pets"):
        page.set_viewport_size(DESK)
        line(page, text).click()
        expect(page.locator("#ed-settings textarea").first).to_have_value(text)
        if page.locator("#ed-rule-relevant").count():
            page.locator("#ed-rule-relevant > summary").click()
        assert violations_on(page, screens) == []


def test_undo_of_a_message_goes_with_the_next_change(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    field = page.locator("#ed-settings textarea").first
    choose(page, "Which pet?")
    line(page, "Why a ${pet}?").focus()
    page.keyboard.press("Delete")
    toast = page.locator("#ed-toast")
    expect(toast).to_contain_text("1 question is deleted.")
    field.fill("Which animal?")
    expect(line(page, "Which animal?")).to_be_visible()
    expect(toast).to_be_hidden()
    # The fields show what is stored after *Undo* and *Redo*.
    page.locator("#ed-undo").click()
    expect(field).to_have_value("Which pet?")
    page.locator("#ed-redo").click()
    expect(field).to_have_value("Which animal?")


def test_a_message_names_a_few_questions_and_leaves_by_escape(staff, console):  # noqa: F811
    readers = [
        ["text", f"why_{n}", f"Why {n}?", None, None, WITH_PET] for n in range(7)
    ]
    rows = [*ROWS[:3], *readers, ROWS[4]]
    page = opened(console(staff.state, viewport=DESK), draft_of(rows=rows))
    line(page, "Which pet?").focus()
    page.keyboard.press("Delete")
    named = page.locator("#ed-toast li")
    expect(named).to_have_count(6)
    expect(named.last).to_have_text("and 2 more")
    page.keyboard.press("Escape")
    expect(page.locator("#ed-toast")).to_be_hidden()


def test_on_a_phone_the_field_stays_in_view(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=NARROW), draft)
    field = page.locator("#ed-settings textarea").first
    expect(page.frame_locator("#ed-canvas").locator(".ed-selected")).to_be_attached()
    assert page.evaluate("scrollY") == 0
    line(page, "Second?").click()
    expect(field).to_have_value("Second?")
    expect(field).to_be_in_viewport()
    field.click()
    before = page.evaluate("scrollY")
    field.press_sequentially(" And why?")
    saved(page)
    expect(line(page, "Second? And why?")).to_be_attached()
    assert page.evaluate("scrollY") == before
    part = page.frame_locator("#ed-canvas").locator("[data-ed-key]", has_text="First?")
    part.last.click()
    expect(field).to_have_value("First?")
    expect(field).to_be_focused()
    expect(field).to_be_in_viewport()


def test_another_question_is_not_chosen_without_a_connection(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    canvas = page.frame_locator("#ed-canvas")
    # The server does not answer, and the browser does not know it.
    page.route("**/edit/**", lambda route: route.abort())
    line(page, "Why a ${pet}?").click()
    expect(page.locator("#ed-toast")).to_contain_text("no connection")
    expect(line(page, "Which pet?")).to_have_attribute("aria-current", "true")
    expect(canvas.locator(".ed-selected")).to_contain_text("Which pet?")
    page.unroute("**/edit/**")
    choose(page, "Why a ${pet}?")


def test_the_menu_of_what_to_add_is_used_by_arrow_keys(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport={"width": 1280, "height": 720}), draft)
    page.locator(".ed-add summary").focus()
    page.keyboard.press("ArrowUp")
    last = page.get_by_role("link", name="From the question bank")
    expect(last).to_be_focused()
    expect(last).to_be_in_viewport(ratio=1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#ed-settings textarea").first).to_be_focused()
    expect(page.locator(".ed-option")).to_have_count(2)
    page.get_by_role("button", name="How often").click()
    expect(page.locator(".ed-option textarea").first).to_have_value("Always")


def test_control_z_undoes_what_was_done_last(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Why a ${pet}?")
    add(page, "Text")
    page.keyboard.press("Control+Z")
    expect(line(page, "No text yet")).to_have_count(0)
    add(page, "One choice")
    page.keyboard.type("How do you get to school?")
    option = page.locator(".ed-option textarea")
    option.first.focus()
    # Enter leads to the next option that has the text that it began with.
    page.keyboard.type("On foot")
    page.keyboard.press("Enter")
    expect(option.nth(1)).to_be_focused()
    paste(page, "By bus\nBy car")
    expect(option).to_have_count(3)
    page.keyboard.press("Control+Z")
    expect(option).to_have_count(2)
    expect(option.first).to_have_value("On foot")
    page.keyboard.press("Control+Z")
    expect(option.first).to_have_value("Option 1")
    expect(line(page, "How do you get to school?")).to_be_visible()
    # Of what was just typed there, the browser does it.
    text = page.locator("#ed-settings textarea").first
    text.press("End")
    page.keyboard.type("!")
    page.keyboard.press("Control+Z")
    expect(text).to_have_value("How do you get to school?")


def test_the_contents_are_one_stop_of_the_tab_key(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    line(page, "Which pet?").focus()
    page.keyboard.press("ArrowDown")
    expect(line(page, "Why a ${pet}?")).to_be_focused()
    expect(page.locator(".ed-line > a[tabindex='0']")).to_have_count(1)
    # Enter leads to its text, and Escape back.
    page.keyboard.press("Enter")
    field = page.locator("#ed-settings textarea").first
    expect(field).to_have_value("Why a ${pet}?")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(line(page, "Why a ${pet}?")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".ed-add summary")).to_be_focused()


def test_a_text_that_is_refused_stays_to_be_copied(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    name = page.get_by_role("textbox", name="Variable name")
    name.fill("first")
    name.blur()
    expect(
        page.locator(".ed-problem", has_text="Another question is called")
    ).to_be_visible()
    choose(page, "First?")
    notice = page.locator("#ed-notice")
    expect(notice).to_contain_text("This text could not be saved")
    expect(notice.locator("textarea")).to_have_value("first")
    notice.get_by_role("button", name="Close").click()
    expect(notice).to_be_hidden()


def test_pages_that_are_not_sent_again_stay_in_the_outline(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Why a ${pet}?")
    before = texts(page)
    with page.expect_response("**/edit/change/") as reply:
        page.locator("#ed-settings textarea").first.fill("Why?")
    assert "data-same" in reply.value.json()["outline"]
    saved(page)
    expect(line(page, "Why?")).to_be_visible()
    after = ["Why?" if text == "Why a ${pet}?" else text for text in before]
    assert texts(page) == after

    # A page moves as a whole, and its lines with it.
    page.locator(".ed-page", has_text="More").locator(".ed-head .ed-more").click()
    page.get_by_role("menuitem", name="Move up").click()
    expect(page.locator(".ed-head .ed-text").first).to_have_text("More")
    start = after.index("More")
    assert texts(page) == after[start:] + after[:start]

    # What was dropped somewhere, and not stored, is put back.
    first = page.locator(".ed-entries").nth(1).locator(".ed-line").first
    page.route("**/edit/change/", lambda route: route.fulfill(status=500))
    first.drag_to(page.locator(".ed-entries").first.locator(".ed-line").first)
    expect(page.locator("#ed-toast")).to_contain_text("could not be done")
    page.unroute("**/edit/change/")
    page.locator("#ed-settings textarea").first.fill("Why so?")
    expect(line(page, "Why so?")).to_be_visible()
    saved(page)
    shown = [text.replace("Why so?", "Why?") for text in texts(page)]
    assert shown == after[start:] + after[:start]


def test_a_question_is_named_after_its_text_also_after_a_reload(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    add(page, "One choice")
    page.locator("#ed-settings textarea").first.fill("How old are you?")
    saved(page)
    page.reload()
    name = page.get_by_role("textbox", name="Variable name")
    expect(name).to_have_value("old")


def test_the_check_leads_into_the_field_of_a_translation(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    page.locator("#ed-settings textarea").first.fill("Which animal?")
    saved(page)
    page.goto(reverse("survey_check", args=[draft.pk]))
    row = page.get_by_role("row", name="Which animal?")
    row.get_by_role("link").click()
    expect(page.locator("html.ed-ready")).to_be_attached()
    spanish = page.get_by_role("textbox", name="Question (Español)")
    expect(spanish).to_be_focused()
    page.get_by_role("button", name="The translation is still right").click()
    expect(page.locator(".ed-stale")).to_have_count(0)
    expect(spanish).to_have_value("¿Qué mascota?")


def test_a_pasted_list_takes_the_place_of_a_selected_one(staff, console, draft):  # noqa: F811
    page = opened(console(staff.state, viewport=DESK), draft)
    choose(page, "Which pet?")
    page.get_by_role("link", name="Change everywhere").click()
    option = page.locator(".ed-option textarea:not([readonly])")
    expect(option).to_have_count(2)
    option.first.focus()
    page.keyboard.press("Control+A")
    paste(page, "Cow\nPig\nHen")
    expect(option).to_have_count(3)
    assert [option.nth(n).input_value() for n in range(3)] == ["Cow", "Pig", "Hen"]
    # At the end of a text, the lines go between.
    option.first.focus()
    page.keyboard.press("End")
    paste(page, " (brown)\nGoat")
    expect(option).to_have_count(4)
    lines = ["Cow (brown)", "Goat", "Pig", "Hen"]
    assert [option.nth(n).input_value() for n in range(4)] == lines
