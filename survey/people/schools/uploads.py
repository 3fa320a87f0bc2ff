"""Receive lists of schools in the console: check, confirm and apply them.

Each step is a job, which may run again from its start: importing a file twice
changes nothing the second time.
"""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO

from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from survey.models import Job, SchoolImport
from survey.people.rosters.file_reader import RosterUnreadable, open_list
from survey.people.schools.columns import SCHOOL_HEADER
from survey.people.schools.importing import SchoolReport, import_schools
from survey.work import jobs
from survey.work.job_turns import refuse_many
from survey.work.jobs import JobRefused, Progress, job

State = SchoolImport.State
KEPT_UNCONFIRMED = timedelta(days=1)
COUNTS = ("created", "changed", "unchanged", "rejected")


def receive_schools(
    *,
    name: str,
    content: bytes,
    create: bool,
    by: User,
    request: HttpRequest | None = None,
) -> SchoolImport:
    """Store a file and start its check. Raises `job_turns.TooManyJobs`."""
    refuse_many(by)
    old = SchoolImport.objects.filter(
        created_at__lt=timezone.now() - KEPT_UNCONFIRMED,
        state__in=(State.CHECKING, State.CHECKED),
    )
    old.update(content=None, state=State.CANCELLED, ended_at=timezone.now())
    with transaction.atomic():
        upload = SchoolImport.objects.create(
            by=by, name=name[:255], content=content, create=create
        )
        _record("upload schools", upload, by, request)
        jobs.start(check_schools, subject_id=upload.pk, by=by)
    return upload


@transaction.atomic
def confirm_schools(
    *, upload: SchoolImport, by: User, request: HttpRequest | None = None
) -> None:
    """Start the import of the valid rows. Raises ValidationError."""
    current = _checked(upload)
    current.state = State.APPLYING
    current.save(update_fields=["state"])
    _record("confirm schools", current, by, request)
    jobs.start(apply_schools, subject_id=current.pk, by=by)


@transaction.atomic
def cancel_schools(
    *, upload: SchoolImport, by: User, request: HttpRequest | None = None
) -> None:
    """Delete the file without importing it. Raises ValidationError."""
    current = _checked(upload)
    _end(current, State.CANCELLED)
    _record("cancel schools", current, by, request)


def latest_job(upload: SchoolImport) -> Job | None:
    kinds = (check_schools.name, apply_schools.name)
    of_upload = Job.objects.filter(kind__in=kinds, subject_id=upload.pk)
    return of_upload.order_by("-pk").first()


@job("schools.check")
def check_schools(job: Job, progress: Progress) -> None:
    """Store what a file would change."""
    progress.begin_step(_("Checking the file"))
    upload = SchoolImport.objects.get(pk=job.subject_id or 0)
    if upload.state != State.CHECKING:
        return
    report = _import(upload, dry_run=True)
    with transaction.atomic():
        upload.report = report.as_dict()
        upload.state = State.CHECKED
        if not report.created + report.changed:
            _end(upload, State.REFUSED)
        else:
            upload.save(update_fields=["state", "report"])
        progress.confirm()


@job("schools.apply", stoppable=False)
def apply_schools(job: Job, progress: Progress) -> None:
    """Import the valid rows of a file."""
    progress.begin_step(_("Importing the schools"))
    upload = SchoolImport.objects.get(pk=job.subject_id or 0)
    if upload.state != State.APPLYING:
        return
    report = _import(upload, dry_run=False)
    with transaction.atomic():
        upload.report = report.as_dict()
        _end(upload, State.APPLIED)
        counts = {name: getattr(report, name) for name in COUNTS}
        audit.record("import schools", by=upload.by, subject=upload, after=counts)
        progress.confirm()


def _import(upload: SchoolImport, *, dry_run: bool) -> SchoolReport:
    try:
        content = BytesIO(bytes(upload.content or b""))
        with open_list(content, SCHOOL_HEADER) as table:
            return import_schools(
                table, create=upload.create, partial=True, dry_run=dry_run
            )
    except RosterUnreadable as error:
        upload.message = str(error)
        _end(upload, State.REFUSED)
        raise JobRefused(str(error)) from error


def _checked(upload: SchoolImport) -> SchoolImport:
    current = SchoolImport.objects.select_for_update(of=("self",)).get(pk=upload.pk)
    if current.state != State.CHECKED:
        raise ValidationError(_("This file was confirmed or cancelled before."))
    return current


def _end(upload: SchoolImport, state: SchoolImport.State) -> None:
    upload.state, upload.content, upload.ended_at = state, None, timezone.now()
    upload.save(update_fields=["state", "content", "ended_at", "report", "message"])


def _record(
    action: str, upload: SchoolImport, by: User, request: HttpRequest | None
) -> None:
    audit.record(
        action, by=by, request=request, subject=upload, after={"file": upload.name}
    )
