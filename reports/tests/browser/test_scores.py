"""The table of scores and a school's report in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reports.tests.console.scores.conftest import fall, survey  # noqa: F401
from survey.tests.browser.accessibility import scrolls_sideways, violations

pytestmark = pytest.mark.django_db(transaction=True)
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


def test_a_school_is_found_and_its_report_read(at_screen, staff, fall):  # noqa: F811
    page = at_screen(staff.state)
    page.goto(f"/console/results/{fall.pk}/scores/")
    schools = page.locator(".heat tbody tr:not(.around) th")
    page.locator("thead").get_by_role("link", name="Trust").click()
    expect(schools).to_have_text(["Roosevelt", "Lincoln", "Washington"])
    assert violations(page) == []
    page.get_by_label("School", exact=True).fill("linc")
    page.get_by_role("button", name="Search").click()
    expect(schools).to_have_text(["Lincoln"])
    page.get_by_role("link", name="Lincoln").click()
    expect(page.get_by_role("heading", name="How to read this report")).to_be_visible()
    expect(page.get_by_text("60 of 60 finished")).to_be_visible()
    assert violations(page) == []

    phone = at_screen(staff.state, **PHONE)
    for path in ("scores/", f"schools/{staff.lincoln.pk}/?language=es"):
        phone.goto(f"/console/results/{fall.pk}/{path}")
        assert violations(phone) == []
        assert not scrolls_sideways(phone)
