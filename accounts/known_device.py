"""Recognise the browsers in which a user has logged in before.

Anybody can type wrong passwords for an address, and so delay its owner's logins.
A known device has a count of its own, which nobody else can raise.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare, get_random_string, salted_hmac

from accounts.models import User

COOKIE = "staff_device"
# Only the login pages need it.
PATH = "/console/account/"
SALT = "accounts.known_device"
LIFETIME = timedelta(days=180)


def device_of(request: HttpRequest, email: str) -> str:
    """Return the device's id if the owner of the address has logged in here."""
    try:
        owner, device = signing.loads(
            request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=LIFETIME
        )
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return device if constant_time_compare(owner, _owner(email)) else ""


def remember(request: HttpRequest, response: HttpResponse, user: User) -> None:
    device = device_of(request, user.email) or get_random_string(16)
    response.set_cookie(
        COOKIE,
        signing.dumps([_owner(user.email), device], salt=SALT),
        max_age=LIFETIME,
        path=PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _owner(email: str) -> str:
    # A hash, because browsers show cookies to other people who use them.
    return salted_hmac(SALT, email.strip().lower(), algorithm="sha256").hexdigest()
