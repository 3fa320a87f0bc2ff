"""Charts of results for eyes, the keyboard, screen readers and paper."""

from __future__ import annotations

from datetime import timedelta

import pypdfium2
import pytest
from django.utils import timezone
from playwright.sync_api import expect

from reports.releases.apply_suppression import hide_small_groups
from reports.releases.rollup import roll_up_results
from reports.tests.exports.conftest import answer, enrol, opened  # noqa: F401
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey
from survey.tests.browser.accessibility import violations, violations_on
from survey.tests.workbooks import form, read

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = {"viewport": {"width": 390, "height": 844}}
SCREENS = [
    PHONE,
    PHONE | {"color_scheme": "dark"},
    PHONE | {"forced_colors": "active"},
    {"viewport": {"width": 1280, "height": 800}},
]
# Without a space where a line could end.
LONG_WORD = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen"
LONG = f"{LONG_WORD}, and many more words that hardly fit on a phone at all"
HEADER = ["type", "name", "label::{}", "appearance"]
ROWS = [
    ["begin group", "p1", "{}", "field-list"],
    ["select_one agree", "safe", "{} safe", "likert"],
    ["select_one pets", "pets", "{} pets", None],
    ["select_multiple pets", "many", "{} many", None],
    ["integer", "age", "{} age", None],
    ["text", "comment", "{} comment", None],
    ["end group", None, None, None],
]


def asked(language: str, labels: list[str], word: str, name: str, version: str):
    """Publish a survey in one language with every kind of chart."""
    rows = [
        [cell.replace("{}", word) if cell else cell for cell in row] for row in ROWS
    ]
    header = [cell.replace("{}", language) for cell in HEADER]
    choices = [["list_name", "name", f"label::{language}"]]
    choices += [["agree", n, label] for n, label in enumerate(labels, start=1)]
    choices += [["pets", "cat", labels[0]], ["pets", "dog", labels[1]]]
    settings = [
        ["form_title", "form_id", "version", "default_language"],
        [word, name, version, language],
    ]
    draft = read([header, *rows], choices, settings).draft
    assert draft
    content = form([header, *rows], choices, settings)
    return publish_survey(survey=import_survey(draft=draft, source=content))


@pytest.fixture
def close(transactional_db, staff, enrol):  # noqa: F811
    """Let people of Lincoln answer, and count their answers."""

    def close(administration, days: int):
        for n in range(24):
            person = enrol(administration, staff.lincoln, grade=("07", "08")[n % 2])
            given = {"safe": str(1 + (n + days) % 4), "pets": ("cat", "dog")[n % 2]}
            given |= {"many": ("cat dog", "cat", "dog")[n % 3], "age": str(9 + n % 5)}
            answer(person, given | {"comment": "I like it here. We are many."})
        now = timezone.now()
        administration.opens_at = now - timedelta(days=days + 10)
        administration.closes_at = now - timedelta(days=days)
        administration.minimum_group = 3
        administration.save()
        roll_up_results(administration)
        hide_small_groups(administration)
        return administration

    return close


@pytest.fixture
def english(close):
    labels = ["No", LONG, "Rather yes", "Yes"]
    before = close(
        opened(asked("English (en)", labels, LONG, "climate", "1"), "before"), 200
    )
    now = opened(asked("English (en)", labels, LONG, "climate", "2"), "now")
    return close(now, 1), before


def test_every_kind_of_chart_has_a_name_a_table_and_a_sentence(
    at_screen, staff, english
):
    now, before = english
    page = at_screen(staff.state)
    page.goto(f"/console/results/{now.pk}/?compare={before.pk}")
    for name, picture in (
        ("safe", "Diverging bars of the answers: All schools, "),
        ("pets", "Bars of the answers: All schools, "),
        ("many", "Bars of the answers: All schools, "),
        ("age", "Histograms of the numbers: All schools, "),
    ):
        item = page.locator(f".results-item:has(#item-{name})")
        assert " compared with " in item.locator(".item-text > p").first.inner_text()
        if picture:
            expect(item.get_by_role("img")).to_have_accessible_name(
                f"{picture}{before.opens_at:%B %Y}."
            )
        table = item.locator("table")
        assert "Change, in percentage points" in table.text_content()
        assert "its error of" in table.text_content()
    # The lower half ends where the upper half begins: at the line in the middle.
    line = page.locator(".results-item:has(#item-safe) .bar line").first.bounding_box()
    third = page.locator(".results-item:has(#item-safe) .shade-5").nth(1).bounding_box()
    assert abs(third["x"] - line["x"]) < 2


