"""A schedule of e-mails to three people of Lincoln, one of each language."""

from __future__ import annotations

import pytest

from survey.models import Respondent
from survey.reminders import schedules
from survey.tests.people import invite


@pytest.fixture
def people(administration, staff) -> list[Respondent]:
    """Return Maya, Ana and Noor, in the order of their keys; Leo has no address."""
    cast = [
        ("1", "Maya Robinson", "maya@example.org", "en"),
        ("2", "Ana López", "ana@example.org", "es-MX"),
        ("3", "Noor Haddad", "noor@example.org", "ar"),
    ]
    people = [
        invite(administration, staff.lincoln, pk, name, email, language=language)
        for pk, name, email, language in cast
    ]
    invite(administration, staff.lincoln, "4", "Leo Sand")
    return people


@pytest.fixture
def plan(administration, staff):
    """Return a function that plans the e-mails of the administration."""

    def plan(**changes):
        options = {"reminder_days": [3], "thanks": True, "rate_per_minute": 6000}
        return schedules.plan_emails(
            administration=administration, by=staff.state, **{**options, **changes}
        )

    return plan


@pytest.fixture
def confirmed(plan, people, staff):
    """Return a confirmed schedule."""
    schedule = plan()
    schedules.confirm(schedule=schedule, by=staff.state)
    schedule.refresh_from_db()
    return schedule
