"""Celery's side: each task fetches by id and calls one function."""

from __future__ import annotations

from celery import shared_task

# What letters say besides their facts is registered there.
from accounts import email_outbox, invitations, login_throttle, passwords  # noqa: F401


@shared_task
def send_letter(pk: int) -> None:
    email_outbox.send(pk)


@shared_task
def send_letters() -> None:
    email_outbox.send_waiting()


@shared_task
def forget_failed_tries() -> None:
    login_throttle.forget_old()
