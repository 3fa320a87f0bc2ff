"""E-mails of an administration: from the schedule to what people get."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from accounts.models import User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from survey.fieldwork.emails import schedules, sending
from survey.models import EmailDelivery, EmailSchedule, Job
from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.live_server import Server
from survey.tests.browser.person import Person
from survey.tests.people import invite
from survey.work import jobs

pytestmark = pytest.mark.django_db(transaction=True)
SMALL = {"width": 390, "height": 844}


@pytest.fixture
def desk(device: Callable[..., BrowserContext], server: Server) -> Callable[..., Page]:
    def open_tab(user: User, **options: object) -> Page:
        context = device(**{"viewport": LAPTOP, **options})
        name = PREFIX + settings.SESSION_COOKIE_NAME
        cookie = log_in(Client(), user).cookies[name].value
        context.add_cookies([{"name": name, "value": cookie, "url": server.url}])
        return context.new_page()

    return open_tab


def send_due() -> list[str]:
    """Let the worker send what is due now; return who got an e-mail."""
    mail.outbox.clear()
    EmailSchedule.objects.get().steps.update(rests_until=None)
    sending.start_due()
    for job in Job.objects.filter(ended_at=None):
        jobs.run(job.pk)
    return [message.to[0] for message in mail.outbox]


def test_a_reminder_is_cancelled_for_people_who_finish(
    desk, device, staff, administration, monkeypatch
):
    monkeypatch.setattr(settings, "JOBS_BY_MESSAGE", False)
    maya, _ = (
        invite(administration, staff.lincoln, pk, name, email, language=language)
        for pk, name, email, language in (
            ("1", "Maya Robinson", "maya@example.org", "en"),
            ("2", "Ana López", "ana@example.org", "es"),
        )
    )
    page = desk(staff.state)
    page.goto(f"/console/administrations/{administration.pk}/")
    page.get_by_role("link", name="E-mails").click()
    page.get_by_role("link", name="Plan e-mails").click()
    page.get_by_label("Reminders after days").fill("3")
    page.get_by_role("button", name="Save schedule").click()

    page.get_by_role("link", name="Reminder after 3 days, English").click()
    text = page.get_by_label("Text")
    written = text.input_value()
    text.fill(written + "\n{phone}")
    page.get_by_role("button", name="Save text").click()
    expect(page.locator(".error")).to_contain_text("{phone} is not a variable")
    text.fill("Hello {name}, it is not too late: {link}")
    page.get_by_role("button", name="Save text").click()
    # Who has finished is confidential, so no name is next to a code.
    expect(page.locator(".email")).to_contain_text("Hello, it is not too late")

    page.get_by_role("link", name="Preview for a person on the roster").click()
    page.locator("#q").fill("Ana")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Ana López").click()
    expect(page.locator(".email")).to_have_attribute("lang", "es")
    expect(page.locator(".email")).to_contain_text("Hola:")

    page.get_by_role("link", name="E-mails", exact=True).click()
    page.get_by_role("link", name="Review and confirm").click()
    page.get_by_role("button", name="Confirm e-mails").click()
    expect(page.locator("#progress-heading")).to_contain_text("sending")
    assert send_due() == ["maya@example.org", "ana@example.org"]
    [code] = re.findall(r"/#(\S+)", mail.outbox[0].body)

    # Maya opens the link in her e-mail, and finishes.
    person = Person(device().new_page(), known={"age": "12"})
    person.page.goto(f"/#{code}")
    if person.page.locator("#code").is_visible():
        person.page.click("button[type=submit]")
    person.page.wait_for_selector("#page section.page")
    person.answer_to_the_end()
    person.finish()
    maya.refresh_from_db()
    assert maya.completed_at

    past = timezone.now() - timedelta(days=3, minutes=1)
    EmailDelivery.objects.update(claimed_at=past, recorded_at=past)
    assert send_due() == ["ana@example.org"]
    assert "no es demasiado" not in mail.outbox[0].body
    # The page does not tell the administrator who it was.
    page.reload()
    reminder = page.get_by_role("row", name=re.compile("Reminder")).first
    expect(reminder).to_contain_text("under 10")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#progress-heading")).to_contain_text("paused")
    page.get_by_role("button", name="Cancel e-mails").click()
    expect(page.locator("#progress-heading")).to_contain_text("not confirmed")
    assert send_due() == []


SIZES = [{"viewport": LAPTOP}, {"viewport": SMALL, "color_scheme": "dark"}]


def test_pages_are_accessible_and_fit_the_screen(desk, staff, administration):
    invite(administration, staff.lincoln, "1", "Maya Robinson", "maya@example.org")
    schedule = schedules.plan_emails(
        administration=administration,
        reminder_days=[3, 7],
        thanks=True,
        rate_per_minute=600,
        by=staff.state,
    )
    page = desk(staff.state)
    base = f"/console/administrations/{administration.pk}/emails/"
    step = f"{base}{schedule.steps.get(kind='invitation').pk}/"
    sights = [base + "plan/", base + "confirm/", step + "en/", step + "ar/"]
    sights += [step + "preview/?q=maya", base]
    for sight in sights:
        if sight == base:
            schedules.confirm(schedule=schedule, by=staff.state)
        page.goto(sight)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert (sight, violations_on(page, SIZES)) == (sight, [])
