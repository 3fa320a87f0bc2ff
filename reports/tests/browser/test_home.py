"""The home page at a desk and on a phone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import Membership
from reports.rates.rollup import roll_up
from reports.tests.browser.test_rates import SCREENS
from reports.tests.conftest import invite
from survey.models import Role
from survey.tests.browser.accessibility import violations_on

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def surveys(transactional_db, staff, students, administer):
    """One that is open in two schools, one that is planned and one that is closed."""
    for days in (8, 3, 1):
        at = timezone.now() - timedelta(days=days)
        invite(students, staff.lincoln, 12, finished=4, at=at)
        invite(students, staff.washington, 20, finished=8, at=at)
    teachers = administer(
        "teachers-2027", Role.TEACHER, opens_at=timezone.now() + timedelta(days=3)
    )
    invite(teachers, staff.lincoln, 20)
    parents = administer("parents-2026", Role.PARENT)
    invite(parents, staff.lincoln, 20, finished=12)
    parents.closes_at = timezone.now() - timedelta(days=2)
    parents.save()
    roll_up()
    return students


def test_the_home_page_is_accessible(at_screen, staff, surveys):
    Membership.objects.create(
        user=staff.chen, role="coordinator", school=staff.washington
    )
    for user, lines in ((staff.state, 1), (staff.chen, 2)):
        page = at_screen(user)
        page.goto("/console/")
        expect(page.locator("svg.sparkline")).to_have_count(lines)
        assert violations_on(page, SCREENS) == []


def test_the_next_step_is_one_click_away(at_screen, staff, surveys):
    page = at_screen(staff.dana)
    page.goto("/console/")
    expect(page.get_by_text("36 of 96 students finished")).to_be_visible()
    page.get_by_role("link", name="See schools to remind").click()
    expect(page.get_by_role("link", name="Lincoln", exact=True)).to_be_visible()
