"""Opting out in the browser: three clicks, an open tab, accessibility."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from survey.models import Respondent
from survey.people.access_codes import code_of
from survey.tests.browser.accessibility import DESK, PHONE, check, check_both
from survey.tests.browser.menus import choose_action
from survey.tests.browser.test_cards_journey import log_in_with, open_console
from survey.tests.people import invite

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def maya(server, administration, staff) -> Respondent:
    administration.coordinators_see_finished = True
    administration.save()
    invite(administration, staff.lincoln, "40311", "Ben Adams", grade="10")
    return invite(administration, staff.lincoln, "40313", "Maya López", grade="07")


def test_three_clicks_opt_a_pupil_out_who_is_answering(
    device: Callable, server, staff, administration, maya
):
    child = device().new_page()
    log_in_with(child, code_of(maya))
    child.wait_for_url("**/take/**")
    expect(child.locator("#comment-input")).to_be_visible()

    page = open_console(device(viewport=DESK), staff.chen, server.url)
    page.goto(f"/console/administrations/{administration.pk}/people/")
    page.get_by_role("link", name="López, Maya").click()
    page.get_by_role("link", name="Opt out").click()
    expect(page.get_by_text("has started the survey")).to_be_visible()
    check(page, "opt out")
    page.get_by_role("button", name="Opt out").click()
    expect(page.get_by_role("heading", name="Opted out")).to_be_visible()
    check(page, "opted out")

    child.locator("#item-safe .option[data-value='3']").click()
    child.fill("#comment-input", "half a sentence")
    child.click("#next")
    notice = child.get_by_role("heading", name="You were taken off this survey")
    expect(notice).to_be_visible()

    page.locator("summary", has_text="Take back opt-out").click()
    page.get_by_role("button", name="Take back opt-out").click()
    expect(page.get_by_text("The opt-out was taken back.")).to_be_visible()


def test_a_list_of_forms_is_checked_and_confirmed(
    device: Callable, server, staff, administration, maya, tmp_path
):
    file = tmp_path / "forms.csv"
    file.write_text("Student ID\n40313\n99999\n")
    page = open_console(device(viewport=PHONE), staff.chen, server.url)
    page.goto(f"/console/administrations/{administration.pk}/people/")
    choose_action(page, "Upload opt-outs")
    check_both(page, "upload opt-outs")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("1 person would opt out.")).to_be_visible()
    check_both(page, "checked opt-outs")
    page.get_by_role("button", name="Opt out 1 person").click()
    expect(page.get_by_text("1 person has opted out")).to_be_visible()
    check(page, "after the list")
    page.goto(f"/console/administrations/{administration.pk}/people/{maya.pk}/")
    check(page, "opted out on a phone")


def test_the_confirmations_are_accessible_on_a_phone(
    device: Callable, server, staff, administration, maya
):
    page = open_console(device(viewport=PHONE), staff.chen, server.url)
    people = f"/console/administrations/{administration.pk}/people/"
    person = f"{people}{maya.pk}/"
    for name, address in {
        "person": person,
        "opt out": f"{person}opt-out/",
        "new code": f"{person}reissue/",
        "correct": f"{person}correct/",
        "withdraw": f"{person}withdraw/",
        "add": f"{people}new/",
        "kept opt-outs": f"{people}opt-outs/kept/",
        "cards": f"/console/administrations/{administration.pk}/cards/",
    }.items():
        page.goto(address)
        check(page, f"{name} on a phone")
