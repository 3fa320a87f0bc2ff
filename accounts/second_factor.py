"""The second factor: a code from an app, or a recovery code kept on paper."""

from __future__ import annotations

import logging
from dataclasses import dataclass

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

from accounts import audit, email_outbox, login_throttle, sessions
from accounts.models import User
from accounts.staff import may_appoint_all

log = logging.getLogger(__name__)

SALT = "accounts.second_factor"
# How long the page with the QR code may stay open.
OPEN_FOR = 60 * 60
Type = Authenticator.Type


def has_second_factor(request: HttpRequest) -> bool:
    """By what the session remembers: 0 statements."""
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


# Setting up


@dataclass(frozen=True, slots=True)
class Draft:
    """A secret that an app is about to learn; nothing is stored before it has."""

    secret: str
    # Signed, for the form to bring it back.
    key: str


def new_draft(user: User) -> Draft:
    secret = generate_totp_secret()
    return Draft(secret, signing.dumps([user.pk, secret], salt=SALT))


def draft_of(user: User, key: str) -> Draft | None:
    """None where it is somebody else's, or too old."""
    try:
        pk, secret = signing.loads(key, salt=SALT, max_age=OPEN_FOR)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return Draft(secret, key) if pk == user.pk else None


def counter_of(secret: str, code: str) -> int | None:
    """Which of the codes of this minute it is."""
    for counter in yield_hotp_counters_from_time():
        expected = format_hotp_value(hotp_value(secret, counter))
        if compare_user_code(actual=code, expected=expected):
            return counter
    return None


def set_up(request: HttpRequest, *, secret: str, code: str) -> list[str]:
    """Instead of what was there; the session has shown it by that.

    Returns the recovery codes, which are shown this once.
    """
    user: User = request.user  # type: ignore[assignment]
    with transaction.atomic():
        # Two forms at once are one after the other.
        User.objects.select_for_update().get(pk=user.pk)
        had_one = is_set_up(user)
        Authenticator.objects.filter(user=user).delete()
        totp = TOTP.activate(user, secret).instance
        totp.data["last_counter"] = counter_of(secret, code)
        totp.save(update_fields=["data"])
        codes = RecoveryCodes.activate(user).generate_codes()
        _record("replace second factor" if had_one else "set up second factor", request)
        email_outbox.post(
            "second factor changed", to=user.email, what="set up on a new device"
        )
    post_authentication(request, totp)
    return codes


def new_recovery_codes(request: HttpRequest) -> list[str]:
    user: User = request.user  # type: ignore[assignment]
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).delete()
        codes = RecoveryCodes.activate(user).generate_codes()
        _record("make recovery codes", request)
        email_outbox.post(
            "second factor changed", to=user.email, what="given new recovery codes"
        )
    return codes


def reset(*, user: User, by: User | str, request: HttpRequest | None = None) -> None:
    """For a lost device: none is left, and every session ends.

    `by` a user who may appoint all that this one is, or a command. Raises
    PermissionDenied.
    """
    if isinstance(by, User):
        if not may_appoint_all(by, user):
            raise PermissionDenied
        # Who opens the engineers' pages is not in anybody's district.
        if user.is_staff:
            raise ValidationError(
                f"{user} is an engineer, whom another engineer helps.", code="engineer"
            )
    with transaction.atomic():
        Authenticator.objects.filter(user=user).delete()
        login_throttle.succeeded(login_throttle.What.SECOND_FACTOR, user.email)
        sessions.end_all(user)
        audit.record(
            "reset second factor",
            by=by,
            request=request,
            subject=user,
            **audit.place_of(user),
        )
        email_outbox.post("second factor reset", to=user.email, by=str(by))


# Showing it


def accepts(user: User, code: str) -> Authenticator | None:
    """What the code belongs to. Each code is good once, on every web server."""
    with transaction.atomic():
        rows = Authenticator.objects.select_for_update().filter(
            user=user, type__in=(Type.TOTP, Type.RECOVERY_CODES)
        )
        for row in rows:
            try:
                good = (
                    _is_new(row, code) if row.type == Type.TOTP else _is_left(row, code)
                )
            except InvalidToken:
                log.error("the second factor of user %s cannot be decrypted", user.pk)
                continue
            if good:
                row.user = user
                return row
    return None


def _is_new(row: Authenticator, code: str) -> bool:
    # Kept with the secret, not in the cache: Memcached would refuse everybody
    # while it is away.
    counter = counter_of(decrypt(row.data["secret"]), code)
    if counter is None or counter <= row.data.get("last_counter", -1):
        return False
    row.data["last_counter"] = counter
    row.save(update_fields=["data"])
    return True


def _is_left(row: Authenticator, code: str) -> bool:
    return bool(row.wrap().validate_code(code))


def check_code(request: HttpRequest, user: User, code: str) -> Authenticator:
    """Raises ValidationError with what to do, and how long to wait before."""
    tried = login_throttle.take(login_throttle.What.SECOND_FACTOR, user.email)
    if tried.wait:
        raise ValidationError(
            "Too soon after a wrong code, so this one was not looked at. Wait"
            f" {login_throttle.in_words(tried.wait)}, then enter the code that your app"
            " shows."
        )
    found = accepts(user, code)
    if found is None:
        if tried.failures >= audit.FAILURES_RECORDED:
            audit.record(
                "refuse second factor",
                by="nobody",
                request=request,
                subject=user,
                after={"in a row": tried.failures},
                **audit.place_of(user),
            )
        raise ValidationError(
            "This code is not right, or was used before. Wait"
            f" {login_throttle.in_words(tried.next_wait)}, then enter the one that"
            " your app shows."
        )
    login_throttle.succeeded(login_throttle.What.SECOND_FACTOR, user.email)
    return found


def _record(action: str, request: HttpRequest) -> None:
    user: User = request.user  # type: ignore[assignment]
    audit.record(action, by=user, request=request, subject=user, **audit.place_of(user))
