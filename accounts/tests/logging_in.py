"""Staff who are logged in, for tests that are about something else."""

from __future__ import annotations

import time

from allauth.account.internal.flows import login as flows
from allauth.account.internal.userkit import user_id_to_str
from django.conf import settings
from django.test import Client

from accounts.models import User
from accounts.staff_door import PREFIX


def log_in(client: Client, user: User, *, second_factor: bool = True) -> Client:
    """Into the console, by password and, unless told otherwise, second factor."""
    client.force_login(user)
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
