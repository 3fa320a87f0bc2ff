"""Celery's side of the reports. The modules with jobs register them here."""

from __future__ import annotations

from celery import shared_task

from reports.exports import keeping, making

__all__ = ["delete_old_exports", "making"]


@shared_task
def delete_old_exports() -> None:
    keeping.delete_old_exports()
