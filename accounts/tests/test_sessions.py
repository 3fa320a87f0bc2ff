"""List and end the sessions of staff."""

from __future__ import annotations

import re

import pytest
from allauth.usersessions.models import UserSession
from django.test import Client

from accounts import sessions
from accounts.models import AuditEntry, User
from accounts.sessions import browser_of
from accounts.staff import dismiss
from accounts.tests.logging_in import is_inside, type_password

pytestmark = pytest.mark.django_db

FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko Firefox/140.0"


def browser(email: str = "dana@example.org", address: str = "203.0.113.7") -> Client:
    client = Client(REMOTE_ADDR=address, HTTP_USER_AGENT=FIREFOX)
    assert type_password(client, email).status_code == 302
    return client


def ends_in(page: str) -> list[int]:
    return [int(pk) for pk in re.findall(r"/me/sessions/(\d+)/end/", page)]


def test_users_list_their_sessions_and_end_one(staff):
    here = browser()
    lost = browser(address="198.51.100.9")
    page = here.get("/console/me/").content.decode()
    assert page.count("Firefox on Windows") == 3
    assert "198.51.100.9" in page
    [pk] = ends_in(page)

    assert here.post(f"/console/me/sessions/{pk}/end/").status_code == 302

    assert is_inside(here)
    assert not is_inside(lost)
    assert "198.51.100.9" not in here.get("/console/me/").content.decode()
    assert AuditEntry.objects.filter(action="end session").count() == 1


def test_the_cookie_of_an_ended_session_is_refused(staff):
    here, lost = browser(), browser()
    cookie = lost.cookies["staff_sessionid"].value
    [pk] = ends_in(here.get("/console/me/").content.decode())
    here.post(f"/console/me/sessions/{pk}/end/")
    thief = Client()
    thief.cookies["staff_sessionid"] = cookie
    assert not is_inside(thief)


def test_sessions_of_other_users_cannot_be_ended(staff):
    theirs = browser("chen@example.org")
    [row] = UserSession.objects.all()
    assert browser().post(f"/console/me/sessions/{row.pk}/end/").status_code == 404
    assert is_inside(theirs)


def test_ending_all_sessions_keeps_the_current_one(staff):
    here, there, elsewhere = browser(), browser(), browser()
    theirs = browser("chen@example.org")
    assert here.post("/console/me/sessions/end/").status_code == 302
    assert is_inside(here)
    assert not is_inside(there)
    assert not is_inside(elsewhere)
    assert is_inside(theirs)
    assert ends_in(here.get("/console/me/").content.decode()) == []
    assert AuditEntry.objects.filter(action="end all sessions").count() == 1


def test_without_the_series_an_ended_session_would_continue(staff, monkeypatch):
    monkeypatch.setattr(
        User, "_get_session_auth_hash", lambda self, secret=None: "always the same"
    )
    here = browser()
    sessions.end_all(staff.dana)
    assert is_inside(here)


def test_all_sessions_end_without_asking_the_session_store(staff, monkeypatch):
    """The next request finds the series changed."""
    there = browser()
    with monkeypatch.context() as away:

        def gone(*args: object, **kwargs: object) -> None:
            raise ConnectionError

        away.setattr(UserSession, "_session_store", gone)
        sessions.end_all(staff.dana)
    assert not is_inside(there)


def test_dismissed_and_deactivated_users_are_logged_out(staff):
    dana, chen = browser(), browser("chen@example.org")
    [membership] = staff.chen.memberships.all()
    dismiss(membership=membership, by=staff.dana)
    assert not is_inside(chen)
    User.objects.filter(pk=staff.dana.pk).update(is_active=False)
    assert not is_inside(dana)


@pytest.mark.parametrize("get", ["me/sessions/1/end/", "me/sessions/end/"])
def test_sessions_do_not_end_by_get_requests(staff, get):
    here, there = browser(), browser()
    assert here.get(f"/console/{get}").status_code == 405
    assert is_inside(there)


def test_the_client_address_is_recorded_behind_nginx(staff):
    client = Client(REMOTE_ADDR="", HTTP_X_FORWARDED_FOR="203.0.113.99")
    type_password(client, "dana@example.org")
    assert "203.0.113.99" in client.get("/console/me/").content.decode()


def test_login_works_without_a_client_address(staff):
    client = Client(REMOTE_ADDR="", HTTP_X_FORWARDED_FOR="nonsense")
    assert type_password(client, "dana@example.org").status_code == 302


@pytest.mark.parametrize(
    ("claimed", "read"),
    [
        (FIREFOX, "Firefox on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18) CriOS/130 Safari", "Chrome on iPhone"),
        (
            "Mozilla/5.0 (X11; CrOS x86_64) Chrome/140 Safari/537",
            "Chrome on Chromebook",
        ),
        ("", "A browser on an unknown system"),
        ("<script>", "A browser on an unknown system"),
    ],
)
def test_user_agents_get_readable_names(claimed, read):
    assert browser_of(claimed) == read
