"""Upload a roster, choose its columns, confirm, cancel and restart it.

Uploading starts a dry run (`rosters.dry_run`), which changes nothing, unless a
person has to choose the columns first. A person looks at the figures and confirms
them; then a second job applies the file (`rosters.apply_job`). Both jobs can be run
again from their start at any time.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

from django.core.files import File
from django.db import transaction
from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import District, School, User
from survey.models import Administration, Job, RosterLayoutChoice, RosterUpload
from survey.people.rosters.apply_job import apply_roster
from survey.people.rosters.column_choices import (
    ColumnReading,
    ColumnSamples,
    header_key,
)
from survey.people.rosters.dry_run import FILE_DELETED, check_roster, values_of_reading
from survey.people.rosters.layouts import RosterLayout
from survey.people.rosters.retention import FOLDER, delete_upload_files
from survey.people.rosters.school_questions import must_be_answered
from survey.people.rosters.scope import check_takes_roster
from survey.people.rosters.upload_state import (
    COUNTS,
    UploadConflict,
    change_state,
    record_action,
)
from survey.work.files import new_name, private_files
from survey.work.job_turns import refuse_many
from survey.work.jobs import start

State = RosterUpload.State
CompleteFor = RosterUpload.CompleteFor

# Of the files of one user, which are kept for 30 days: 80 rosters of two million
# people.
MOST_BYTES = 20 * 10**9

# Before somebody has confirmed what the columns would change.
COLUMNS_CAN_CHANGE = (State.MAPPING, State.CHECKED, State.REFUSED)
NOBODY_TO_INVITE = gettext_noop(
    "There is nothing to apply: nobody in this file has the role of this"
    " survey round. Upload the file to a survey round for the people in"
    " it, or check which column holds the role."
)

SCHOOLS_TO_CHECK = gettext_noop(
    "Some schools of this file have nearly the name of a known one. Say for each which"
    " school is meant, or that it is a new one. Nothing was applied."
)


class TooManyFiles(Exception):
    """The message tells the user what to do."""


class WrongNumberTyped(ValueError):
    """The typed number is not that of the people who will be withdrawn."""


def receive(
    *,
    administration: Administration,
    file: File,
    complete_for: str,
    by: User,
    request: HttpRequest | None = None,
    district: District | None = None,
    school: School | None = None,
    sheet: str = "",
    reading: ColumnReading | None = None,
) -> RosterUpload:
    """Store an uploaded file, and start its dry run unless its columns are unclear.

    `sheet` is the one to read of a workbook with several. Without a `reading` the dry
    run finds out how the file is read.

    Raises RosterRefused of `rosters.scope`, TooManyFiles, and TooManyJobs of
    `survey.work.job_turns`.
    """
    # The jobs check it again under their lock.
    check_takes_roster(administration)
    refuse_many(by)
    stored = RosterUpload.objects.filter(by=by, scan=None).exclude(file="")
    size = (stored.aggregate(bytes=Sum("size"))["bytes"] or 0) + (file.size or 0)
    if size > MOST_BYTES:
        raise TooManyFiles(
            _(
                "Your rosters of the last 30 days would take more than"
                " %(most_bytes)s GB. Cancel uploads that you no longer need, then"
                " upload this file."
            )
            % {"most_bytes": f"{MOST_BYTES / 10**9:.0f}"}
        )
    # Before the transaction: a large file takes seconds.
    stored_name = private_files().save(new_name(FOLDER, ".roster"), file)
    with transaction.atomic():
        upload = RosterUpload.objects.create(
            administration=administration,
            by=by,
            district=district,
            school=school,
            file=stored_name,
            name=(file.name or "roster")[:200],
            size=file.size or 0,
            complete_for=complete_for,
            sheet=sheet,
            **(values_of_reading(reading) if reading else {}),
        )
        record_action("upload roster", upload, by=by, request=request, size=upload.size)
        if upload.state == State.CHECKING:
            start(check_roster, subject_id=upload.pk, by=by)
    return upload


def columns_can_change(upload: RosterUpload) -> bool:
    return bool(upload.samples) and upload.state in COLUMNS_CAN_CHANGE


@transaction.atomic
def choose_columns(
    upload: RosterUpload,
    layout: RosterLayout,
    *,
    by: User,
    request: HttpRequest | None = None,
    place: tuple[District | None, School | None] | None = None,
) -> None:
    """Check the file with these columns, and remember them for its headers.

    With a `place`, all people of the file belong there: a part of the place that
    it was uploaded for. Raises UploadConflict.
    """
    if not upload.file:
        raise UploadConflict(_(FILE_DELETED))
    choice = RosterLayoutChoice.objects.create(
        district=upload.school.district if upload.school else upload.district,
        school=upload.school,
        header_key=header_key(ColumnSamples.of(upload).header),
        # The schools that were chosen are those of one file.
        layout=replace(layout, schools={}).as_dict(),
        by=by,
    )
    change_state(
        upload,
        allowed=COLUMNS_CAN_CHANGE,
        values={
            **unchecked(),
            "layout": layout.as_dict(),
            "layout_choice": choice,
            **_narrower(upload, *(place or (upload.district, upload.school))),
        },
    )
    # Without the headers: the first row of a file without any has names.
    record_action("choose roster columns", upload, by=by, request=request)
    start(check_roster, subject_id=upload.pk, by=by)


def unchecked() -> dict[str, object]:
    """Return the values of an upload whose earlier check does not count any more."""
    return {
        "state": State.CHECKING,
        "message": "",
        "report": {},
        "withdrawn": 0,
        "rejected": 0,
        "must_be_typed": False,
    }


def _narrower(
    upload: RosterUpload, district: District | None, school: School | None
) -> dict[str, object]:
    """Return the values of an upload for a place within its own."""
    complete_for = CompleteFor(upload.complete_for)
    if school is not None:
        district = None
        if complete_for in (CompleteFor.DISTRICTS, CompleteFor.STATE):
            complete_for = CompleteFor.SCHOOLS
    elif district is not None and complete_for == CompleteFor.STATE:
        complete_for = CompleteFor.DISTRICTS
    return {"district": district, "school": school, "complete_for": complete_for}


@transaction.atomic
def confirm(
    upload: RosterUpload,
    *,
    by: User,
    seen: str,
    typed: str = "",
    columns: str | None = None,
    request: HttpRequest | None = None,
) -> None:
    """Start applying what the dry run has shown.

    `seen` is the number of people to withdraw on the page that was confirmed, and
    `columns` the key of its chosen columns, so that a later comparison is not
    confirmed unseen. `typed` is the same
    number, typed by hand if it is large ("1,234" and "1 234" count as 1234).

    Raises UploadConflict and WrongNumberTyped.
    """
    refuse_of_scan(upload)
    if is_for_other_roles(upload):
        raise UploadConflict(_(NOBODY_TO_INVITE))
    if any(map(must_be_answered, upload.report.get("school_questions", ()))):
        raise UploadConflict(_(SCHOOLS_TO_CHECK))
    if seen != str(upload.withdrawn) or columns not in (None, columns_key(upload)):
        raise UploadConflict(
            _("The figures have changed. Check them again before you confirm.")
        )
    typed = check_typed_number(
        typed, upload.withdrawn, must_be_typed=upload.must_be_typed
    )
    change_state(
        upload,
        allowed=(State.CHECKED,),
        withdrawn=upload.withdrawn,
        layout_choice=upload.layout_choice_id,
        values={
            "state": State.APPLYING,
            "confirmed_by": by,
            "confirmed_at": timezone.now(),
            "typed": typed,
            "message": "",
        },
    )
    counts = {name: upload.report.get(name) for name in COUNTS}
    record_action(
        "confirm roster", upload, by=by, request=request, **counts, typed=typed
    )
    start(apply_roster, subject_id=upload.pk, by=by)


def check_typed_number(typed: str, withdrawn: int, *, must_be_typed: bool) -> str:
    """Return what was typed, fit to be stored. Raises WrongNumberTyped."""
    typed = typed[:200].replace("\x00", "")
    if must_be_typed:
        digits = "".join(sign for sign in typed if sign not in ",.' \u00a0\u202f")
        is_number = digits.isdecimal() and len(digits) < 10
        if not is_number or int(digits) != withdrawn:
            raise WrongNumberTyped(
                _("Type the number of people who will be withdrawn: %(withdrawn)s.")
                % {"withdrawn": withdrawn}
            )
    return typed


def refuse_of_scan(upload: RosterUpload) -> None:
    """Raise UploadConflict for a roster that a feed's scan has brought.

    The scan is confirmed or cancelled as a whole, and a trial is never applied.
    """
    if upload.scan_id is not None:
        raise UploadConflict(
            _(
                "This roster is part of a scan of a roster sync."
                " Confirm or cancel the scan."
            )
        )


def is_for_other_roles(upload: RosterUpload) -> bool:
    """Test if nobody in a checked file has the right role, and nobody is withdrawn."""
    rows, by_role = upload.report.get("rows", 0), upload.report.get("other_roles")
    return 0 < rows == sum((by_role or {}).values()) and not upload.withdrawn


def columns_key(upload: RosterUpload) -> str:
    """Return what differs once other columns or schools were chosen."""
    choice = str(upload.layout_choice_id or "")
    if schools := upload.layout.get("schools"):
        digest = sha256(json.dumps(schools).encode()).hexdigest()
        return f"{choice}-{digest[:16]}"
    return choice


@transaction.atomic
def cancel(
    upload: RosterUpload, *, by: User, request: HttpRequest | None = None
) -> None:
    """Cancel an upload that was not confirmed, and delete its files.

    A confirmed one may have been applied in part, so it can only be completed.
    Raises UploadConflict.
    """
    refuse_of_scan(upload)
    change_state(
        upload,
        allowed=(
            State.CHECKING,
            State.MAPPING,
            State.CHECKED,
            State.REFUSED,
            State.FAILED,
        ),
        confirmed_at=None,
        values={"state": State.CANCELLED, "ended_at": timezone.now()},
    )
    record_action("cancel roster", upload, by=by, request=request)
    delete_upload_files([upload])


@transaction.atomic
def start_again(
    upload: RosterUpload, *, by: User, request: HttpRequest | None = None
) -> None:
    """Start a failed dry run, or a failed application, once more.

    Raises UploadConflict.
    """
    refuse_of_scan(upload)
    running = latest_job(upload)
    if running and not running.is_over:
        raise UploadConflict(_("This roster is already being processed."))
    confirmed = upload.confirmed_at is not None
    change_state(
        upload,
        allowed=(State.FAILED, State.CHECKING, State.APPLYING),
        values={
            "state": State.APPLYING if confirmed else State.CHECKING,
            "message": "",
            "ended_at": None,
        },
    )
    record_action("start roster again", upload, by=by, request=request)
    start(apply_roster if confirmed else check_roster, subject_id=upload.pk, by=by)


def latest_job(upload: RosterUpload) -> Job | None:
    kinds = ("roster.check", "roster.apply", "roster.undo")
    jobs = Job.objects.filter(kind__in=kinds, subject_id=upload.pk)
    return jobs.order_by("-pk").first()
