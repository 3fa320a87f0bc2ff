"""Place a hold on the data of an administration, and lift it."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import District, User
from accounts.permissions import Permissions
from survey.database import advisory_locks
from survey.fieldwork.administrations.checks import refuse_lock_timeouts
from survey.models import Administration, LegalHold, Retention
from survey.models.retention import MANAGES
from survey.people.erasing.erase import resume_erasures


def may_hold(permissions: Permissions, district: int | None) -> bool:
    """Return whether a user places and lifts holds of a district, or of the state.

    The state also lifts those of districts.
    """
    places = permissions.places(MANAGES)
    return places.state if district is None else places.has_district(district)


def place_hold(
    administration: Administration,
    *,
    holder: str,
    reason: str,
    district: District | None,
    by: User,
    request: HttpRequest | None = None,
) -> LegalHold:
    """Stop destroying the data of a round and its modules, and erasing people of it.

    What destroys some of them at this moment ends before. `district` is None for a hold
    of the state, of the people of all districts. Raises PermissionDenied and
    DatabaseBusy.
    """
    if not may_hold(Permissions(by), district.pk if district else None):
        raise PermissionDenied
    with refuse_lock_timeouts(), transaction.atomic():
        advisory_locks.lock(advisory_locks.HOLDS, administration.pk)
        hold = LegalHold.objects.create(
            administration=administration,
            district=district,
            holder=holder,
            reason=reason,
            placed_by=by,
        )
        audit.record(
            "place a hold",
            by=by,
            request=request,
            subject=administration,
            district=district or administration.district,
            after={"holder": holder, "reason": reason},
        )
    return hold


@transaction.atomic
def lift_hold(
    hold: LegalHold, *, reason: str, by: User, request: HttpRequest | None = None
) -> bool:
    """End a hold; return False if somebody did so before. Raises PermissionDenied.

    Administrators are warned anew, a month before anything is destroyed, also of what
    was ordered before. What was ordered to be erased meanwhile is erased.
    """
    if not may_hold(Permissions(by), hold.district_id):
        raise PermissionDenied
    current = LegalHold.objects.current().filter(pk=hold.pk)
    now = timezone.now()
    if not current.update(lifted_at=now, lifted_by=by, lifted_reason=reason):
        return False
    administration = hold.administration
    audit.record(
        "lift a hold",
        by=by,
        request=request,
        subject=administration,
        district=hold.district or administration.district,
        before={"holder": hold.holder, "reason": hold.reason},
        after={"reason": reason},
    )
    Retention.objects.of_round_and_modules(administration).forget_warnings()
    resume_erasures()
    return True
