"""A roster file from its upload to the people it brings.

Checking is a dry run: it changes nothing and says what would change. Only what
a person then confirms is applied. Both are jobs, and both may be run again from
their start at any time.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any, BinaryIO

from django.core.files import File
from django.db import InterfaceError, OperationalError, transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from accounts.audit import record
from accounts.email_outbox import post
from accounts.models import District, School, User
from accounts.permissions import Permissions
from survey import access_codes
from survey.files import delete_orphans, new_name, path_of, private_files
from survey.jobs import (
    Cancelled,
    Interrupted,
    JobRefused,
    Progress,
    TakenOver,
    job,
    start,
)
from survey.models import (
    Administration,
    Job,
    RosterRejection,
    RosterSchool,
    RosterUpload,
)
from survey.models.roster import is_many
from survey.rosters.apply import write_changes
from survey.rosters.diff import Diff, compared
from survey.rosters.file_reader import RosterUnreadable, Table, open_table
from survey.rosters.private_files import private_file
from survey.rosters.report import RosterReport, SchoolCounts, write_rejected
from survey.rosters.scope import Reach, reach_of

State = RosterUpload.State
CompleteFor = RosterUpload.CompleteFor
FOLDER = "rosters"
# Long enough to look something up in what was uploaded; it holds names.
KEPT = timedelta(days=30)
NOT_YOURS = (
    "Whoever confirmed this roster does not manage rosters in its place any more."
)
MORE_WITHDRAWN = (
    "Meanwhile the roster has changed, so that this file would withdraw more people"
    " than was shown. Nothing was applied: look at the figures and confirm again."
)
MORE_REJECTED = (
    "Meanwhile the roster or its administration has changed, so that more rows of"
    " this file cannot be taken than was shown. Nothing was applied: look at the"
    " reasons and confirm again."
)
GONE = "The file was deleted, as all are after 30 days. Upload it again."


class NotNow(Exception):
    """Somebody else was quicker; says what has become of it."""


class WrongWord(ValueError):
    """What had to be typed was not."""


# What a person does --------------------------------------------------------


def receive(
    *,
    administration: Administration,
    file: File,
    complete_for: str,
    by: User,
    request: HttpRequest | None = None,
    district: District | None = None,
    school: School | None = None,
) -> RosterUpload:
    """Keep an uploaded file and begin to check it."""
    # Before the transaction: a large file takes seconds.
    kept = private_files().save(new_name(FOLDER, ".roster"), file)
    with transaction.atomic():
        upload = RosterUpload.objects.create(
            administration=administration,
            by=by,
            district=district,
            school=school,
            file=kept,
            name=(file.name or "roster")[:200],
            size=file.size or 0,
            complete_for=complete_for,
        )
        _record("upload roster", upload, by=by, request=request, size=upload.size)
        start(check_roster, subject_id=upload.pk, by=by)
    return upload


@transaction.atomic
def confirm(
    upload: RosterUpload,
    *,
    by: User,
    seen: str,
    typed: str = "",
    request: HttpRequest | None = None,
) -> None:
    """Apply what the dry run has shown. Raises NotNow and WrongWord.

    `seen` is how many people the page said would be withdrawn: what was shown
    is what is confirmed, not a comparison that came after it.
    """
    typed = typed[:200].replace("\x00", "")
    if seen != str(upload.withdrawn):
        raise NotNow("The figures have changed meanwhile: look at them again.")
    if upload.must_be_typed and _number(typed) != upload.withdrawn:
        raise WrongWord
    _move(
        upload,
        (State.CHECKED,),
        withdrawn=upload.withdrawn,
        to={
            "state": State.APPLYING,
            "confirmed_by": by,
            "confirmed_at": timezone.now(),
            "typed": typed,
            "message": "",
        },
    )
    counts = {name: upload.report.get(name) for name in _COUNTS}
    _record("confirm roster", upload, by=by, request=request, **counts, typed=typed)
    start(apply_roster, subject_id=upload.pk, by=by)


@transaction.atomic
def cancel(
    upload: RosterUpload, *, by: User, request: HttpRequest | None = None
) -> None:
    """Leave everything as it is. Raises NotNow, also once a part of it may have
    been applied: then it is only completed."""
    _move(
        upload,
        (State.CHECKING, State.CHECKED, State.REFUSED, State.FAILED),
        confirmed_at=None,
        to={"state": State.CANCELLED, "ended_at": timezone.now()},
    )
    _record("cancel roster", upload, by=by, request=request)
    _forget_files([upload])


@transaction.atomic
def start_again(
    upload: RosterUpload, *, by: User, request: HttpRequest | None = None
) -> None:
    """After a failure on our side. Raises NotNow."""
    running = job_of(upload)
    if running and not running.is_over:
        raise NotNow("It is at work already.")
    confirmed = upload.confirmed_at is not None
    _move(
        upload,
        (State.FAILED, State.CHECKING, State.APPLYING),
        to={
            "state": State.APPLYING if confirmed else State.CHECKING,
            "message": "",
            "ended_at": None,
        },
    )
    _record("start roster again", upload, by=by, request=request)
    start(apply_roster if confirmed else check_roster, subject_id=upload.pk, by=by)


def _number(typed: str) -> int | None:
    """As people write it: 1,234 or 1 234."""
    digits = "".join(one for one in typed if one not in ",.' \u00a0\u202f")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None


def job_of(upload: RosterUpload) -> Job | None:
    kinds = ("roster.check", "roster.apply")
    jobs = Job.objects.filter(kind__in=kinds, subject_id=upload.pk)
    return jobs.order_by("-pk").first()


_COUNTS = ("added", "changed", "moved", "back", "withdrawn", "unchanged", "rejected")


def _move(
    upload: RosterUpload, states: tuple[str, ...], *, to: dict[str, Any], **still: Any
) -> None:
    """From one of these states; of two at once, one is too late."""
    mine = RosterUpload.objects.filter(pk=upload.pk, state__in=states, **still)
    if not mine.update(**to):
        upload.refresh_from_db()
        raise NotNow(f"This roster is {upload.get_state_display()}.")
    for name, value in to.items():
        setattr(upload, name, value)


def _record(
    action: str,
    upload: RosterUpload,
    *,
    by: User | str,
    request: HttpRequest | None = None,
    **after: object,
) -> None:
    after["administration"] = upload.administration.name
    record(
        action,
        by=by,
        request=request,
        subject=upload,
        school=upload.school,
        district=upload.district,
        after=after,
    )


# What a worker does --------------------------------------------------------


@job("roster.check", long=True)
def check_roster(job: Job, progress: Progress) -> None:
    """The dry run."""
    upload = _upload(job)
    if upload.state != State.CHECKING:
        return
    with _failing(upload):
        try:
            _check(upload, progress)
        except RosterUnreadable as error:
            RosterUpload.objects.filter(pk=upload.pk, state=State.CHECKING).update(
                state=State.REFUSED, message=str(error)[:500]
            )
            progress.message = "The file cannot be read."


def _check(upload: RosterUpload, progress: Progress) -> None:
    with _opened(upload) as file, open_table(file) as table:
        with _compared(upload, table, upload.by, progress) as diff:
            rejected = _write_rejected(diff, table, progress)
        _store(upload, diff.report, rejected, progress)
    progress.message = f"Checked {diff.report.rows:,} rows."


@job("roster.apply", long=True, stoppable=False)
def apply_roster(job: Job, progress: Progress) -> None:
    """What was confirmed. Broken off, it goes on from where it stopped."""
    upload = _upload(job)
    if upload.state != State.APPLYING:
        return
    with _failing(upload):
        access_codes.current_version()
        _apply(upload, progress)


def _apply(upload: RosterUpload, progress: Progress) -> None:
    assert upload.confirmed_by is not None  # noqa: S101
    with (
        _opened(upload) as file,
        open_table(file) as table,
        _compared(upload, table, upload.confirmed_by, progress, alone=True) as diff,
    ):
        upload.refresh_from_db(fields=["state"])
        if upload.state != State.APPLYING:
            # Another worker was taken for dead, and was not.
            return
        if changed := _why_to_ask_again(upload, diff.report):
            rejected = _write_rejected(diff, table, progress)
            _store(upload, diff.report, rejected, progress, changed)
            raise JobRefused(changed)

        write_changes(diff, lambda step, done: progress.begin_step(f"{step}: {done:,}"))
        _finish(upload, progress)
    progress.message = "Applied."


def _finish(upload: RosterUpload, progress: Progress) -> None:
    with transaction.atomic():
        now = timezone.now()
        _move(upload, (State.APPLYING,), to={"state": State.APPLIED, "ended_at": now})
        counts = {name: upload.report.get(name) for name in _COUNTS}
        by = upload.confirmed_by or upload.by
        _record("apply roster", upload, by=by, **counts)
        _tell_by_mail(upload)
        progress.confirm()


def _upload(job: Job) -> RosterUpload:
    uploads = RosterUpload.objects.select_related(
        "administration__published", "by", "confirmed_by", "district", "school"
    )
    return uploads.get(pk=job.subject_id or 0)


class _failing:
    """Says of the upload, too, that its job has failed."""

    def __init__(self, upload: RosterUpload) -> None:
        self.upload = upload

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        # The others mean that the job is begun again: by another worker, or
        # when the database is back. Given up at last, its page shows that.
        passing = Interrupted | TakenOver | OperationalError | InterfaceError
        if not isinstance(error, Exception) or isinstance(error, passing):
            return
        message = str(error) if isinstance(error, JobRefused) else ""
        states: tuple[str, ...] = (State.CHECKING, State.APPLYING)
        to: dict[str, Any] = {"state": State.FAILED, "message": message}
        if isinstance(error, Cancelled):
            to = {"state": State.CANCELLED, "ended_at": timezone.now()}
        RosterUpload.objects.filter(pk=self.upload.pk, state__in=states).update(**to)


def _opened(upload: RosterUpload) -> BinaryIO:
    try:
        if not upload.file:
            raise FileNotFoundError
        return path_of(upload.file).open("rb")
    except FileNotFoundError:
        raise JobRefused(GONE) from None


def _compared(
    upload: RosterUpload,
    table: Table,
    by: User,
    progress: Progress,
    *,
    alone: bool = False,
) -> Any:
    def reach() -> Reach:
        # As it stands behind the lock: it may have been changed since.
        upload.administration.refresh_from_db(fields=["role", "published"])
        found = reach_of(upload, Permissions(by))
        if found is None:
            raise JobRefused(NOT_YOURS)
        return found

    def tell(step: str, done: int) -> None:
        progress.begin_step(f"{step}: {done:,} rows" if done else step)

    return compared(
        administration=upload.administration,
        table=table,
        reach=reach,
        complete_for=upload.complete_for,
        tell=tell,
        alone=alone,
    )


def _write_rejected(diff: Diff, table: Table, progress: Progress) -> str:
    """The name of the file; empty where nothing was rejected."""
    if not diff.report.rejected:
        return ""
    progress.begin_step("Writing down the rejected rows")
    name = new_name(FOLDER, ".csv")
    with private_file(path_of(name)) as file:
        write_rejected(file, table.columns, table.rows, diff.rejections())
    return name


def _store(
    upload: RosterUpload,
    report: RosterReport,
    rejected_file: str,
    progress: Progress,
    message: str = "",
) -> None:
    """Keep what a comparison has found, to be confirmed."""
    try:
        _write_down(upload, report, rejected_file, progress, message)
    except (Cancelled, TakenOver):
        # After any other error nobody knows whether it was committed: what no
        # row names is swept up in time.
        _remove(rejected_file)
        raise


@transaction.atomic
def _write_down(
    upload: RosterUpload,
    report: RosterReport,
    rejected_file: str,
    progress: Progress,
    message: str,
) -> None:
    current = RosterUpload.objects.select_for_update().get(pk=upload.pk)
    if current.state not in (State.CHECKING, State.APPLYING):
        # Cancelled in the meantime.
        raise Cancelled
    before = current.rejected_file
    transaction.on_commit(lambda: _remove(before))
    current.schools.all().delete()
    current.rejections.all().delete()
    RosterSchool.objects.bulk_create(
        [_of_school(upload, one) for one in report.schools], batch_size=500
    )
    RosterRejection.objects.bulk_create(
        [
            RosterRejection(
                upload=upload,
                row=one.row,
                column=one.column[:200],
                reason=one.reason[:500],
                text=one.text[:200],
            )
            for one in report.rejections
        ],
        batch_size=500,
    )
    described = report.as_dict()
    # Cells of people stand in a table of their own, which is emptied in time.
    del described["rejections"], described["imported"]
    current.report = described
    current.withdrawn = report.withdrawn
    current.rejected = report.rejected
    current.must_be_typed = must_be_typed(report.schools)
    current.rejected_file = rejected_file
    current.state, current.message = State.CHECKED, message
    current.confirmed_by = current.confirmed_at = None
    current.typed = ""
    current.save()
    progress.confirm()


def _of_school(upload: RosterUpload, one: SchoolCounts) -> RosterSchool:
    return RosterSchool(
        upload=upload,
        school_id=one.school_id if one.school_id > 0 else None,
        name=one.name,
        district_name=one.district_name,
        people=one.people,
        added=one.added,
        changed=one.changed,
        moved=one.moved,
        moved_away=one.moved_away,
        back=one.back,
        unchanged=one.unchanged,
        withdrawn=one.withdrawn,
    )


def must_be_typed(schools: list[SchoolCounts]) -> bool:
    """More than a tenth of a school, or of a district, would vanish."""
    people: Counter[int] = Counter()
    withdrawn: Counter[int] = Counter()
    for one in schools:
        if is_many(one.withdrawn, one.people):
            return True
        people[one.district_id] += one.people
        withdrawn[one.district_id] += one.withdrawn
    return any(is_many(gone, people[pk]) for pk, gone in withdrawn.items())


def _why_to_ask_again(upload: RosterUpload, report: RosterReport) -> str:
    """What was shown is what was confirmed: more of it is not done in silence."""
    if _withdraws_more(upload, report):
        return MORE_WITHDRAWN
    return MORE_REJECTED if report.rejected > upload.rejected else ""


def _withdraws_more(upload: RosterUpload, report: RosterReport) -> bool:
    """Of any school than was confirmed. After a part was done it is less."""
    shown = dict(
        upload.schools.filter(withdrawn__gt=0).values_list("school_id", "withdrawn")
    )
    return any(one.withdrawn > shown.get(one.school_id, 0) for one in report.schools)


def _tell_by_mail(upload: RosterUpload) -> None:
    """Put down with what it tells of, so that it is sent once and not lost."""
    counts = {name: upload.report.get(name, 0) for name in _COUNTS}
    known = {one.email: one for one in (upload.by, upload.confirmed_by) if one}
    for to, user in sorted(known.items()):
        # Who has left the place meanwhile has no business with it any more.
        if reach_of(upload, Permissions(user)) is None:
            continue
        post(
            "roster applied",
            to=to,
            name=upload.name,
            administration=upload.administration.name,
            address=reverse("roster_detail", args=[upload.pk]),
            **counts,
        )


# In time -------------------------------------------------------------------


def forget_old_rosters() -> int:
    """Delete files and cells of uploads whose time is over; how many uploads.

    And files that no upload names: they hold names as well.
    """
    delete_orphans(FOLDER, _named)
    old = RosterUpload.objects.filter(uploaded_at__lt=timezone.now() - KEPT)
    old = old.exclude(state=State.APPLYING).exclude(file="", rejected_file="")
    uploads = list(old[:1000])
    _forget_files(uploads)
    return len(uploads)


def _named() -> set[str]:
    rows = RosterUpload.objects.exclude(file="", rejected_file="")
    return {name for row in rows.values_list("file", "rejected_file") for name in row}


def _forget_files(uploads: list[RosterUpload]) -> None:
    pks = [one.pk for one in uploads]
    names = [name for one in uploads for name in (one.file, one.rejected_file)]
    with transaction.atomic():
        RosterUpload.objects.filter(pk__in=pks).update(file="", rejected_file="")
        RosterRejection.objects.filter(upload__in=pks).delete()
        transaction.on_commit(lambda: _remove(*names))


def _remove(*names: str) -> None:
    for name in filter(None, names):
        with suppress(OSError):
            private_files().delete(name)
