"""Delete the files in which erased people may be, and check that nothing is left.

A file cannot lose one person, so it is deleted as a whole, and can be made again.
Files that are being made when the rows are deleted are deleted once they are ready;
roster files that wait for a decision, once it was made. So this runs again until
nothing is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts import audit
from survey.models import (
    CardSet,
    Erasure,
    PersonFile,
    Respondent,
    RosterRejection,
    RosterUpload,
)
from survey.models.requested_file import RequestedFile
from survey.people.certificates import journal
from survey.people.certificates.keys import SigningKeyMissing
from survey.people.erasing.deletion import delete_rows
from survey.people.rosters.missing_people import forget_missing_people
from survey.people.rosters.retention import delete_upload_files
from survey.work.requested_files import delete_file

logger = logging.getLogger(__name__)
State = RosterUpload.State
# A file that was ordered shortly after may have been read from a replica that was
# behind.
REPLICA_LAG = timedelta(minutes=10)
# Nobody decides on them any more, or nothing is done with their file.
DECIDED = (State.APPLIED, State.REFUSED, State.CANCELLED, State.UNDONE)

# Files in which people of a district may be, by administrations and the district; for
# None, those in which anybody may be.
Files = Callable[[Collection[int], int | None], QuerySet[RequestedFile]]
_kinds: list[Files] = []


def may_hold_people(files: Files) -> Files:
    """Register a function that returns files which may hold erased people."""
    _kinds.append(files)
    return files


def of_district(district: int | None) -> Q:
    """Filter what may be about people of a district, or of the whole state."""
    if district is None:
        return Q()
    of_all = Q(school=None) & (Q(district=None) | Q(district=district))
    return Q(school__district=district) | of_all


@may_hold_people
def card_sets(
    administrations: Collection[int], district: int | None
) -> QuerySet[CardSet]:
    return CardSet.objects.filter(
        of_district(district), administration__in=administrations
    )


@may_hold_people
def person_files(
    administrations: Collection[int], district: int | None
) -> QuerySet[PersonFile]:
    """Return files about people who were erased; each is about one person."""
    files = PersonFile.objects.filter(respondent__administration__in=administrations)
    if district is None:
        return files
    return files.filter(respondent__erased_at__isnull=False)


def follow_up(erasure: Erasure) -> bool:
    """Delete what is left of erased people; return whether nothing is.

    `erasure` has deleted its rows.
    """
    assert erasure.erased_at is not None  # noqa: S101
    until = erasure.erased_at + REPLICA_LAG
    records = dict(erasure.records.values_list("pk", "administration"))
    for respondent, administration in records.items():
        # What a login or an e-mail in flight wrote after the rows were deleted.
        with transaction.atomic():
            Respondent.objects.select_for_update().filter(pk=respondent).first()
            delete_rows(respondent, administration)
    rounds = set(records.values())
    left, deleted = delete_requested_files(rounds, erasure.district_id, until)
    undecided, of_rosters = delete_roster_files(rounds, erasure.district_id, until)
    left += undecided
    if deleted + of_rosters:
        rows = Erasure.objects.filter(pk=erasure.pk)
        rows.update(files=F("files") + deleted + of_rosters)
    if left or timezone.now() < until or not write_journal(erasure):
        return False
    with transaction.atomic():
        rows = Erasure.objects.filter(pk=erasure.pk, completed_at=None)
        if rows.update(completed_at=timezone.now()):
            audit.record(
                "complete an erasure",
                by="check_erasures",
                subject=erasure,
                district=erasure.district,
            )
    return True


def write_journal(erasure: Erasure) -> bool:
    """Write whom an erasure erased where restores read it; False if files are away.

    Without a key to sign with, `certify_erasures` writes it once there is one.
    """
    name, entry = journal.name_of_erasure(erasure), journal.entry_of_erasure(erasure)
    try:
        return journal.try_to_write(name, entry)
    except SigningKeyMissing as error:
        logger.error("Erasure %s is not in the journal: %s", erasure.pk, error)
        return True


def delete_requested_files(
    rounds: Collection[int], district: int | None, until: datetime
) -> tuple[int, int]:
    """Delete requested files; return how many are still being made, and the deleted."""
    unfinished = deleted = 0
    for kind in _kinds:
        files = kind(rounds, district).using(DEFAULT_DB_ALIAS)
        old = files.filter(created_at__lte=until, deleted_at=None).distinct()
        for requested in old.select_related("job", "by"):
            is_running = requested.job is not None and not requested.job.is_over
            if is_running and requested.made_at is None:
                unfinished += 1
            else:
                # One that failed could be started again, with the data of then.
                deleted += bool(requested.file_name)
                delete_file(requested, by="check_erasures")
    return unfinished, deleted


def files_of(rounds: Collection[int]) -> Iterator[QuerySet[RequestedFile]]:
    """Yield the requests for files in which anybody of these rounds may be."""
    for kind in _kinds:
        files = kind(rounds, None).using(DEFAULT_DB_ALIAS)
        yield files.filter(deleted_at=None).distinct()


def delete_roster_files(
    rounds: Collection[int], district: int | None, until: datetime
) -> tuple[int, int]:
    """Delete roster files and rejected cells.

    Returns how many wait for a decision, and how many files were deleted.
    """
    rejections = RosterRejection.objects.filter(upload=OuterRef("pk"))
    uploads = RosterUpload.objects.filter(
        ~Q(file="", rejected_file="", samples=None) | Exists(rejections),
        of_district(district),
        administration__in=rounds,
        uploaded_at__lte=until,
    )
    decided = list(uploads.filter(state__in=DECIDED))
    deleted = 0
    for upload in decided:
        deleted += bool(upload.file) + bool(upload.rejected_file)
        delete_upload_files([upload])
        forget_missing_people(upload)
    return uploads.exclude(state__in=DECIDED).count(), deleted


def follow_up_all() -> int:
    """Go on with every erasure that is not complete; return how many are left."""
    rows = Erasure.objects.filter(completed_at=None, erased_at__isnull=False)
    pending = list(rows.select_related("district").order_by("pk"))
    return sum(not follow_up(erasure) for erasure in pending)
