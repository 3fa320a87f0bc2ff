"""Test the pages that list, invite and dismiss staff."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse

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


def test_a_district_lists_and_dismisses_its_staff(staff, client):
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
    assert "will no longer be school coordinator, Lincoln" in shown
    response = client.post(page_of(staff.chen) + "dismiss/")

    assert response["Location"] == STAFF
    assert not staff.chen.memberships.current().exists()
    entry = AuditEntry.objects.get(action="dismiss coordinator")
    assert (entry.by, entry.subject) == ("dana@example.org", "chen@example.org")
    after = client.get(STAFF).content.decode()
    assert people(after) == {"dana@example.org", "analyst@example.org"}
    assert "Dismissed chen@example.org as school coordinator" in after


def test_the_state_sees_all_staff(staff):
    assert len(seen_by(staff.state)) == 5


def test_a_district_sees_no_state_and_no_other_district(staff):
    member("whole@example.org", Role.ANALYST)
    member("mine@example.org", Role.ANALYST, school=staff.lincoln)
    seen = seen_by(staff.dana)
    assert "mine@example.org" in seen
    for name in ("state", "sam", "whole"):
        assert f"{name}@example.org" not in seen


@pytest.mark.parametrize("name", ["chen", "analyst", "sam"])
@pytest.mark.parametrize("path", ["", "invite/", "{dana}/"])
def test_other_roles_get_404(staff, client, name, path):
    path = path.format(dana=staff.dana.memberships.get().pk)
    log_in(client, getattr(staff, name))
    assert client.get(STAFF + path).status_code == 404
    assert client.post(STAFF + path).status_code in (404, 405)


@pytest.mark.parametrize("act", ["", "dismiss/", "resend/", "withdraw/"])
@pytest.mark.parametrize("name", ["sam", "state"])
def test_staff_of_other_places_are_404(staff, client, name, act):
    log_in(client, staff.dana)
    path = page_of(getattr(staff, name)) + act
    answer = client.post(path) if act else client.get(path)
    assert answer.status_code == 404
    assert Membership.objects.current().count() == 5


def test_dismissed_staff_are_404(staff, client):
    path = page_of(staff.chen)
    log_in(client, staff.dana).post(path + "dismiss/")
    assert client.get(path).status_code == 404
    assert client.post(path + "dismiss/").status_code == 404


def test_the_last_state_administrator_cannot_be_dismissed_on_the_page(staff, client):
    log_in(client, staff.state)
    response = client.post(page_of(staff.state) + "dismiss/", follow=True)
    assert "Appoint another one first" in response.content.decode()
    assert staff.state.memberships.current().exists()


def test_dismissing_oneself_logs_out(staff, client):
    log_in(client, staff.dana)
    assert "You can't undo this" in client.get(page_of(staff.dana)).content.decode()
    client.post(page_of(staff.dana) + "dismiss/")
    assert client.get(STAFF)["Location"].startswith("/console/account/login/")


def test_staff_are_searched_filtered_and_sorted(staff):
    member("new@example.org", Role.COORDINATOR, school=staff.washington)
    User.objects.filter(email="new@example.org").update(first_name="Noor")
    assert seen_by(staff.dana, q="washington") == {"Noor"}
    assert seen_by(staff.dana, q="noor") == {"Noor"}
    assert seen_by(staff.dana, role="analyst") == {"analyst@example.org"}
    assert seen_by(staff.dana, q="nothing at all") == set()
    for sort in ("name", "-role", "place", "-since", "login", "nonsense"):
        assert len(seen_by(staff.dana, sort=sort, role="nonsense", page="x")) == 4


@pytest.mark.parametrize("more", [0, 2])
def test_one_row_and_three_rows_cost_the_same_queries(
    staff, client, more, django_assert_num_queries
):
    for number in range(more):
        member(f"n{number}@example.org", Role.COORDINATOR, school=staff.washington)
    Membership.objects.filter(user__in=(staff.chen, staff.analyst)).delete()
    log_in(client, staff.dana)
    # Session, user, memberships; the number of rows,
    # the rows, and the number of people.
    with django_assert_num_queries(6):
        page = client.get(STAFF).content.decode()
    assert len(people(page)) == 1 + more


def test_the_footer_counts_people(staff, client):
    log_in(client, staff.dana)
    assert "1–3 of 3 people" in client.get(STAFF).text
    appoint(user=staff.chen, role=Role.ANALYST, district=staff.riverside, by="x")
    assert "1–4 of 4 roles of 3 people" in client.get(STAFF).text


@pytest.mark.parametrize("what", ["page", "list"])
def test_an_empty_list_offers_to_invite(staff, client, what):
    log_in(client, staff.dana)
    page = client.get(STAFF, {"q": "zzz"}).content.decode()
    assert "No one matches." in page


def test_simultaneous_appointments_get_a_message(staff, monkeypatch):
    """Both pass the first check; the database's constraint decides."""
    from django.core.exceptions import ValidationError

    monkeypatch.setattr(Membership, "full_clean", lambda self: None)
    with pytest.raises(ValidationError, match="already"):
        appoint(user=staff.chen, role=Role.COORDINATOR, school=staff.lincoln, by="x")
    assert staff.chen.memberships.count() == 1
    assert not AuditEntry.objects.exists()


def test_without_the_check_simultaneous_appointments_would_crash(staff):
    with pytest.raises(IntegrityError):
        Membership.objects.create(
            user=staff.chen, role=Role.COORDINATOR, school=staff.lincoln
        )


@pytest.mark.parametrize("is_engineer", [False, True])
def test_whether_people_of_other_places_log_in_is_not_shown(staff, client, is_engineer):
    """A district administrator can invite anybody, to learn something about them."""
    user = staff.state
    if is_engineer:
        user = User.objects.create_superuser("e@example.org", "a long password")
    User.objects.update(last_login=datetime(2026, 3, 4, 12, 34, tzinfo=UTC))
    give_app(user)
    membership = appoint(
        user=user, role=Role.COORDINATOR, school=staff.lincoln, by=staff.dana
    )
    detail = reverse("membership_detail", args=[membership.pk])
    shown = "March 4, 2026"
    log_in(client, staff.dana)
    assert client.get(STAFF).content.decode().count(shown) == 2
    assert shown not in (page := client.get(detail).content.decode())
    assert "set up" not in page
    # Unless the user works in those places too.
    log_in(client, staff.state)
    page = client.get(detail).content.decode()
    assert "not shown" not in page
    assert "set up" in page
