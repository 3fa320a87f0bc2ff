"""Try a survey on a phone by a test link; read the questionnaire and the audit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from accounts import audit
from survey.models import Respondent, Response
from survey.tests.browser.accessibility import DESK, PHONE, check, check_both
from survey.tests.browser.test_cards_journey import open_console
from survey.tests.people import invite

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_phone_answers_a_page_and_nothing_is_stored(
    device: Callable, server, staff, administration
):
    desk = open_console(device(viewport=DESK), staff.chen, server.url)
    desk.goto(f"/console/administrations/{administration.pk}/")
    desk.get_by_role("link", name="Try the survey").click()
    expect(desk.get_by_role("img", name="QR code of the test link")).to_be_visible()
    inside = desk.frame_locator(".preview-frame iframe")
    expect(inside.locator("#item-safe")).to_be_visible()
    check(desk, "test link")
    link = desk.get_by_role("link", name="open the test link")
    address = link.get_attribute("href")

    page = device(viewport=PHONE).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    page.goto(address)
    expect(page.get_by_text("Test: nothing is saved.")).to_be_visible()
    page.locator("#item-safe .option[data-value='3']").click()
    page.locator("#item-age input").fill("12")
    check(page, "test link on a phone")
    page.click("#next")
    expect(page.locator("#status")).to_have_attribute("data-state", "saved")
    assert set(asked) == {"GET"}
    assert not Respondent.objects.exists() and not Response.objects.exists()


def test_the_questionnaire_and_the_audit_log_are_accessible(
    device: Callable, server, staff, administration
):
    maya = invite(administration, staff.lincoln, "40313", "Maya López", grade="07")
    for _ in range(3):
        audit.record(
            "show an access code", by=staff.chen, subject=maya, school=staff.lincoln
        )
    page = open_console(device(viewport=DESK), staff.dana, server.url)
    page.goto(f"/console/administrations/{administration.pk}/questionnaire/")
    expect(page.get_by_text("Shown only if").first).to_be_visible()
    check_both(page, "questionnaire")
    page.goto("/console/audit/")
    expect(page.get_by_text("3 times")).to_be_visible()
    check_both(page, "audit")
