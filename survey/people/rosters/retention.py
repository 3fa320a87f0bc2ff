"""Delete uploaded files, rejected cells and records of changes after 30 days.

They hold names.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from survey.models import RosterMissing, RosterRejection, RosterUpload
from survey.people.rosters.change_record import forget_changes
from survey.people.rosters.missing_people import forget_missing_people
from survey.people.rosters.upload_state import (
    UploadConflict,
    change_state,
    record_action,
)
from survey.work.files import delete_files, delete_orphans

FOLDER = "rosters"
# Long enough to look something up in an uploaded file.
KEPT = timedelta(days=30)
# At a time; the next run deletes more.
MOST_AT_ONCE = 1000


def delete_old_files() -> int:
    """Delete files of old uploads, and files that no upload names.

    Returns the number of uploads. Uploads that are being applied or
    undone are kept.
    """
    delete_orphans(FOLDER, _names_in_use)
    old = RosterUpload.objects.filter(uploaded_at__lt=timezone.now() - KEPT)
    State = RosterUpload.State
    old = old.exclude(state__in=(State.APPLYING, State.UNDOING))
    forget_changes(old.filter(undo__isnull=False, undo__ended_at=None))
    uploads = list(old.exclude(file="", rejected_file="")[:MOST_AT_ONCE])
    delete_upload_files(uploads)
    return len(uploads)


def cancel_abandoned_uploads() -> int:
    """Cancel uploads that nobody has confirmed in time; return their number.

    Lists leave them out from the same time on. Those of a roster sync end with their
    scan.
    """
    State = RosterUpload.State
    abandoned = RosterUpload.objects.filter(
        state__in=(State.MAPPING, State.CHECKED, State.REFUSED, State.FAILED),
        uploaded_at__lt=timezone.now() - RosterUpload.CONFIRMED_WITHIN,
        confirmed_at=None,
        scan=None,
    )
    uploads = list(abandoned[:MOST_AT_ONCE])
    for upload in uploads:
        with suppress(UploadConflict), transaction.atomic():
            change_state(
                upload,
                allowed=(upload.state,),
                confirmed_at=None,
                values={"state": State.CANCELLED, "ended_at": timezone.now()},
            )
            record_action("cancel abandoned roster", upload, by="forget_old_rosters")
            delete_upload_files([upload])
    return len(uploads)


def forget_decided_lists() -> int:
    """Delete the lists of people to withdraw that nobody can confirm any more.

    Returns the number of uploads. This is not done while a user waits: a list of
    two million people takes seconds.
    """
    State = RosterUpload.State
    decided = RosterUpload.objects.filter(
        ~Q(state__in=(State.CHECKING, State.CHECKED, State.APPLYING, State.FAILED))
        | Q(uploaded_at__lt=timezone.now() - KEPT) & ~Q(state=State.APPLYING),
        Exists(RosterMissing.objects.filter(upload=OuterRef("pk"))),
    )
    uploads = list(decided[:MOST_AT_ONCE])
    for upload in uploads:
        forget_missing_people(upload)
    return len(uploads)


def _names_in_use() -> set[str]:
    uploads = RosterUpload.objects.exclude(file="", rejected_file="")
    names = uploads.values_list("file", "rejected_file")
    return {name for pair in names for name in pair}


def delete_upload_files(uploads: list[RosterUpload]) -> None:
    """Delete the files, samples and rejected cells of these uploads."""
    pks = [upload.pk for upload in uploads]
    names = [name for upload in uploads for name in (upload.file, upload.rejected_file)]
    with transaction.atomic():
        RosterUpload.objects.filter(pk__in=pks).update(
            file="", rejected_file="", samples=None
        )
        for upload in uploads:
            # What was read as a school can be a name where a wrong column was chosen.
            questions = upload.report.pop("school_questions", None)
            choices = upload.layout.pop("schools", None)
            if questions or choices:
                upload.save(update_fields=["report", "layout"])
        RosterRejection.objects.filter(upload__in=pks).delete()
        transaction.on_commit(lambda: delete_files(*names))
