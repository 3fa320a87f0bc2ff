"""Check an uploaded roster without changing anything, and store the result.

The result is what the console shows before a person confirms. Applying compares
the file once more, and comes back here if more people would be withdrawn than
were shown: see `rosters.apply_job`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import User
from accounts.permissions import Permissions
from survey.models import Job, RosterRejection, RosterSchool, RosterUpload
from survey.people.rosters.column_choices import ColumnReading, read_columns
from survey.people.rosters.diff import RosterDiff, compare_roster
from survey.people.rosters.file_reader import (
    RosterUnreadable,
    open_roster_file,
    with_columns,
)
from survey.people.rosters.identity_changes import name_of_id
from survey.people.rosters.layouts import KnownPlace, RosterLayout
from survey.people.rosters.missing_people import store_missing_people, withdraws_many
from survey.people.rosters.private_files import private_file
from survey.people.rosters.report import RosterReport, write_rejected_rows
from survey.people.rosters.retention import FOLDER
from survey.people.rosters.scope import (
    TAKES_ROSTER,
    RosterRefused,
    RosterScope,
    check_takes_roster,
    scope_of_upload,
)
from survey.people.rosters.table import RosterTable
from survey.people.rosters.upload_state import UploadConflict, change_state
from survey.work.files import delete_files, keep, local_copy, new_name, path_of
from survey.work.jobs import (
    RUN_AGAIN,
    Cancelled,
    JobRefused,
    Progress,
    TakenOver,
    job,
)

State = RosterUpload.State
NOT_PERMITTED = gettext_noop(
    "The person who confirmed this roster may no longer manage rosters in its"
    " place. Ask someone who may to upload it again."
)
FILE_DELETED = gettext_noop(
    "The file was deleted, as all are after 30 days. Upload it again."
)


@job("roster.check", long=True)
def check_roster(job: Job, progress: Progress) -> None:
    """Compare an uploaded file with the people already invited."""
    upload = upload_of_job(job)
    if upload.state == State.CHECKING:
        check_upload(upload, progress)


def check_upload(upload: RosterUpload, progress: Progress) -> None:
    with storing_failure(upload):
        progress.begin_step(_("Reading the column headers"))
        try:
            with open_upload(upload) as table:
                if not recognise_columns(upload, table, progress):
                    progress.message = _("Choose the columns.")
                    return
                table = with_columns_of(upload, table)
                with compare_upload(upload, table, upload.by, progress) as diff:
                    rejected_file = write_rejected_file(diff, table, progress)
                    store_missing_people(upload, diff)
                store_result(upload, diff.report, rejected_file, progress)
        except RosterUnreadable as error:
            RosterUpload.objects.filter(pk=upload.pk, state=State.CHECKING).update(
                state=State.REFUSED, message=str(error)[:500]
            )
            progress.message = _("The file cannot be read.")
        else:
            progress.message = _("Checked %(rows)s rows.") % {
                "rows": f"{diff.report.rows:,}"
            }


@contextmanager
def open_roster(upload: RosterUpload) -> Iterator[RosterTable]:
    """Open an upload's file with its columns."""
    with open_upload(upload) as table:
        yield with_columns_of(upload, table)


def recognise_columns(
    upload: RosterUpload, table: RosterTable, progress: Progress
) -> bool:
    """Store how the file is read; return False if a person has to say it first."""
    # Those of a feed have our own headers, and an ID that the feed has chosen.
    if upload.layout or upload.scan_id is not None:
        return True
    reading = read_columns(
        table,
        administration=upload.administration,
        district=upload.district,
        school=upload.school,
    )
    with transaction.atomic():
        try:
            change_state(
                upload, allowed=(State.CHECKING,), values=values_of_reading(reading)
            )
        except UploadConflict:
            raise Cancelled from None
        progress.confirm()
    return not reading.is_unclear


def values_of_reading(reading: ColumnReading) -> dict[str, Any]:
    """Return the values of an upload whose header was read."""
    return {
        "state": State.MAPPING if reading.is_unclear else State.CHECKING,
        "layout": reading.layout.as_dict(),
        "layout_choice": reading.choice,
        "samples": reading.samples.as_dict(),
    }


@contextmanager
def open_upload(upload: RosterUpload) -> Iterator[RosterTable]:
    """Open an upload's file, before it is known what its columns mean."""
    with ExitStack() as stack:
        try:
            if not upload.file:
                raise FileNotFoundError
            path = stack.enter_context(local_copy(upload.file))
            file = stack.enter_context(path.open("rb"))
        except FileNotFoundError:
            raise JobRefused(_(FILE_DELETED)) from None
        known = KnownPlace.of(upload.district, upload.school)
        yield stack.enter_context(open_roster_file(file, known, sheet=upload.sheet))


