"""Where somebody is logged in, and ending it.

Every session proves the series of its user (`User.session_series`), which is
read with the user on each request: one more, and all sessions are over from
the same commit on, whatever keeps them and whether it can be reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from allauth.core.internal.sessionkit import get_session_user
from allauth.usersessions.models import UserSession
from django.contrib.auth import update_session_auth_hash
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest

from accounts import audit
from accounts.models import User


@dataclass(frozen=True, slots=True)
class StaffSession:
    """One session, as its owner sees it."""

    pk: int
    began_at: datetime
    address: str
    browser: str
    is_current: bool


def seats_of(user: User, *, current: str | None) -> list[StaffSession]:
    """Those that are not over, the newest first. `current` is a session's key."""
    rows = UserSession.objects.filter(user=user).order_by("-created_at")
    return [
        StaffSession(
            pk=one.pk,
            began_at=one.created_at,
            address=one.ip,
            browser=browser_of(one.user_agent),
            is_current=one.session_key == current,
        )
        for one in rows
        if _lives(one)
    ]


def end_one(request: HttpRequest, *, user: User, pk: int) -> bool:
    """Whether there was one of this user to end."""
    row = UserSession.objects.filter(user=user, pk=pk).first()
    if row is None:
        return False
    with transaction.atomic():
        audit.record(
            "end session",
            by=user,
            request=request,
            subject=user,
            **audit.place_of(user),
        )
        row.end()
    return True


def end_all(user: User) -> None:
    """From the commit on. 2 statements."""
    User.objects.filter(pk=user.pk).update(session_series=F("session_series") + 1)
    UserSession.objects.filter(user=user).delete()


def end_others(request: HttpRequest, *, user: User) -> None:
    """All but the session of this request."""
    with transaction.atomic():
        end_all(user)
        audit.record(
            "end all sessions",
            by=user,
            request=request,
            subject=user,
            **audit.place_of(user),
        )
    user.refresh_from_db()
    update_session_auth_hash(request, user)
    UserSession.objects.create_from_request(request)


def browser_of(user_agent: str) -> str:
    """ "Firefox on Windows", as well as a claim can be read."""
    browsers = (
        ("Edg", "Edge"),
        ("OPR", "Opera"),
        ("Firefox", "Firefox"),
        ("CriOS", "Chrome"),
        ("Chrome", "Chrome"),
        ("Safari", "Safari"),
    )
    systems = (
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("CrOS", "Chromebook"),
        ("Windows", "Windows"),
        ("Macintosh", "Mac"),
        ("Linux", "Linux"),
    )

    def first(names: tuple[tuple[str, str], ...], otherwise: str) -> str:
        found = (name for sign, name in names if sign in user_agent)
        return next(found, otherwise)

    return f"{first(browsers, 'A browser')} on {first(systems, 'an unknown system')}"


def _lives(row: UserSession) -> bool:
    store = row._session_store(row.session_key)
    return get_session_user(store) is not None
