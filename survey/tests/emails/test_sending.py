"""Who gets which e-mail, and that nobody gets one twice."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import PlaceSettings
from survey.fieldwork.emails import claims, schedules, sending, suppression
from survey.fieldwork.emails.delivery import Mailer
from survey.models import (
    Administration,
    EmailDelivery,
    EmailSchedule,
    Identity,
    Job,
    Respondent,
    SuppressedAddress,
)
from survey.people.access_codes import code_of, format_code
from survey.tests.people import invite
from survey.work import jobs, survey_day

pytestmark = pytest.mark.django_db

REMINDER = {"step__kind": "reminder"}


def move_back(**by: int) -> None:
    """Let time pass, as far as the ledger and the window are concerned."""
    past = timedelta(**by)
    for row in EmailDelivery.objects.all():
        row.claimed_at -= past
        row.recorded_at = row.recorded_at and row.recorded_at - past
        row.retry_at = row.retry_at and row.retry_at - past
        row.save()
    for row in Administration.objects.all():
        Administration.objects.filter(pk=row.pk).update(
            opens_at=row.opens_at - past, closes_at=row.closes_at - past
        )


def finish(person: Respondent) -> None:
    now = timezone.now()
    Respondent.objects.filter(pk=person.pk).update(started_at=now, completed_at=now)


def decline(person: Respondent) -> None:
    finish(person)
    now = timezone.now()
    Respondent.objects.filter(pk=person.pk).update(declined_at=now)


def withdraw(person: Respondent) -> None:
    Respondent.objects.filter(pk=person.pk).update(withdrawn_at=timezone.now())


def opt_out(person: Respondent) -> None:
    digest = suppression.digest_of(person.identity.email)
    suppression.suppress(digest, SuppressedAddress.Reason.OPTED_OUT)


def recipients() -> list[str]:
    names = [message.to[0].partition("@")[0] for message in mail.outbox]
    mail.outbox.clear()
    return names


def states() -> dict[str, str]:
    rows = EmailDelivery.objects.values_list("respondent__identity__email", "state")
    return {address.partition("@")[0]: state for address, state in rows}


@pytest.mark.sqlite
def test_people_are_invited_once_each_in_their_language(
    shown_completion, confirmed, people, send
):
    job = send(confirmed)
    assert (job.state, job.done) == (Job.State.DONE, 3)
    maya, ana, noor = mail.outbox
    assert [message.to for message in mail.outbox] == [
        [person.identity.email] for person in people
    ]
    assert maya.subject == "Our school: your invitation"
    assert maya.body.startswith("Hello Maya,\n\nLincoln invites you")
    assert ana.body.startswith("Hola, Ana:") and "Nuestra escuela" in ana.body
    assert noor.body.startswith("مرحبًا Noor،")
    for message, person in zip(mail.outbox, people, strict=True):
        code = format_code(code_of(person))
        assert f"https://survey.example.org/#{code}\n" in message.body
        assert code not in message.subject
    assert states() == {"maya": "sent", "ana": "sent", "noor": "sent"}
    assert recipients() == ["maya", "ana", "noor"]
    send(confirmed)
    assert recipients() == []


def test_an_email_is_signed_with_who_asks_and_whom_to_ask(confirmed, people, send):
    PlaceSettings.objects.create(
        name="Ohio", contact_name="Help desk", contact_phone="614 555 0134"
    )
    send(confirmed)
    assert len(mail.outbox) == 3
    for message in mail.outbox:
        signature = message.body.partition("\n-- \n")[2]
        assert signature.startswith("Ohio\nHelp desk · 614 555 0134\n\n")


def test_a_person_added_later_is_invited_then(confirmed, people, send, staff):
    send(confirmed)
    recipients()
    invite(confirmed.administration, staff.lincoln, "5", "Zoë", "zoe@example.org")
    send(confirmed)
    assert recipients() == ["zoe"]
    assert EmailDelivery.objects.count() == 4


@pytest.mark.sqlite
def test_reminders_go_to_those_who_have_not_finished(confirmed, people, send):
    send(confirmed)
    recipients()
    move_back(days=2, hours=23)
    send(confirmed)
    assert recipients() == []
    finish(people[0])
    move_back(hours=2)
    send(confirmed)
    assert recipients() == ["ana", "noor"]
    send(confirmed)
    assert recipients() == []


@pytest.mark.sqlite
@pytest.mark.parametrize("leave", [finish, decline, withdraw, opt_out])
@pytest.mark.parametrize("kind", ["invitation", "reminder"])
def test_everything_is_cancelled_for_people_who_leave(
    confirmed, people, send, leave, kind
):
    if kind == "reminder":
        send(confirmed)
        recipients()
        move_back(days=4)
    leave(people[1])
    send(confirmed)
    assert recipients() == ["maya", "noor"]


@pytest.mark.sqlite
@pytest.mark.parametrize("leave", [finish, withdraw, opt_out])
def test_the_statement_that_claims_checks_again(
    confirmed, people, send, leave, monkeypatch
):
    read = claims.candidates

    def read_and_wait(step):
        deliveries = list(read(step))
        if deliveries:
            leave(people[1])
        return iter(deliveries)

    monkeypatch.setattr(sending, "candidates", read_and_wait)
    send(confirmed)
    assert recipients() == ["maya", "noor"]
    assert "ana" not in states()


def test_an_address_that_changes_meanwhile_is_read_again(
    confirmed, people, send, monkeypatch
):
    read = claims.candidates

    def read_and_wait(step):
        deliveries = list(read(step))
        Identity.objects.filter(respondent=people[0]).update(email="new@example.org")
        return iter(deliveries)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(sending, "candidates", read_and_wait)
        send(confirmed)
        assert recipients() == ["ana", "noor"]
    send(confirmed)
    assert recipients() == ["new"]


def test_opting_out_survives_the_next_roster(
    confirmed, people, send, staff, administration
):
    opt_out(people[0])
    Identity.objects.all().delete()
    invited = invite(
        administration, staff.roosevelt, "77", "M. Robinson", " Maya@EXAMPLE.org"
    )
    invite(administration, staff.roosevelt, "78", "Zoë", "zoe@example.org")
    send(confirmed)
    assert recipients() == ["zoe"]
    assert not EmailDelivery.objects.filter(respondent=invited).exists()


@pytest.mark.sqlite
def test_the_thanks_do_not_tell_who_has_finished(confirmed, people, send):
    send(confirmed)
    recipients()
    finish(people[0])
    withdraw(people[2])
    move_back(days=29)
    EmailDelivery.objects.update(claimed_at=timezone.now() - timedelta(days=29))
    Administration.objects.update(closes_at=timezone.now())
    send(confirmed)
    texts = {message.body.split("\n\n")[1] for message in mail.outbox}
    assert len(texts) == 2 and "Thank you to everyone who took part." in str(texts)
    assert recipients() == ["maya", "ana"]
    move_back(days=15)
    send(confirmed)
    assert recipients() == []


@pytest.mark.sqlite
def test_nobody_gets_two_emails_on_one_day(plan, people, send, staff):
    schedule = plan(reminder_days=[1, 2], thanks=True)
    schedules.confirm(schedule=schedule, by=staff.state)
    send(schedule)
    recipients()
    move_back(days=5)
    send(schedule)
    assert recipients() == ["maya", "ana", "noor"]
    assert EmailDelivery.objects.filter(step__days=1).count() == 3
    send(schedule)
    assert recipients() == []
    move_back(days=1)
    send(schedule)
    assert recipients() == ["maya", "ana", "noor"]
    assert EmailDelivery.objects.filter(step__days=2).count() == 3


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "change",
    [
        lambda s: EmailSchedule.objects.update(confirmed_at=None, confirmed_by=None),
        lambda s: EmailSchedule.objects.update(paused_at=timezone.now()),
        lambda s: Administration.objects.update(
            opens_at=timezone.now() + timedelta(days=1)
        ),
        lambda s: Administration.objects.update(closes_at=timezone.now()),
    ],
    ids=["unconfirmed", "paused", "not open", "closed"],
)
def test_nothing_is_sent_outside_of_the_schedule(confirmed, people, send, change):
    change(confirmed)
    send(confirmed)
    assert recipients() == []
    assert not EmailDelivery.objects.exists()


def test_due_schedules_are_started_one_job_at_a_time(confirmed, people, by_hand):
    sending.start_due()
    sending.start_due()
    [job] = Job.objects.filter(kind="emails.send")
    assert (job.subject_id, job.by) == (confirmed.pk, confirmed.confirmed_by)
    jobs.run(job.pk)
    assert recipients() == ["maya", "ana", "noor"]
    # All steps rest now.
    sending.start_due()
    assert Job.objects.filter(kind="emails.send").count() == 1
    confirmed.steps.update(rests_until=timezone.now())
    sending.start_due()
    [later] = Job.objects.filter(kind="emails.send")
    assert later.pk != job.pk


def test_a_pause_holds_from_the_next_email_on(
    confirmed, people, send, staff, monkeypatch
):
    deliver = Mailer.send

    def pause_after(self, message):
        schedules.pause(schedule=confirmed, by=staff.state)
        return deliver(self, message)

    with monkeypatch.context() as running:
        running.setattr(Mailer, "send", pause_after)
        send(confirmed)
    assert recipients() == ["maya"]
    schedules.resume(schedule=confirmed, by=staff.state)
    send(confirmed)
    assert recipients() == ["ana", "noor"]


def test_no_more_than_the_rate_is_sent_in_a_minute(
    confirmed, people, send, monkeypatch
):
    EmailSchedule.objects.update(rate_per_minute=2)
    now = timezone.now()
    clock = SimpleNamespace(now=lambda: now)
    monkeypatch.setattr(sending, "timezone", clock)
    send(confirmed)
    send(confirmed)
    assert recipients() == ["maya", "ana"]
    clock.now = lambda: now + timedelta(minutes=1)
    send(confirmed)
    assert recipients() == ["noor"]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_batches_without_recipients_are_passed_over(
    confirmed, people, send, staff, monkeypatch, size
):
    monkeypatch.setattr(claims, "BATCH", size)
    withdraw(people[0])
    finish(people[1])
    invite(confirmed.administration, staff.lincoln, "5", "Zoë", "zoe@example.org")
    send(confirmed)
    assert recipients() == ["noor", "zoe"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="reads PostgreSQL's plan")
def test_without_statistics_people_are_looked_up_one_by_one(confirmed, people, send):
    """A join would read all of today's e-mails for every person."""
    step = confirmed.steps.get(kind="reminder")
    page = {"administration": confirmed.administration_id, "batch": 500, "after": 0}
    with connection.cursor() as cursor:
        # It becomes a new table again, which the planner knows nothing about.
        cursor.execute("TRUNCATE survey_emaildelivery CASCADE")
        cursor.execute(
            f"EXPLAIN {claims._CANDIDATES}", {**claims._moments(step), **page}
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "one_email_per_person_and_step" in plan
    assert "emails_by_time" not in plan


def test_sending_goes_on_where_it_stopped(confirmed, people, send, monkeypatch):
    EmailSchedule.objects.update(rate_per_minute=2)
    now = timezone.now()
    monkeypatch.setattr(sending, "timezone", SimpleNamespace(now=lambda: now))
    send(confirmed)
    step = confirmed.steps.get(kind="invitation")
    assert (step.position, step.rests_until) == (people[1].pk, None)


# Addresses and names from outside ------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "maya@example.org\nBcc: everyone@example.org",
        "maya@example.org\r\n\r\nHello",
        "maya@example.org, everyone@example.org",
        "maya",
    ],
)
def test_what_is_not_one_address_is_refused(confirmed, people, send, address):
    Identity.objects.filter(respondent=people[0]).update(email=address)
    send(confirmed)
    assert recipients() == ["ana", "noor"]
    row = EmailDelivery.objects.get(respondent=people[0])
    assert (row.state, row.reason, row.retry_at) == ("failed", "no address", None)


