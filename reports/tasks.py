"""Celery's side: each task calls one function; `exports.job` registers its job."""

from __future__ import annotations

from celery import shared_task

from reports import rollup
from reports.exports import job, requests

__all__ = ["delete_old_exports", "job", "roll_up_rates"]


@shared_task
def roll_up_rates() -> None:
    """Once a minute, by the time table."""
    rollup.roll_up()


@shared_task
def delete_old_exports() -> None:
    requests.delete_old_exports()
