"""Celery's side: each task calls one function."""

from __future__ import annotations

from celery import shared_task

from reports import rolling


@shared_task
def roll_up_rates() -> None:
    """Once a minute, by the time table."""
    rolling.roll_up()
