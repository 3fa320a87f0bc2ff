"""Coordinators of schools below their threshold get one e-mail each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.utils import timezone

from accounts import email_outbox
from accounts.models import AuditEntry, District, Membership, QueuedEmail, User
from accounts.tests.logging_in import log_in
from reports.rates import coordinator_reminders
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from survey.models import Administration

pytestmark = pytest.mark.django_db


@pytest.fixture
def below(staff, students):
    """Lincoln (Riverside) and Roosevelt (the other district) are below."""
    invite(students, staff.lincoln, 40, finished=8)
    invite(students, staff.roosevelt, 30, finished=3)
    invite(students, staff.washington, 30, finished=1)
    roll_up()
    return students


def remind(client, administration, **data):
    return client.post(f"/console/rates/remind/{administration.pk}/", data, follow=True)


def recipients():
    return {row.to: row.facts["schools"] for row in QueuedEmail.objects.all()}


def test_the_list_of_schools_leads_to_the_reminder(client, staff, below):
    log_in(client, staff.state)
    address = f"/console/rates/remind/{below.pk}/"
    assert address not in client.get("/console/rates/schools/").content.decode()
    page = client.get("/console/rates/schools/?state=below").content.decode()
    assert address in page
    page = client.get(address).content.decode()
    # With the one that nobody gets an e-mail for.
    assert "3 schools have not reached" in page
    assert "coordinators will get this e-mail" in page
    assert "Schools without a coordinator" in page and "Washington" in page
    assert QueuedEmail.objects.count() == 0


def test_each_coordinator_gets_one_email_for_all_schools(client, staff, below):
    Membership.objects.create(
        user=staff.chen, role=Membership.Role.COORDINATOR, school=staff.washington
    )
    log_in(client, staff.state)
    page = remind(client, below).content.decode()
    assert "2 coordinators get an e-mail." in page
    assert recipients() == {
        staff.chen.email: ["Lincoln", "Washington"],
        staff.sam.email: ["Roosevelt"],
    }
    User.objects.filter(pk=staff.chen.pk).update(language="es")
    email_outbox.send_waiting()
    texts = {message.to[0]: message.body for message in mail.outbox}
    assert "- Lincoln" in texts[staff.chen.email]
    assert "Faltan respuestas" in texts[staff.chen.email]
    assert "More answers are needed" in texts[staff.sam.email]
    # No figure of a school is written into an e-mail.
    assert "10 %" not in "".join(texts.values())


def test_a_district_reminds_its_own_and_nobody_is_reminded_twice(client, staff, below):
    log_in(client, staff.dana)
    remind(client, below)
    assert set(recipients()) == {staff.chen.email}
    assert "No e-mail was sent." in remind(client, below).content.decode()
    page = client.get(f"/console/rates/remind/{below.pk}/").content.decode()
    assert "reminded in the last 12 hours" in page
    # The state reminds the others only.
    QueuedEmail.objects.all().delete()
    log_in(client, staff.state)
    remind(client, below)
    assert set(recipients()) == {staff.sam.email}
    entry = AuditEntry.objects.filter(action="remind coordinators").last()
    assert entry.district_id == staff.riverside.pk and entry.after == {"schools": 1}


def test_without_the_pause_a_coordinator_is_reminded_again(
    client, staff, below, monkeypatch
):
    """The damage that the pause prevents."""
    log_in(client, staff.dana)
    remind(client, below)
    monkeypatch.setattr(coordinator_reminders, "PAUSE", timedelta(0))
    remind(client, below)
    assert QueuedEmail.objects.filter(to=staff.chen.email).count() == 2


@pytest.mark.parametrize("person", ["chen", "analyst"])
def test_others_do_not_find_the_page(client, staff, below, person):
    log_in(client, getattr(staff, person))
    assert remind(client, below).status_code == 404
    page = client.get("/console/rates/schools/?state=below", follow=True)
    assert "Remind coordinators" not in page.content.decode()


def test_closed_rounds_and_other_districts_are_not_found(client, staff, below):
    log_in(client, staff.dana)
    lakeside = staff.roosevelt.district_id
    for district in (str(lakeside), "x", "9" * 30, "²"):
        assert remind(client, below, district=district).status_code == 404
    below.closes_at = timezone.now() - timedelta(minutes=1)
    below.save()
    assert remind(client, below).status_code == 404
    assert QueuedEmail.objects.count() == 0


def test_an_email_gives_the_closing_day_of_the_coordinators_clocks(
    client, staff, below
):
    District.objects.filter(pk=staff.riverside.pk).update(time_zone="America/Denver")
    # Half past midnight in Chicago; in Denver it is the day before.
    closes_at = datetime(2037, 3, 3, 6, 30, tzinfo=UTC)
    Administration.objects.update(closes_at=closes_at)
    log_in(client, staff.state)
    remind(client, below)
    email_outbox.send_waiting()
    texts = {message.to[0]: message.body for message in mail.outbox}
    assert "closes on March 2, 2037." in texts[staff.chen.email]
    assert "closes on March 3, 2037." in texts[staff.sam.email]