def test_a_line_break_in_a_name_stays_out_of_the_headers(
    shown_completion, confirmed, people, send, staff
):
    step = confirmed.steps.get(kind="invitation")
    step.templates.update(subject="{name} of {school}")
    Identity.objects.update(given_name="Maya\r\nBcc: everyone@example.org")
    staff.lincoln.name = "Lincoln\nX-Other: 1"
    staff.lincoln.save()
    send(confirmed)
    message = mail.outbox[0].message()
    assert message["Bcc"] is None and message["X-Other"] is None
    assert message["Subject"] == (
        "Maya Bcc: everyone@example.org of Lincoln X-Other: 1"
    )


def test_a_subject_with_a_line_break_is_never_sent(
    confirmed, people, send, monkeypatch
):
    monkeypatch.setattr(
        "survey.fieldwork.emails.messages.fill_in_subject",
        lambda *_: "Now\nBcc: x@y.org",
    )
    send(confirmed)
    assert recipients() == []
    assert set(EmailDelivery.objects.values_list("reason", flat=True)) == {"error"}


# Workers that die -----------------------------------------------------------


def claimed_by_a_dead_worker(schedule, person) -> EmailDelivery:
    return EmailDelivery.objects.create(
        step=schedule.steps.get(kind="invitation"),
        respondent=person,
        state="claimed",
        claimed_at=timezone.now() - timedelta(minutes=5),
        job_id=0,
        job_attempt=1,
    )


