"""List and end the sessions of a user.

Every session contains the number `User.session_series`, which is read with the
user on each request. Increasing it ends all sessions from the commit on.
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
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User


@dataclass(frozen=True, slots=True)
class StaffSession:
    """One session, as its owner sees it on the account page."""

    pk: int
    began_at: datetime
    address: str
    browser: str
    is_current: bool


def sessions_of(user: User, *, current: str | None) -> list[StaffSession]:
    """Return the active sessions, newest first. `current` is a session key."""
    rows = UserSession.objects.filter(user=user).order_by("-created_at")
    return [
        StaffSession(
            pk=row.pk,
            began_at=row.created_at,
            address=row.ip,
            browser=browser_of(row.user_agent),
            is_current=row.session_key == current,
        )
        for row in rows
        if get_session_user(row._session_store(row.session_key)) is not None
    ]


def end_one(request: HttpRequest, *, user: User, pk: int) -> bool:
    """End one session of this user. Return False if there is none."""
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
    """End all sessions from the commit on. 2 statements."""
    User.objects.filter(pk=user.pk).update(session_series=F("session_series") + 1)
    UserSession.objects.filter(user=user).delete()


def end_others(request: HttpRequest, *, user: User) -> None:
    """End all sessions but the one of this request."""
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
    """Return a name such as "Firefox on Windows"."""
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

    def first(names: tuple[tuple[str, str], ...], default: str) -> str:
        matches = (name for sign, name in names if sign in user_agent)
        return next(matches, default)

    return _("%(browser)s on %(system)s") % {
        "browser": first(browsers, _("A browser")),
        "system": first(systems, _("an unknown system")),
    }
