"""Apply a confirmed roster in the background.

The file is compared again under the administration's lock, since other rosters
may have been applied after the dry run. The job can be interrupted and run
again at any time: a new comparison finds what is left to do.
"""

from __future__ import annotations

from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.email_outbox import queue_email
from accounts.models import User
from accounts.permissions import Permissions
from survey.models import Job, RosterUpload
from survey.people import access_codes
from survey.people.rosters.apply import write_changes
from survey.people.rosters.change_record import ChangeRecord, refuse_while_undoing
from survey.people.rosters.diff import RosterDiff
from survey.people.rosters.dry_run import (
    compare_upload,
    open_roster,
    store_result,
    storing_failure,
    upload_of_job,
    write_rejected_file,
)
from survey.people.rosters.missing_people import (
    forget_missing_people,
    number_not_shown,
    store_missing_people,
)
from survey.people.rosters.scope import scope_of_upload
from survey.people.rosters.upload_state import COUNTS, change_state, record_action
from survey.work.jobs import JobRefused, Progress, job

State = RosterUpload.State
MORE_WITHDRAWN = gettext_noop(
    "The roster has changed since this check: more or other people would be"
    " withdrawn than you were shown. Nothing was applied. Check the figures"
    " and confirm again."
)
MORE_REJECTED = gettext_noop(
    "The roster or its survey round has changed since this check: more rows"
    " would be rejected than you were shown. Nothing was applied. Check the"
    " reasons and confirm again."
)


class ConfirmAgain(JobRefused):
    """More would be withdrawn or rejected than was shown; nothing was applied."""


@job("roster.apply", long=True, stoppable=False)
def apply_roster(job: Job, progress: Progress) -> None:
    """Apply a confirmed roster, or ask to confirm it again."""
    upload = upload_of_job(job)
    if upload.state == State.APPLYING:
        apply_upload(upload, progress)


def apply_upload(upload: RosterUpload, progress: Progress) -> None:
    """Raises ConfirmAgain; the upload is then checked and not confirmed."""
    assert upload.confirmed_by is not None  # noqa: S101
    with storing_failure(upload):
        # Raises here if the key is missing, and not after the whole file was read.
        access_codes.current_version()
        with (
            open_roster(upload) as table,
            compare_upload(
                upload, table, upload.confirmed_by, progress, lock=True
            ) as diff,
        ):
            upload.refresh_from_db(fields=["state"])
            if upload.state != State.APPLYING:
                # A worker that was taken for dead has finished after all.
                return
            if message := refuse_while_undoing(upload.administration):
                raise JobRefused(message)
            if message := reason_to_confirm_again(upload, diff):
                rejected_file = write_rejected_file(diff, table, progress)
                store_missing_people(upload, diff)
                store_result(upload, diff.report, rejected_file, progress, message)
                raise ConfirmAgain(message)

            write_changes(
                diff,
                lambda step, people: progress.begin_step(f"{step}: {people:,}"),
                ChangeRecord(upload.pk),
            )
            with transaction.atomic():
                finish(upload)
                progress.confirm()
        forget_missing_people(upload)
        progress.message = _("Applied.")


def reason_to_confirm_again(upload: RosterUpload, diff: RosterDiff) -> str:
    """Return a message if others would be withdrawn, or more rejected, than was shown.

    People are compared one by one, and their numbers school by school. When a part
    was already applied, there are fewer of them.
    """
    report = diff.report
    if number_not_shown(upload, diff):
        return _(MORE_WITHDRAWN)
    shown = dict(
        upload.schools.filter(withdrawn__gt=0).values_list("school_id", "withdrawn")
    )
    if any(row.withdrawn > shown.get(row.school_id, 0) for row in report.schools):
        return _(MORE_WITHDRAWN)
    return _(MORE_REJECTED) if report.rejected > upload.rejected else ""


def finish(upload: RosterUpload) -> None:
    """Mark the upload as applied, and e-mail the people who uploaded and confirmed.

    The e-mails are stored in the caller's transaction, so each is sent once.
    """
    change_state(
        upload,
        allowed=(State.APPLYING,),
        values={
            "state": State.APPLIED,
            "ended_at": timezone.now(),
            # Nobody chooses columns or schools of an applied roster.
            "samples": None,
            "report": {**upload.report, "school_questions": []},
        },
    )
    counts = {name: upload.report.get(name) for name in COUNTS}
    by: User | str = upload.confirmed_by or upload.by
    if upload.scan_id and upload.scan and upload.scan.confirmed_by_id is None:
        by = "roster feed"
    record_action("apply roster", upload, by=by, **counts)
    if upload.scan_id:
        # Scans run every night; the page of the feed shows their figures.
        return
    users = {user.email: user for user in (upload.by, upload.confirmed_by) if user}
    for address, user in sorted(users.items()):
        # Not to people who have lost their permission in the meantime.
        if scope_of_upload(upload, Permissions(user)) is None:
            continue
        queue_email(
            "roster applied",
            to=address,
            name=upload.name,
            administration=upload.administration.title,
            address=reverse("roster_detail", args=[upload.pk]),
            **{name: upload.report.get(name, 0) for name in COUNTS},
        )