@pytest.mark.sqlite
def test_what_a_dead_worker_was_sending_is_sent_again_and_counted(
    confirmed, people, send
):
    row = claimed_by_a_dead_worker(confirmed, people[0])
    send(confirmed)
    assert recipients() == ["maya", "ana", "noor"]
    row.refresh_from_db()
    assert (row.state, row.attempts, row.repeated) == ("sent", 2, True)
    assert EmailDelivery.objects.filter(repeated=True).count() == 1


@pytest.mark.sqlite
def test_what_a_living_worker_is_sending_is_left_to_it(confirmed, people, send):
    row = claimed_by_a_dead_worker(confirmed, people[0])
    row.job_id = Job.objects.create(
        kind="emails.send",
        state=Job.State.RUNNING,
        attempts=1,
        heartbeat_at=timezone.now(),
    ).pk
    row.save()
    send(confirmed)
    assert recipients() == ["ana", "noor"]


@pytest.mark.parametrize("leave", [finish, withdraw, opt_out])
def test_what_is_to_be_tried_again_is_cancelled_for_people_who_leave(
    confirmed, people, send, leave
):
    row = claimed_by_a_dead_worker(confirmed, people[0])
    row.address_digest = suppression.digest_of(people[0].identity.email)
    row.save()
    leave(people[0])
    send(confirmed)
    assert recipients() == ["ana", "noor"]
    row.refresh_from_db()
    assert (row.state, row.retry_at) == ("cancelled", None)


