"""Celery tasks; `exports.job` registers the job that makes an export."""

from __future__ import annotations

from celery import shared_task

from reports import rollup
from reports.exports import job, requests

__all__ = ["delete_old_exports", "job", "roll_up_rates"]


@shared_task
def roll_up_rates() -> None:
    rollup.roll_up()


@shared_task
def delete_old_exports() -> None:
    requests.delete_old_exports()
