"""E-mails are sent after their transaction commits, once, and are not lost."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from smtplib import SMTPServerDisconnected

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from accounts import email_outbox, tasks
from accounts.models import PlaceSettings, QueuedEmail

pytestmark = pytest.mark.django_db


def post() -> None:
    email_outbox.queue_email(
        "role added", to="new@example.org", by="Dana", role="r", place="p"
    )


def due(email: QueuedEmail) -> timedelta:
    return email.due_at - timezone.now()


def test_an_email_is_sent_at_the_commit(
    django_capture_on_commit_callbacks,
):
    with django_capture_on_commit_callbacks(execute=True):
        post()
        assert mail.outbox == []
    [message] = mail.outbox
    assert message.to == ["new@example.org"]
    assert message.subject == "You have a new role in Groundswell"
    assert message.body.startswith("Dana gave you the role r, p.")
    assert "https://survey.example.org/console/" in message.body
    assert not QueuedEmail.objects.exists()


def test_an_email_to_staff_names_the_state_and_its_contact(db):
    PlaceSettings.objects.create(name="Ohio & Sons", contact_email="help@ohio.example")
    post()
    email_outbox.send_waiting()
    [message] = mail.outbox
    assert message.body.endswith("before.\n\n--\nOhio & Sons\nhelp@ohio.example\n")


@pytest.mark.parametrize(
    "path", sorted(Path("templates/accounts/emails").glob("[!_]*.txt"))
)
def test_every_email_to_staff_is_signed(path):
    is_signed = "_signature.txt" in path.read_text()
    # It goes to respondents, and names their school.
    assert is_signed is (path.name != "access_code.txt")


def test_a_rolled_back_email_is_not_sent():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        post()
        raise ZeroDivisionError
    email_outbox.send_waiting()
    assert mail.outbox == []


@pytest.mark.parametrize("error", [OSError, OperationalError])
def test_no_email_is_lost_without_a_broker(
    monkeypatch, django_capture_on_commit_callbacks, error
):
    def away(*args, **kwargs) -> None:
        raise error

    monkeypatch.setattr(tasks.send_staff_email, "apply_async", away)
    with django_capture_on_commit_callbacks(execute=True):
        post()
    assert mail.outbox == []
    tasks.send_staff_emails()
    assert len(mail.outbox) == 1


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError, TimeoutError, SMTPServerDisconnected]
)
def test_a_failed_delivery_is_retried_later(monkeypatch, error):
    def away(*args, **kwargs) -> None:
        raise error

    with monkeypatch.context() as down:
        down.setattr("django.core.mail.EmailMessage.send", away)
        post()
        email_outbox.send_waiting()
    [email] = QueuedEmail.objects.all()
    assert email.attempts == 1
    assert timedelta(minutes=1) < due(email) <= timedelta(minutes=2.2)
    email_outbox.send_waiting()
    assert mail.outbox == []
    QueuedEmail.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    email_outbox.send_waiting()
    assert len(mail.outbox) == 1


def test_an_email_is_given_up_after_ten_attempts(monkeypatch, caplog):
    def away(*args, **kwargs) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr("django.core.mail.EmailMessage.send", away)
    post()
    QueuedEmail.objects.update(attempts=9)
    email_outbox.send_waiting()
    assert not QueuedEmail.objects.exists()
    assert "given up" in caplog.text
    assert "new@example.org" not in caplog.text


def test_two_workers_send_an_email_once(monkeypatch):
    post()
    [email] = QueuedEmail.objects.all()
    send, sent = email_outbox.EmailMessage.send, []

    def send_while_another_worker_tries(message) -> int:
        email_outbox.send(email.pk)
        sent.append(message)
        return send(message)

    monkeypatch.setattr(
        email_outbox.EmailMessage, "send", send_while_another_worker_tries
    )
    email_outbox.send(email.pk)
    assert len(mail.outbox) == len(sent) == 1


def test_another_worker_takes_over_after_a_crash():
    post()
    soon = timezone.now() + email_outbox.LEASE.duration
    QueuedEmail.objects.update(due_at=soon, attempts=1)
    email_outbox.send_waiting()
    assert mail.outbox == []
    QueuedEmail.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    email_outbox.send_waiting()
    assert len(mail.outbox) == 1


@pytest.mark.parametrize("hours", [1, -1])
def test_an_email_is_due_by_the_clock_of_the_database(monkeypatch, hours):
    """A worker or a web host with another clock neither repeats nor delays it."""
    real = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: real() + timedelta(hours=hours))
    post()
    # In the hands of another worker, for a while yet.
    QueuedEmail.objects.update(due_at=real() + email_outbox.LEASE.duration, attempts=1)
    email_outbox.send_waiting()
    assert mail.outbox == []
    QueuedEmail.objects.all().delete()
    post()
    email_outbox.send_waiting()
    assert len(mail.outbox) == 1


def test_a_broken_email_does_not_block_the_others():
    email_outbox.queue_email("no such e-mail", to="old@example.org")
    post()
    email_outbox.send_waiting()
    assert [message.to for message in mail.outbox] == [["new@example.org"]]
    assert QueuedEmail.objects.get().kind == "no such e-mail"
