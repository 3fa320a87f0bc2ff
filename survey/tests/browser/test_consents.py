"""Consents in the browser: three clicks, a list, the login page, accessibility."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from survey.models import Respondent
from survey.people.access_codes import code_of
from survey.people.opt_outs.consents import await_consent
from survey.tests.browser.accessibility import DESK, PHONE, check, check_both
from survey.tests.browser.menus import choose_action
from survey.tests.browser.test_cards_journey import log_in_with, open_console
from survey.tests.people import invite

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def maya(server, administration, staff) -> Respondent:
    administration.coordinators_see_finished = True
    administration.requires_consent = True
    administration.save()
    ben = invite(administration, staff.lincoln, "40311", "Ben Adams", grade="10")
    maya = invite(administration, staff.lincoln, "40313", "Maya López", grade="07")
    await_consent([ben.pk, maya.pk])
    return maya


def test_a_pupil_can_start_after_three_clicks(
    device: Callable, server, staff, administration, maya
):
    child = device().new_page()
    log_in_with(child, code_of(maya))
    expect(child.get_by_text("We don't have the consent form")).to_be_visible()
    check(child, "missing consent")

    page = open_console(device(viewport=DESK), staff.chen, server.url)
    page.goto(f"/console/administrations/{administration.pk}/people/")
    page.get_by_role("link", name="López, Maya").click()
    check(page, "person without consent")
    page.get_by_role("link", name="Record consent").click()
    check(page, "record consent")
    page.get_by_role("button", name="Record consent").click()
    expect(page.get_by_text("The consent was recorded.")).to_be_visible()
    check(page, "person with consent")

    log_in_with(child, code_of(maya))
    child.wait_for_url("**/take/**")
    expect(child.locator("#comment-input")).to_be_visible()


def test_a_list_of_consents_is_checked_and_confirmed(
    device: Callable, server, staff, administration, maya, tmp_path
):
    file = tmp_path / "forms.csv"
    file.write_text("Student ID\n40313\n99999\n")
    page = open_console(device(viewport=PHONE), staff.chen, server.url)
    page.goto(f"/console/administrations/{administration.pk}/people/")
    choose_action(page, "Upload consents")
    check_both(page, "upload consents")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("The consent of 1 person would be")).to_be_visible()
    check_both(page, "checked consents")
    page.get_by_role("button", name="Record consents").click()
    expect(page.get_by_text("The consent of 1 person was recorded.")).to_be_visible()
    check(page, "kept IDs")
