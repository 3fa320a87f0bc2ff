"""Issue a certificate of what was destroyed, in the transaction that destroys it."""

from __future__ import annotations

import json
import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone, translation

from accounts import audit
from accounts.language import language_of
from accounts.models import AuditEntry, District, Membership, User
from survey.models import (
    Administration,
    DataKind,
    Destruction,
    DestructionCertificate,
    Erasure,
)
from survey.people.certificates import journal
from survey.people.certificates.digests import combine
from survey.people.certificates.documents import sign_json, sign_pdf
from survey.people.certificates.keys import (
    SigningKeyMissing,
    fingerprint,
    key_id,
    public_bytes,
    signing_key,
)
from survey.people.certificates.systems import (
    BackupsEnd,
    backups_begin,
    backups_end,
    systems,
)

logger = logging.getLogger(__name__)
FORMAT = "groundswell-certificate-of-destruction/1"
# Of an erasure that was replayed in a database from before the user's account.
UNKNOWN_ORDERER = "somebody whom the restored backup does not have"


@dataclass(frozen=True, slots=True)
class DestroyedTable:
    table: str
    rows: int
    # In hexadecimal, of the destroyed rows in the order of their keys: see `digests`.
    digest: str


@dataclass(frozen=True, slots=True)
class DestroyedData:
    # "people", "identities" or "answers".
    kind: str
    administrations: tuple[int, ...]
    # None: of several districts.
    district: int | None
    tables: tuple[DestroyedTable, ...]
    files: int
    # Name and role, as `orderer` says it, and why.
    ordered_by: str
    reason: str
    destroyed_at: datetime


def orderer(user: User, district: District | None) -> str:
    """Return name and role of who ordered a destruction, in English."""
    roles = user.memberships.current().filter(role__in=("state", "district"))
    of_district = roles.filter(role="district", district=district).first()
    membership = of_district or roles.filter(role="state").first()
    name = user.name or user.email
    if membership is None:
        return name
    with translation.override("en"):
        return f"{name}, {Membership.Role(membership.role).label}"


@transaction.atomic
def issue_certificate(
    destroyed: DestroyedData,
    *,
    erasure: Erasure | None = None,
    destruction: Destruction | None = None,
) -> DestructionCertificate:
    """Store a signed certificate, and write the destruction into the journal.

    Called in the transaction that destroys. Raises SigningKeyMissing.
    """
    # Only workers draw: the other processes save the memory of these libraries.
    from survey.people.certificates.pdf import draw_certificate

    key = signing_key()
    public = public_bytes(key)
    number, now = uuid.uuid4(), timezone.now()
    ends = backups_end(destroyed.destroyed_at)
    content = _content(destroyed, ends, public) | {
        "number": str(number),
        "issued_at": now.isoformat(),
    }
    document = sign_json(content, key)
    certificate = DestructionCertificate.objects.create(
        number=number,
        kind=destroyed.kind,
        district_id=destroyed.district,
        erasure=erasure,
        destruction=destruction,
        issued_at=now,
        document=document,
        pdf=sign_pdf(draw_certificate(content, document), key),
        public_key=public,
        backups_end=ends.ends,
        # An erasure has written its entry with its rows.
        journaled_at=now if erasure else None,
    )
    audit.record(
        "issue a certificate of destruction",
        by="certificates",
        subject=certificate,
        district=certificate.district,
        after={"kind": destroyed.kind, "rows": sum(t.rows for t in destroyed.tables)},
    )
    if erasure is None:
        transaction.on_commit(partial(journal_certificate, certificate))
    return certificate


def _content(
    destroyed: DestroyedData, ends: BackupsEnd, public: bytes
) -> dict[str, Any]:
    rounds = Administration.objects.filter(pk__in=destroyed.administrations)
    district = None
    if destroyed.district is not None:
        district = District.objects.get(pk=destroyed.district)
    with translation.override("en"):
        titles = [
            {"number": each.pk, "title": str(each)} for each in rounds.order_by("pk")
        ]
    return {
        "format": FORMAT,
        "software": f"Groundswell {settings.VERSION}",
        "installation": settings.PUBLIC_ADDRESS,
        "kind": destroyed.kind,
        "district": district and district.name,
        "rounds": titles,
        "tables": [asdict(table) for table in destroyed.tables],
        "files": destroyed.files,
        "ordered_by": destroyed.ordered_by,
        "reason": destroyed.reason,
        "destroyed_at": destroyed.destroyed_at.isoformat(),
        "systems": systems(destroyed.kind),
        "backups": ends.described(),
        "remains": _remains(destroyed),
        "key": {"id": key_id(public), "fingerprint": fingerprint(public)},
    }


