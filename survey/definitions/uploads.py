"""A workbook that somebody uploaded becomes a draft, or a list of problems.

At once where that takes a moment, as nearly always: a survey of 1,000 items
in ten languages is read in 0.4 s. Whatever is large when unpacked may take
many times that, so it is read by a worker, whom no web server's patience ends.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import PurePath

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import District, User
from survey import jobs
from survey.jobs import Progress, job
from survey.models import Job, PublishedSurvey, SurveyUpload
from survey.spreadsheets.old_excel import is_old_excel
from survey.spreadsheets.workbook_guard import MIB, unpacked_size
from survey.xlsform import (
    Problem,
    Reading,
    SurveyIsPublished,
    import_survey,
    read_xlsform,
)
from survey.xlsform.problems import quoted

# Unpacked; a survey of 300 items in three languages has a sixth of it. What
# was made to be slow took 0.7 s at this size.
READ_AT_ONCE = 1 * MIB
# Longer than the queue ever is.
LONGEST_KEPT = timedelta(days=1)


def receive(
    *,
    name: str,
    content: bytes,
    district: District | None,
    by: User,
    corrects: PublishedSurvey | None = None,
    request: HttpRequest | None = None,
) -> SurveyUpload:
    """Take a file in and read it, or begin a job that does.

    `district` will own the draft, or the state (None).
    """
    now = timezone.now()
    with transaction.atomic():
        # Workbooks that nobody will read any more: their job was cancelled.
        forgotten = SurveyUpload.objects.filter(created_at__lt=now - LONGEST_KEPT)
        forgotten.exclude(content=None).update(content=None, read_at=now)
        upload = SurveyUpload.objects.create(
            by=by,
            district=district,
            corrects=corrects,
            name=quoted(name, 255),
            content=content,
        )
        # An .xls file is converted first, by another process. A file that is
        # damaged or declares too much counts as 0: it is refused at once.
        if is_old_excel(content) or unpacked_size(content) > READ_AT_ONCE:
            jobs.start(read_upload, subject_id=upload.pk, by=by)
            return upload
    _read(upload.pk, request=request)
    upload.refresh_from_db()
    return upload


def job_of(upload: SurveyUpload) -> Job | None:
    """The one that reads it, where there is one."""
    return Job.objects.filter(kind=read_upload.name, subject_id=upload.pk).first()


@job("survey.read")
def read_upload(job: Job, progress: Progress) -> None:
    progress.begin_step("Reading the workbook")
    if job.subject_id is not None:
        _read(job.subject_id)
    # Not told by `begin_step`: what was read is kept, whoever asks to stop it now.
    progress.message = "The workbook was read."


def _read(pk: int, *, request: HttpRequest | None = None) -> None:
    upload = SurveyUpload.objects.select_related("by", "district", "corrects").get(
        pk=pk
    )
    # A job may run twice; the second one finds nothing to do.
    if upload.read_at is not None or upload.content is None:
        return
    reading = read_xlsform(bytes(upload.content), name=PurePath(upload.name).stem)
    try:
        _keep(upload, reading, request)
    except SurveyIsPublished as refusal:
        _keep_problems(upload, reading, [_about_version(str(refusal))])
    except IntegrityError:
        reason = "this version was uploaded twice in the same moment: upload it again"
        _keep_problems(upload, reading, [_about_version(reason)])


def _about_version(reason: str) -> Problem:
    return Problem("settings", 2, "version", reason)


@transaction.atomic
def _keep(upload: SurveyUpload, reading: Reading, request: HttpRequest | None) -> None:
    # Of two workers that have read it, one was taken for dead: the first one's
    # outcome stays, which somebody may have published by now.
    mine = SurveyUpload.objects.select_for_update().filter(pk=upload.pk, read_at=None)
    if not mine.values_list("pk"):
        return
    if reading.draft is None:
        _keep_problems(upload, reading, reading.problems)
        return
    upload.survey = import_survey(
        draft=reading.draft,
        source_name=upload.name,
        source=reading.source,
        district=upload.district,
        corrects=upload.corrects,
        by=upload.by,
        request=request,
    )
    _keep_problems(upload, reading, [])


def _keep_problems(
    upload: SurveyUpload, reading: Reading, problems: list[Problem]
) -> None:
    upload.problems = [_as_json(one) for one in problems]
    upload.warnings = [_as_json(one) for one in reading.warnings]
    if problems:
        upload.survey = None
    upload.content = None
    upload.read_at = timezone.now()
    upload.save(update_fields=["problems", "warnings", "survey", "content", "read_at"])


def _as_json(problem: Problem) -> dict[str, object]:
    return {
        "sheet": problem.sheet,
        "row": problem.row,
        "column": problem.column,
        "reason": problem.reason,
        "text": problem.text,
    }
