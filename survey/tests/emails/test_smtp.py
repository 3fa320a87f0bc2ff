"""Sending to a real mail server: one that refuses, hangs, or closes connections."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections
from django.utils import timezone

from provisioning.commands import ROOT
from settings.monitoring.logs import JsonFormatter
from settings.tests.patience import patience
from survey.fieldwork.emails import schedules, sending
from survey.models import EmailDelivery, EmailSchedule, Identity, Job, Respondent
from survey.people.access_codes import code_of, format_code
from survey.tests.emails.smtp_server import CLOSE, HANG, every, only
from survey.tests.people import invite
from survey.work import jobs

pytestmark = pytest.mark.django_db(transaction=True)

on_postgresql = pytest.mark.skipif(
    not settings.SERVERS, reason="SQLite has one writer at a time"
)
MANY = 40


@pytest.fixture
def schedule(plan, administration, staff, by_hand) -> EmailSchedule:
    """Return a confirmed schedule with forty recipients."""
    for n in range(MANY):
        address = f"p{n}@example.org"
        invite(administration, staff.lincoln, str(n), f"Person{n} X", address)
    schedule = plan(reminder_days=[])
    schedules.confirm(schedule=schedule, by=staff.state)
    schedule.refresh_from_db()
    return schedule


def counts() -> dict[str, int]:
    rows = EmailDelivery.objects.values_list("state", flat=True)
    return {state: list(rows).count(state) for state in set(rows)}


def make_retries_due() -> None:
    waiting = EmailDelivery.objects.filter(retry_at__isnull=False)
    waiting.update(retry_at=timezone.now())


def test_everybody_gets_one_email_with_the_headers_of_rfc_8058(schedule, smtp, send):
    send(schedule)
    assert counts() == {"sent": MANY}
    assert set(smtp.times.values()) == {1} and len(smtp.times) == MANY
    message = smtp.messages[0]
    assert message["To"] == "p0@example.org" and message["Bcc"] is None
    link = message["List-Unsubscribe"].strip()
    assert link.startswith("<https://survey.example.org/unsubscribe/")
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text = message.get_payload(decode=True).decode()
    person = Respondent.objects.get(identity__email="p0@example.org")
    assert f"https://survey.example.org/#{format_code(code_of(person))}" in text
    assert link[1:-1] in text


def test_a_server_that_refuses_every_tenth_address(schedule, smtp, send):
    smtp.on_rcpt = every(10, "550 5.1.1 No such user")
    send(schedule)
    assert counts() == {"sent": 36, "bounced": 4}
    send(schedule)
    assert len(smtp.accepted) == 36 and set(smtp.times.values()) == {1}


@pytest.mark.parametrize("reply", ["451 4.7.1 Greylisted", "452 4.2.2 Mailbox full"])
def test_a_server_that_refuses_every_tenth_for_now(schedule, smtp, send, reply):
    smtp.on_rcpt = every(10, reply)
    send(schedule)
    assert counts() == {"sent": 36, "failed": 4}
    # Not before their time.
    smtp.on_rcpt = lambda n: None
    send(schedule)
    assert counts() == {"sent": 36, "failed": 4}
    make_retries_due()
    send(schedule)
    assert counts() == {"sent": MANY}
    assert set(smtp.times.values()) == {1} and len(smtp.times) == MANY


def test_an_email_is_not_tried_for_ever(schedule, smtp, send):
    smtp.on_rcpt = lambda n: "451 Later"
    Identity.objects.exclude(email="p0@example.org").update(email="")
    for _ in range(sending.DELAYS.attempts + 2):
        make_retries_due()
        send(schedule)
    assert smtp.recipients == sending.DELAYS.attempts
    row = EmailDelivery.objects.get()
    assert (row.state, row.reason, row.retry_at) == ("failed", "busy", None)


@pytest.mark.parametrize("trouble", [HANG, CLOSE])
def test_a_connection_lost_before_the_text_is_tried_again(
    schedule, smtp, send, settings, trouble
):
    settings.EMAIL_TIMEOUT = patience(0.5)
    smtp.on_rcpt = only(5, trouble)
    send(schedule)
    assert counts() == {"sent": MANY - 1, "failed": 1}
    make_retries_due()
    send(schedule)
    assert counts() == {"sent": MANY}
    assert set(smtp.times.values()) == {1} and len(smtp.times) == MANY


@pytest.mark.parametrize("trouble", [HANG, CLOSE])
def test_a_connection_lost_after_the_text_is_not(
    schedule, smtp, send, settings, trouble
):
    """The server has accepted it: another try would be a second e-mail."""
    settings.EMAIL_TIMEOUT = patience(0.5)
    smtp.on_text = only(5, trouble)
    send(schedule)
    make_retries_due()
    send(schedule)
    assert counts() == {"sent": MANY - 1, "failed": 1}
    assert set(smtp.times.values()) == {1} and len(smtp.times) == MANY
    row = EmailDelivery.objects.get(state="failed")
    assert (row.reason, row.retry_at) == ("unconfirmed", None)


def test_a_server_that_hangs_for_ever_ends_the_slice(schedule, smtp, send, settings):
    settings.EMAIL_TIMEOUT = patience(0.2)
    smtp.on_rcpt = lambda n: HANG
    send(schedule)
    assert EmailDelivery.objects.count() == sending.MOST_LOST
    schedule.refresh_from_db()
    assert "does not respond" in schedule.trouble


def test_without_a_mail_server_nothing_is_claimed(schedule, send, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    job = send(schedule)
    assert job.state == Job.State.DONE and not EmailDelivery.objects.exists()
    schedule.refresh_from_db()
    assert "does not respond" in schedule.trouble


def test_the_schedule_is_paused_before_all_have_failed(
    schedule, smtp, send, monkeypatch
):
    monkeypatch.setattr(sending, "MOST_FAILURES", 5)
    smtp.on_text = lambda n: "554 5.7.1 Looks like spam" if n > 10 else None
    send(schedule)
    schedule.refresh_from_db()
    assert schedule.paused_at and "refused the last" in schedule.pause_reason
    assert counts() == {"sent": 10, "failed": 5}


@on_postgresql
def test_two_workers_at_once_send_everything_once(schedule, smtp, monkeypatch):
    # On a busy machine, one could send everything before the other begins.
    both_begin, claim = threading.Barrier(2, timeout=60), sending.claim
    has_begun = threading.local()

    def claim_together(*args: Any) -> Any:
        if not hasattr(has_begun, "value"):
            has_begun.value = True
            both_begin.wait()
        return claim(*args)

    monkeypatch.setattr(sending, "claim", claim_together)
    started = [sending.start_sending(schedule) for _ in range(2)]

    def work(job: Job) -> None:
        try:
            jobs.run(job.pk)
        finally:
            connections.close_all()

    workers = [threading.Thread(target=work, args=[job]) for job in started]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert counts() == {"sent": MANY}
    assert set(smtp.times.values()) == {1} and len(smtp.times) == MANY
    # Both took part.
    assert len(set(EmailDelivery.objects.values_list("job_id", flat=True))) == 2


WORKER = """
import sys
import django
django.setup()
from django.conf import settings
settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", int(sys.argv[2])
from survey import tasks
from survey.work import jobs
jobs.run(int(sys.argv[1]))
"""


@on_postgresql
def test_a_killed_worker_doubles_one_email_at_most_and_it_is_counted(
    schedule, smtp, send
):
    """Killed at the worst moment: the server has the text, the worker no reply."""
    job = sending.start_sending(schedule)
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(job.pk), str(smtp.port)],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
            "GROUNDSWELL_TEST_DATABASE": str(connection.settings_dict["NAME"]),
            "GROUNDSWELL_TEST_SERVERS": settings.SERVERS,
        },
    )

    def kill(n: int) -> str | None:
        if n == 5:
            process.send_signal(signal.SIGKILL)
            return HANG
        return None

    smtp.on_text = kill
    try:
        process.wait(patience(60))
    finally:
        process.kill()
        process.wait()
    assert counts() == {"sent": 4, "claimed": 1}
    Job.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=5))
    jobs.run(job.pk)
    assert counts() == {"sent": MANY}
    assert sorted(smtp.times.values()) == [1] * (MANY - 1) + [2]
    repeated = EmailDelivery.objects.get(repeated=True)
    [twice] = [address for address, times in smtp.times.items() if times == 2]
    assert repeated.respondent.identity.email == twice
    # Mailboxes can tell that it is the same.
    same = [message["Message-ID"] for message in smtp.messages]
    assert len(set(same)) == MANY


def test_no_log_names_anybody(schedule, smtp, send, caplog, settings):
    settings.EMAIL_TIMEOUT = patience(0.5)
    caplog.set_level(logging.DEBUG, logger="survey")
    faults = {5: "550 No such user", 7: "451 Later", 9: CLOSE}
    smtp.on_rcpt = lambda n: faults.get(n)
    smtp.on_text = only(12, CLOSE)
    Identity.objects.filter(email="p20@example.org").update(email="p20\n@example.org")
    send(schedule)
    settings.EMAIL_PORT = 1
    make_retries_due()
    send(schedule)
    lines = caplog.text + "".join(map(JsonFormatter().format, caplog.records))
    assert "no connection to the mail server" in lines
    codes = {format_code(code_of(person)) for person in Respondent.objects.all()}
    for secret in ("example.org", "Person", *codes):
        assert secret not in lines
