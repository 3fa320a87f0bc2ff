"""Celery's side: each task calls one function; `making` registers its job."""

from __future__ import annotations

from celery import shared_task

from reports import rolling
from reports.exports import keeping, making

__all__ = ["delete_old_exports", "making", "roll_up_rates"]


@shared_task
def roll_up_rates() -> None:
    """Once a minute, by the time table."""
    rolling.roll_up()


@shared_task
def delete_old_exports() -> None:
    keeping.delete_old_exports()
