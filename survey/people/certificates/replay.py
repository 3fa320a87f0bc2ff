"""Destroy once more what a restored backup has again: see `journal`.

Run before anybody is let into the restored database, where keys of rows are still
those of the database that was backed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.models import District, Membership, User
from survey.models import (
    Administration,
    DestructionCertificate,
    ErasedId,
    ErasedRecord,
    Erasure,
    Identity,
    Respondent,
)
from survey.people import access_codes
from survey.people.certificates.journal import JournalError
from survey.people.erasing import files
from survey.people.erasing.erase import erase_person, person_of, rows_deleted

Entry = Mapping[str, Any]
# Role and version of the key -> digests of IDs.
Ids = Mapping[tuple[str, int], set[str]]
# Destroys once more what an entry of this kind names; returns a count of rows.
Replays = Callable[[Entry], int]
_kinds: dict[str, Replays] = {}


@dataclass(slots=True)
class Result:
    entries: int = 0
    # Respondents who were erased now, and rows that were deleted.
    erased: int = 0
    rows: int = 0
    # Numbers of respondents who are not the person of the entry: none of the IDs fits.
    # Somebody has to look at them.
    not_the_same: list[int] = field(default_factory=list)


def replays(kind: str) -> Callable[[Replays], Replays]:
    """Register the function that replays entries of a kind."""

    def register(function: Replays) -> Replays:
        _kinds[kind] = function
        return function

    return register


def replay(entries: Iterable[Entry]) -> Result:
    """Destroy what the entries name and the database has. Raises JournalError.

    Entries that were replayed before, or whose destruction the database has seen, find
    nothing to do.
    """
    result = Result()
    for entry in entries:
        result.entries += 1
        kind = entry["kind"]
        if kind == DestructionCertificate.Kind.PEOPLE:
            _replay_erasure(entry, result)
        elif kind in _kinds:
            result.rows += _kinds[kind](entry)
        else:
            raise JournalError(f"This release cannot replay a destruction of {kind}")
    return result


def _replay_erasure(entry: Entry, result: Result) -> None:
    """Erase who is there again, as an order of its own."""
    ids = {
        (each["role"], each["key_version"]): set(each["digests"])
        for each in entry["ids"]
    }
    _remember(entry, ids)
    people: list[Respondent] = []
    for respondent in _candidates(entry, ids):
        if _is_person(respondent, ids):
            people.append(respondent)
        else:
            result.not_the_same.append(respondent.pk)
    if not people:
        return
    with transaction.atomic():
        erasure = _order(entry, people)
    for record in erasure.records.filter(erased_at=None).order_by("pk"):
        # A hold that the backup still has was lifted before the person was erased.
        erase_person(record, erasure, despite_holds=True)
    deleted = sum(rows_deleted(erasure).values())
    with transaction.atomic():
        erasure.erased_at = timezone.now()
        erasure.save(update_fields=["erased_at"])
        audit.record(
            "replay an erasure",
            by="replay_erasures",
            subject=erasure,
            district=erasure.district,
            after={"people": len(people), "rows": deleted},
        )
    # Roster files and rows that name them, too; `check_erasures` goes on with it.
    files.follow_up(erasure)
    result.erased += len(people)
    result.rows += deleted


def _remember(entry: Entry, ids: Ids) -> None:
    """Let no roster bring people whom the restored database does not know yet."""
    if not District.objects.filter(pk=entry["district"]).exists():
        return
    ErasedId.objects.bulk_create(
        [
            ErasedId(
                district_id=entry["district"],
                role=role,
                digest=bytes.fromhex(digest),
                key_version=version,
            )
            for (role, version), digests in ids.items()
            for digest in sorted(digests)
        ],
        ignore_conflicts=True,
    )


def _candidates(entry: Entry, ids: Ids) -> list[Respondent]:
    """Return respondents of the entry who are not erased, by number and by ID."""
    keys: set[int] = set()
    for administration, respondents in entry["respondents"].items():
        rows = Respondent.objects.filter(
            administration=int(administration), pk__in=respondents, erased_at=None
        )
        keys.update(rows.values_list("pk", flat=True))
    roles = dict(Administration.objects.values_list("pk", "role"))
    names = Identity.objects.filter(district=entry["district"])
    for pk, administration, external_id in names.values_list(
        "pk", "administration", "external_id"
    ).iterator():
        if _has_id(roles[administration], external_id, ids):
            keys.add(pk)
    return list(Respondent.objects.filter(pk__in=keys, erased_at=None).order_by("pk"))


def _is_person(respondent: Respondent, ids: Ids) -> bool:
    """Return whether a respondent, or who it was joined with, has one of the IDs."""
    person = person_of(respondent)
    return any(_has_id(person.role, text, ids) for text in person.ids)


def _has_id(role: str, external_id: str, ids: Ids) -> bool:
    return any(
        access_codes.erased_id_digest(role, external_id, version).hex() in digests
        for (of_role, version), digests in ids.items()
        if of_role == role
    )


def _order(entry: Entry, people: Iterable[Respondent]) -> Erasure:
    rows = list(people)
    erasure = Erasure.objects.create(
        district=_district_of(entry, rows),
        by=_orderer_of(entry),
        requested_on=date.fromisoformat(entry["requested_on"]),
        requested_by=entry["requested_by"],
        reason=entry["reason"],
        people=entry["people"],
        digest_key=bytes.fromhex(entry["digest_key"]) or None,
    )
    ErasedRecord.objects.bulk_create(
        [
            ErasedRecord(
                erasure=erasure, respondent=row, administration_id=row.administration_id
            )
            for row in rows
        ],
        # Of an order that the backup has, and that was not carried out yet.
        update_conflicts=True,
        unique_fields=["respondent"],
        update_fields=["erasure"],
    )
    return erasure


def _district_of(entry: Entry, people: Iterable[Respondent]) -> District:
    """Return the district of the entry, or the school's from before a merge."""
    if district := District.objects.filter(pk=entry["district"]).first():
        return district
    first = next(iter(people))
    return District.objects.get(schools=first.school_id)


def _orderer_of(entry: Entry) -> User:
    """Return who ordered it; a state administrator for a user who came later."""
    if user := User.objects.filter(pk=entry["by"]).first():
        return user
    state = Membership.objects.current().filter(role=Membership.Role.STATE)
    if membership := state.select_related("user").order_by("pk").first():
        return membership.user
    raise JournalError("The database has no state administrator to erase people for")
