"""Log staff in, for tests about something else."""

from __future__ import annotations

import time

from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
)
from django.test import Client

from accounts.models import User
from provisioning.staff_login import log_in  # noqa: F401

# The password of all users in the tests.
PASSWORD = "calm-harbour-42"


def give_app(user: User) -> str:
    """Set up an authenticator app and return its secret."""
    secret = generate_totp_secret()
    TOTP.activate(user, secret)
    return secret


def code_of(secret: str, *, later: int = 0) -> str:
    """Return the code that the app shows, `later` steps of 30 seconds from now."""
    counter = int(time.time()) // 30 + later
    return format_hotp_value(hotp_value(secret, counter))


def type_password(client: Client, email: str, password: str = PASSWORD, **more: str):
    return client.post(
        "/console/account/login/", {"login": email, "password": password, **more}
    )


def type_code(client: Client, code: str):
    return client.post("/console/account/login/code/", {"code": code})


def is_inside(client: Client) -> bool:
    """Return whether the client is logged in, with or without a second factor."""
    return client.get("/console/me/").status_code == 200
