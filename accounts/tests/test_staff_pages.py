"""The staff page: who is on it, for whom, and what can be done."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.db import IntegrityError
from django.test import Client

from accounts.models import AuditEntry, Membership, User
from accounts.staff import appoint
from accounts.tests.conftest import member
from accounts.tests.logging_in import give_app, log_in

pytestmark = pytest.mark.django_db

STAFF = "/console/staff/"
Role = Membership.Role


def people(page: str) -> set[str]:
    return set(re.findall(r'/console/staff/\d+/">([^<]+)<', page))


def seen_by(user, **query: str) -> set[str]:
    response = log_in(Client(), user).get(STAFF, query)
    assert response.status_code == 200
    return people(response.content.decode())


def page_of(user) -> str:
    return f"{STAFF}{user.memberships.current().get().pk}/"


def test_a_district_sees_its_own_staff_and_dismisses(staff, client):
    give_app(staff.chen)
    log_in(client, staff.dana)
    page = client.get(STAFF).content.decode()
    assert people(page) == {
        "dana@example.org",
        "chen@example.org",
        "analyst@example.org",
    }
    assert page.count(">set up<") == 1

    shown = client.get(page_of(staff.chen)).content.decode()
    assert "is no longer school coordinator, Lincoln" in shown
    response = client.post(page_of(staff.chen) + "dismiss/")

    assert response["Location"] == STAFF
    assert not staff.chen.memberships.current().exists()
    entry = AuditEntry.objects.get(action="dismiss coordinator")
    assert (entry.by, entry.subject) == ("dana@example.org", "chen@example.org")
    after = client.get(STAFF).content.decode()
    assert people(after) == {"dana@example.org", "analyst@example.org"}
    assert "chen@example.org is dismissed as school coordinator" in after


def test_the_state_sees_everybody(staff):
    assert len(seen_by(staff.state)) == 5


def test_a_district_sees_no_state_and_no_other_district(staff):
    member("whole@example.org", Role.ANALYST)
    member("mine@example.org", Role.ANALYST, school=staff.lincoln)
    seen = seen_by(staff.dana)
    assert "mine@example.org" in seen
    for one in ("state", "sam", "whole"):
        assert f"{one}@example.org" not in seen


@pytest.mark.parametrize("who", ["chen", "analyst", "sam"])
@pytest.mark.parametrize("path", ["", "invite/", "{dana}/"])
def test_others_have_no_such_page(staff, client, who, path):
    path = path.format(dana=staff.dana.memberships.get().pk)
    log_in(client, getattr(staff, who))
    assert client.get(STAFF + path).status_code == 404
    assert client.post(STAFF + path).status_code in (404, 405)


@pytest.mark.parametrize("act", ["", "dismiss/", "resend/", "withdraw/"])
@pytest.mark.parametrize("who", ["sam", "state"])
def test_somebody_elsewhere_is_not_there(staff, client, who, act):
    log_in(client, staff.dana)
    path = page_of(getattr(staff, who)) + act
    answer = client.post(path) if act else client.get(path)
    assert answer.status_code == 404
    assert Membership.objects.current().count() == 5


def test_who_was_dismissed_is_not_there_either(staff, client):
    path = page_of(staff.chen)
    log_in(client, staff.dana).post(path + "dismiss/")
    assert client.get(path).status_code == 404
    assert client.post(path + "dismiss/").status_code == 404


def test_the_last_of_the_state_stays_and_the_page_says_why(staff, client):
    log_in(client, staff.state)
    response = client.post(page_of(staff.state) + "dismiss/", follow=True)
    assert "Appoint another one first" in response.content.decode()
    assert staff.state.memberships.current().exists()


def test_who_dismisses_oneself_is_outside(staff, client):
    log_in(client, staff.dana)
    assert "You cannot undo this" in client.get(page_of(staff.dana)).content.decode()
    client.post(page_of(staff.dana) + "dismiss/")
    assert client.get(STAFF)["Location"].startswith("/console/account/login/")


def test_it_is_searched_filtered_and_sorted(staff):
    member("new@example.org", Role.COORDINATOR, school=staff.washington)
    User.objects.filter(email="new@example.org").update(first_name="Noor")
    assert seen_by(staff.dana, q="washington") == {"Noor"}
    assert seen_by(staff.dana, q="noor") == {"Noor"}
    assert seen_by(staff.dana, role="analyst") == {"analyst@example.org"}
    assert seen_by(staff.dana, q="nothing at all") == set()
    for sort in ("name", "-role", "place", "-since", "login", "nonsense"):
        assert len(seen_by(staff.dana, sort=sort, role="nonsense", page="x")) == 4


@pytest.mark.parametrize("more", [0, 2])
def test_one_and_three_rows_cost_the_same(
    staff, client, more, django_assert_num_queries
):
    for number in range(more):
        member(f"n{number}@example.org", Role.COORDINATOR, school=staff.washington)
    Membership.objects.filter(user__in=(staff.chen, staff.analyst)).delete()
    log_in(client, staff.dana)
    # Session (where it is not in Redis), user, memberships; the number of rows,
    # and the rows.
    with django_assert_num_queries(5 - bool(settings.SERVERS)):
        page = client.get(STAFF).content.decode()
    assert len(people(page)) == 1 + more


@pytest.mark.parametrize("what", ["page", "list"])
def test_nobody_yet_is_an_invitation_to_invite(staff, client, what):
    log_in(client, staff.dana)
    page = client.get(STAFF, {"q": "zzz"}).content.decode()
    assert "Nobody is found by that." in page


def test_two_who_appoint_at_once_are_told(staff, monkeypatch):
    """The check before passes for both; the database decides."""
    from django.core.exceptions import ValidationError

    monkeypatch.setattr(Membership, "full_clean", lambda self: None)
    with pytest.raises(ValidationError, match="already"):
        appoint(user=staff.chen, role=Role.COORDINATOR, school=staff.lincoln, by="x")
    assert staff.chen.memberships.count() == 1
    assert not AuditEntry.objects.exists()


def test_without_that_it_was_a_crash(staff):
    """The twin."""
    with pytest.raises(IntegrityError):
        Membership.objects.create(
            user=staff.chen, role=Role.COORDINATOR, school=staff.lincoln
        )
