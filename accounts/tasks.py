"""Celery's side: each task fetches by id and calls one function."""

from __future__ import annotations

from celery import shared_task

# What letters say besides their facts is registered there.
from accounts import delays, invitations, letters, passwords  # noqa: F401


@shared_task
def send_letter(pk: int) -> None:
    letters.send(pk)


@shared_task
def send_letters() -> None:
    letters.send_waiting()


@shared_task
def forget_failed_tries() -> None:
    delays.forget_old()
