"""Record consents, where an administration requires them.

People of rosters then begin as awaiting consent: they are withdrawn, and no roster
brings them back, exactly as people who have opted out. Whoever takes a consent back
opts the person out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import School, User
from survey.models import Administration, Consent, ListedId, Respondent
from survey.people.changes import changes_person
from survey.people.opt_outs.records import (
    BATCH,
    OptOutConflict,
    Request,
    admit,
    lock_people,
    record_list,
)


def await_consent(people: Collection[int]) -> None:
    """Keep new people out until their consent is recorded. 1 statement.

    Call it in the transaction that adds them.
    """
    now = timezone.now()
    Respondent.objects.filter(pk__in=people).update(
        awaits_consent=True, opted_out_at=now, withdrawn_at=now
    )


@changes_person
def give_consent(
    current: Respondent,
    given: Request,
    *,
    by: User,
    request: HttpRequest | None = None,
) -> Consent:
    """Let a person take part who has awaited consent. Raises OptOutConflict."""
    if not current.awaits_consent:
        raise OptOutConflict(
            _("This person does not await consent, or no longer. Nothing was changed.")
        )
    with connection.cursor() as cursor:
        admit(cursor, [current.pk])
    consent = _consent(current.pk, given, by)
    consent.save(force_insert=True)
    audit.record(
        "record a consent",
        by=by,
        request=request,
        subject=current,
        school=current.school,
        # Not the note, which may name somebody.
        after={"administration": str(current.administration), **consent_facts(given)},
    )
    return consent


@transaction.atomic
def give_consents(
    people: Collection[int],
    given: Request,
    *,
    administration: Administration,
    schools: QuerySet[School],
    by: User,
    request: HttpRequest | None = None,
) -> int:
    """Record the consents of a list that was shown, all or none; return how many.

    All people have to be in `schools`. Those who have opted out since stay so. Raises
    OptOutConflict.
    """
    chosen = lock_people(
        people, administration, schools, only=lambda person: person.awaits_consent
    )
    if not chosen:
        return 0
    ids = [person.pk for person in chosen]
    with connection.cursor() as cursor:
        admit(cursor, ids)
    rows = [_consent(pk, given, by) for pk in ids]
    Consent.objects.bulk_create(rows, batch_size=BATCH)
    record_list(
        "record consents of a list",
        chosen,
        administration,
        about=consent_facts(given),
        by=by,
        request=request,
    )
    return len(chosen)


def add_listed_consents(listed: Mapping[int, ListedId]) -> None:
    """Store the consents that kept IDs have; `listed` has the IDs by person."""
    rows = [_consent(pk, listed_id, listed_id.by) for pk, listed_id in listed.items()]
    Consent.objects.bulk_create(rows, batch_size=BATCH)


def consent_facts(given: Request) -> dict[str, str]:
    """Return what the audit log has of a consent."""
    return {"given on": given.requested_on.isoformat(), "given by": given.requested_by}


def _consent(respondent: int, given: Request | ListedId, by: User) -> Consent:
    return Consent(
        respondent_id=respondent,
        given_on=given.requested_on,
        given_by=given.requested_by,
        note=given.reason,
        by=by,
    )


def latest_consent(
    administration: Administration, person: Respondent
) -> Consent | None:
    """Return the consent that was recorded last. 1 statement where it is required."""
    if not administration.requires_consent:
        return None
    return person.consents.select_related("by").first()


def people_with_consents(people: Sequence[int]) -> set[int]:
    """Return those of these people whose consent was recorded at some time."""
    consents = Consent.objects.filter(respondent__in=people)
    return set(consents.values_list("respondent", flat=True))
