"""Make a ZIP with the reports of all schools, for `measure_school_reports`."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.db import connections

from accounts.models import Membership, User
from reports.models import ReportArchive
from reports.school_report.archives import make_archive
from survey.fieldwork.administrations import get_administration
from survey.models import Job
from survey.work import jobs


def make(*, language: str) -> dict[str, Any]:
    """Run the job as a worker does; return what it took."""
    by = User.objects.create(email="measured@example.org")
    Membership.objects.create(user=by, role=Membership.Role.STATE)
    archive = ReportArchive.objects.create(
        administration=get_administration("measured"), language=language, by=by
    )
    archive.job = Job.objects.create(
        kind=make_archive.name, subject_id=archive.pk, by=by
    )
    archive.save(update_fields=["job"])
    statements = 0

    def count(execute: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal statements
        statements += 1
        return execute(*arguments)

    began = time.perf_counter()
    with ExitStack() as stack:
        for alias in connections:
            stack.enter_context(connections[alias].execute_wrapper(count))
        jobs.run(archive.job.pk)
    seconds = time.perf_counter() - began
    archive.refresh_from_db()
    if not archive.file_name:
        sys.exit(Job.objects.get(pk=archive.job.pk).message)
    worker, pdf = (
        resource.getrusage(process)
        for process in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "schools": archive.schools,
        "reports": archive.reports,
        "seconds": round(seconds, 1),
        "processor_seconds_of_pdf": round(pdf.ru_utime + pdf.ru_stime, 1),
        "statements": statements,
        "memory_mb": worker.ru_maxrss // 1024,
        "memory_of_pdf_mb": pdf.ru_maxrss // 1024,
        "size_mb": round((archive.size or 0) / 1e6, 1),
    }
