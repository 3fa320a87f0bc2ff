"""E-mails are planned, checked, confirmed, paused and resumed."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from survey.fieldwork.emails import schedules, suppression
from survey.models import (
    EmailDelivery,
    EmailSchedule,
    EmailTemplate,
    SuppressedAddress,
)
from survey.tests.conftest import open_now, publish_items
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


def steps_of(schedule) -> list[str]:
    return [str(step) for step in schedule.steps.order_by("kind", "days")]


def test_a_schedule_is_planned_changed_and_confirmed(plan, people, staff):
    schedule = plan()
    assert steps_of(schedule) == ["Invitation", "Reminder after 3 days", "Thanks"]
    assert set(EmailTemplate.objects.values_list("language", flat=True)) == {
        *("en", "es", "ar")
    }
    pk = schedule.steps.get(days=3).pk
    schedule = plan(reminder_days=[1, 3], thanks=False, rate_per_minute=30)
    assert steps_of(schedule) == [
        *("Invitation", "Reminder after 1 day", "Reminder after 3 days")
    ]
    assert schedule.steps.get(days=3).pk == pk
    assert not schedule.is_active
    assert schedules.confirm(schedule=schedule, by=staff.state) == 3
    schedule.refresh_from_db()
    assert schedule.is_active and schedule.rate_per_minute == 30
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["plan e-mails", "plan e-mails", "confirm e-mails"]


@pytest.mark.parametrize(
    ("codes", "written"),
    [(["en"], {"en"}), (["es-MX", "so"], {"es"}), (["so"], {"en"})],
)
def test_texts_are_offered_in_languages_of_the_survey(db, staff, codes, written):
    languages = [{"code": code, "name": code, "direction": "ltr"} for code in codes]
    schedules.plan_emails(
        administration=open_now(publish_items(languages=languages)),
        by=staff.state,
        reminder_days=[],
        thanks=False,
        rate_per_minute=600,
    )
    assert set(EmailTemplate.objects.values_list("language", flat=True)) == written


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reminder_days": [0]}, "reminder_days"),
        ({"reminder_days": [181]}, "reminder_days"),
        ({"reminder_days": range(1, 12)}, "reminder_days"),
        ({"rate_per_minute": 0}, "rate_per_minute"),
        ({"rate_per_minute": 60_001}, "rate_per_minute"),
    ],
)
def test_an_impossible_plan_stores_nothing(plan, changes, field):
    with pytest.raises(ValidationError) as refused:
        plan(**changes)
    assert list(refused.value.message_dict) == [field]
    assert not EmailSchedule.objects.exists()


@pytest.mark.parametrize("login", ["chen", "analyst", "sam", "dana"])
def test_only_owners_of_the_administration_manage_its_emails(
    plan, confirmed, administration, staff, login
):
    user, step = getattr(staff, login), confirmed.steps.first()
    for act in (
        lambda: schedules.plan_emails(
            administration=administration,
            reminder_days=[],
            thanks=False,
            rate_per_minute=60,
            by=user,
        ),
        lambda: schedules.write_template(
            step=step, language="en", subject="Now", body="{link}", by=user
        ),
        lambda: schedules.confirm(schedule=confirmed, by=user),
        lambda: schedules.pause(schedule=confirmed, by=user),
        lambda: schedules.resume(schedule=confirmed, by=user),
    ):
        with pytest.raises(PermissionDenied):
            act()


def test_a_running_schedule_is_changed_only_while_it_is_paused(plan, confirmed, staff):
    with pytest.raises(ValidationError, match="Pause the e-mails"):
        plan(reminder_days=[5])
    schedules.pause(schedule=confirmed, by=staff.state)
    assert "Reminder after 5 days" in steps_of(plan(reminder_days=[5]))
    schedules.resume(schedule=confirmed, by=staff.state)
    confirmed.refresh_from_db()
    assert confirmed.is_active


def test_a_step_that_people_were_sent_stays(plan, people):
    schedule = plan()
    EmailDelivery.objects.create(
        step=schedule.steps.get(days=3),
        respondent=people[0],
        state="sent",
        claimed_at=timezone.now(),
        job_id=1,
        job_attempt=1,
    )
    with pytest.raises(ValidationError, match="Reminder after 3 days can't be removed"):
        plan(reminder_days=[])
    assert "Reminder after 3 days" in steps_of(schedule)


def test_many_recipients_are_confirmed_by_typing_their_number(
    plan, people, staff, monkeypatch
):
    monkeypatch.setattr(schedules, "MANY", 2)
    schedule = plan()
    for typed in ("", "4", "all"):
        with pytest.raises(ValidationError, match="Type 3 to confirm"):
            schedules.confirm(schedule=schedule, typed=typed, by=staff.state)
    schedules.confirm(schedule=schedule, typed=" 3 ", by=staff.state)
    with pytest.raises(ValidationError, match="confirmed before"):
        schedules.confirm(schedule=schedule, typed="3", by=staff.state)


def test_a_schedule_without_recipients_is_not_confirmed(plan, administration, staff):
    invite(administration, staff.lincoln, "9", "Leo Sand")
    with pytest.raises(ValidationError, match="No one on the roster"):
        schedules.confirm(schedule=plan(), by=staff.state)


def test_the_number_of_recipients_does_not_tell_who_has_finished(plan, people):
    schedule = plan()
    before = schedules.count_recipients(schedule)
    people[0].started_at = people[0].completed_at = timezone.now()
    people[0].save()
    assert schedules.count_recipients(schedule) == before == 3


# What the database itself refuses ------------------------------------------


def test_nobody_has_two_rows_for_one_step(plan, people):
    step = plan().steps.first()
    row = {
        "step": step,
        "respondent": people[0],
        "state": "claimed",
        "claimed_at": timezone.now(),
        "job_id": 1,
        "job_attempt": 1,
    }
    EmailDelivery.objects.create(**row)
    with pytest.raises(IntegrityError), transaction.atomic():
        EmailDelivery.objects.create(**row)


@pytest.mark.parametrize("subject", ["Now\nBcc: all@example.org", "Now\r"])
def test_no_subject_with_a_line_break_is_stored(plan, subject):
    step = plan().steps.first()
    with pytest.raises(IntegrityError), transaction.atomic():
        EmailTemplate.objects.create(step=step, language="xx", subject=subject)


def test_only_reminders_wait_for_days(plan):
    schedule = plan()
    for kind, days in (("reminder", 0), ("invitation", 1)):
        with pytest.raises(IntegrityError), transaction.atomic():
            schedule.steps.create(kind=kind, days=days)


# Addresses that get nothing -------------------------------------------------


def test_an_address_is_suppressed_however_it_is_written():
    suppression.suppress(
        suppression.digest_of("Maya@Example.org"), SuppressedAddress.Reason.OPTED_OUT
    )
    suppression.suppress(
        suppression.digest_of("maya@example.org"), SuppressedAddress.Reason.BOUNCED
    )
    assert suppression.is_suppressed(" MAYA@example.ORG ")
    assert not suppression.is_suppressed("ana@example.org")
    row = SuppressedAddress.objects.get()
    assert row.reason == "opted out"
    assert "maya" not in f"{row.digest} {row}"
