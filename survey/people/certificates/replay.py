"""Destroy once more what a restored backup has again: see `journal`.

Run before anybody is let into the restored database, where keys of rows are still
those of the database that was backed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts import audit
from accounts.models import AuditEntry, District, Membership, User
from survey.models import (
    Administration,
    DestructionCertificate,
    ErasedId,
    ErasedRecord,
    Erasure,
    Identity,
    Respondent,
    RosterChange,
    RosterUpload,
)
from survey.people import access_codes
from survey.people.certificates.issuing import UNKNOWN_ORDERER
from survey.people.certificates.journal import JournalError
from survey.people.erasing import files
from survey.people.erasing.erase import erase_person, person_of, rows_deleted
from survey.people.erasing.stored import PersonRecords

Entry = Mapping[str, Any]
# Role and version of the key -> digests of IDs.
Ids = Mapping[tuple[str, int], set[str]]


@dataclass(slots=True)
class Result:
    entries: int = 0
    # Respondents who were erased now, and rows that were deleted.
    erased: int = 0
    rows: int = 0
    # Numbers of respondents who are not the person of the entry: none of the IDs fits.
    # Somebody has to look at them.
    not_the_same: list[int] = field(default_factory=list)
    # The same of survey rounds: name, survey or opening is another's.
    rounds_not_the_same: list[int] = field(default_factory=list)


# Destroys once more what an entry of this kind names, and adds to the result.
Replays = Callable[[Entry, Result], None]
_kinds: dict[str, Replays] = {}


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
            _kinds[kind](entry, result)
        else:
            raise JournalError(f"This release cannot replay a destruction of {kind}")
    return result


def _replay_erasure(entry: Entry, result: Result) -> None:
    """Erase who is there again, by the order that the backup has, or by a new one."""
    district = District.objects.filter(code=entry["district"]["code"]).first()
    if has_seen(entry, district):
        return
    ids = {
        (each["role"], each["key_version"]): set(each["digests"])
        for each in entry["ids"]
    }
    if district:
        _remember(district, ids)
    people: list[Respondent] = []
    strangers: list[int] = []
    of_people: set[int] = set()
    for respondent in _candidates(entry, district, ids):
        person = person_of(respondent)
        if _has_any_id(person, ids):
            people.append(respondent)
            of_people |= person.records.keys()
        else:
            strangers.append(respondent.pk)
    # Records in districts' modules have no ID, and go with the person's.
    result.not_the_same += [pk for pk in strangers if pk not in of_people]
    result.not_the_same += _came_later(entry, people)
    people = [each for each in people if each.pk not in result.not_the_same]
    if not people:
        return
    with transaction.atomic():
        erasure = _order(entry, district, people)
    keys = [respondent.pk for respondent in people]
    for record in erasure.records.filter(pk__in=keys, erased_at=None).order_by("pk"):
        # A hold that the backup still has was lifted before the person was erased.
        erase_person(record, erasure, despite_holds=True)
    deleted = sum(rows_deleted(erasure).values())
    result.erased += len(people)
    result.rows += deleted
    facts: dict[str, object] = {"people": len(people), "rows": deleted}
    if _orderer_of(entry) is None:
        facts["ordered by"] = UNKNOWN_ORDERER
    _end(erasure, facts)


def _end(erasure: Erasure, facts: Mapping[str, object]) -> None:
    with transaction.atomic():
        audit.record(
            "replay an erasure",
            by="replay_erasures",
            subject=erasure,
            district=erasure.district,
            after=facts,
        )
        if not erasure.records.filter(erased_at=None).exists():
            erasure.erased_at = timezone.now()
            erasure.save(update_fields=["erased_at"])
    # Also while others of the order have not been erased yet.
    files.write_journal(erasure)
    if erasure.erased_at:
        # Roster files and rows that name them, too; `check_erasures` goes on with it.
        files.follow_up(erasure)


def has_seen(entry: Entry, district: District | None) -> bool:
    """Return whether the database is from after this erasure.

    Then whoever fits the entry has come back since. 1 statement.
    """
    orders = _orders(entry, district).values_list("erased_at", flat=True)
    return bool(orders) and all(orders)


def _orders(entry: Entry, district: District | None) -> QuerySet[Erasure]:
    orders = Erasure.objects.filter(
        ordered_at=datetime.fromisoformat(entry["ordered_at"])
    )
    return orders.filter(district=district) if district else orders


def _remember(district: District, ids: Ids) -> None:
    """Let no roster bring people whom the restored database does not know yet."""
    ErasedId.objects.bulk_create(
        [
            ErasedId(
                district=district,
                role=role,
                digest=bytes.fromhex(digest),
                key_version=version,
            )
            for (role, version), digests in ids.items()
            for digest in sorted(digests)
        ],
        ignore_conflicts=True,
    )


def _candidates(entry: Entry, district: District | None, ids: Ids) -> list[Respondent]:
    """Return respondents of the entry who are not erased, by number and by ID."""
    keys: set[int] = set()
    for administration, respondents in entry["respondents"].items():
        rows = Respondent.objects.filter(
            administration=int(administration), pk__in=respondents, erased_at=None
        )
        keys.update(rows.values_list("pk", flat=True))
    roles = dict(Administration.objects.values_list("pk", "role"))
    names = Identity.objects.filter(district=district)
    for pk, administration, external_id in names.values_list(
        "pk", "administration", "external_id"
    ).iterator():
        if _has_id(roles[administration], external_id, ids):
            keys.add(pk)
    return list(Respondent.objects.filter(pk__in=keys, erased_at=None).order_by("pk"))


def _has_any_id(person: PersonRecords, ids: Ids) -> bool:
    """Return whether a person has one of the IDs, also under a joined record."""
    return any(_has_id(person.role, text, ids) for text in person.ids)


def _came_later(entry: Entry, people: Iterable[Respondent]) -> list[int]:
    """Return people with another number who came after the erasure.

    Where somebody has worked in the database since it was restored. 3 statements.
    """
    numbers = {pk for keys in entry["respondents"].values() for pk in keys}
    renumbered = {each.pk: each for each in people if each.pk not in numbers}
    if not renumbered or not entry["erased_at"]:
        return []
    erased_at = datetime.fromisoformat(entry["erased_at"])
    later = {
        pk
        for pk, each in renumbered.items()
        if (each.started_at or erased_at) > erased_at
    }
    added = AuditEntry.objects.filter(
        kind="survey.respondent",
        subject_id__in=renumbered,
        action="add a person",
        at__gt=erased_at,
    )
    later.update(pk for pk in added.values_list("subject_id", flat=True) if pk)
    rounds = {each.administration_id for each in renumbered.values()}
    uploads = RosterUpload.objects.filter(
        administration__in=rounds, ended_at__gt=erased_at
    )
    changes = RosterChange.objects.filter(
        upload__in=uploads, respondent__in=renumbered, change=RosterChange.Change.ADDED
    )
    later.update(changes.values_list("respondent", flat=True))
    return sorted(later)


def _has_id(role: str, external_id: str, ids: Ids) -> bool:
    return any(
        access_codes.erased_id_digest(role, external_id, version).hex() in digests
        for (of_role, version), digests in ids.items()
        if of_role == role
    )


def _order(
    entry: Entry, district: District | None, people: Iterable[Respondent]
) -> Erasure:
    rows = list(people)
    erasure = _orders(entry, district).filter(erased_at=None).first()
    key = bytes.fromhex(entry["digest_key"]) or None
    if erasure is None:
        erasure = Erasure.objects.create(
            district=district or _district_of(rows),
            by=_orderer_of(entry) or _state_administrator(),
            # The same order: the next replay knows it by that.
            ordered_at=datetime.fromisoformat(entry["ordered_at"]),
            requested_on=date.fromisoformat(entry["requested_on"]),
            requested_by=entry["requested_by"],
            reason=entry["reason"],
            people=entry["people"],
            digest_key=key,
        )
    elif erasure.digest_key is None:
        erasure.digest_key = key
        erasure.save(update_fields=["digest_key"])
    ErasedRecord.objects.bulk_create(
        [
            ErasedRecord(
                erasure=erasure, respondent=row, administration_id=row.administration_id
            )
            for row in rows
        ],
        # Of another order that was not carried out yet.
        update_conflicts=True,
        unique_fields=["respondent"],
        update_fields=["erasure"],
    )
    return erasure


def _district_of(people: Iterable[Respondent]) -> District:
    """Return the district of the school, as before a merge."""
    first = next(iter(people))
    return District.objects.get(schools=first.school_id)


def _orderer_of(entry: Entry) -> User | None:
    """Return who ordered it; None of a user who came later than the backup."""
    number, joined = entry["by"]["number"], entry["by"]["joined"]
    users = User.objects.filter(pk=number, date_joined=datetime.fromisoformat(joined))
    return users.first()


def _state_administrator() -> User:
    """Return who stands for somebody unknown; no certificate names this user."""
    state = Membership.objects.current().filter(role=Membership.Role.STATE)
    if membership := state.select_related("user").order_by("pk").first():
        return membership.user
    raise JournalError("The database has no state administrator to erase people for")
