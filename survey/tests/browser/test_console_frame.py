"""The frame of the console's pages: menus, help, navigation and lists, by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.template.loader import render_to_string
from django.urls import get_resolver
from playwright.sync_api import Page, expect

from settings.base import BASE_DIR
from survey.models import Respondent
from survey.tests.browser.accessibility import violations, violations_on
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.test_cards_journey import maya, open_console  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = {"width": 390, "height": 844}
# 1280 pixels at 400 %.
ENLARGED = {"width": 320, "height": 256}
DARK = {"color_scheme": "dark"}
NO_SCRIPTS = {"java_script_enabled": False}
HELP = BASE_DIR / "templates" / "console" / "help"


@pytest.fixture
def opened(device: Callable, server, staff) -> Callable[..., Page]:
    def open_page(address: str, **options: object) -> Page:
        context = device(**{"viewport": LAPTOP, **options})
        page = open_console(context, staff.dana, server.url)
        page.goto(address)
        return page

    return open_page


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.innerText").strip()


def test_account_menu_says_who_is_logged_in_and_logs_out(opened, staff):
    page = opened("/console/")
    menu = page.locator(".console-me")
    menu.locator("summary").press("Enter")
    expect(menu.locator(".who")).to_contain_text(staff.dana.email)
    expect(menu.locator(".who")).to_contain_text("district administrator, Riverside")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(menu.locator(".who")).to_be_hidden()
    assert page.evaluate("document.activeElement.closest('.console-me') !== null")
    menu.locator("summary").click()
    page.locator("h1").click()
    expect(menu.locator(".who")).to_be_hidden()
    menu.locator("summary").click()
    menu.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login/**")


@pytest.mark.parametrize("options", [{}, NO_SCRIPTS], ids=["scripts", "no scripts"])
def test_help_explains_a_page(opened, options):
    page = opened("/console/rosters/", **options)
    expect(page.get_by_text("A roster is a file that says")).to_be_hidden()
    page.locator("summary", has_text="Help").press("Enter")
    expect(page.get_by_text("A roster is a file that says")).to_be_visible()
    if not options:
        assert violations(page) == []


def test_each_help_text_has_a_page_and_a_few_sentences():
    routes = {name for name in get_resolver().reverse_dict if isinstance(name, str)}
    files = sorted(HELP.glob("*.html"))
    assert len(files) > 40
    for path in files:
        assert path.stem in routes
        sentences = re.findall(
            r"[.?!](?:\s|<)", render_to_string(f"console/help/{path.name}")
        )
        assert 3 <= len(sentences) <= 8, path.name


@pytest.mark.parametrize("options", [{}, NO_SCRIPTS], ids=["scripts", "no scripts"])
def test_a_phone_has_the_navigation_behind_a_button(opened, options):
    page = opened("/console/", viewport=PHONE, **options)
    schools = page.locator(".console-nav").get_by_text("Schools")
    expect(schools).to_be_hidden()
    page.get_by_text("Menu", exact=True).click()
    expect(schools).to_be_visible()
    if not options:
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(schools).to_be_hidden()
        page.get_by_role("button", name="Menu").press("Space")
    schools.click()
    page.wait_for_url("**/schools/**")
    expect(schools).to_be_hidden()
    # The search needs no menu.
    page.get_by_role("banner").get_by_role("link", name="Search").click()
    page.wait_for_url("**/search/**")


def test_keys_lead_to_the_search_and_through_the_rows(
    opened,
    administration,
    maya: Respondent,  # noqa: F811
):
    page = opened(f"/console/administrations/{administration.pk}/people/")
    page.get_by_role("link", name="Lincoln").first.click()
    page.wait_for_url("**/people/?school=*")
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    # In a field, "/" is a letter as any other.
    page.keyboard.type("/")
    expect(page.locator("#q")).to_have_value("/")
    page.locator("#q").fill("")
    expect(page.get_by_role("row")).to_have_count(4)
    page.locator("#q").focus()
    names = [link.inner_text() for link in page.locator("tbody th a").all()]
    for name in names:
        page.keyboard.press("ArrowDown")
        assert focused(page) == name
    page.keyboard.press("ArrowDown")
    assert focused(page) == names[-1]
    page.keyboard.press("ArrowUp")
    assert focused(page) == names[-2]
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(names[-2])


def test_the_key_of_the_search_can_be_switched_off(opened):
    page = opened("/console/schools/")
    lists, everything = page.locator("#q"), page.locator("#search-all")
    page.keyboard.press("/")
    expect(lists).to_be_focused()
    page.goto("/console/me/")
    page.keyboard.press("/")
    expect(everything).to_be_focused()
    assert violations(page) == []
    page.get_by_label("The key / goes to the search").uncheck()
    for address in ("/console/me/", "/console/schools/"):
        page.goto(address)
        page.keyboard.press("/")
        expect(page.locator("input[type=search]:focus")).to_have_count(0)
        page.keyboard.press("Control+k")
        expect(everything).to_be_focused()
    page.goto("/console/me/")
    page.get_by_label("The key / goes to the search").check()
    page.goto("/console/schools/")
    page.keyboard.press("/")
    expect(lists).to_be_focused()


def test_the_order_of_a_list_is_remembered_and_back_works(
    opened,
    administration,
    maya: Respondent,  # noqa: F811
):
    page = opened("/console/administrations/")
    page.get_by_role("link", name="Opens").click()
    page.wait_for_url("**sort=opens*")
    page.get_by_role("link", name=administration.title).click()
    page.wait_for_url(re.compile(r"/\d+/$"))
    page.locator(".crumbs").get_by_role("link", name="Survey rounds").click()
    page.wait_for_url("**sort=opens*")
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("Opens")
    page.go_back()
    page.wait_for_url(re.compile(r"/\d+/$"))


def test_rows_become_cards_on_narrow_screens(
    opened,
    administration,
    maya: Respondent,  # noqa: F811
):
    page = opened("/console/administrations/")
    cell = page.locator("td[data-label=Audience]").first
    title = page.get_by_role("rowheader").first
    assert cell.bounding_box()["y"] == title.bounding_box()["y"]
    for screen in (PHONE, ENLARGED):
        page.set_viewport_size(screen)
        expect(cell).to_have_role("cell")
        expect(cell).to_be_visible()
        assert cell.bounding_box()["y"] > title.bounding_box()["y"]
        both = [{"viewport": screen}, {"viewport": screen, **DARK}]
        assert violations_on(page, both) == []


def test_filters_are_folded_on_a_phone_so_that_a_search_shows_what_was_found(
    opened,
    administration,
    maya: Respondent,  # noqa: F811
):
    people = f"/console/administrations/{administration.pk}/people/"
    page = opened(f"{people}?school={maya.school_id}&q=Maya", viewport=PHONE)
    status = page.get_by_label("Status")
    filters = page.get_by_role("button", name="Filters")
    expect(status).to_be_hidden()
    expect(page.get_by_role("link", name="López, Maya")).to_be_in_viewport()
    assert violations(page) == []
    filters.click()
    status.select_option("Invited")
    expect(filters).to_contain_text(", Invited")
    page.get_by_role("button", name="Search").click()
    expect(status).to_be_hidden()
    expect(page.get_by_text("1 of 1", exact=True)).to_be_in_viewport()
    page.set_viewport_size(LAPTOP)
    expect(filters).to_be_hidden()
    expect(status).to_be_visible()


def test_the_header_of_a_long_list_stays_in_view(opened, staff):
    page = opened("/console/staff/")
    expect(page.locator(".table-frame.fits").first).to_be_visible()
    head = page.locator(".list thead th").first
    assert head.evaluate("one => getComputedStyle(one).position") == "sticky"


def test_columns_of_a_wide_list_are_chosen_and_remembered(opened, administration):
    page = opened("/console/administrations/")
    head = page.get_by_role("columnheader", name="Audience")
    expect(head).to_be_visible()
    # Seldom needed ones are hidden until somebody chooses.
    seldom = page.locator("th", has_text="Short name")
    expect(seldom).to_have_count(1)
    expect(seldom).to_be_hidden()
    page.locator("summary", has_text="Columns").click()
    page.locator(".columns-menu").get_by_label("Audience").uncheck()
    expect(head).to_be_hidden()
    page.locator(".columns-menu").get_by_label("Short name").check()
    expect(seldom).to_be_visible()
    expect(head).to_be_hidden()
    assert violations(page) == []
    # Also in the list that a search brings, and after the page is loaded again.
    with page.expect_response(re.compile("q=stud")):
        page.locator("#q").fill("stud")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(head).to_be_hidden()
    page.reload()
    expect(page.locator(".list.stacks")).to_be_visible()
    expect(head).to_be_hidden()
    page.locator("summary", has_text="Columns").click()
    page.locator(".columns-menu").get_by_label("Audience").check()
    expect(head).to_be_visible()


def test_pages_fit_a_window_enlarged_to_400_percent(
    opened,
    administration,
    maya: Respondent,  # noqa: F811
):
    page = opened("/console/", viewport=ENLARGED)
    # Their own tests check them in light colors.
    screens = [{"viewport": ENLARGED, **DARK}]
    about = f"/console/administrations/{administration.pk}/"
    for address in (
        "/console/",
        "/console/rosters/",
        "/console/surveys/",
        "/console/exports/",
        "/console/exports/new/",
        "/console/staff/",
        "/console/staff/invite/",
        "/console/audit/",
        "/console/me/",
        "/console/administrations/open/",
        about,
        f"{about}roster/",
        f"{about}people/",
        f"{about}people/?school={maya.school_id}",
        f"{about}people/{maya.pk}/",
        f"{about}cards/?school={maya.school_id}",
    ):
        page.goto(address)
        assert (address, page.locator("h1").count()) == (address, 1)
        assert violations_on(page, screens) == []
