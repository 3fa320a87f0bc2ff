"""Celery tasks: each calls one function."""

from __future__ import annotations

from celery import shared_task
from django.contrib.sessions.models import Session
from django.utils import timezone

# `invitations` and `passwords` register the values of their e-mails.
from accounts import email_outbox, invitations, login_throttle, passwords  # noqa: F401
from accounts.school_directory import refresh_words


@shared_task
def send_staff_email(pk: int) -> None:
    email_outbox.send(pk)


@shared_task
def send_staff_emails() -> None:
    email_outbox.send_waiting()


@shared_task
def delete_expired_sessions() -> None:
    Session.objects.filter(expire_date__lt=timezone.now()).delete()


@shared_task
def forget_failed_tries() -> None:
    login_throttle.forget_old()


@shared_task
def refresh_school_words() -> None:
    refresh_words()
