"""Staff who are logged in, for tests that are about something else."""

from __future__ import annotations

import time

from allauth.account.internal.flows import login as flows
from allauth.account.internal.userkit import user_id_to_str
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
)
from django.conf import settings
from django.test import Client

from accounts.models import User
from accounts.staff_cookies import PREFIX

# Of the whole cast.
PASSWORD = "calm-harbour-42"


def log_in(client: Client, user: User, *, second_factor: bool = True) -> Client:
    """Into the console, by password and, unless told otherwise, second factor."""
    # As the database has it: a role that ended has ended the session before.
    client.force_login(User.objects.get(pk=user.pk))
    methods = ["password", "mfa"] if second_factor else ["password"]
    session = client.session
    session[flows._AUTHENTICATION_METHODS_USER_SESSION_KEY] = user_id_to_str(user)
    session[flows.AUTHENTICATION_METHODS_SESSION_KEY] = [
        {"method": method, "at": time.time()} for method in methods
    ]
    session.save()
    cookie = client.cookies.pop(settings.SESSION_COOKIE_NAME)
    client.cookies[PREFIX + settings.SESSION_COOKIE_NAME] = cookie.value
    return client


def give_app(user: User) -> str:
    """An authenticator app; returns the secret that it shares."""
    secret = generate_totp_secret()
    TOTP.activate(user, secret)
    return secret


def code_of(secret: str, *, later: int = 0) -> str:
    """What the app shows now, or some steps of half a minute later."""
    counter = int(time.time()) // 30 + later
    return format_hotp_value(hotp_value(secret, counter))


def type_password(client: Client, email: str, password: str = PASSWORD, **more: str):
    return client.post(
        "/console/account/login/", {"login": email, "password": password, **more}
    )


def type_code(client: Client, code: str):
    return client.post("/console/account/login/code/", {"code": code})


def is_inside(client: Client) -> bool:
    """Whether this browser is logged in, second factor or not."""
    return client.get("/console/me/").status_code == 200
