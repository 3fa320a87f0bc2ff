"""An administration from opening to closing, for staff and a respondent."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from accounts.models import User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from survey.fieldwork.administrations import open_administration
from survey.models import Administration, Respondent, Response, Role, Wave
from survey.tests.browser.accessibility import (
    scrolls_sideways,
    violations,
    violations_on,
)
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.live_server import Server
from survey.tests.browser.menus import choose_action
from survey.tests.browser.person import Person
from survey.tests.conftest import code_of, enrol

pytestmark = pytest.mark.django_db(transaction=True)
SMALL = {"width": 390, "height": 844}


@pytest.fixture
def desk(device: Callable[..., BrowserContext], server: Server) -> Callable[..., Page]:
    """Open a console tab with a user logged in."""

    def open_tab(user: User, **options: object) -> Page:
        context = device(**{"viewport": LAPTOP, **options})
        name = PREFIX + settings.SESSION_COOKIE_NAME
        cookie = log_in(Client(), user).cookies[name].value
        context.add_cookies([{"name": name, "value": cookie, "url": server.url}])
        return context.new_page()

    return open_tab


def local(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%dT%H:%M")


def heading(page: Page):
    return page.get_by_role("heading", level=1)


def go_on(page: Page, title: str) -> None:
    page.get_by_role("button", name="Continue").last.click()
    expect(heading(page)).to_have_text(title)


def test_opening_answering_and_closing(desk, device, staff, publish):
    publish()
    page = desk(staff.state)
    page.goto("/console/")
    page.get_by_role("navigation").get_by_text("Surveys").click()
    page.get_by_role("link", name="New survey round").first.click()
    page.get_by_role("radio", name="climate").check()
    go_on(page, "Who answers it?")
    page.get_by_role("radio", name="Students").check()
    finder = page.get_by_label("Find districts and schools")
    expect(finder).not_to_be_visible()
    page.get_by_role("radio", name="Chosen districts and schools").check()
    finder.fill("linc")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("checkbox", name="Lincoln, Riverside").check()
    # Enter finds as well.
    finder.fill("washing")
    finder.press("Enter")
    expect(page.get_by_role("checkbox", name="Washington")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Lincoln, Riverside")).to_be_checked()
    go_on(page, "When can they answer?")
    page.get_by_label("Or a new season").fill("Spring 2027")
    page.get_by_label("Opens").fill(local(timezone.now() - timedelta(minutes=1)))
    page.get_by_label("Closes").fill(local(timezone.now() + timedelta(days=9)))
    go_on(page, "Who sees that they have answered?")
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_label("Or a new season")).to_have_value("Spring 2027")
    go_on(page, "Who sees that they have answered?")
    page.get_by_role("radio", name="Coordinators see").check()
    go_on(page, "Check and open")
    expect(page.locator(".outcome")).to_contain_text("Students in 1 school can answer")
    page.get_by_role("button", name="Open survey round").click()
    page.wait_for_url(re.compile(r"/administrations/\d+/roster/$"))
    administration = Administration.objects.get()
    page.locator(".crumbs").get_by_role("link", name=administration.title).click()
    expect(heading(page)).to_contain_text(f"{administration.title} open")
    expect(page.get_by_role("definition").filter(has_text="Lincoln")).to_be_visible()

    maya = enrol(administration, staff.lincoln, language="en")
    person = Person(device().new_page(), known={"age": "12"})
    person.log_in(maya)
    person.answer_page()
    person.next()
    person.sees("saved")

    page.reload()
    choose_action(page, "Close now")
    expect(page.locator(".caution-box")).to_contain_text(
        "1 person has started and not finished. They have ten more minutes"
    )
    page.get_by_role("button", name="Close now").click()
    expect(heading(page)).to_contain_text("closed")

    # Maya has ten minutes, and then no more.
    person.answer_page()
    person.next()
    person.sees("saved")
    saved = Response.objects.filter(respondent_id=maya.pk).count()
    administration.refresh_from_db()
    put_back = {"opens_at": timedelta(hours=1), "closes_at": timedelta(minutes=11)}
    Administration.objects.update(
        **{name: getattr(administration, name) - by for name, by in put_back.items()}
    )
    person.page.goto("/")
    person.page.fill("#code", code_of(maya))
    person.page.click("button[type=submit]")
    expect(person.page.locator("#code-error")).to_contain_text("closed")
    assert Response.objects.filter(respondent_id=maya.pk).count() == saved > 0
    assert Respondent.objects.get(pk=maya.pk).completed_at is None


SIZES = [{"viewport": LAPTOP}, {"viewport": SMALL, "color_scheme": "dark"}]


def test_pages_are_accessible_and_fit_the_screen(desk, staff, publish, administration):
    enrol(administration, staff.lincoln)
    Wave.objects.create(name="Spring 2027")
    Respondent.objects.update(started_at=timezone.now())
    page = desk(staff.state)
    detail = f"/console/administrations/{administration.pk}/"
    wave = f"/console/waves/{Wave.objects.get().pk}/"
    sights = ["/console/administrations/", "/console/administrations/open/", detail]
    sights += [detail + "change/", detail + "close/", detail + "reopen/"]
    sights += ["/console/waves/", "/console/waves/new/"]
    sights += [wave + "rename/", wave + "delete/"]
    for sight in sights:
        page.goto(sight)
        expect(heading(page)).to_be_visible()
        assert (sight, violations_on(page, SIZES)) == (sight, [])

    # Each step, with search results, and with errors.
    publish(name="next")
    page.goto("/console/administrations/open/")
    page.get_by_role("button", name="Continue").last.click()
    expect(page.locator(".error").first).to_be_visible()
    assert violations_on(page, SIZES) == []
    page.get_by_role("radio").first.check()
    go_on(page, "Who answers it?")
    page.get_by_role("radio", name="Teachers").check()
    page.get_by_role("radio", name="Chosen districts and schools").check()
    page.get_by_label("Find districts and schools").fill("r")
    page.get_by_role("button", name="Find").click()
    school = page.get_by_role("checkbox", name=re.compile("Lincoln"))
    expect(school).to_be_visible()
    assert violations_on(page, SIZES) == []
    school.check()
    go_on(page, "When can they answer?")
    assert violations_on(page, SIZES) == []
    go_on(page, "Who sees that they have answered?")
    expect(page.get_by_role("radio", name="Coordinators see")).to_be_disabled()
    page.get_by_text("More settings").click()
    assert violations_on(page, SIZES) == []
    go_on(page, "Check and open")
    assert violations_on(page, SIZES) == []


def test_the_steps_work_without_scripts(desk, staff, publish):
    publish()
    page = desk(staff.dana, java_script_enabled=False, viewport=SMALL)
    page.goto("/console/administrations/open/")
    page.get_by_role("radio").check()
    go_on(page, "Who answers it?")
    page.get_by_role("radio", name="Parents", exact=True).check()
    page.get_by_role("radio", name="Chosen districts and schools").check()
    page.get_by_label("Find districts and schools").fill("lincoln")
    page.get_by_role("button", name="Find").click()
    expect(page.locator(".error")).to_have_count(0)
    page.get_by_role("checkbox", name="Lincoln, Riverside").check()
    go_on(page, "When can they answer?")
    page.get_by_label("Opens").fill(local(timezone.now() + timedelta(days=1)))
    page.get_by_label("Closes").fill(local(timezone.now() + timedelta(days=9)))
    go_on(page, "Who sees that they have answered?")
    go_on(page, "Check and open")
    page.get_by_role("link", name="Change People").click()
    expect(page.get_by_role("checkbox", name="Lincoln, Riverside")).to_be_checked()
    go_on(page, "Check and open")
    page.get_by_role("button", name="Schedule survey round").click()
    page.wait_for_url(re.compile(r"/administrations/\d+/roster/$"))
    administration = Administration.objects.get()
    page.locator(".crumbs").get_by_role("link", name=administration.title).click()
    expect(heading(page)).to_contain_text(f"{administration.title} planned")
    assert list(administration.schools.all()) == [staff.lincoln]


def test_a_refused_form_leads_to_each_error_and_keeps_what_was_typed(
    desk, staff, publish
):
    publish()
    page = desk(staff.state)
    page.goto("/console/administrations/open/")
    page.get_by_role("radio").check()
    go_on(page, "Who answers it?")
    page.get_by_role("radio", name="Students").check()
    go_on(page, "When can they answer?")
    inputs = {name: page.get_by_label(name) for name in ("Opens", "Closes")}
    for field in inputs.values():
        field.fill("")
    page.get_by_label("Or a new season").fill("Spring 2027")
    page.get_by_role("button", name="Continue").last.click()

    summary = page.get_by_role("alert")
    expect(summary).to_be_focused()
    expect(summary).to_be_in_viewport()
    expect(summary.get_by_role("heading")).to_have_text("There is a problem")
    expect(page).to_have_title(re.compile("^Error: "))
    expect(summary.get_by_role("link")).to_have_count(len(inputs))
    for label, field in inputs.items():
        summary.get_by_role("link", name=re.compile(f"^{label}: ")).click()
        expect(field).to_be_focused()
        expect(field).to_be_in_viewport()
    expect(page.get_by_label("Or a new season")).to_have_value("Spring 2027")
    assert violations(page) == []
    page.set_viewport_size(SMALL)
    assert not scrolls_sideways(page)
    # What is corrected is no longer listed, and the summary goes with the last of it.
    inputs["Opens"].fill("2027-03-01T08:00")
    inputs["Closes"].focus()
    expect(summary.get_by_role("link", name=re.compile("^Opens"))).to_have_count(0)
    expect(inputs["Opens"]).not_to_have_attribute("aria-invalid", "true")
    inputs["Closes"].fill("2027-03-08T08:00")
    inputs["Closes"].blur()
    expect(summary).to_have_count(0)
    expect(page).not_to_have_title(re.compile("^Error: "))


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_removing_an_administration_on_a_phone(desk, staff, publish, scripts):
    now = timezone.now()
    spring = open_administration(
        name="mistake",
        published=publish(),
        role=Role.STUDENT,
        opens_at=now + timedelta(days=1),
        closes_at=now + timedelta(days=9),
        district=staff.riverside,
    )
    enrol(spring, staff.lincoln)
    page = desk(staff.dana, viewport=SMALL, java_script_enabled=scripts)
    page.goto(f"/console/administrations/{spring.pk}/")
    choose_action(page, "Remove")
    expect(heading(page)).to_have_text(f"Remove {spring.title}?")
    expect(page.get_by_text("1 invited person")).to_be_visible()
    assert not scrolls_sideways(page)
    if scripts:
        assert violations(page) == []
    page.get_by_role("button", name="Remove survey round").click()
    expect(page.get_by_text("Type the short name").first).to_be_visible()
    if scripts:
        assert violations(page) == []
    page.get_by_label("Short name").fill("mistake")
    page.get_by_role("button", name="Remove survey round").click()
    page.wait_for_url("**/administrations/")
    expect(page.get_by_text(f"{spring.title} was removed.")).to_be_visible()
    assert not Administration.objects.exists()