def test_results_are_accessible_on_every_screen(at_screen, staff, english):
    now, before = english
    page = at_screen(staff.state)
    page.goto(f"/console/results/{now.pk}/?compare={before.pk}")
    assert violations_on(page, SCREENS) == []
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert violations_on(page, SCREENS) == []
    page.goto("/console/results/")
    assert violations_on(page, SCREENS) == []
    page.goto(f"/console/results/{now.pk}/comments/")
    expect(page.get_by_text("We are many.").first).to_be_visible()
    page.get_by_role("checkbox", name="I like it here.").first.check()
    page.get_by_role("button", name="Release chosen sentences").click()
    expect(page.get_by_role("button", name="Withdraw")).to_be_visible()
    assert violations_on(page, SCREENS) == []


def test_figures_open_and_close_by_the_keyboard(at_screen, staff, english):
    now, _before = english
    page = at_screen(staff.state, **PHONE)
    page.goto(f"/console/results/{now.pk}/")
    summary = page.locator(".results-item summary").first
    frame = page.locator(".results-item .table-frame").first
    expect(frame).to_be_hidden()
    # From the last control of the form.
    page.get_by_role("button", name="Show").focus()
    for _ in range(10):
        page.keyboard.press("Tab")
        if summary.evaluate("one => one === document.activeElement"):
            break
    expect(summary).to_be_focused()
    page.keyboard.press("Enter")
    expect(frame).to_be_visible()
    page.keyboard.press("Tab")
    expect(frame).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(frame).to_be_hidden()


def test_paper_has_all_tables_and_no_forms(at_screen, staff, english):
    now, before = english
    # As wide as what is printed on a sheet of Letter.
    page = at_screen(staff.state, viewport={"width": 739, "height": 950})
    page.goto(f"/console/results/{now.pk}/?compare={before.pk}&group=grade:07")
    page.emulate_media(media="print")
    for table in page.locator(".results-item table").all():
        expect(table).to_be_visible()
        assert table.evaluate("one => one.getBoundingClientRect().right <= innerWidth")
    for name in ("Show", "Share with schools"):
        assert page.get_by_role("button", name=name).count() == 0
    document = pypdfium2.PdfDocument(page.pdf(format="Letter"))
    text = " ".join(
        printed_page.get_textpage().get_text_range() for printed_page in document
    )
    words = " ".join(text.split())
    for expected in (
        *("Group: Grade: 7.", "Compared with:", "Not reached", "Software: counts 1."),
        "Change, in percentage points",
    ):
        assert expected in words


def test_arabic_texts_are_read_from_right_to_left_in_an_english_page(
    at_screen, staff, close
):
    labels = ["لا أوافق بشدة", "لا أوافق", "أوافق", "أوافق بشدة"]
    survey = asked("العربية (ar)", labels, "هل أنت بأمان؟", "arabic", "1")
    administration = close(opened(survey, "arabic"), 1)
    page = at_screen(staff.state, **PHONE)
    page.goto(f"/console/results/{administration.pk}/")
    safe = page.locator("#item-safe")
    expect(safe).to_have_attribute("lang", "ar")
    expect(safe).to_have_attribute("dir", "rtl")
    expect(page.locator("#item-safe + p")).to_have_text(
        "50 % answered “\u2068أوافق\u2069” or “\u2068أوافق بشدة\u2069”."
    )
    expect(
        page.locator(".results-item:has(#item-safe) .legend bdi").first
    ).to_have_attribute("lang", "ar")
    assert violations(page) == []
