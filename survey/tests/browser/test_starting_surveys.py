"""Start a survey from a template, check and publish it, and bring a version back."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from survey.models import Survey
from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP, PHONE
from survey.tests.browser.menus import choose_action
from survey.tests.browser.test_console_surveys import console  # noqa: F401
from survey.tests.console.test_starting_surveys import set_label
from survey.tests.console.test_surveys import draft_of

pytestmark = pytest.mark.django_db(transaction=True)
SCREENS = [{"viewport": PHONE}, {"viewport": LAPTOP}]


def test_a_survey_starts_from_a_template_and_is_published(staff, console):  # noqa: F811
    page = console(staff.dana)
    page.goto("/console/surveys/")
    page.click(".empty >> text=Write a questionnaire")
    expect(page.locator("h1")).to_have_text("How do you want to start?")
    assert not violations_on(page, SCREENS)
    page.click("a.panel >> text=From a template")
    page.check("[value=families]")
    page.fill("[name=title]", "Our families")
    page.click(".button >> text=Start the draft")
    expect(page.locator("h1")).to_contain_text("Our families")
    draft = Survey.objects.get()
    page.goto(reverse("survey_check", args=[draft.pk]))
    expect(page.locator("main")).to_contain_text("None. The survey can be published.")
    assert not violations_on(page, SCREENS)
    page.check("[name=audience][value=students]")
    page.click(".button >> text=Check for them")
    expect(page.locator("[name=audience][value=students]")).to_be_checked()
    page.click(".button >> text=Continue to publish")
    page.click(".button >> text=Publish version")
    expect(page.locator("#messages")).to_contain_text("is published")
    choose_action(page, "New version")
    page.click(".button >> text=Start the draft")
    page.wait_for_url("**/edit/")
    assert Survey.objects.filter(name="families", version="2").exists()


def test_an_earlier_version_is_compared_and_restored(staff, console):  # noqa: F811
    draft = draft_of(district=staff.riverside)
    set_label(draft, "pet", "Which animal?", by=staff.dana)
    set_label(draft, "age", "How old is it?", by=staff.dana)
    page = console(staff.dana)
    page.goto(reverse("survey_detail", args=[draft.pk]))
    page.click("main >> text=History")
    expect(page.locator(".change-row")).to_have_count(2)
    expect(page.locator(".change-row ins").first).to_contain_text("How old")
    assert not violations_on(page, SCREENS)
    page.click(".button >> text=Compare the two chosen versions")
    expect(page.locator("main")).to_contain_text("1 changed text")
    page.go_back()
    page.click(".change-row .button")
    expect(page.locator("ins")).to_have_text("Its age")
    assert not violations_on(page, SCREENS)
    page.click(".button >> text=Restore this version")
    expect(page.locator("#messages")).to_contain_text("The earlier version is restored")
    expect(page.locator(".change-row").first).to_contain_text("was restored")
