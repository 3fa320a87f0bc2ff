"""Turn uploaded workbooks into drafts, or into lists of problems.

Nearly every workbook is read at once: a survey of 1,000 items in ten languages
takes 0.4 s. A file that is large when unpacked may take many times that, so a
worker reads it, without the time limit of a web request.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from io import BytesIO
from pathlib import PurePath

from django.db import IntegrityError, transaction
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import District, User
from survey.instrument.drafts.leaving_out import read_without_problems
from survey.instrument.drafts.source_workbook import parts_not_kept
from survey.instrument.foreign.converted import ReportLine
from survey.instrument.foreign.recognise import program_of
from survey.instrument.foreign.settling import READ_AT_ONCE as CONVERTED_AT_ONCE
from survey.instrument.foreign.settling import read_questionnaire
from survey.instrument.spreadsheets.old_excel import is_old_excel
from survey.instrument.spreadsheets.workbook_guard import MIB, SURVEY, unpacked_size
from survey.instrument.xlsform import (
    Problem,
    Reading,
    SurveyIsPublished,
    import_survey,
    read_xlsform,
)
from survey.instrument.xlsform.problems import quoted
from survey.models import Job, PublishedSurvey, SurveyUpload
from survey.work import jobs
from survey.work.jobs import Progress, job

# Unpacked bytes; a survey of 300 items in three languages has a sixth of it. A
# workbook that was made to be slow took 0.7 s at this size.
READ_AT_ONCE = 1 * MIB
# Longer than any job waits in the queue.
MAX_AGE_UNREAD = timedelta(days=1)


def receive_upload(
    *,
    name: str,
    content: bytes,
    district: District | None,
    by: User,
    corrects: PublishedSurvey | None = None,
    request: HttpRequest | None = None,
) -> SurveyUpload:
    """Store a file and read it, or start a job that does.

    `district` will own the draft; None is the state.
    """
    now = timezone.now()
    with transaction.atomic():
        # Workbooks whose job was cancelled are not read any more, and nobody has
        # asked for others without what has problems.
        forgotten = SurveyUpload.objects.filter(created_at__lt=now - MAX_AGE_UNREAD)
        forgotten.exclude(content=None).update(
            content=None, report=[], read_at=Coalesce("read_at", now)
        )
        upload = SurveyUpload.objects.create(
            by=by,
            district=district,
            corrects=corrects,
            name=quoted(name, 255),
            content=content,
        )
        # An .xls file is converted first, by another process. A file that is
        # damaged or declares too much counts as 0: it is refused at once.
        if is_read_later(content):
            jobs.start(read_upload, subject_id=upload.pk, by=by)
            return upload
    read_stored_upload(upload.pk, request=request)
    upload.refresh_from_db()
    return upload


def is_read_later(content: bytes) -> bool:
    """Return whether a file takes longer to read than a browser should wait."""
    if program_of(content):
        return len(content) > CONVERTED_AT_ONCE
    size = unpacked_size(BytesIO(content), SURVEY)
    return is_old_excel(content) or size > READ_AT_ONCE


def job_of(upload: SurveyUpload) -> Job | None:
    """Return the job that reads the upload, if there is one."""
    return Job.objects.filter(kind=read_upload.name, subject_id=upload.pk).first()


@job("survey.read")
def read_upload(job: Job, progress: Progress) -> None:
    progress.begin_step(_("Reading the workbook"))
    if job.subject_id is not None:
        read_stored_upload(job.subject_id)
    # Set without `begin_step`, which may cancel the job: the result is stored.
    progress.message = _("The workbook was read.")


def read_stored_upload(pk: int, *, request: HttpRequest | None = None) -> None:
    """Read an upload's workbook, and store the draft or the problems."""
    rows = SurveyUpload.objects.select_related("by", "district", "corrects")
    upload = rows.get(pk=pk)
    # A job may run twice; the second run finds nothing to do.
    if upload.read_at is not None or upload.content is None:
        return
    content, path = bytes(upload.content), PurePath(upload.name)
    report: list[ReportLine] = []
    source_name = upload.name
    # A correction is of texts and rules in a workbook, never a new questionnaire.
    if upload.corrects_id is None and program_of(content):
        reading, report = read_questionnaire(content, path.stem)
        source_name = f"{path.stem}.xlsx"
    else:
        reading = read_xlsform(content, name=path.stem)
        reading.warnings.extend(parts_not_kept(content))
    without: bytes | None = None
    if reading.problems and upload.corrects_id is None and not report:
        rest, report = read_without_problems(content, path.stem)
        without = rest.source if rest.draft else None
    upload.report = [asdict(line) for line in report]
    try:
        with transaction.atomic():
            # If two workers have read the file, because one was presumed dead,
            # the first result stays: it may be published by now.
            unread = SurveyUpload.objects.select_for_update().filter(
                pk=upload.pk, read_at=None
            )
            if not unread.values_list("pk"):
                return
            if reading.draft is not None:
                upload.survey = import_survey(
                    draft=reading.draft,
                    source_name=source_name,
                    source=reading.source,
                    district=upload.district,
                    corrects=upload.corrects,
                    by=upload.by,
                    request=request,
                )
            _store_result(upload, reading, reading.problems, without)
    except SurveyIsPublished as refusal:
        problem = Problem("settings", 2, "version", str(refusal))
        _store_result(upload, reading, [problem])
    except IntegrityError:
        reason = _(
            "this version was uploaded twice in the same moment: upload it again"
        )
        problem = Problem("settings", 2, "version", reason)
        _store_result(upload, reading, [problem])


def can_leave_out(upload: SurveyUpload) -> bool:
    """Return whether an upload can be imported without what has problems. 1 query."""
    stored = SurveyUpload.objects.filter(pk=upload.pk).exclude(read_at=None)
    return bool(upload.problems) and stored.exclude(content=None).exists()


@transaction.atomic
def import_without_problems(
    pk: int, *, by: User, request: HttpRequest | None = None
) -> None:
    """Store the draft of a workbook without the parts that its report leaves out.

    Raises SurveyIsPublished. A second request finds nothing to do.
    """
    uploads = SurveyUpload.objects.select_for_update(of=["self"])
    upload = uploads.select_related("district").get(pk=pk)
    if upload.content is None or upload.read_at is None:
        return
    path = PurePath(upload.name)
    reading = read_xlsform(bytes(upload.content), name=path.stem)
    if reading.draft is None:
        return
    upload.survey = import_survey(
        draft=reading.draft,
        source_name=f"{path.stem}.xlsx",
        source=reading.source,
        district=upload.district,
        by=by,
        request=request,
    )
    _store_result(upload, reading, [])


def _store_result(
    upload: SurveyUpload,
    reading: Reading,
    problems: list[Problem],
    content: bytes | None = None,
) -> None:
    """Store what was read; `content` is a workbook without what has problems."""
    upload.problems = [asdict(problem) for problem in problems]
    upload.warnings = [asdict(warning) for warning in reading.warnings]
    if problems:
        upload.survey = None
    upload.content = content
    upload.read_at = timezone.now()
    results = ["problems", "warnings", "report", "survey"]
    upload.save(update_fields=[*results, "content", "read_at"])
