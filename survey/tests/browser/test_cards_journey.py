"""Login cards in the browser: a lost card, the cards of a class, accessibility."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from playwright.sync_api import BrowserContext, Locator, Page, expect

from accounts.models import User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from survey.models import Respondent
from survey.people.access_codes import code_of, format_code
from survey.tests.browser.accessibility import DESK, PHONE, check_both
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.menus import choose_action
from survey.tests.card_readers import read_pages
from survey.tests.people import invite

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def maya(server, administration, staff) -> Respondent:
    # Codes are shown next to names only where completion is.
    administration.coordinators_see_finished = True
    administration.save()
    invite(
        administration,
        staff.lincoln,
        "40312",
        "ليلى الخطيب",
        grade="07",
        classroom="7B",
        language="ar",
    )
    invite(administration, staff.lincoln, "40311", "Ben Adams", classroom="10A")
    return invite(
        administration,
        staff.lincoln,
        "40313",
        "Maya López",
        grade="07",
        classroom="7B",
        language="es",
    )


def open_console(context: BrowserContext, user: User, url: str) -> Page:
    """Open a tab that is logged in to the console with the second factor."""
    cookie = log_in(Client(), user).cookies[PREFIX + settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": url}])
    return context.new_page()


def log_in_with(page: Page, code: str) -> None:
    page.goto("/")
    page.fill("#code", code)
    page.click("button[type=submit]")


def test_leaving_the_search_does_not_load_the_list_again(
    device: Callable, server, staff, administration, maya
):
    page = open_console(device(viewport=DESK), staff.chen, server.url)
    page.goto(f"/console/administrations/{administration.pk}/people/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    field = page.get_by_label("Name, ID, e-mail")
    with page.expect_response(re.compile("=maya")):
        field.fill("maya")
    expect(page.get_by_role("row")).to_have_count(2)
    with page.expect_request("**/marker"):
        # As a click on a row does before it is one.
        field.evaluate("field => { field.blur(); fetch('/marker'); }")
    assert len([url for url in asked if "=maya" in url]) == 1


def test_reissuing_a_lost_card_and_printing_a_class(
    device: Callable, server, staff, administration, maya, tmp_path: Path
):
    old = code_of(maya)
    page = open_console(device(viewport=DESK), staff.chen, server.url)
    page.goto(f"/console/administrations/{administration.pk}/people/")
    with page.expect_response(re.compile("=maya")):
        page.get_by_label("Name, ID, e-mail").fill("maya")
    # A row that is replaced during a click loses it.
    expect(page.locator(".htmx-swapping, .htmx-settling")).to_have_count(0)
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="López, Maya").click()
    choose_action(page, "Issue new code")
    page.get_by_role("button", name="Issue new code").click()
    expect(page.locator(".code")).to_be_visible()
    maya.refresh_from_db()
    expect(page.locator(".code")).to_have_text(format_code(code_of(maya)))

    child = device().new_page()
    log_in_with(child, old)
    expect(child.locator("#code-error")).to_be_visible()
    log_in_with(child, page.locator(".code").inner_text())
    child.wait_for_url("**/take/**")

    page.get_by_role("link", name="Lincoln").click()
    choose_action(page, "Login cards")
    page.locator("#id_classroom").select_option("7B")
    page.get_by_role("button", name="Make file").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    [read] = read_pages(file)
    assert "Maya López" in read.text
    assert "Adams" not in read.text
    assert f"https://survey.example.org/#{format_code(code_of(maya))}" in read.links


def test_pages_are_accessible_and_fit_the_screen(
    device: Callable, server, staff, administration, maya, roosevelt_too
):
    Respondent.objects.filter(pk=maya.pk).update(started_at=timezone.now())
    administration.coordinators_see_finished = True
    administration.save()
    base = f"/console/administrations/{administration.pk}"
    school = f"?school={staff.lincoln.pk}"
    page = open_console(device(viewport=PHONE), staff.state, server.url)
    sights = {
        "schools": f"{base}/people/",
        "people": f"{base}/people/{school}",
        "found": f"{base}/people/?q=lin",
        "found maya": f"{base}/people/?q=maya",
        "nobody": f"{base}/people/{school}&q=zzz",
        "person": f"{base}/people/{maya.pk}/",
        "cards of schools": f"{base}/cards/",
        "reissue": f"{base}/cards/reissue/{school}&classroom=7B",
        "cards": f"{base}/cards/{school}",
    }
    for name, address in sights.items():
        page.goto(address)
        check_both(page, name)
    page.get_by_role("button", name="Make file").click()
    check_both(page, "made")
    page.goto(sights["cards"])
    check_both(page, "cards with sets")
    page.goto(sights["reissue"])
    page.get_by_label("To confirm, type the name").fill("wrong")
    page.get_by_role("button", name="Issue new codes").click()
    check_both(page, "reissue refused")
    page.goto(sights["person"])
    page.get_by_role("button", name="Show code").click()
    check_both(page, "code shown")


@pytest.fixture
def roosevelt_too(administration, staff, maya) -> None:
    invite(administration, staff.roosevelt, "9", "Lina Hassan")


def tab_to(page: Page, goal: Locator) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if goal.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"Tab does not reach {goal}.")


def test_a_new_code_can_be_issued_by_keyboard(
    device: Callable, server, staff, administration, maya
):
    page = open_console(device(viewport=LAPTOP), staff.chen, server.url)
    page.goto(f"/console/administrations/{administration.pk}/people/{maya.pk}/")
    menu = page.locator("summary", has_text="More actions")
    tab_to(page, menu)
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("link", name="Issue new code"))
    page.keyboard.press("Enter")
    button = page.get_by_role("button", name="Issue new code")
    expect(button).to_be_visible()
    button.press("Enter")
    expect(page.locator(".code")).to_be_visible()
