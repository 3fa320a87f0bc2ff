"""Log staff in, for tests about something else."""

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
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from django.utils.crypto import get_random_string

from accounts.models import User
from accounts.staff_cookies import PREFIX

# The password of all users in the tests.
PASSWORD = "calm-harbour-42"


def log_in(client: Client, user: User, *, second_factor: bool = True) -> Client:
    """Log a user in to the console, by default with a second factor.

    With three statements: Django's `force_login` takes some twenty, more than a page.
    """
    # Reload the user: ending a role has changed the hash that sessions contain.
    user = User.objects.get(pk=user.pk)
    methods = ["password", "mfa"] if second_factor else ["password"]
    store = SessionStore()
    data = {
        SESSION_KEY: str(user.pk),
        BACKEND_SESSION_KEY: settings.AUTHENTICATION_BACKENDS[0],
        HASH_SESSION_KEY: user.get_session_auth_hash(),
        flows._AUTHENTICATION_METHODS_USER_SESSION_KEY: user_id_to_str(user),
        flows.AUTHENTICATION_METHODS_SESSION_KEY: [
            {"method": method, "at": time.time()} for method in methods
        ],
    }
    User.objects.filter(pk=user.pk).update(last_login=timezone.now())
    session = Session.objects.create(
        session_key=get_random_string(32),
        session_data=store.encode(data),
        expire_date=store.get_expiry_date(),
    )
    client.cookies[PREFIX + settings.SESSION_COOKIE_NAME] = session.session_key
    return client


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
