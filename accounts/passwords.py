"""Set passwords, and send links to reset forgotten ones."""

from __future__ import annotations

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.http import HttpRequest

from accounts import audit, email_outbox, login_throttle
from accounts.models import Invitation, QueuedEmail, User


def set_password(
    user: User, password: str, *, how: str, request: HttpRequest | None
) -> None:
    """Set a password. All other sessions end, because they prove the old one.

    `how` is the action for the audit log, such as "change password".
    """
    is_first = not user.has_usable_password()
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        Invitation.objects.filter(user=user).delete()
        audit.record(
            how, by=user, request=request, subject=user, **audit.place_of(user)
        )
        # The user has just proved to own the account, so guesses by others no
        # longer delay the next login.
        login_throttle.succeeded(login_throttle.Purpose.PASSWORD, user.email)
        if not is_first:
            email_outbox.queue_email("password changed", to=user.email)


def start_reset_request(email: str) -> login_throttle.Attempt:
    """Throttle requests for reset links per e-mail address."""
    return login_throttle.start_attempt(login_throttle.Purpose.MAIL, email)


def send_reset_link(email: str) -> None:
    """Send a reset link if the address belongs to a user.

    Only the worker looks up the user, so that the response takes the same time
    for every address.
    """
    email_outbox.queue_email("password reset", to=email)


@email_outbox.writes("password reset")
def reset_facts(email: QueuedEmail) -> email_outbox.Facts | None:
    user = User.objects.filter(email=email.to.lower(), is_active=True).first()
    if user is None:
        return None
    # The address was typed, possibly in upper case.
    email.to = user.email
    return {"link": email_outbox.link("password_choose", key=reset_key(user))}


def reset_key(user: User) -> str:
    """Return a key that is valid until the next login or password change.

    It expires after PASSWORD_RESET_TIMEOUT.
    """
    return f"{user.pk}-{default_token_generator.make_token(user)}"


def user_of_reset_key(key: str) -> User | None:
    number, _, token = key.partition("-")
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        return None
    user = User.objects.filter(pk=int(number), is_active=True).first()
    if user and default_token_generator.check_token(user, token):
        return user
    return None