def test_a_worker_whose_job_was_taken_over_claims_nothing_more(
    confirmed, people, send, monkeypatch
):
    deliver = Mailer.send

    def take_over(self, message):
        Job.objects.update(attempts=2)
        return deliver(self, message)

    monkeypatch.setattr(Mailer, "send", take_over)
    send(confirmed)
    assert recipients() == ["maya"]
    # The successor had not come to this e-mail yet, so it is known.
    assert states() == {"maya": "sent"}


# Costs ----------------------------------------------------------------------


def test_an_email_costs_one_transaction_of_two_statements(
    confirmed, people, send, staff
):
    send(confirmed)
    counts = []
    for n in (1, 3):
        EmailDelivery.objects.all().delete()
        with_email = Identity.objects.filter(respondent__in=people[:n])
        Identity.objects.exclude(pk__in=with_email).update(email="")
        for person in people[:n]:
            Identity.objects.filter(respondent=person).update(
                email=f"p{person.pk}@example.org"
            )
        with CaptureQueriesContext(
            connection,
        ) as captured:
            send(confirmed)
        statements = [row["sql"] for row in captured if "SAVEPOINT" not in row["sql"]]
        counts.append(len(statements))
    assert counts[1] - counts[0] == 2 * 2


def test_on_a_survey_day_reminders_wait_and_invitations_are_sent(
    confirmed, people, send
):
    survey_day.begin(
        ends_at=timezone.now() + timedelta(hours=2), reason="Everybody", by="test"
    )
    send(confirmed)
    assert len(mail.outbox) == 3
    move_back(days=3)
    send(confirmed)
    assert not EmailDelivery.objects.filter(**REMINDER).exists()
    # Only steps that are sent now start a job.
    confirmed.steps.filter(kind="invitation").update(
        rests_until=timezone.now() + timedelta(minutes=5)
    )
    Job.objects.all().delete()
    sending.start_due()
    assert not Job.objects.exists()

    # The twin: the same moment without a survey day.
    survey_day.end(by="test")
    sending.start_due()
    assert Job.objects.exists()
    send(confirmed)
    assert EmailDelivery.objects.filter(**REMINDER).count() == 3