def with_columns_of(upload: RosterUpload, table: RosterTable) -> RosterTable:
    # Uploads of feeds have none.
    layout = RosterLayout.from_dict(upload.layout) if upload.layout else None
    table = with_columns(table, layout, role=upload.administration.role)
    if upload.scan is not None:
        table = replace(table, id_name=name_of_id("", upload.scan.feed.identity))
    return table


def select_upload() -> QuerySet[RosterUpload]:
    return RosterUpload.objects.select_related(
        "administration__published",
        "by",
        "confirmed_by",
        "district",
        "school__district",
    )


def upload_of_job(job: Job) -> RosterUpload:
    return select_upload().get(pk=job.subject_id or 0)


@contextmanager
def storing_failure(upload: RosterUpload) -> Iterator[None]:
    """Store in the upload that its job failed or was cancelled."""
    running = RosterUpload.objects.filter(
        pk=upload.pk, state__in=(State.CHECKING, State.APPLYING)
    )
    try:
        yield
    except RUN_AGAIN:
        # If all attempts fail, the page offers to start it again.
        raise
    except Cancelled:
        running.update(state=State.CANCELLED, ended_at=timezone.now())
        raise
    except Exception as error:
        # A file that an earlier version could read may be refused when it is applied.
        is_for_people = isinstance(error, JobRefused | RosterUnreadable)
        message = str(error)[:500] if is_for_people else ""
        running.update(state=State.FAILED, message=message)
        raise


def compare_upload(
    upload: RosterUpload,
    table: RosterTable,
    by: User,
    progress: Progress,
    *,
    lock: bool = False,
) -> AbstractContextManager[RosterDiff]:
    """Compare with the permissions that `by` has now."""

    def get_scope() -> RosterScope:
        # Read after the lock was taken: it may have changed while waiting.
        fields = ["role", "published", "subgroups", *TAKES_ROSTER]
        upload.administration.refresh_from_db(fields=fields)
        try:
            check_takes_roster(upload.administration)
        except RosterRefused as refused:
            raise JobRefused(str(refused)) from refused
        scope = scope_of_upload(upload, Permissions(by))
        if scope is None:
            raise JobRefused(_(NOT_PERMITTED))
        return scope

    return compare_roster(
        administration=upload.administration,
        table=table,
        get_scope=get_scope,
        complete_for=upload.complete_for,
        on_progress=lambda step, rows: progress.begin_step(
            _("%(step)s: %(rows)s rows") % {"step": step, "rows": f"{rows:,}"}
            if rows
            else step
        ),
        lock=lock,
    )


def write_rejected_file(
    diff: RosterDiff, table: RosterTable, progress: Progress
) -> str:
    """Write the rejected rows to a private file; return its name, or ""."""
    if not diff.report.rejected:
        return ""
    progress.begin_step(_("Writing the rejected rows"))
    name = new_name(FOLDER, ".csv")
    with private_file(path_of(name)) as file:
        write_rejected_rows(file, table.columns, table.rows, diff.rejections())
    keep(path_of(name), name)
    return name


def store_result(
    upload: RosterUpload,
    report: RosterReport,
    rejected_file: str,
    progress: Progress,
    message: str = "",
) -> None:
    """Store the figures, schools and rejections, and wait for a confirmation.

    A message tells why a roster that was already confirmed needs another one.
    """
    try:
        with transaction.atomic():
            _store_report(upload, report, rejected_file, message)
            progress.confirm()
    except (Cancelled, TakenOver):
        # After any other error it is unknown whether it was committed. Then the
        # file is deleted within a day, unless an upload names it.
        delete_files(rejected_file)
        raise


def _store_report(
    upload: RosterUpload, report: RosterReport, rejected_file: str, message: str
) -> None:
    current = RosterUpload.objects.select_for_update().get(pk=upload.pk)
    if current.state not in (State.CHECKING, State.APPLYING):
        raise Cancelled
    previous_file = current.rejected_file
    transaction.on_commit(lambda: delete_files(previous_file))
    current.schools.all().delete()
    current.rejections.all().delete()
    rows = []
    for school in report.schools:
        values = asdict(school) | {
            "school_id": school.school_id if school.school_id > 0 else None
        }
        del values["district_id"]
        rows.append(RosterSchool(upload=upload, **values))
    RosterSchool.objects.bulk_create(rows, batch_size=500)
    RosterRejection.objects.bulk_create(
        [
            RosterRejection(
                upload=upload,
                row=cell.row,
                column=cell.column[:200],
                reason=cell.reason[:500],
                text=cell.text[:200],
            )
            for cell in report.rejections
        ],
        batch_size=500,
    )
    figures = report.as_dict()
    # Rejected cells can be names. They have a table of their own, which is
    # emptied after 30 days.
    del figures["rejections"], figures["imported"]
    current.report = figures
    current.withdrawn = report.withdrawn
    current.rejected = report.rejected
    current.must_be_typed = withdraws_many(report.schools)
    current.rejected_file = rejected_file
    current.state, current.message = State.CHECKED, message
    current.confirmed_by = current.confirmed_at = None
    current.typed = ""
    current.save()
