"""A state fills its school calendar, on a laptop and on a phone."""

# Fixtures are imported, and then arguments of the same name.
# ruff: noqa: F811

from __future__ import annotations

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.test_administrations import SMALL, desk  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_state_adds_and_removes_holidays(desk, staff):
    page, year = desk(staff.state, viewport=SMALL), timezone.localdate().year + 1

    def is_usable():
        assert violations_on(page, [{"viewport": LAPTOP}, {"viewport": SMALL}]) == []

    page.goto("/console/settings/calendar/")
    page.get_by_text("Show the holidays").click()
    expect(page.get_by_text("Veterans Day")).to_be_visible()
    is_usable()
    page.get_by_role("button", name="Add 10 holidays").click()
    expect(page.get_by_role("row", name="Juneteenth")).to_be_visible()

    page.get_by_role("link", name="Add a holiday").click()
    page.get_by_label("Name").fill("Spring break")
    page.get_by_label("First day").fill(f"{year}-03-15")
    page.get_by_label("Last day").fill(f"{year}-03-12")
    page.get_by_role("button", name="Add holiday").click()
    expect(page.get_by_role("alert")).to_be_focused()
    is_usable()
    page.get_by_role("link", name="Last day: ").click()
    page.get_by_label("Last day").fill(f"{year}-03-19")
    page.get_by_role("button", name="Add holiday").click()

    row = page.get_by_role("row", name="Spring break")
    expect(row).to_contain_text(f"March 15, {year}")
    is_usable()
    row.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status").first).to_contain_text("was removed")
    expect(row).to_have_count(0)
    page.get_by_role("link", name="Change the weekend").click()
    expect(page.get_by_label("Sunday")).to_be_checked()
    is_usable()
