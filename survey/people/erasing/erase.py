"""Erase people: order it, delete their rows in one transaction each, then their files.

A record stays of each person in each round: a number with school and times, and no
identity, answer or code. Figures that counted the person change later, together with
others, as after an opt-out: see docs/decisions/0190-erasing-people.md.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts import audit
from accounts.models import District, User
from accounts.permissions import Permissions
from survey.database import advisory_locks
from survey.database.code_routes import forget_routes
from survey.database.respondent_locks import lock_respondents
from survey.fieldwork.message_platforms.hooks import people_removed
from survey.models import (
    ErasedRecord,
    Erasure,
    Identity,
    Job,
    LegalHold,
    RecordJoin,
    Respondent,
)
from survey.models.erasure import ERASES
from survey.people.certificates.digests import new_key
from survey.people.erasing import erased_ids, files
from survey.people.erasing.deletion import delete_ids, delete_rows
from survey.people.erasing.stored import (
    JOINED,
    PersonRecords,
    add_modules,
    records_of,
)
from survey.people.retention.holds import OnHold, explain, hold_on, refuse_if_held
from survey.people.rosters.counted_groups import keep_groups_of_withdrawn
from survey.work.jobs import JobRefused, Progress, job, start

KIND = "people.erase"
NOBODY = gettext_noop("Nothing was changed: this person is no longer there.")
NOT_YOURS = gettext_noop(
    "Nothing was changed: somebody of this list is no longer in one of your"
    " districts. Upload the file again."
)
SEVERAL_DISTRICTS = gettext_noop(
    "Nothing was changed: these people are of several districts. Upload a file for each"
    " district."
)


class ErasureConflict(Exception):
    """The people are not as the page showed. The text says so; nothing was changed."""


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """Who asked for it, when and why."""

    requested_on: date
    requested_by: str
    reason: str


@transaction.atomic
def order_erasure(
    people: Collection[int],
    asked: ErasureRequest,
    *,
    by: User,
    request: HttpRequest | None = None,
) -> Erasure:
    """Start the job that erases people of one district, all of them or none.

    `people` are keys of records with names; each stands for all records of the person.
    Nothing takes it back. Raises ErasureConflict.
    """
    identities = Identity.objects.filter(pk__in=people, respondent__erased_at=None)
    districts = dict(identities.values_list("pk", "district"))
    if len(districts) < len(set(people)) or not districts:
        raise ErasureConflict(_(NOBODY if len(people) == 1 else NOT_YOURS))
    if len(set(districts.values())) > 1:
        raise ErasureConflict(_(SEVERAL_DISTRICTS))
    district = District.objects.get(pk=min(districts.values()))
    if not Permissions(by).places(*ERASES).has_district(district.pk):
        raise ErasureConflict(_(NOT_YOURS))
    _refuse_held(identities, min(districts.values()))
    waiting = set(
        ErasedRecord.objects.filter(respondent__in=people).values_list("pk", flat=True)
    )
    erasure = Erasure.objects.create(
        district=district,
        by=by,
        requested_on=asked.requested_on,
        requested_by=asked.requested_by,
        reason=asked.reason,
        people=len(districts),
    )
    rounds = Respondent.objects.filter(pk__in=districts.keys() - waiting)
    ErasedRecord.objects.bulk_create(
        ErasedRecord(erasure=erasure, respondent_id=pk, administration_id=its)
        for pk, its in rounds.order_by("pk").values_list("pk", "administration")
    )
    audit.record(
        "order the erasing of people",
        by=by,
        request=request,
        subject=erasure,
        district=district,
        after={
            "people": len(districts),
            "requested on": asked.requested_on.isoformat(),
            "requested by": asked.requested_by,
            "reason": asked.reason,
        },
    )
    start(erase_people, subject_id=erasure.pk, by=by)
    return erasure


def _refuse_held(people: QuerySet[Identity], district: int) -> None:
    """Raise ErasureConflict if a round of one of these people is on hold.

    1 statement where nothing of the district is held. Records that were joined, or are
    in districts' modules, are looked up by the job.
    """
    holds = LegalHold.objects.current().filter(Q(district=None) | Q(district=district))
    rounds = set(holds.values_list("administration", flat=True))
    if not rounds:
        return
    ids: dict[str, set[str]] = {}
    for role, external_id in people.values_list("administration__role", "external_id"):
        ids.setdefault(role, set()).add(external_id)
    same = Q()
    for role, of_role in ids.items():
        same |= Q(administration__role=role, external_id__in=of_role)
    held = Identity.objects.filter(same, administration__in=rounds, district=district)
    keys = set(held.values_list("administration", flat=True))
    if keys and (hold := hold_on(keys, district)):
        raise ErasureConflict(explain(hold))


def resume_erasures() -> None:
    """Start the erasures again that a hold or an error has stopped.

    There are few. Those of whom everybody is on hold wait on: a hold may be on another
    round of a person than the one that was ordered, so each person is looked up.
    """
    running = Job.objects.filter(kind=KIND, ended_at=None)
    stopped = Erasure.objects.filter(erased_at=None).exclude(
        pk__in=running.values("subject_id")
    )
    for erasure in stopped.select_related("by").order_by("pk"):
        if not _is_held(erasure):
            start(erase_people, subject_id=erasure.pk, by=erasure.by)


def _is_held(erasure: Erasure) -> bool:
    """Return whether holds cover everybody who is left of an order.

    1 statement where nothing is on hold.
    """
    if not LegalHold.objects.current().exists():
        return False
    remaining = erasure.records.filter(erased_at=None).order_by("pk")
    people = list(map(person_of, Respondent.objects.filter(pk__in=remaining)))
    return bool(people) and all(
        hold_on(set(person.records.values()), person.district or None)
        for person in people
    )


@job(KIND, long=True, stoppable=False)
def erase_people(job: Job, progress: Progress) -> None:
    """Erase the people of an order who are still there, and then their files.

    People whom a hold covers wait until it is lifted.
    """
    erasure = Erasure.objects.select_related("by", "district").get(
        pk=job.subject_id or 0
    )
    if erasure.digest_key is None and erasure.erased_at is None:
        erasure.digest_key = new_key()
        erasure.save(update_fields=["digest_key"])
    remaining = list(erasure.records.filter(erased_at=None).order_by("pk"))
    progress.begin_step(_("Deleting rows"), total=len(remaining))
    held = ""
    for record in remaining:
        try:
            erase_person(record, erasure)
        except OnHold as hold:
            held = str(hold)
        progress.advance()
    if held:
        # Those who are erased stay so after a restore.
        files.write_journal(erasure)
        raise JobRefused(held)
    if erasure.erased_at is None:
        _record_end(erasure)
    files.write_journal(erasure)
    progress.message = _("Deleting files")
    files.follow_up(erasure)
    progress.message = _("Erased.")


@transaction.atomic
def _record_end(erasure: Erasure) -> None:
    now = timezone.now()
    rows = Erasure.objects.filter(pk=erasure.pk, erased_at=None)
    if rows.update(erased_at=now):
        audit.record(
            "erase people",
            by=erasure.by,
            subject=erasure,
            district=erasure.district,
            after={
                "people": erasure.people,
                "rows": sum(rows_deleted(erasure).values()),
            },
        )
    erasure.erased_at = now


def rows_deleted(erasure: Erasure) -> Counter[str]:
    """Return how many rows of each table were deleted. 1 statement."""
    deleted: Counter[str] = Counter()
    for rows in erasure.records.values_list("rows", flat=True):
        deleted.update(rows)
    return Counter(dict(sorted(deleted.items())))


def erase_person(
    record: ErasedRecord, erasure: Erasure, *, despite_holds: bool = False
) -> None:
    """Erase all records of a person in one transaction. Raises OnHold.

    No roster of these rounds is applied or undone meanwhile, and nobody is merged: all
    of them take the same locks. Somebody may do so before, so the records are looked up
    again behind the locks. The person goes on to no module while the respondents' rows
    are locked; one that was begun before that is looked for behind this lock.
    """
    locked: set[int] = set()
    with transaction.atomic(), connection.cursor() as cursor:
        _wait_without_end(cursor)
        while True:
            person = person_of(Respondent.objects.get(pk=record.respondent_id))
            rounds = set(person.records.values())
            if rounds <= locked:
                before_rows = transaction.savepoint()
                lock_respondents(Respondent.objects.filter(pk__in=person.records))
                if not add_modules(person):
                    break
                rounds = set(person.records.values())
                # Nobody waits for a roster with the person's rows locked: pages are
                # saved meanwhile.
                transaction.savepoint_rollback(before_rows)
            # In the order of the keys, so that two erasures never wait for each other.
            # A later round comes with a roster that was applied a moment ago.
            for pk in sorted(rounds - locked):
                advisory_locks.lock(advisory_locks.ROSTER, pk)
            locked |= rounds
        if not despite_holds:
            refuse_if_held(rounds, person.district or None)
        _erase(person, erasure, cursor)


def _wait_without_end(cursor: CursorWrapper) -> None:
    """Let this transaction wait for a roster of two million people."""
    if connection.vendor == "postgresql":
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SET LOCAL lock_timeout = 0")


def person_of(respondent: Respondent) -> PersonRecords:
    """Find a person by the record that was ordered, also after it was joined."""
    person = records_of(respondent)
    if person is None:
        joins = RecordJoin.objects.filter(other=respondent, state=JOINED)
        if join := joins.select_related("kept").first():
            person = records_of(join.kept)
    if person is None:
        # Erased before, or withdrawn by a merge that left no name.
        records = {respondent.pk: respondent.administration_id}
        person = PersonRecords("", 0, set(), records)
        add_modules(person)
    return person


def _erase(person: PersonRecords, erasure: Erasure, writer: CursorWrapper) -> None:
    """Erase all records of a person, in the transaction that holds the locks.

    The respondents' rows are locked and marked first: logins, page saves and finishing
    are either seen, or wait and are refused. Nobody's answers were acknowledged that
    are not deleted here.
    """
    rows = Respondent.objects.filter(pk__in=person.records)
    # What another order has erased meanwhile stays as that has recorded it.
    keys = [row.pk for row in lock_respondents(rows) if row.erased_at is None]
    keep_groups_of_withdrawn(writer, keys)
    now = timezone.now()
    remembered = {}
    if person.ids:
        remembered = erased_ids.remember(person.role, person.district, person.ids)
    digest_key = bytes(erasure.digest_key) if erasure.digest_key else None
    for key in keys:
        administration = person.records[key]
        _empty_record(key, administration)
        deletion = delete_rows(key, administration, digest_key)
        if person.ids:
            delete_ids(person, administration, deletion)
        counts = dict(+deletion.rows)
        result = {
            "erased_at": now,
            "rows": counts,
            "digests": {name: deletion.digests.get(name, "") for name in counts},
            "id_digests": remembered,
        }
        ErasedRecord.objects.update_or_create(
            pk=key,
            defaults=result,
            create_defaults={
                "erasure": erasure,
                "administration_id": administration,
                **result,
            },
        )
    people_removed(keys)


def _empty_record(respondent: int, administration: int) -> None:
    """Mark a record as erased, and take from it all that is about a person.

    What figures still count of the person is in `CountedGroup`. The times stay: figures
    of before had them.
    """
    rows = Respondent.objects.filter(pk=respondent, administration=administration)
    forget_routes([bytes(row.code_digest) for row in rows.only("code_digest")])
    now = timezone.now()
    current = rows.values("withdrawn_at", "opted_out_at", "erased_at").get()
    rows.update(
        withdrawn_at=current["withdrawn_at"] or now,
        opted_out_at=current["opted_out_at"] or now,
        erased_at=current["erased_at"] or now,
        awaits_consent=False,
        grade="",
        classroom="",
        language="",
        response_language="",
        attributes={},
        # No code has this digest.
        code_digest=secrets.token_bytes(32),
    )
