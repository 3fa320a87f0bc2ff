"""Set up, check and reset the second factor: app codes and recovery codes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import cast

from allauth.account.authentication import get_authentication_records
from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.base.internal.flows import post_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.mfa.utils import decrypt
from cryptography.fernet import InvalidToken
from django.core import signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import audit, email_outbox, login_throttle, sessions
from accounts.models import User
from accounts.staff import may_appoint_all

log = logging.getLogger(__name__)

SALT = "accounts.second_factor"
# How long the page with the QR code may stay open.
OPEN_FOR = 60 * 60
Type = Authenticator.Type


def has_second_factor(request: HttpRequest) -> bool:
    """Test if this session has shown a second factor. 0 statements."""
    records = get_authentication_records(request, request.user)  # type: ignore[arg-type]
    return any(record["method"] == "mfa" for record in records)


def is_set_up(user: User) -> bool:
    return Authenticator.objects.filter(user=user, type=Type.TOTP).exists()


def codes_left(user: User) -> int:
    row = Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).first()
    try:
        return len(row.wrap().get_unused_codes()) if row else 0
    except InvalidToken:
        return 0


@dataclass(frozen=True, slots=True)
class SetUpDraft:
    """A secret that is shown as a QR code and stored once a code was typed."""

    secret: str
    # The secret in signed form, which the form sends back.
    key: str


def new_draft(user: User) -> SetUpDraft:
    secret = generate_totp_secret()
    return SetUpDraft(secret, signing.dumps([user.pk, secret], salt=SALT))


def draft_of(user: User, key: str) -> SetUpDraft | None:
    """Return the draft of a signed key, or None for another user's or an old one."""
    try:
        pk, secret = signing.loads(key, salt=SALT, max_age=OPEN_FOR)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return SetUpDraft(secret, key) if pk == user.pk else None


def counter_of(secret: str, code: str) -> int | None:
    """Return the time step of a code that is valid now, or None."""
    for counter in yield_hotp_counters_from_time():
        expected = format_hotp_value(hotp_value(secret, counter))
        if compare_user_code(actual=code, expected=expected):
            return counter
    return None


def set_up(request: HttpRequest, *, secret: str, code: str) -> list[str]:
    """Replace the second factor and mark this session as having shown it.

    Returns the recovery codes, which are shown only once.
    """
    user = cast(User, request.user)
    with transaction.atomic():
        # Serialise two forms of the same user.
        User.objects.select_for_update().get(pk=user.pk)
        had_one = is_set_up(user)
        Authenticator.objects.filter(user=user).delete()
        totp = TOTP.activate(user, secret).instance
        totp.data["last_counter"] = counter_of(secret, code)
        totp.save(update_fields=["data"])
        codes = RecoveryCodes.activate(user).generate_codes()
        _record("replace second factor" if had_one else "set up second factor", request)
        email_outbox.queue_email(
            "second factor changed", to=user.email, what="set up on a new device"
        )
    post_authentication(request, totp)
    return codes


def new_recovery_codes(request: HttpRequest) -> list[str]:
    user = cast(User, request.user)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).delete()
        codes = RecoveryCodes.activate(user).generate_codes()
        _record("make recovery codes", request)
        email_outbox.queue_email(
            "second factor changed", to=user.email, what="given new recovery codes"
        )
    return codes


def reset(*, user: User, by: User | str, request: HttpRequest | None = None) -> None:
    """Remove the second factor after a lost device, and end all sessions.

    `by` is a user who may appoint for all roles of `user`, or a command.
    Raises PermissionDenied.
    """
    if isinstance(by, User):
        if not may_appoint_all(by, user):
            raise PermissionDenied
        # Engineers reach all districts, so no district may take over their login.
        if user.is_staff:
            raise ValidationError(
                _("%(user)s is an engineer. Ask another engineer to reset it.")
                % {"user": user},
                code="engineer",
            )
    with transaction.atomic():
        Authenticator.objects.filter(user=user).delete()
        login_throttle.succeeded(login_throttle.Purpose.SECOND_FACTOR, user.email)
        sessions.end_all(user)
        audit.record(
            "reset second factor",
            by=by,
            request=request,
            subject=user,
            **audit.place_of(user),
        )
        email_outbox.queue_email("second factor reset", to=user.email, by=str(by))


def accepts(user: User, code: str) -> Authenticator | None:
    """Return the authenticator that accepts this code, and mark the code as used."""
    with transaction.atomic():
        rows = Authenticator.objects.select_for_update().filter(
            user=user, type__in=(Type.TOTP, Type.RECOVERY_CODES)
        )
        for row in rows:
            try:
                if row.type == Type.TOTP:
                    accepted = _accept_app_code(row, code)
                else:
                    accepted = bool(row.wrap().validate_code(code))
            except InvalidToken:
                log.error("the second factor of user %s cannot be decrypted", user.pk)
                continue
            if accepted:
                row.user = user
                return row
    return None


def _accept_app_code(row: Authenticator, code: str) -> bool:
    # The last used time step is stored with the secret. In Memcached, an
    # outage would lock out everyone.
    counter = counter_of(decrypt(row.data["secret"]), code)
    if counter is None or counter <= row.data.get("last_counter", -1):
        return False
    row.data["last_counter"] = counter
    row.save(update_fields=["data"])
    return True


def check_code(request: HttpRequest, user: User, code: str) -> Authenticator:
    """Check a code with throttling. Raises ValidationError with what to do next."""
    attempt = login_throttle.start_attempt(
        login_throttle.Purpose.SECOND_FACTOR, user.email
    )
    if attempt.wait:
        raise ValidationError(
            _(
                "Too many wrong codes, so this one was not checked. Wait %(time)s, then"
                " enter the code that your app shows."
            )
            % {"time": login_throttle.in_words(attempt.wait)}
        )
    authenticator = accepts(user, code)
    if authenticator is None:
        login_throttle.failed(login_throttle.Purpose.SECOND_FACTOR, user.email)
        if attempt.failures >= audit.FAILURES_RECORDED:
            audit.record(
                "refuse second factor",
                by="nobody",
                request=request,
                subject=user,
                after={"in a row": attempt.failures},
                **audit.place_of(user),
            )
        raise ValidationError(
            _(
                "This code is wrong or was already used. Wait %(time)s, then enter the"
                " code that your app shows."
            )
            % {"time": login_throttle.in_words(attempt.next_wait)}
        )
    login_throttle.succeeded(login_throttle.Purpose.SECOND_FACTOR, user.email)
    return authenticator


def _record(action: str, request: HttpRequest) -> None:
    user = cast(User, request.user)
    audit.record(action, by=user, request=request, subject=user, **audit.place_of(user))
