"""Keep opt-outs of IDs that are not on the roster, until a roster lists them.

A list usually arrives before the roster. Rosters opt these people out in the
transaction that adds them, so that nobody of them can start before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import QuerySet, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import District, School, User
from accounts.permissions import Capability, Permissions
from survey.login_cards.card_sets import mark_sets_of_people_outdated
from survey.models import Administration, Identity, ListedId, OptOut, Respondent
from survey.opt_outs.records import (
    BATCH,
    NOT_YOURS,
    OptOutConflict,
    Request,
    opt_out_list,
)
from survey.rosters.counted_groups import Writer, keep_groups_of_withdrawn
from survey.rosters.roster_lock import RosterIsRunning, hold_off_rosters

ARRIVED = (
    "Nothing was changed: somebody of this list is on the roster since the file was"
    " checked. Upload the file again."
)

# People whose ID is listed for their district, or for their school.
_LISTED_PEOPLE = """
    SELECT l.id, r.id FROM survey_listedid AS l
    JOIN survey_identity AS i
      ON i.administration_id = l.administration_id AND i.district_id = l.district_id
     AND i.external_id = l.external_id
    JOIN survey_respondent AS r ON r.id = i.respondent_id
    WHERE l.administration_id = %s AND r.opted_out_at IS NULL
      AND (l.school_id IS NULL OR l.school_id = r.school_id)
      AND {which}
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
    request: HttpRequest | None = None,
) -> int:
    """Opt out people of a list that was shown, and keep its other IDs, all or none.

    Return how many people opted out; see `opt_out_list`. Raises OptOutConflict.
    """
    keep_ids(early, asked, administration=administration, by=by, request=request)
    return opt_out_list(
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
    ListedId.objects.bulk_create(
        [
            ListedId(
                administration=administration,
                district_id=one.district,
                school_id=one.school,
                external_id=one.external_id,
                requested_on=asked.requested_on,
                requested_by=asked.requested_by,
                reason=asked.reason,
                by=by,
            )
            for one in ids
        ],
        batch_size=BATCH,
        ignore_conflicts=True,
    )
    if _people_of_ids(administration, ids):
        raise OptOutConflict(ARRIVED)
    for (district, school), number in Counter(one[1:] for one in ids).items():
        audit.record(
            "keep opt-outs for later rosters",
            by=by,
            request=request,
            subject=administration,
            district=District.objects.get(pk=district),
            school=School.objects.get(pk=school) if school else None,
            after={
                "IDs": number,
                "requested on": asked.requested_on.isoformat(),
                "requested by": asked.requested_by,
            },
        )


def _check_places(ids: Collection[EarlyId], by: User) -> None:
    places = Permissions(by).places(
        Capability.SEE_IDENTITIES, Capability.MANAGE_ROSTERS
    )
    for district, school in {one[1:] for one in ids}:
        if not places.has_district(district) and school not in places.schools:
            raise OptOutConflict(NOT_YOURS)


def _people_of_ids(administration: Administration, ids: Collection[EarlyId]) -> bool:
    """Return whether somebody has one of these IDs. 1 statement for each place."""
    for district, school in {one[1:] for one in ids}:
        people = Identity.objects.filter(
            administration=administration,
            district=district,
            external_id__in=[one[0] for one in ids if one[1:] == (district, school)],
            respondent__opted_out_at=None,
        )
        if school is not None:
            people = people.filter(respondent__school=school)
        if people.exists():
            return True
    return False


def opt_out_listed(
    writer: Writer,
    administration: Administration,
    people: Sequence[int],
    *,
    are_new: bool = False,
) -> int:
    """Opt out those of these people whose IDs are listed; return how many.

    Call it in the transaction that adds or changes the people, whose message
    platforms are told afterwards. 1 statement where no IDs are listed.
    """
    rows = ListedId.objects.filter(administration=administration)
    if not people or not rows.exists():
        return 0
    keys = ", ".join(str(int(pk)) for pk in people)
    with connection.cursor() as cursor:
        cursor.execute(
            _LISTED_PEOPLE.format(which=f"r.id IN ({keys})"), [administration.pk]
        )
        # Of two lists, the earlier one counts.
        found = {person: listed for listed, person in reversed(cursor.fetchall())}
    if not found:
        return 0
    # New people have never counted.
    if not are_new:
        keep_groups_of_withdrawn(writer, sorted(found))
    chosen = Respondent.objects.filter(pk__in=found)
    withdrawn = dict(chosen.values_list("pk", "withdrawn_at"))
    now = timezone.now()
    chosen.update(opted_out_at=now, withdrawn_at=Coalesce("withdrawn_at", Value(now)))
    listed = rows.select_related("by", "district", "school").in_bulk(found.values())
    OptOut.objects.bulk_create(
        [
            OptOut(
                respondent_id=pk,
                requested_on=listed[row].requested_on,
                requested_by=listed[row].requested_by,
                reason=listed[row].reason,
                by=listed[row].by,
                was_withdrawn_at=withdrawn[pk],
            )
            for pk, row in found.items()
        ],
        batch_size=BATCH,
    )
    if not are_new:
        mark_sets_of_people_outdated(chosen)
    _record(administration, [listed[row] for row in found.values()])
    return len(found)


def _record(administration: Administration, rows: Sequence[ListedId]) -> None:
    places = Counter((row.by, row.district, row.school) for row in rows)
    for (by, district, school), people in places.items():
        audit.record(
            "opt out people of a list",
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
        "remove a kept opt-out",
        by=by,
        request=request,
        subject=listed.administration,
        district=listed.district,
        school=listed.school,
    )
    listed.delete()
