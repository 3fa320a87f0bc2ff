"""Celery's side: each task fetches by id and calls one function."""

from __future__ import annotations

from celery import shared_task

from survey import jobs


@shared_task
def run_job(pk: int) -> None:
    """In the queue that its kind names."""
    jobs.run(pk)


@shared_task
def wake_forgotten_jobs() -> None:
    jobs.wake_forgotten()
