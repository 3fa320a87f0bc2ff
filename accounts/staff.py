"""Appoint and dismiss staff, with an audit entry for each change."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import (
    BooleanField,
    Case,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.http import HttpRequest
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts import audit, email_outbox, sessions
from accounts.models import District, Membership, School, User
from accounts.permissions import Capability, Permissions

AN_ENGINEER = gettext_noop("An engineer of this installation")


def appoint(
    *,
    user: User,
    role: str,
    district: District | None = None,
    school: School | None = None,
    by: User | str,
    request: HttpRequest | None = None,
) -> Membership:
    """Give a user a role in a place. `by` is a user or the name of a command.

    Raises PermissionDenied, and ValidationError if the role does not fit the
    place or the user already has it.
    """
    _check_may_appoint(by, role, district, school)
    membership = Membership(user=user, role=role, district=district, school=school)
    membership.full_clean()
    with transaction.atomic():
        try:
            with transaction.atomic():
                membership.save()
        except IntegrityError as error:
            # Another request did the same since the check.
            raise ValidationError(
                _("%(user)s already has this role there.") % {"user": user},
                code="appointed_already",
            ) from error
        _record("appoint", membership, by=by, request=request)
    return membership


def dismiss(
    *, membership: Membership, by: User | str, request: HttpRequest | None = None
) -> None:
    """End a membership, and with the last one the user's sessions.

    Permissions are read on each request, so access ends at once in any case. Users
    who have ever logged in are told by e-mail. A second call changes nothing.

    Raises PermissionDenied, and ValidationError for the last state
    administrator, because then nobody could appoint another.
    """
    _check_may_appoint(by, membership.role, membership.district, membership.school)
    with transaction.atomic():
        if membership.role == Membership.Role.STATE:
            # All are locked, in one order, so that two administrators cannot
            # dismiss each other at the same moment.
            current = Membership.objects.current().filter(
                role=Membership.Role.STATE, user__is_active=True
            )
            locked = current.select_for_update(of=("self",)).order_by("pk")
            if not {row.pk for row in locked} - {membership.pk}:
                raise ValidationError(
                    _(
                        "This is the last administrator of the state. Appoint another"
                        " one first."
                    ),
                    code="last_administrator",
                )
        # Conditional, so that two simultaneous dismissals are recorded once.
        ended = Membership.objects.filter(pk=membership.pk, ended_at=None).update(
            ended_at=timezone.now()
        )
        if ended:
            # Not for people who work elsewhere too, nor for engineers, who need no
            # membership: whoever may invite them could log them out.
            user = membership.user
            has_other_roles = user.memberships.current().exists()
            if not (user.is_staff or has_other_roles):
                sessions.end_all(user)
            if user.has_usable_password() and user.is_active:
                email_outbox.queue_email(
                    "role ended",
                    to=user.email,
                    has_other_roles=has_other_roles,
                    **email_facts(membership, by),
                )
            _record("dismiss", membership, by=by, request=request)


def email_facts(membership: Membership, by: User | str) -> dict[str, str]:
    """Return what e-mails about a role say: who gave or ended it, and where.

    In English, because the e-mail translates it for its recipient.
    """
    with translation.override("en"):
        return {
            "by": by.name if isinstance(by, User) else AN_ENGINEER,
            "role": membership.get_role_display(),
            "place": membership.place,
        }


def members_for(permissions: Permissions) -> QuerySet[Membership]:
    """Return current memberships in the places where the user manages staff.

    Annotated with `is_pending` (no password yet), `last_login`, `has_app`
    (second factor) and `works_elsewhere`: for engineers and people who also work in
    other places, which are none of the user's business, the two before are None.
    """
    places = permissions.places(Capability.MANAGE_STAFF)
    current = Membership.objects.current().select_related(
        "user", "district", "school__district"
    )
    elsewhere: Q | Value = Value(False)
    if not places.state:
        inside = (
            Q(district_id__in=places.districts)
            | Q(school__district_id__in=places.districts)
            | Q(school_id__in=places.schools)
        )
        current = current.filter(inside)
        outside = Membership.objects.current().exclude(inside)
        elsewhere = Q(user__is_staff=True) | Q(
            Exists(outside.filter(user=OuterRef("user")))
        )
    apps = Authenticator.objects.filter(
        user=OuterRef("user"), type=Authenticator.Type.TOTP
    )
    return current.annotate(
        works_elsewhere=ExpressionWrapper(elsewhere, BooleanField()),
        last_login=Case(
            When(works_elsewhere=False, then=F("user__last_login")), default=None
        ),
        has_app=Case(When(works_elsewhere=False, then=Exists(apps)), default=None),
        is_pending=Case(
            When(user__password__startswith=UNUSABLE_PASSWORD_PREFIX, then=Value(True)),
            default=Value(False),
            output_field=BooleanField(),
        ),
    )


def may_appoint_all(by: User, user: User) -> bool:
    """Test if `by` may appoint for every current role of `user`."""
    permissions = Permissions(by)
    return all(
        permissions.may_appoint(row.role, district=row.district, school=row.school)
        for row in user.memberships.current().select_related("district", "school")
    )


def _check_may_appoint(
    by: User | str, role: str, district: District | None, school: School | None
) -> None:
    if isinstance(by, User) and not Permissions(by).may_appoint(
        role, district=district, school=school
    ):
        raise PermissionDenied


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
