"""Invite staff: create a user and a role, and e-mail a link to set a password."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.hashers import make_password
from django.core import signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit, email_outbox, passwords
from accounts.models import District, Invitation, Membership, QueuedEmail, School, User
from accounts.permissions import Permissions
from accounts.staff import appoint, dismiss, email_facts

SALT = "accounts.invitations"
# Of a link that is shown on a terminal.
FIRST_LASTS = timedelta(days=1)


def invite(
    *,
    email: str,
    role: str,
    district: District | None = None,
    school: School | None = None,
    first_name: str = "",
    last_name: str = "",
    by: User | str,
    request: HttpRequest | None = None,
    sends_link: bool = True,
) -> Membership:
    """Give a role to the owner of an e-mail address, who is told by e-mail.

    New users get a link to set a password. `by` is a user with the permission
    to appoint, or the name of a command. Raises PermissionDenied, and
    ValidationError as `appoint` does.
    """
    with transaction.atomic():
        user, _is_new = User.objects.get_or_create(
            email=User.objects.normalize_email(email),
            defaults={
                "password": make_password(None),
                "first_name": first_name,
                "last_name": last_name,
            },
        )
        if not user.is_active:
            raise ValidationError(
                _("%(user)s is deactivated. Ask an engineer to activate the account.")
                % {"user": user},
                code="inactive",
            )
        membership = appoint(
            user=user,
            role=role,
            district=district,
            school=school,
            by=by,
            request=request,
        )
        if user.has_usable_password():
            email_outbox.queue_email(
                "role added", to=user.email, **email_facts(membership, by)
            )
        elif sends_link:
            _send_link(membership, by=by)
    return membership


def first_administrator_link(*, email: str, by: str) -> str:
    """Return a link for the first state administrator, which is not sent by e-mail.

    It ends in a day, and with the next one. Empty once a state administrator has a
    password.
    """
    with transaction.atomic():
        memberships = Membership.objects.current().filter(role=Membership.Role.STATE)
        for membership in memberships.select_related("user"):
            if not is_pending(membership.user):
                return ""
        address = User.objects.normalize_email(email)
        first = memberships.filter(user__email=address).first() or invite(
            email=email,
            role=Membership.Role.STATE,
            by=by,
            sends_link=False,
        )
        # A user with another role has a password, and was told.
        if not is_pending(first.user):
            return ""
        invitation = _new_invitation(first.user)
    key = key_of(invitation, lasts=FIRST_LASTS)
    return email_outbox.link("invitation", key=key)


def is_pending(user: User) -> bool:
    return not user.has_usable_password()


def resend(
    *, membership: Membership, by: User, request: HttpRequest | None = None
) -> None:
    """Send a new link and invalidate the previous one."""
    _check_may_change(membership, by)
    with transaction.atomic():
        _send_link(membership, by=by)
        _record("resend invitation", membership, by=by, request=request)


def withdraw(
    *, membership: Membership, by: User, request: HttpRequest | None = None
) -> None:
    """End the role, and delete the invitation with the last role."""
    _check_may_change(membership, by)
    with transaction.atomic():
        dismiss(membership=membership, by=by, request=request)
        if not membership.user.memberships.current().exists():
            Invitation.objects.filter(user=membership.user).delete()
        _record("withdraw invitation", membership, by=by, request=request)


def invited_by_key(key: str) -> Invitation | None:
    """Return the invitation of a valid link: the last one sent, and not yet used."""
    try:
        pk, number, *ends = signing.loads(key, salt=SALT, max_age=Invitation.LASTS)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    if ends and timezone.now().timestamp() > ends[0]:
        return None
    invitation = (
        Invitation.objects.filter(user_id=pk, number=number, user__is_active=True)
        .select_related("user")
        .first()
    )
    return invitation if invitation and is_pending(invitation.user) else None


def accept(invitation: Invitation, password: str, *, request: HttpRequest) -> bool:
    """Set the password. Return False if the invitation was already accepted."""
    with transaction.atomic():
        # Locked, because only the first of two simultaneous forms may win.
        user = User.objects.select_for_update().get(pk=invitation.user_id)
        if not is_pending(user):
            return False
        passwords.set_password(user, password, how="accept invitation", request=request)
        invitation.user = user
    return True


def key_of(invitation: Invitation, *, lasts: timedelta | None = None) -> str:
    """Return the key of a link; `lasts` ends it before Invitation.LASTS."""
    content = [invitation.user_id, invitation.number]
    if lasts is not None:
        content.append(int((timezone.now() + lasts).timestamp()))
    return signing.dumps(content, salt=SALT)


@email_outbox.writes("invitation")
def invitation_facts(email: QueuedEmail) -> email_outbox.Facts | None:
    invitation = Invitation.objects.filter(
        user__email=email.to, number=email.facts["number"]
    ).first()
    # Withdrawn, replaced or accepted in the meantime.
    if invitation is None:
        return None
    return {"link": email_outbox.link("invitation", key=key_of(invitation))}


def _send_link(membership: Membership, *, by: User | str) -> None:
    invitation = _new_invitation(membership.user)
    email_outbox.queue_email(
        "invitation",
        to=membership.user.email,
        number=invitation.number,
        days=Invitation.LASTS.days,
        **email_facts(membership, by),
    )


def _new_invitation(user: User) -> Invitation:
    """Make links that were sent before void."""
    invitation, is_new = Invitation.objects.get_or_create(user=user)
    if not is_new:
        Invitation.objects.filter(pk=invitation.pk).update(
            number=F("number") + 1, sent_at=timezone.now()
        )
        invitation.refresh_from_db()
    return invitation


def _check_may_change(membership: Membership, by: User) -> None:
    if not Permissions(by).may_appoint(
        membership.role, district=membership.district, school=membership.school
    ):
        raise PermissionDenied
    if not is_pending(membership.user):
        raise ValidationError(
            _("%(user)s has already accepted the invitation.")
            % {"user": membership.user},
            code="accepted",
        )


def _record(
    action: str, membership: Membership, *, by: User, request: HttpRequest | None
) -> None:
    audit.record(
        action,
        by=by,
        request=request,
        subject=membership.user,
        school=membership.school,
        district=membership.district,
    )
