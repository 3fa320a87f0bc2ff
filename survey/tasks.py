"""Celery's side: each task fetches by id and calls one function."""

from __future__ import annotations

from celery import shared_task

from survey import jobs
from survey.definitions import uploads as surveys  # noqa: F401 - registers its jobs
from survey.login_cards import card_sets
from survey.rosters import retention
from survey.rosters import uploads as rosters  # noqa: F401 - registers its jobs


@shared_task
def run_job(pk: int) -> None:
    """In the queue that its kind names."""
    jobs.run(pk)


@shared_task
def wake_forgotten_jobs() -> None:
    jobs.wake_forgotten()


@shared_task
def forget_old_rosters() -> None:
    retention.delete_old_files()


@shared_task
def delete_old_cards() -> None:
    card_sets.delete_old_cards()
