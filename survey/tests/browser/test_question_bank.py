"""The state fills its question bank; a district inserts a locked question."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from survey.tests.bank.bank import MEASURES, OTHERS, OWN, STATE, row_of, survey_of
from survey.tests.browser.accessibility import DESK, check_both
from survey.tests.browser.test_cards_journey import open_console

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_question_goes_from_a_survey_through_the_bank_into_another(
    device: Callable, server, staff
):
    survey = survey_of(STATE, "state", measures=MEASURES)
    draft = survey_of(OWN, choices=OTHERS, district=staff.riverside)
    state = open_console(device(viewport=DESK), staff.state, server.url)
    state.goto(f"/console/surveys/{survey.pk}/")
    state.get_by_text("More actions", exact=True).click()
    state.get_by_role("link", name="Add to question bank").click()
    state.get_by_label("I feel safe here.").check()
    check_both(state, "add to the bank")
    state.get_by_role("button", name="Add to question bank").click()
    expect(state.get_by_text("Added to the question bank: safe.")).to_be_visible()
    check_both(state, "question bank")
    state.get_by_role("link", name="I feel safe here.").click()
    check_both(state, "question of the bank")
    state.get_by_role("link", name="New version").click()
    check_both(state, "new version")

    district = open_console(device(viewport=DESK), staff.dana, server.url)
    district.goto(f"/console/surveys/{draft.pk}/edit/")
    district.get_by_text("Add question", exact=True).click()
    district.get_by_role("link", name="From the question bank").click()
    check_both(district, "insert from the bank")
    district.get_by_label("I feel safe here.").check()
    district.get_by_role("button", name="Insert locked").click()
    label = district.locator("#ed-settings textarea").first
    expect(label).to_have_value("I feel safe here.")
    expect(label).not_to_be_editable()
    assert row_of(draft, "safe")["bank_question"] == "safe 1"
    check_both(district, "locked question")

    district.get_by_role("button", name="Unlock to adapt a copy").click()
    expect(label).to_be_editable()
    label.fill("I feel safe in the gym.")
    label.blur()
    expect(district.locator("#ed-status")).to_have_attribute("data-state", "saved")
    row = row_of(draft, "safe_adapted")
    assert row["label::English (en)"] == "I feel safe in the gym."
    assert "bank_question" not in row
