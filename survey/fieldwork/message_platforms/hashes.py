"""Write the hashes of people, in batches, from what the primary holds now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from survey.database import advisory_locks
from survey.fieldwork.emails.suppression import digest_of
from survey.fieldwork.message_platforms.directory import KEPT
from survey.fieldwork.message_platforms.link_codes import encrypt_code
from survey.fieldwork.message_platforms.store import (
    Command,
    Field,
    Store,
    key_of_person,
)
from survey.models import MessagePlatform, Respondent, SuppressedAddress

# People in one statement and one round trip: a tenth of a second. Others who write
# hashes wait for it.
BATCH = 2000
YES, NO = b"1", b"0"
# A bounced e-mail address says nothing about texts and push messages.
OPTED_OUT = (SuppressedAddress.Reason.OPTED_OUT, SuppressedAddress.Reason.COMPLAINED)


class HashedRespondent(NamedTuple):
    pk: int
    administration_id: int
    district_id: int
    language: str
    school: str
    completed_at: datetime | None
    withdrawn_at: datetime | None
    email: str
    name: str
    issue: int
    code_key_version: int
    closes_at: datetime
    has_names: bool
    has_codes: bool

    @property
    def expires_at(self) -> int:
        return int((self.closes_at + KEPT).timestamp())


COLUMNS = (
    "pk",
    "administration_id",
    "school__district_id",
    "language",
    "school__name",
    "completed_at",
    "withdrawn_at",
    "identity__email",
    "identity__given_name",
    "issue",
    "code_key_version",
    "administration__closes_at",
    "administration__messages_have_names",
    "administration__messages_have_codes",
)


def people_of_platforms() -> QuerySet[Respondent] | None:
    """Return the people whom a platform may ask about; None if there is no platform.

    1 statement.
    """
    platforms = MessagePlatform.objects.filter(revoked_at=None)
    districts = set(platforms.values_list("district", flat=True))
    if not districts:
        return None
    people = Respondent.objects.on_roster().filter(
        identity__isnull=False, administration__closes_at__gt=timezone.now() - KEPT
    )
    if None in districts:
        return people
    return people.filter(school__district__in=districts)


def read_people(
    people: QuerySet[Respondent], ids: Collection[int]
) -> list[HashedRespondent]:
    rows = people.filter(pk__in=ids).order_by("pk").values_list(*COLUMNS)
    return [HashedRespondent(*row) for row in rows]


def fields_of(people: Iterable[HashedRespondent]) -> dict[int, dict[bytes, bytes]]:
    """Return the fields of each person's hash. 1 statement."""
    people = list(people)
    digests = {row.pk: digest_of(row.email) for row in people if row.email}
    opted_out = set(
        SuppressedAddress.objects.filter(
            pk__in=set(digests.values()), reason__in=OPTED_OUT
        ).values_list("pk", flat=True)
    )
    return {
        row.pk: _fields(row, is_opted_out=digests.get(row.pk) in opted_out)
        for row in people
    }


def _fields(row: HashedRespondent, *, is_opted_out: bool) -> dict[bytes, bytes]:
    is_stopped = row.withdrawn_at is not None or is_opted_out
    fields = {
        Field.ADMINISTRATION: b"%d" % row.administration_id,
        Field.DISTRICT: b"%d" % row.district_id,
        Field.LANGUAGE: row.language.encode(),
        Field.SCHOOL: row.school.encode(),
        Field.STOPPED: YES if is_stopped else NO,
        Field.NAME: row.name.encode() if row.has_names else b"",
        Field.CODE: encrypt_code(row.pk, row.issue, row.code_key_version)
        if row.has_codes
        else b"",
    }
    if row.completed_at is not None:
        fields[Field.FINISHED] = YES
    return fields


def write_people(
    store: Store, ids: Collection[int], people: QuerySet[Respondent] | None = None
) -> int:
    """Write the hashes of these people; return how many a platform may ask about.

    3 statements and 1 round trip for each 2,000. Raises ConnectionError.
    """
    people = people_of_platforms() if people is None else people
    if people is None:
        return 0
    waiting, written = sorted(ids), 0
    for start in range(0, len(waiting), BATCH):
        with transaction.atomic():
            lock_hashes()
            rows = read_people(people, waiting[start : start + BATCH])
            commands = commands_for(rows)
            if commands:
                store.pipeline(commands)
            written += len(rows)
    return written


def lock_hashes() -> None:
    """Let nobody else write hashes until this transaction ends.

    Otherwise a writer that read a person before a change could write after it.
    """
    advisory_locks.lock(advisory_locks.MESSAGES, 0)


def commands_for(rows: Collection[HashedRespondent]) -> list[Command]:
    fields, commands = fields_of(rows), list[Command]()
    for row in rows:
        key = key_of_person(row.pk)
        flat = [part for field in fields[row.pk].items() for part in field]
        commands += [("HSET", key, *flat), ("EXPIREAT", key, row.expires_at)]
    return commands