def _remains(destroyed: DestroyedData) -> list[str]:
    """Return what the destruction leaves, in words of `pdf.REMAINS`. 1 statement."""
    if destroyed.kind == DestructionCertificate.Kind.PEOPLE:
        return ["numbers", "digests of IDs", "log"]
    rest, word = DataKind.ANSWERS, "answers"
    if destroyed.kind == DestructionCertificate.Kind.ANSWERS:
        rest, word = DataKind.IDENTITIES, "names"
    ended = Destruction.objects.filter(
        administration__in=destroyed.administrations,
        kind=rest,
        state=Destruction.State.DONE,
    )
    is_rest_destroyed = ended.count() == len(destroyed.administrations)
    return ["numbers and groups", *([] if is_rest_destroyed else [word]), "log"]


def journal_certificate(certificate: DestructionCertificate) -> None:
    """Write the destruction of a round's identities or answers into the journal.

    The key of its digests, by which they can be compared with a backup as long as there
    is one, stays in the row until the journal has it.
    """
    content = json.loads(bytes(certificate.document))["certificate"]
    numbers = [each["number"] for each in content["rounds"]]
    rounds = Administration.objects.filter(pk__in=numbers).order_by("pk")
    destructions = Destruction.objects.filter(
        administration__in=numbers,
        kind=certificate.kind,
        state=Destruction.State.DONE,
    ).exclude(digest_key=None)
    keys = destructions.values_list("digest_key", flat=True)
    entry = {
        "kind": certificate.kind,
        "rounds": [journal.description_of(each) for each in rounds],
        "destroyed_at": content["destroyed_at"],
        "digest_key": bytes(keys.first() or b"").hex(),
    }
    if journal.try_to_write(journal.name_of_certificate(certificate), entry):
        with transaction.atomic():
            rows = DestructionCertificate.objects.filter(pk=certificate.pk)
            rows.update(journaled_at=timezone.now())
            destructions.update(digest_key=None)


def keep_journal() -> None:
    """Write entries that are missing; delete those that no backup needs any more."""
    certificates = DestructionCertificate.objects.select_related("erasure")
    begin = backups_begin()
    ended = Q(issued_at__lt=begin) if begin else Q(pk__in=())
    for certificate in certificates.filter(~ended, erasure=None, journaled_at=None):
        journal_certificate(certificate)
    for certificate in certificates.filter(ended).exclude(journaled_at=None):
        if certificate.erasure:
            name = journal.name_of_erasure(certificate.erasure)
        else:
            name = journal.name_of_certificate(certificate)
        if journal.try_to_delete(name):
            DestructionCertificate.objects.filter(pk=certificate.pk).update(
                journaled_at=None
            )


def certify_erasures() -> int:
    """Issue the certificates of complete erasures; return how many are missing."""
    pending = Erasure.objects.filter(certificate=None, completed_at__isnull=False)
    missing = 0
    for erasure in pending.exclude(digest_key=None).order_by("pk"):
        name, entry = (
            journal.name_of_erasure(erasure),
            journal.entry_of_erasure(erasure),
        )
        try:
            # Again, because it could not be signed while there was no key.
            if journal.try_to_write(name, entry):
                certify_erasure(erasure)
        except SigningKeyMissing as error:
            logger.error("No certificate of erasure %s: %s", erasure.pk, error)
            missing += 1
    return missing


@transaction.atomic
def certify_erasure(erasure: Erasure) -> None:
    """Issue the certificate of an erasure, once, and forget the key of its digests."""
    row = Erasure.objects.select_for_update().get(pk=erasure.pk)
    if row.digest_key is None or row.completed_at is None:
        return
    records = list(row.records.exclude(erased_at=None).order_by("pk"))
    with translation.override("en"):
        reason = str(Erasure.Reason(row.reason).label)
    destroyed = DestroyedData(
        kind=DestructionCertificate.Kind.PEOPLE,
        administrations=tuple(sorted({r.administration_id for r in records})),
        district=row.district_id,
        tables=_tables_of(bytes(row.digest_key), records),
        files=row.files,
        ordered_by=_orderer_of(row),
        reason=reason,
        destroyed_at=row.completed_at,
    )
    # The pages of the PDF; the JSON is in English.
    with translation.override(language_of(row.by)):
        issue_certificate(destroyed, erasure=row)
    Erasure.objects.filter(pk=row.pk).update(digest_key=None)


def _orderer_of(erasure: Erasure) -> str:
    """Return who ordered it, also after a restore that did not have the user."""
    replays = AuditEntry.objects.filter(
        kind="survey.erasure", subject_id=erasure.pk, action="replay an erasure"
    )
    if any("ordered by" in after for after in replays.values_list("after", flat=True)):
        return UNKNOWN_ORDERER
    return orderer(erasure.by, erasure.district)


def _tables_of(key: bytes, records: Iterable[Any]) -> tuple[DestroyedTable, ...]:
    rows: defaultdict[str, int] = defaultdict(int)
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for record in records:
        for table, count in record.rows.items():
            rows[table] += count
            parts[table].append((record.digests or {}).get(table, ""))
    return tuple(
        DestroyedTable(table, rows[table], combine(key, parts[table]))
        for table in sorted(rows)
    )
