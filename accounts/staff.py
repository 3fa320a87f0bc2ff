"""Appointing and dismissing staff, and what is written down of it."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import District, Membership, School, User
from accounts.permissions import Permissions


def appoint(
    *,
    user: User,
    role: str,
    district: District | None = None,
    school: School | None = None,
    by: User | str,
    request: HttpRequest | None = None,
) -> Membership:
    """Give somebody a role in a place; `by` a user who may, or a command.

    Raises PermissionDenied, and ValidationError for a role in a place that is
    not its own, or that the user has already.
    """
    _check_may_appoint(by, role, district, school)
    membership = Membership(user=user, role=role, district=district, school=school)
    membership.full_clean()
    with transaction.atomic():
        membership.save()
        _record("appoint", membership, by=by, request=request)
    return membership


def dismiss(
    *, membership: Membership, by: User | str, request: HttpRequest | None = None
) -> None:
    """End a membership; a second time changes nothing.

    Raises PermissionDenied, and ValidationError for the last administrator of
    the state, after whom nobody could appoint another.
    """
    _check_may_appoint(by, membership.role, membership.district, membership.school)
    with transaction.atomic():
        if membership.role == Membership.Role.STATE:
            _check_others_remain(membership)
        # Read anew, under a lock: two who dismiss at once are one dismissal.
        ended = Membership.objects.filter(pk=membership.pk, ended_at=None).update(
            ended_at=timezone.now()
        )
        if ended:
            _record("dismiss", membership, by=by, request=request)


def _check_may_appoint(
    by: User | str, role: str, district: District | None, school: School | None
) -> None:
    if isinstance(by, User) and not Permissions(by).may_appoint(
        role, district=district, school=school
    ):
        raise PermissionDenied


def _check_others_remain(membership: Membership) -> None:
    # All of them are locked, in one order, so that two administrators cannot
    # dismiss each other in the same moment.
    current = Membership.objects.current().filter(
        role=Membership.Role.STATE, user__is_active=True
    )
    locked = [one.pk for one in current.select_for_update(of=("self",)).order_by("pk")]
    if not set(locked) - {membership.pk}:
        raise ValidationError(
            "This is the last administrator of the state. Appoint another one first.",
            code="last_administrator",
        )


def _record(
    action: str, membership: Membership, *, by: User | str, request: HttpRequest | None
) -> None:
    audit.record(
        f"{action} {membership.role}",
        by=by,
        request=request,
        subject=membership.user,
        school=membership.school,
        district=membership.district,
    )
