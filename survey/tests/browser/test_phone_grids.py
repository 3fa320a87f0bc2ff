"""A grid on a phone: a bar of labelled segments per statement. And scales not set."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey
from survey.models import Respondent
from survey.tests.browser.accessibility import scrolls_sideways, violations_on
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.test_finishing import begin_on
from survey.tests.browser.test_tab import HIDE, answers_of, has_status
from survey.tests.conftest import enrol, open_now
from survey.tests.workbooks import form, read

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = {"width": 390, "height": 844}
SMALL = {"width": 320, "height": 600}
ROWS = [f"row{n}" for n in range(1, 7)]
HEAD = ["type", "name", "label::English (en)", "label::العربية (ar)", "appearance"]
HEAD += ["parameters"]
STATEMENT = ["They help someone who has dropped their things.", "يساعدون غيرهم."]
SETTINGS = [
    ["form_title", "form_id", "version", "default_language"],
    ["Grids", "grids", "1", "English (en)"],
]
WORDS = [
    ("Never", "أبدا"),
    ("Rarely", "نادرا"),
    ("Sometimes", "أحيانا"),
    ("Often", "غالبا"),
    ("Almost always", "دائما تقريبا"),
]
BOXES = """() => [...document.querySelectorAll("#page input")].map((input) => {
  const { x, y, width, height } = input.getBoundingClientRect();
  return [x, y + scrollY, width, height].map(Math.round);
})"""
SEGMENTS = """() => [...document.querySelectorAll("#page .table .option")].map((box) => {
  const { x, y, width, height } = box.getBoundingClientRect();
  return [x, y + scrollY, width, height].map(Math.round);
})"""
# The labels that can be seen, from left to right; and each must be within its segment,
# in letters that can be read.
SEEN = """(row) => [...row.querySelectorAll(".option")]
  .filter((box) => {
    const label = box.querySelector("span");
    const [inner, outer] = [label, box].map((part) => part.getBoundingClientRect());
    return label.checkVisibility({ opacityProperty: true })
      && parseFloat(getComputedStyle(label).fontSize) >= 12
      && inner.width > 10 && label.scrollWidth <= label.clientWidth + 1
      && inner.left >= outer.left && inner.right <= outer.right
      && inner.bottom <= outer.bottom;
  })
  .map((box) => [box.getBoundingClientRect().x, box.textContent])
  .sort(([one], [two]) => one - two)
  .map(([, text]) => text)"""


LONG_WORDS = [
    *("Totalmente de acuerdo", "De acuerdo", "Ni de acuerdo ni en desacuerdo"),
    *("En desacuerdo", "Totalmente en desacuerdo"),
]


def enrolled_in(columns: int, lincoln, labels: list[str] | None = None) -> Respondent:
    """Publish a page with a grid of six statements and a scale."""
    survey = [
        HEAD,
        ["begin group", "help", "Help", "مساعدة", "field-list"],
        ["begin group", "grid", "How often?", "كم مرة؟", "table-list"],
        *(["select_one often", name, *STATEMENT, None] for name in ROWS),
        ["end group"],
        ["range", "sure", "How sure are you?", "ما مدى تأكدك؟", None]
        + ["start=0 end=10 step=1"],
        ["end group"],
    ]
    words = [*WORDS, *((f"Level {n}", f"{n}") for n in range(6, 12))]
    if labels:
        words = [(label, "") for label in labels]
    choices = [
        ["list_name", "name", "label::English (en)", "label::العربية (ar)"],
        *(["often", n, *pair] for n, pair in enumerate(words[:columns], start=1)),
    ]
    draft = read(survey, choices, SETTINGS).draft
    assert draft
    content = form(survey, choices, SETTINGS)
    published = publish_survey(
        survey=import_survey(draft=draft, source_name="grids", source=content)
    )
    return enrol(open_now(published), lincoln, language="en")


@pytest.fixture
def noor(transactional_db: None, lincoln) -> Respondent:
    return enrolled_in(5, lincoln)


@pytest.fixture
def grid(device: Callable, noor: Respondent) -> Page:
    return begin_on(device(viewport=PHONE, reduced_motion="reduce"), noor)


def segment(page: Page, row: str, value: str) -> Locator:
    return page.locator(f"#item-{row} input[value='{value}']")


def test_six_statements_are_answered_on_little_more_than_one_screen(grid, noor):
    # As one list of cards they were 2,589 pixels high.
    box = grid.locator(".grid").bounding_box()
    assert box and box["height"] < 1000
    for n, row in enumerate(ROWS):
        segment(grid, row, str(n % 5 + 1)).click()
    grid.evaluate(HIDE)
    has_status(grid, "saved")
    chosen = {row: str(n % 5 + 1) for n, row in enumerate(ROWS)}
    assert answers_of(noor) == chosen


@pytest.mark.parametrize("screen", [PHONE, SMALL])
def test_segments_are_large_and_stay_where_they_are(grid, screen):
    grid.set_viewport_size(screen)
    before = grid.evaluate(SEGMENTS)
    assert len(before) == 6 * 5
    for _, _, width, height in before:
        assert (width >= 44, height >= 44) == (True, True)
    for n, row in enumerate(ROWS):
        segment(grid, row, str(n % 5 + 1)).click()
        clear = grid.locator(f"#item-{row}").get_by_role("button", name="Clear answer")
        expect(clear).to_be_visible()
        assert grid.evaluate(SEGMENTS) == before
    assert not scrolls_sideways(grid)


@pytest.mark.parametrize("screen", [PHONE, SMALL])
def test_answers_of_long_words_are_all_as_wide_in_two_lines(device, lincoln, screen):
    respondent = enrolled_in(5, lincoln, LONG_WORDS)
    page = begin_on(device(viewport=screen), respondent)
    boxes = page.evaluate(SEGMENTS)[:5]
    assert page.locator("#item-row1").evaluate(SEEN) and not scrolls_sideways(page)
    lines = sorted({y for _, y, _, _ in boxes})
    assert [[y for _, y, _, _ in boxes].count(line) for line in lines] == [3, 2]
    widths = [width for _, _, width, _ in boxes]
    assert max(widths) - min(widths) <= 1
    page.set_viewport_size(LAPTOP)
    # Beside each other, below their labels.
    assert len({y for _, y, _, _ in page.evaluate(SEGMENTS)[:5]}) == 1


@pytest.mark.parametrize("screen", [PHONE, SMALL])
def test_a_row_shows_the_labels_of_all_answers(grid, screen):
    grid.set_viewport_size(screen)
    row = grid.locator("#item-row1")
    words = [word for word, _ in WORDS]
    assert row.evaluate(SEEN) == words
    # In one line, so that they are read as a scale.
    assert len({y for _, y, _, _ in grid.evaluate(SEGMENTS)[:5]}) == 1
    segment(grid, "row1", "3").click()
    assert row.evaluate(SEEN) == words
    row.get_by_role("button", name="Clear answer").click()
    expect(row.locator("input:checked")).to_have_count(0)
    # Labels are activated as well, as labels of radio buttons are.
    row.get_by_text("Almost always").click()
    expect(segment(grid, "row1", "5")).to_be_checked()


def test_each_segment_has_its_full_label_and_arrows_choose_it(grid):
    group = grid.get_by_role("radiogroup", name=STATEMENT[0]).first
    for word, _ in WORDS:
        expect(group.get_by_role("radio", name=word, exact=True)).to_have_count(1)
    segment(grid, "row1", "1").focus()
    grid.keyboard.press("Space")
    grid.keyboard.press("ArrowRight")
    expect(segment(grid, "row1", "2")).to_be_focused()
    expect(segment(grid, "row1", "2")).to_be_checked()


def test_a_scale_begins_at_the_right_where_a_text_does(grid):
    grid.select_option("#language", "ar")
    grid.wait_for_selector("html[dir=rtl]")
    places = [segment(grid, "row1", str(n)).bounding_box()["x"] for n in range(1, 6)]
    assert places == sorted(places, reverse=True)
    segment(grid, "row1", "2").click()
    words = [arabic for _, arabic in WORDS]
    seen = grid.locator("#item-row1").evaluate(SEEN)
    assert seen == words[::-1]


@pytest.mark.parametrize("columns", [2, 3, 7, 11])
def test_grids_of_all_widths_fit_a_phone(device, lincoln, columns):
    page = begin_on(device(viewport=PHONE), enrolled_in(columns, lincoln))
    first = page.locator("#item-row1")
    assert len(first.evaluate(SEEN)) == columns
    last = first.locator(".option").last
    box = last.bounding_box()
    assert box and box["width"] >= 44 and box["height"] >= 44
    last.click()
    expect(segment(page, "row1", str(columns))).to_be_checked()
    assert violations_on(page, [{"viewport": PHONE}, {"viewport": SMALL}]) == []


def test_a_grid_is_accessible_on_a_phone(grid):
    segment(grid, "row2", "3").click()
    screens = [
        {"viewport": {"width": 640, "height": 400}},
        {"viewport": PHONE, "color_scheme": "dark"},
        {"viewport": PHONE, "forced_colors": "active"},
    ]
    assert violations_on(grid, screens) == []


def test_a_grid_is_a_table_on_a_laptop(grid):
    grid.set_viewport_size(LAPTOP)
    expect(grid.locator(".grid-head")).to_be_visible()
    grid.locator("#item-row1 .option").nth(2).click()
    expect(segment(grid, "row1", "3")).to_be_checked()


# Scales

VALUE = (
    "() => getComputedStyle(document.querySelector('.range-value'), '::before').content"
)


@pytest.mark.parametrize("set_it", ["Space", "ArrowRight", "tap"])
def test_a_scale_says_that_it_is_not_set(grid, noor, set_it):
    slider = grid.get_by_role("slider", name="How sure are you?")
    expect(slider).to_have_attribute("aria-valuetext", "Not answered yet")
    assert grid.evaluate(VALUE) == '"Move or tap to answer"'
    before = grid.evaluate(BOXES)
    grid.evaluate(HIDE)
    assert answers_of(noor) == {}
    if set_it == "tap":
        # The middle, where the handle is already.
        slider.click()
    else:
        slider.press(set_it)
    value = "6" if set_it == "ArrowRight" else "5"
    expect(grid.locator(".range-value")).to_have_text(value)
    expect(slider).not_to_have_attribute("aria-valuetext", "Not answered yet")
    assert grid.evaluate(VALUE) == "none"
    assert grid.evaluate(BOXES) == before
    grid.evaluate(HIDE)
    has_status(grid, "saved")
    assert answers_of(noor) == {"sure": value}
