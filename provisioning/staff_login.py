"""Log staff in without their passwords, for measurements and tests."""

from __future__ import annotations

import time

from allauth.account.internal.flows import login as flows
from allauth.account.internal.userkit import user_id_to_str
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from django.utils.crypto import get_random_string

from accounts.models import Membership, User
from accounts.staff_cookies import PREFIX


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


def cookies_of_state() -> dict[str, str]:
    """Return the cookies of a state administrator's browser, with a CSRF token."""
    user, _ = User.objects.get_or_create(email="state@groundswell.example")
    Membership.objects.get_or_create(user=user, role=Membership.Role.STATE)
    client = log_in(Client(SERVER_NAME="127.0.0.1"), user)
    client.get("/console/exports/new/")
    return {name: cookie.value for name, cookie in client.cookies.items()}
