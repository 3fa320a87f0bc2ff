"""Celery tasks; the modules named `job` and `archives` register kinds of jobs.

`requests` registers what deletes the exports of a removed administration, `erasing`
what deletes those in which an erased person may be, `retention` what is destroyed with
answers, and `recorded_times` what drafts show of earlier versions.
"""

from __future__ import annotations

from celery import shared_task

from reports import erasing, person_files, retention
from reports.exports import approved_projects, job, key_table, requests
from reports.exports.return_of_data import job as return_job
from reports.models import Export, ReportArchive
from reports.publishing import publications as publishing_job
from reports.rates import coordinator_reminders, rollup
from reports.results import job as results_job
from reports.results import recorded_times
from reports.school_report import archives
from reports.scores import job as scores_job
from reports.technical import job as technical_job
from survey.work import requested_files

__all__ = [
    "archives",
    "coordinator_reminders",
    "delete_old_exports",
    "end_research_projects",
    "erasing",
    "job",
    "key_table",
    "person_files",
    "publishing_job",
    "recorded_times",
    "requests",
    "results_job",
    "retention",
    "return_job",
    "roll_up_rates",
    "scores_job",
    "start_due_results",
    "technical_job",
]


@shared_task
def roll_up_rates() -> None:
    rollup.roll_up()


@shared_task
def delete_old_exports() -> None:
    requests.forget_passwords()
    requested_files.delete_expired(Export, ReportArchive)


@shared_task
def end_research_projects() -> None:
    approved_projects.end_due_projects()


@shared_task
def start_due_results() -> None:
    results_job.start_due()
    scores_job.start_outdated()
