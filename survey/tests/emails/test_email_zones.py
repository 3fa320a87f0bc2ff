"""Days in e-mails, and when they are sent, in districts with two time zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.test import Client

from accounts.models import District
from accounts.tests.logging_in import log_in
from survey.fieldwork.emails import schedules
from survey.models import Administration, EmailDelivery, EmailStep
from survey.tests.emails.test_sending import move_back, recipients
from survey.tests.people import invite

pytestmark = pytest.mark.django_db

# Half past midnight in Chicago; in Denver it is the day before.
CLOSES = datetime(2037, 3, 3, 6, 30, tzinfo=UTC)
INVITATION = "The survey closes on {closes}.\n{link}\n"


@pytest.fixture
def schedule(plan, staff, administration):
    """Return a confirmed schedule for a person of each zone."""
    District.objects.filter(pk=staff.riverside.pk).update(time_zone="America/Denver")
    Administration.objects.update(closes_at=CLOSES)
    administration.refresh_from_db()
    for school, name in ((staff.lincoln, "maya"), (staff.roosevelt, "noor")):
        invite(administration, school, "1", name, f"{name}@example.org", language="en")
    schedule = plan()
    step = EmailStep.objects.get(kind="invitation")
    step.templates.filter(language="en").update(body=INVITATION)
    schedules.confirm(schedule=schedule, by=staff.state)
    schedule.refresh_from_db()
    return schedule


@pytest.mark.sqlite
def test_the_days_are_those_of_the_persons_district(schedule, send):
    send(schedule)
    maya, noor = mail.outbox
    assert (maya.to, noor.to) == (["maya@example.org"], ["noor@example.org"])
    assert "closes on March 2, 2037." in maya.body
    assert "closes on March 3, 2037." in noor.body


def test_a_preview_has_the_day_of_the_persons_district(schedule, staff):
    step = EmailStep.objects.get(kind="invitation")
    client = log_in(Client(), staff.state)
    address = f"/console/administrations/{schedule.administration_id}/emails/"
    for person, day in (("maya", "March 2, 2037"), ("noor", "March 3, 2037")):
        respondent = schedule.administration.respondents.get(
            identity__email=f"{person}@example.org"
        )
        page = client.get(f"{address}{step.pk}/preview/?person={respondent.pk}")
        assert day in page.content.decode(), person


def test_reminders_are_sent_at_one_moment_in_all_zones(schedule, send):
    send(schedule)
    assert recipients() == ["maya", "noor"]
    # Three days after the invitation: the clocks of a district change nothing.
    move_back(days=3, minutes=-1)
    send(schedule)
    assert recipients() == []
    move_back(minutes=2)
    send(schedule)
    assert recipients() == ["maya", "noor"]
    claimed = EmailDelivery.objects.filter(step__kind="reminder")
    first, last = sorted(claimed.values_list("claimed_at", flat=True))
    assert last - first < timedelta(minutes=1)
