"""Pages about what is kept, handed on and destroyed, and what families may read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import PlaceSettings, PublicText
from reports.exports.approved_projects import approve_project
from survey.models import Administration
from survey.people.retention.counting import request_count
from survey.people.retention.hold_changes import place_hold
from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP
from survey.tests.conftest import administration, publish  # noqa: F401
from survey.tests.people import invite
from survey.work import survey_day

pytestmark = pytest.mark.django_db(transaction=True)
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
SCREENS = [{"viewport": LAPTOP}, PHONE]


@pytest.fixture
def maya(server, staff, administration):  # noqa: F811
    """A person of a closed round, on which there is a hold."""
    person = invite(administration, staff.lincoln, "40313", "Maya López", grade="07")
    Administration.objects.update(closes_at=timezone.now() - timedelta(minutes=1))
    administration.refresh_from_db()
    request_count(administration, "answers", by=staff.state)
    place_hold(
        administration,
        holder="Office of the general counsel",
        reason="Roe v. Riverside",
        district=staff.lakeside,
        by=staff.state,
    )
    return person


def look_at(page, addresses):
    for address in addresses:
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert (address, violations_on(page, SCREENS)) == (address, [])


def test_pages_of_a_round_are_accessible(at_screen, staff, maya):
    own_round = f"/console/administrations/{maya.administration_id}/"
    hold = maya.administration.holds.get().pk
    page = at_screen(staff.state)
    look_at(
        page,
        [
            f"{own_round}retention/",
            f"{own_round}hold/",
            f"{own_round}holds/{hold}/lift/",
            f"{own_round}destroy/answers/",
            f"{own_round}destroy/identities/",
            f"{own_round}people/erase/",
            f"{own_round}people/{maya.pk}/erase/",
            f"{own_round}people/{maya.pk}/stored/",
        ],
    )


def test_pages_of_the_state_are_accessible(at_screen, staff, maya):
    project = approve_project(
        name="Attendance",
        purpose="Does safety go with attendance?",
        people="Dr Okafor, State University",
        approval_number="IRB 12",
        ends_on=timezone.localdate() + timedelta(days=30),
        by=staff.state,
    )
    PublicText.objects.create(kind="privacy", language="en", text="Ask [whom?].")
    survey_day.begin(
        ends_at=timezone.now() + timedelta(hours=9), reason="Opening", by=staff.state
    )
    page = at_screen(staff.state)
    look_at(
        page,
        [
            "/console/exports/return/",
            "/console/exports/projects/",
            "/console/exports/projects/new/",
            f"/console/exports/projects/{project.pk}/",
            f"/console/exports/projects/{project.pk}/keys/",
            "/console/settings/survey-day/",
            "/console/settings/state/retention/",
            "/console/settings/state/pages/",
            "/console/settings/state/pages/privacy/en/",
            "/console/settings/state/pages/accessibility/ar/",
            "/console/settings/state/questions/",
        ],
    )


def test_pages_for_families_are_accessible(device, maya):
    PlaceSettings.objects.create(public_questions=True)
    Administration.objects.update(public_questions=True)
    text = "# Whom to ask\n\nAsk help@state.example."
    for language in ("en", "ar"):
        PublicText.objects.create(kind="privacy", language=language, text=text)
    page = device(**PHONE).new_page()
    look_at(
        page,
        [
            f"/questions/{maya.administration.name}/",
            f"/questions/{maya.administration.name}/?language=es",
            "/questions/nothing/",
            "/privacy/",
            "/privacy/?language=ar",
            "/accessibility/",
        ],
    )
