"""Approve research projects, and end them: their key and all of their files go."""

from __future__ import annotations

import logging
from datetime import date

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import User
from reports.models.exports import Export
from reports.models.panels import PanelProject
from survey.work.jobs import request_cancel
from survey.work.requested_files import delete_file

logger = logging.getLogger(__name__)
# The name of the task in the audit log.
TASK = "end_research_projects"


@transaction.atomic
def approve_project(
    *,
    name: str,
    purpose: str,
    people: str,
    approval_number: str,
    ends_on: date,
    by: User,
    request: HttpRequest | None = None,
) -> PanelProject:
    """Store a project with a random key; the caller checks permissions."""
    project = PanelProject.objects.create(
        name=name,
        purpose=purpose,
        people=people,
        approval_number=approval_number,
        ends_on=ends_on,
        by=by,
    )
    audit.record(
        "approve research project",
        by=by,
        request=request,
        subject=project,
        after={
            "purpose": purpose,
            "people": people,
            "approval number": approval_number,
            "ends on": ends_on.isoformat(),
        },
    )
    return project


def approved_projects() -> QuerySet[PanelProject]:
    """Return approved projects, those that have not ended first."""
    projects = PanelProject.objects.using(DEFAULT_DB_ALIAS)
    return projects.filter(ends_on__isnull=False).order_by("ended_at", "ends_on", "pk")


def end_project(
    project: PanelProject, *, by: User | str, request: HttpRequest | None = None
) -> None:
    """Destroy the key of a project, and delete its files. Again, it does nothing."""
    with transaction.atomic():
        rows = PanelProject.objects.filter(pk=project.pk, ended_at=None)
        if rows.update(key=None, ended_at=timezone.now()):
            audit.record(
                "end research project", by=by, request=request, subject=project
            )
    delete_project_files(project, by=by)


def delete_project_files(project: PanelProject, *, by: User | str) -> None:
    """Delete the files of a project that has ended, and stop those being made.

    A job that is past its last look at its cancellation holds the lock of its row until
    it has committed, so its file is among those read afterwards.
    """
    exports = project.exports.using(DEFAULT_DB_ALIAS)
    for export in exports.filter(job__ended_at=None).select_related("job"):
        if export.job is not None:
            request_cancel(export.job)
    for export in exports.exclude(file_name="").select_related("by"):
        delete_file(export, by=by)


def end_due_projects() -> None:
    """End projects after their last day, and delete files that were left behind.

    Each by itself: a file that storage cannot delete now keeps no other project.
    """
    for project in approved_projects().filter(_needs_ending()):
        try:
            end_project(project, by=TASK)
        except Exception:
            # It is looked at again in ten minutes.
            logger.exception("Research project %s was not ended as a whole", project.pk)


def _needs_ending() -> Q:
    """Match projects to end, and those that have ended with a file or a job left."""
    exports = Export.objects.filter(project=OuterRef("pk"))
    left = exports.filter(~Q(file_name="") | Q(job__isnull=False, job__ended_at=None))
    return Q(ended_at=None, ends_on__lt=timezone.localdate()) | Q(
        Exists(left), ended_at__isnull=False
    )
