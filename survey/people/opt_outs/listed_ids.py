"""Keep opt-outs and consents of IDs until a roster lists them.

A list usually arrives before the roster. Rosters opt these people out in the
transaction that adds them, so that nobody of them can start before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts import audit
from accounts.models import District, School, User
from accounts.permissions import Capability, Permissions
from survey.models import Administration, Identity, ListedId, Respondent
from survey.people.opt_outs.consents import (
    add_listed_consents,
    await_consent,
    consent_facts,
    give_consents,
)
from survey.people.opt_outs.records import (
    BATCH,
    NOT_YOURS,
    OptOutConflict,
    Request,
    admit,
    new_opt_out,
    opt_out_facts,
    opt_out_list,
    write_opt_outs,
)
from survey.people.rosters.counted_groups import Writer
from survey.people.rosters.roster_lock import RosterIsRunning, hold_off_rosters
from survey.people.rosters.scope import DESTROYED
from survey.people.rosters.staging import sql_keys

ARRIVED = gettext_noop(
    "Nothing was changed: somebody of this list is on the roster since the"
    " file was checked. Upload the file again."
)

Kind = ListedId.Kind
# In the audit log.
KEPT = {
    Kind.OPT_OUT: "keep opt-outs for later rosters",
    Kind.CONSENT: "keep consents for later rosters",
}
REMOVED = {
    Kind.OPT_OUT: "remove a kept opt-out",
    Kind.CONSENT: "remove a kept consent",
}

# People whose ID is listed for their district, or for their school, and what counts
# for them: an opt-out of everybody who has not opted out, a consent of those who
# await it.
_LISTED_PEOPLE = """
    SELECT l.id, r.id, l.kind FROM survey_listedid AS l
    JOIN survey_identity AS i
      ON i.administration_id = l.administration_id AND i.district_id = l.district_id
     AND i.external_id = l.external_id
    JOIN survey_respondent AS r ON r.id = i.respondent_id
    WHERE l.administration_id = %s
      AND (r.awaits_consent OR r.opted_out_at IS NULL AND l.kind = 'opt out')
      AND (l.school_id IS NULL OR l.school_id = r.school_id)
      AND r.id IN ({keys})
    ORDER BY l.id
    """


class EarlyId(NamedTuple):
    """An ID that is not on the roster, and the place that its list is for."""

    external_id: str
    district: int
    # None: every school of the district.
    school: int | None


@transaction.atomic
def save_list(
    people: Mapping[int, bool | None],
    early: Collection[EarlyId],
    asked: Request,
    *,
    administration: Administration,
    schools: QuerySet[School],
    by: User,
    kind: str = Kind.OPT_OUT,
    request: HttpRequest | None = None,
) -> int:
    """Opt out people of a list that was shown, and keep its other IDs, all or none.

    Or record their consents. Return how many people changed; see `opt_out_list` and
    `give_consents`. Raises OptOutConflict.
    """
    keep_ids(
        early, asked, administration=administration, by=by, kind=kind, request=request
    )
    save = give_consents if kind == Kind.CONSENT else opt_out_list
    return save(
        people,
        asked,
        administration=administration,
        schools=schools,
        by=by,
        request=request,
    )


@transaction.atomic
def keep_ids(
    ids: Collection[EarlyId],
    asked: Request,
    *,
    administration: Administration,
    by: User,
    kind: str = Kind.OPT_OUT,
    request: HttpRequest | None = None,
) -> None:
    """Keep the IDs for later rosters.

    Raises OptOutConflict, also if the user may not change people there.
    """
    if not ids:
        return
    _check_places(ids, by)
    try:
        # Otherwise a roster could add the people meanwhile, without seeing this.
        hold_off_rosters(administration)
    except RosterIsRunning as running:
        raise OptOutConflict(str(running)) from running
    administration.refresh_from_db(fields=["identities_destroyed_at"])
    if administration.identities_destroyed_at is not None:
        raise OptOutConflict(_(DESTROYED))
    ListedId.objects.bulk_create(
        [
            ListedId(
                administration=administration,
                kind=kind,
                district_id=early_id.district,
                school_id=early_id.school,
                external_id=early_id.external_id,
                requested_on=asked.requested_on,
                requested_by=asked.requested_by,
                reason=asked.reason,
                by=by,
            )
            for early_id in ids
        ],
        batch_size=BATCH,
        ignore_conflicts=True,
    )
    if _people_of_ids(administration, ids, kind):
        raise OptOutConflict(_(ARRIVED))
    facts = opt_out_facts if kind == Kind.OPT_OUT else consent_facts
    for (district, school), number in Counter(early_id[1:] for early_id in ids).items():
        audit.record(
            KEPT[Kind(kind)],
            by=by,
            request=request,
            subject=administration,
            district=District.objects.get(pk=district),
            school=School.objects.get(pk=school) if school else None,
            after={"IDs": number, **facts(asked)},
        )


def _check_places(ids: Collection[EarlyId], by: User) -> None:
    places = Permissions(by).places(
        Capability.SEE_IDENTITIES, Capability.MANAGE_ROSTERS
    )
    for district, school in {early_id[1:] for early_id in ids}:
        if not places.has_district(district) and school not in places.schools:
            raise OptOutConflict(_(NOT_YOURS))


def _people_of_ids(
    administration: Administration, ids: Collection[EarlyId], kind: str
) -> bool:
    """Return whether a list would change somebody. 1 statement for each place."""
    changed = Q(respondent__awaits_consent=True)
    if kind == Kind.OPT_OUT:
        changed |= Q(respondent__opted_out_at=None)
    for district, school in {row[1:] for row in ids}:
        people = Identity.objects.filter(
            changed,
            administration=administration,
            district=district,
            external_id__in=[row[0] for row in ids if row[1:] == (district, school)],
        )
        if school is not None:
            people = people.filter(respondent__school=school)
        if people.exists():
            return True
    return False


def apply_listed_ids(
    writer: Writer,
    administration: Administration,
    people: Sequence[int],
    *,
    are_new: bool = False,
) -> None:
    """Opt out those of these people whose IDs are listed, or record their consent.

    New people await consent, if it is required and was not listed. Call it in the
    transaction that adds or changes the people, whose message platforms are told
    afterwards. 1 statement where no IDs are listed and no consent is required.
    """
    if not people:
        return
    if are_new and administration.requires_consent:
        await_consent(people)
    rows = ListedId.objects.filter(administration=administration)
    if not rows.exists():
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _LISTED_PEOPLE.format(keys=sql_keys(people)), [administration.pk]
        )
        # Of two lists of a kind, the earlier one counts.
        matches = list(reversed(cursor.fetchall()))
    listed = rows.select_related("by", "district", "school").in_bulk(
        {key for key, _, _ in matches}
    )
    by_kind = {
        kind: {person: listed[key] for key, person, its in matches if its == kind}
        for kind in Kind
    }
    opt_outs = by_kind[Kind.OPT_OUT]
    # Whoever is on both lists has refused.
    consents = {
        pk: row for pk, row in by_kind[Kind.CONSENT].items() if pk not in opt_outs
    }
    if opt_outs:
        rows_before = Respondent.objects.filter(pk__in=opt_outs)
        withdrawn = dict(rows_before.values_list("pk", "withdrawn_at"))
        outs = [
            new_opt_out(pk, listed_id, listed_id.by, withdrawn[pk])
            for pk, listed_id in opt_outs.items()
        ]
        write_opt_outs(writer, outs, are_new=are_new)
        _record("opt out people of a list", administration, opt_outs)
    if consents:
        admit(writer, sorted(consents), are_new=are_new)
        add_listed_consents(consents)
        _record("record consents of a list", administration, consents)


def _record(
    action: str, administration: Administration, listed: Mapping[int, ListedId]
) -> None:
    places = Counter((row.by, row.district, row.school) for row in listed.values())
    for (by, district, school), people in places.items():
        audit.record(
            action,
            by=by,
            subject=administration,
            district=district,
            school=school,
            after={"people": people, "by a later roster": True},
        )


@transaction.atomic
def remove_id(
    listed: ListedId, *, by: User, request: HttpRequest | None = None
) -> None:
    audit.record(
        REMOVED[Kind(listed.kind)],
        by=by,
        request=request,
        subject=listed.administration,
        district=listed.district,
        school=listed.school,
    )
    listed.delete()
