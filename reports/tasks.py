"""Celery tasks; `exports.job` registers the job that makes an export."""

from __future__ import annotations

from celery import shared_task

from reports import rollup
from reports.exports import job, requests
from reports.publishing import publications as publishing_job
from reports.results import job as results_job
from reports.scores import job as scores_job

__all__ = [
    "delete_old_exports",
    "job",
    "publishing_job",
    "results_job",
    "roll_up_rates",
    "scores_job",
    "start_due_results",
]


@shared_task
def roll_up_rates() -> None:
    rollup.roll_up()


@shared_task
def delete_old_exports() -> None:
    requests.delete_old_exports()


@shared_task
def start_due_results() -> None:
    results_job.start_due()
