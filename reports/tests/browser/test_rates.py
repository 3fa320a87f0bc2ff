"""The rates pages refresh themselves and stay usable."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from reports.models import RollUp
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from survey.models import Respondent, Role, Wave
from survey.tests.browser.accessibility import violations_on

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = 60_500


@pytest.fixture
def counted(transactional_db, staff, students):
    """Lincoln needs two more students."""
    monday = timezone.now() - timedelta(days=3)
    for grade in ("07", "08"):
        invite(students, staff.lincoln, 5, grade=grade, finished=5, at=monday)
        invite(students, staff.lincoln, 15, grade=grade, started=6, finished=4)
    invite(students, staff.lincoln, 2, grade="08", finished=1)
    invite(students, staff.washington, 60, grade="07", finished=12, at=monday)
    invite(students, staff.roosevelt, 30, grade="07", finished=20)
    roll_up()
    return students


def opened(page: Page, address: str) -> Page:
    page.clock.install()
    page.goto(address)
    expect(page.locator(".plot, .place-bars").first).to_be_visible()
    return page


def finish_one_more(school):
    respondent = Respondent.objects.filter(school=school, completed_at=None).first()
    now = timezone.now()
    Respondent.objects.filter(pk=respondent.pk).update(
        started_at=respondent.started_at or now, completed_at=now
    )
    roll_up()


def test_a_school_crosses_its_threshold_while_its_coordinator_watches(
    at_screen, staff, counted
):
    page = opened(at_screen(staff.chen), "/console/rates/")
    assert page.url.endswith(f"/console/rates/schools/{staff.lincoln.pk}/")
    panel = page.locator(".role-panel")
    expect(panel).to_contain_text("2 more students to reach 50 %")
    finish_one_more(staff.lincoln)
    finish_one_more(staff.lincoln)
    expect(panel).not_to_contain_text("Threshold reached")

    page.clock.fast_forward(MINUTE)
    expect(panel.locator(".badge.good").first).to_have_text("Threshold reached")
    expect(page.locator("#refreshed")).to_contain_text("last at")
    # What the chart shows came along.
    expect(page.locator(".plot").first).to_have_attribute(
        "aria-label", re.compile("21 of 42 have finished, 50 %")
    )


def test_the_chart_of_days_is_saved_as_a_picture(at_screen, staff, counted):
    page = opened(at_screen(staff.chen), "/console/rates/")
    with page.expect_download() as download:
        page.locator("[data-png=days]").click()
    assert download.value.suggested_filename == "days.png"
    picture = download.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG")
    # Twice as wide as the SVG file.
    assert int.from_bytes(picture[16:20], "big") == 1800


def test_refreshing_keeps_focus_scroll_position_and_open_details(
    at_screen, staff, counted
):
    page = opened(
        at_screen(staff.dana), f"/console/rates/districts/{staff.riverside.pk}/"
    )
    page.locator("#days-table summary").click()
    link = page.locator(f"#school-{staff.washington.pk}")
    link.focus()
    page.evaluate("scrollTo(0, 320)")
    before = page.evaluate("history.length")
    finish_one_more(staff.washington)

    page.clock.fast_forward(MINUTE)
    expect(page.locator("tr", has=link)).to_contain_text("13")
    expect(page.locator("#days-table")).to_have_attribute("open", "")
    expect(link).to_be_focused()
    assert page.evaluate("scrollY") == 320
    assert page.evaluate("history.length") == before
    # Each minute again, and a header keeps the keyboard as well.
    header = page.get_by_role("link", name="Finished")
    header.focus()
    finish_one_more(staff.washington)
    page.clock.fast_forward(MINUTE)
    expect(page.locator("tr", has=link)).to_contain_text("14")
    expect(header).to_be_focused()


def test_a_hidden_tab_sends_no_requests_and_refreshes_when_shown(
    at_screen, staff, counted
):
    page = opened(at_screen(staff.dana), "/console/rates/schools/")
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    hide = "v => { Object.defineProperty(document, 'hidden', {value: v, configurable: true}); document.dispatchEvent(new Event('visibilitychange')) }"
    page.evaluate(hide, True)
    page.clock.fast_forward(5 * MINUTE)
    page.wait_for_timeout(300)
    assert requests == []
    page.evaluate(hide, False)
    expect(page.locator("#refreshed")).to_contain_text("last at")
    assert len(requests) == 1


def test_figures_grow_old_while_the_server_is_away(at_screen, staff, counted):
    page = opened(at_screen(staff.dana), "/console/rates/schools/")
    age = page.locator("#age")
    expect(age).not_to_have_class(re.compile("caution"))
    page.route("**", lambda route: route.abort("connectionrefused"))
    for _ in range(3):
        page.clock.fast_forward(MINUTE)
    expect(page.locator("#refresh-trouble")).to_contain_text("could not be refreshed")
    expect(age).to_have_text("These figures are 3 minutes old: counting is late.")
    expect(age).to_have_class(re.compile("caution"))

    page.unroute("**")
    RollUp.objects.update(as_of=timezone.now())
    page.clock.fast_forward(MINUTE)
    expect(page.locator("#refresh-trouble")).to_be_empty()
    expect(age).to_have_text(re.compile("Counted .* ago"))


def test_a_session_that_ended_leads_to_the_login_page(at_screen, staff, counted):
    page = opened(at_screen(staff.dana), "/console/rates/schools/")
    page.context.clear_cookies()
    page.clock.fast_forward(MINUTE)
    page.wait_for_url("**/console/account/login/**")


def test_a_search_and_an_order_survive_the_refresh(at_screen, staff, counted):
    page = opened(at_screen(staff.state), "/console/rates/schools/?sort=-rate")
    page.fill("#q", "riverside")
    expect(page.locator(".count")).to_have_text(re.compile("1–2 of 2 schools"))
    page.clock.fast_forward(MINUTE)
    expect(page.locator("#refreshed")).to_contain_text("last at")
    expect(page.locator(".count")).to_have_text(re.compile("1–2 of 2 schools"))
    assert "q=riverside" in page.url


DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}}
SCREENS = [
    DESK,
    {**DESK, "color_scheme": "dark"},
    {**PHONE, "forced_colors": "active"},
    PHONE,
]


def test_rates_pages_are_accessible(at_screen, staff, counted, administer):
    wave = Wave.objects.create(name="Spring 2027")
    counted.wave = wave
    counted.save()
    teachers = administer("teachers-2027", Role.TEACHER, wave=wave)
    invite(teachers, staff.lincoln, 20, finished=9)
    roll_up()
    page = at_screen(staff.state, **PHONE)
    failures = []
    page.on("console", lambda message: failures.append(message.text))
    page.on("pageerror", lambda error: failures.append(str(error)))
    for address in (
        "/console/rates/",
        "/console/rates/schools/?sort=quiet",
        "/console/rates/schools/?q=nothing",
        f"/console/rates/districts/{staff.riverside.pk}/",
        f"/console/rates/schools/{staff.lincoln.pk}/",
    ):
        page.goto(address)
        # On phones, the menu of columns is inside the folded filters.
        for screen in (PHONE, DESK):
            page.set_viewport_size(screen["viewport"])
            for summary in page.locator("#list details:not([open]) > summary").all():
                if summary.is_visible():
                    summary.click()
        assert (address, violations_on(page, SCREENS)) == (address, [])
    assert failures == []


def test_filters_replace_each_other_in_the_address(at_screen, staff, counted):
    page = at_screen(staff.state)
    page.goto("/console/rates/schools/?sort=-rate")
    for state in ("below", "reached", "below"):
        page.get_by_label("Show", exact=True).select_option(state)
        expect(page).to_have_url(re.compile(f"state={state}"))
        assert page.url.count("state=") == page.url.count("sort=") == 1
    page.get_by_label("Show", exact=True).select_option("")
    # An empty filter is no part of the address.
    expect(page).to_have_url(
        re.compile(rf"/schools/\?sort=-rate&administration={counted.pk}$")
    )


def test_hours_are_drawn_once_they_are_opened(at_screen, staff, counted):
    page = opened(at_screen(staff.dana), f"/console/rates/schools/{staff.lincoln.pk}/")
    hours = page.locator("#hours .plot")
    expect(hours).not_to_be_visible()
    page.locator("#hours > summary").click()
    expect(hours).to_be_visible()
    assert hours.bounding_box()["width"] > 300
    refresh(page)
    expect(hours).to_be_visible()

    # A chosen day is open, and stays closed once it was closed.
    page.locator("#days-table summary").click()
    page.locator("#days-table tbody a").first.click()
    expect(hours).to_be_visible()
    page.locator("#hours > summary").click()
    refresh(page)
    expect(hours).not_to_be_visible()


def refresh(page: Page) -> None:
    before = page.locator("#refreshed").text_content()
    page.clock.fast_forward(MINUTE)
    expect(page.locator("#refreshed")).not_to_have_text(before)


def test_the_curve_is_drawn_above_the_people_of_each_day(at_screen, staff, counted):
    for width in (1280, 390):
        page = at_screen(staff.chen, viewport={"width": width, "height": 844})
        page.goto("/console/rates/")
        rate, people = (
            page.locator(f"#days-plot .plot-{part}").bounding_box()
            for part in ("rate", "people")
        )
        assert rate["height"] > 100 and people["height"] > 50
        assert rate["y"] + rate["height"] <= people["y"]
        assert rate["width"] == people["width"] > 200
