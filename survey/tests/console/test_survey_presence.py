"""People who edit the same draft see each other."""

from __future__ import annotations

import pytest
from django.core import signing
from django.core.cache import cache
from django.test import Client

from accounts.models import Membership
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from survey.console.surveys.editor import presence
from survey.models import Survey
from survey.tests.console.test_surveys import draft_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty_cache():
    cache.clear()


@pytest.fixture
def draft(staff):
    draft = draft_of()
    Survey.objects.filter(pk=draft.pk).update(district=staff.riverside)
    draft.refresh_from_db()
    return draft


def poll(client, draft, page="1") -> str:
    reply = client.get(presence.presence_address(draft), {"page": page})
    assert reply.status_code == 200
    return reply.content.decode()


def test_two_authors_see_on_which_page_the_other_is(draft, staff, monkeypatch):
    state, dana = log_in(Client(), staff.state), log_in(Client(), staff.dana)
    assert "editing" not in poll(state, draft)
    assert f"{staff.state} is editing page 1" in poll(dana, draft, "3")
    assert f"{staff.dana} is editing page 3" in poll(state, draft)
    # Another page, another draft, and an author who has left.
    poll(dana, draft, "2")
    assert f"{staff.dana} is editing page 2" in poll(state, draft)
    assert "editing" not in poll(state, draft_of(version="2"))
    later = presence.time.time() + presence.SEEN_FOR + 1
    monkeypatch.setattr(presence.time, "time", lambda: later)
    assert "editing" not in poll(state, draft)


@pytest.mark.parametrize("page", ["", "x", "-1", "9" * 50, "²"])
def test_a_page_that_makes_no_sense_is_left_out(draft, staff, page):
    poll(log_in(Client(), staff.dana), draft, page)
    content = poll(log_in(Client(), staff.state), draft)
    assert f"{staff.dana} is editing<" in content


def test_a_right_is_checked_at_each_poll(draft, staff):
    address = presence.presence_address(draft)
    dana = log_in(Client(), staff.dana)
    assert dana.get(address).status_code == 200
    for user in (staff.chen, staff.analyst, staff.sam):
        assert log_in(Client(), user).get(address).status_code in (403, 404)
    Membership.objects.filter(user=staff.dana).update(district=staff.lakeside)
    assert dana.get(address).status_code == 404
    assert Client().get(address).status_code == 302


def test_an_address_that_is_not_signed_or_old_shows_nobody(draft, staff, monkeypatch):
    state = log_in(Client(), staff.state)
    address = presence.presence_address(draft)
    assert state.get(address[:-3] + "xx/").status_code == 404
    forged = signing.dumps([draft.pk, None], salt="another")
    assert state.get(address.replace(address.split("/")[-2], forged)).status_code == 404
    monkeypatch.setattr(presence, "DAY", -1)
    assert state.get(address).status_code == 404


def test_a_poll_reads_nothing_but_its_session_and_permissions(
    draft, staff, django_assert_num_queries
):
    state = log_in(Client(), staff.state)
    poll(state, draft)
    with django_assert_num_queries(3) as statements:
        poll(state, draft)
    assert not any("survey_" in query["sql"] for query in statements)


def test_a_crowd_is_cut_to_the_last_twenty(draft):
    for number in range(presence.MOST_PEOPLE + 3):
        user = member(f"p{number}@example.org", Membership.Role.STATE)
        people = presence.note_presence(draft.pk, user, 1)
    assert len(people) == presence.MOST_PEOPLE
