"""Files of a round in which somebody may be: count them, wait for them, delete them."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext as _

from survey.models import Administration, DataKind, RosterUpload
from survey.models.requested_file import RequestedFile
from survey.people.erasing.files import files_of
from survey.people.retention.hooks import blocks_destroying
from survey.people.rosters.missing_people import forget_missing_people
from survey.people.rosters.retention import delete_upload_files
from survey.work.requested_files import delete_file

State = RosterUpload.State
BUSY = (State.CHECKING, State.APPLYING, State.UNDOING)
BY = "apply_retention"


@blocks_destroying
def files_are_made(administration: Administration, kind: str) -> str:
    """Wait for exports and other files. 1 statement for each kind of file."""
    for files in files_of([administration.pk]):
        if files.filter(job__ended_at=None, job__isnull=False, made_at=None).exists():
            return _("A file of this survey round is being made.")
    return ""


@blocks_destroying
def rosters_are_applied(administration: Administration, kind: str) -> str:
    if administration.rosters.filter(state__in=BUSY).exists():
        return _("A roster of this survey round is being checked or applied.")
    return ""


def count_files(administration: int, kind: str) -> int:
    """Return how many files would be deleted."""
    count = sum(
        len(_names(requested))
        for files in files_of([administration])
        for requested in files
    )
    if kind == DataKind.IDENTITIES:
        for upload in _uploads(administration):
            count += sum(map(bool, (upload.file, upload.rejected_file)))
    return count


def delete_round_files(administration: int, kind: str) -> int:
    """Delete them; return how many. Each can be made again as long as there is data."""
    deleted = 0
    for files in files_of([administration]):
        for requested in files.select_related("job", "by"):
            deleted += len(_names(requested))
            delete_file(requested, by=BY)
    if kind == DataKind.IDENTITIES:
        for upload in _uploads(administration):
            deleted += sum(map(bool, (upload.file, upload.rejected_file)))
            delete_upload_files([upload])
            forget_missing_people(upload)
    return deleted


def _names(requested: RequestedFile) -> list[str]:
    names = (getattr(requested, name) for name in requested.FILE_NAMES)
    return list(filter(None, names))


def _uploads(administration: int) -> list[RosterUpload]:
    with_files = ~Q(file="", rejected_file="", samples=None)
    uploads = RosterUpload.objects.filter(
        with_files | Q(rejections__isnull=False), administration=administration
    )
    return list(uploads.exclude(state__in=BUSY).distinct())
