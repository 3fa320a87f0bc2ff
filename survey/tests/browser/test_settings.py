"""A state sets its contact person and thresholds, closes a school, corrects a text."""

# Fixtures are imported, and then arguments of the same name.
# ruff: noqa: F811

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from survey.instrument.definitions.publishing import publish_survey
from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.test_administrations import SMALL, desk  # noqa: F401
from survey.tests.console.test_surveys import draft_of

pytestmark = pytest.mark.django_db(transaction=True)
SCREENS = [{"viewport": LAPTOP}, {"viewport": SMALL}]


def test_a_state_changes_its_settings(desk, staff):
    page = desk(staff.state, viewport=SMALL)

    def is_usable():
        assert violations_on(page, SCREENS) == []

    page.goto("/console/settings/")
    is_usable()
    page.get_by_role("link", name="Change contact person").click()
    page.get_by_label("Name").fill("Help desk")
    page.get_by_role("button", name="Save contact person").click()
    expect(page.get_by_role("alert")).to_be_focused()
    is_usable()
    page.get_by_role("link", name="E-mail address: ").click()
    page.get_by_label("E-mail address").fill("help@state.example")
    page.get_by_role("button", name="Save contact person").click()
    expect(page.get_by_text("help@state.example")).to_be_visible()
    for link in ("Change thresholds", "Change name, logo and color"):
        page.get_by_role("link", name=link).click()
        is_usable()
        page.get_by_role("link", name="Cancel").click()

    page.get_by_role("link", name="Riverside").click()
    page.get_by_role("link", name="Lincoln").click()
    is_usable()
    page.get_by_role("link", name="Rename").click()
    is_usable()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Close").click()
    is_usable()
    page.get_by_role("button", name="Close school").click()
    expect(page.get_by_role("status").first).to_contain_text("Lincoln is closed")
    is_usable()


def test_a_text_is_corrected_in_place(desk, staff):
    published = publish_survey(survey=draft_of())
    page = desk(staff.state, viewport=SMALL)
    page.goto(f"/console/surveys/{published.survey.pk}/correct/")
    page.get_by_role("button", name="Correct texts here").click()
    assert violations_on(page, SCREENS) == []
    page.locator("textarea", has_text="Which pet?").fill("Which animal?")
    page.get_by_role("link", name="Compare and publish").click()
    expect(page.get_by_role("cell", name="Which animal?")).to_be_visible()
    assert violations_on(page, SCREENS) == []
