"""Setting a password, and the link for whoever has forgotten theirs."""

from __future__ import annotations

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.http import HttpRequest

from accounts import audit, email_outbox, login_throttle
from accounts.models import Invitation, Letter, User


def set_password(
    user: User, password: str, *, how: str, request: HttpRequest | None
) -> None:
    """Every session but this request's ends with it, for it proves the old one.

    `how` is what happened, for the audit: "change password".
    """
    is_first = not user.has_usable_password()
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        Invitation.objects.filter(user=user).delete()
        audit.record(
            how, by=user, request=request, subject=user, **audit.place_of(user)
        )
        # Whoever has just proved the mailbox does not pay for guesses of others.
        login_throttle.succeeded(login_throttle.What.PASSWORD, user.email)
        if not is_first:
            email_outbox.post("password changed", to=user.email)


def ask_for_link(email: str) -> login_throttle.Try:
    """Whether the link may be sent; again and again has to wait, by the address."""
    return login_throttle.take(login_throttle.What.MAIL, email)


def send_link(email: str) -> None:
    """The same work here for every address: whether there is such a user, the
    worker finds out that would write to them."""
    email_outbox.post("password reset", to=email)


@email_outbox.writes("password reset")
def _reset_letter(letter: Letter) -> email_outbox.Facts | None:
    user = User.objects.filter(email=letter.to.lower(), is_active=True).first()
    if user is None:
        return None
    # What the person typed may be the same address in other letters.
    letter.to = user.email
    return {"link": email_outbox.link("password_choose", key=reset_key(user))}


def reset_key(user: User) -> str:
    """Good for PASSWORD_RESET_TIMEOUT, until a log-in or a new password."""
    return f"{user.pk}-{default_token_generator.make_token(user)}"


def user_of_reset_key(key: str) -> User | None:
    number, _, token = key.partition("-")
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        return None
    user = User.objects.filter(pk=int(number), is_active=True).first()
    if user and default_token_generator.check_token(user, token):
        return user
    return None
