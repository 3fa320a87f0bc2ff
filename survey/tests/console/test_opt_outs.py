"""The console pages to opt one person out."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.models import OptOut, Respondent
from survey.people.access_codes import code_of
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    administration.coordinators_see_finished = True
    administration.save()
    return administration


@pytest.fixture
def maya(administration, staff) -> Respondent:
    return invite(administration, staff.lincoln, "40313", "Maya López", grade="07")


@pytest.fixture
def started(maya):
    Respondent.objects.filter(pk=maya.pk).update(started_at=timezone.now())
    return maya


def address_of(person, action=""):
    people = f"/console/administrations/{person.administration_id}/people/"
    return f"{people}{person.pk}/{action}"


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def answers(**changes) -> dict[str, str]:
    """Return what the form sends."""
    return {
        "requested_by": "parent",
        "requested_on": timezone.localdate().isoformat(),
        "reason": "no consent form",
        "seen": "not started",
        **changes,
    }


def test_ms_chen_opts_maya_out_in_three_clicks(client, staff, administration, maya):
    log_in(client, staff.chen)
    page = client.get(address_of(maya)).content.decode()
    assert address_of(maya, "opt-out/") in page

    form = client.get(address_of(maya, "opt-out/"))
    fields = form.context["form"]
    assert fields["requested_by"].value() == "parent"
    assert fields["requested_on"].value() == timezone.localdate()
    assert "stops working at once" in text_of(form)
    assert "saved answers" not in text_of(form)

    done = client.post(address_of(maya, "opt-out/"), answers(), follow=True)
    shown = text_of(done)
    assert "was opted out" in shown and "no consent form" in shown
    assert "A parent or guardian" in shown and "chen@example.org" in shown
    assert "Print card" not in shown and "Opt out " not in shown
    maya.refresh_from_db()
    assert maya.opted_out_at
    # The reason may name somebody.
    assert "consent" not in str(list(AuditEntry.objects.values()))

    back = client.post(address_of(maya, "opt-out/take-back/"), follow=True)
    assert "taken back" in text_of(back) and "Print card" in text_of(back)
    maya.refresh_from_db()
    assert maya.opted_out_at is None


def test_people_who_opted_out_are_found_apart_from_withdrawn_ones(
    client, staff, administration, maya
):
    ben = invite(administration, staff.lincoln, "8", "Ben Adams")
    Respondent.objects.filter(pk=ben.pk).update(withdrawn_at=timezone.now())
    log_in(client, staff.chen)
    client.post(address_of(maya, "opt-out/"), answers())
    people = address_of(maya).rsplit("/", 2)[0] + "/"

    def names_in(state):
        shown = text_of(client.get(people, {"state": state}))
        return [name for name in ("López, Maya", "Adams, Ben") if name in shown]

    assert names_in("opted-out") == ["López, Maya"]
    assert names_in("withdrawn") == ["Adams, Ben"]
    assert names_in("invited") == names_in("not-started") == []
    assert "opted out" in text_of(client.get(people))
    for act in ("code/", "reissue/", "card/"):
        response = client.post(address_of(maya, act), follow=True)
        assert response.redirect_chain[0][0] == address_of(maya)
        assert "no card to print" in text_of(response) or "opted out" in text_of(
            response
        )
        assert code_of(maya) not in response.content.decode().replace("-", "")


def test_a_person_who_has_started_is_opted_out_knowing_that(client, staff, started):
    log_in(client, staff.chen)
    page = client.get(address_of(started, "opt-out/"))
    assert "started the survey" in text_of(page)
    assert "no new export or report has them" in text_of(page)
    assert page.context["form"]["seen"].value() == "started"
    # The page was loaded before the start.
    refused = client.post(address_of(started, "opt-out/"), answers(), follow=True)
    assert "has started in the meantime" in text_of(refused)
    assert not OptOut.objects.exists()
    client.post(address_of(started, "opt-out/"), answers(seen="started"))
    assert OptOut.objects.exists()


@pytest.mark.parametrize("login", ["state", "dana", "chen"])
def test_opting_out_does_not_tell_who_has_started(
    client, staff, administration, started, login
):
    administration.coordinators_see_finished = False
    administration.save()
    ann = invite(administration, staff.lincoln, "8", "Ann López", grade="07")
    log_in(client, getattr(staff, login))

    def shown(person) -> list[str]:
        pages = [client.get(address_of(person, "opt-out/"))]
        pages.append(
            client.post(address_of(person, "opt-out/"), answers(seen=""), follow=True)
        )
        pages.append(client.post(address_of(person, "opt-out/take-back/"), follow=True))
        return [re.sub(r"\d+|Maya|Ann", "", text_of(page)) for page in pages]

    assert shown(started) == shown(ann)
    assert OptOut.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"requested_on": ""}, "This field is required"),
        ({"requested_on": "yesterday"}, "Enter a valid date"),
        ({"requested_by": "nobody"}, "Select a valid choice"),
        ({"reason": "x" * 201}, "at most 200 characters"),
        ({"reason": "a\x00b"}, "Null characters are not allowed"),
    ],
)
def test_bad_input_changes_nothing(client, staff, maya, changes, message):
    log_in(client, staff.chen)
    page = client.post(address_of(maya, "opt-out/"), answers(**changes))
    assert message in text_of(page)
    assert not OptOut.objects.exists()


def test_a_request_is_not_of_tomorrow(client, staff, maya):
    log_in(client, staff.chen)
    tomorrow = (timezone.localdate() + timedelta(days=1)).isoformat()
    page = client.post(address_of(maya, "opt-out/"), answers(requested_on=tomorrow))
    assert "in the future" in text_of(page)


def test_a_request_is_not_of_another_century(client, staff, maya):
    log_in(client, staff.chen)
    page = client.post(address_of(maya, "opt-out/"), answers(requested_on="1026-11-02"))
    assert "Check the year" in text_of(page)
    assert not OptOut.objects.exists()


@pytest.mark.parametrize("act", ["opt-out/", "opt-out/take-back/"])
def test_people_of_other_schools_are_not_found(client, staff, maya, act):
    for user in (staff.sam, staff.analyst):
        log_in(client, user)
        assert client.post(address_of(maya, act), answers()).status_code == 404
    assert not OptOut.objects.exists() and not AuditEntry.objects.exists()


def test_pages_take_few_statements(client, staff, maya, django_assert_num_queries):
    log_in(client, staff.chen)
    client.get(address_of(maya, "opt-out/"))
    # Session, user, memberships, administration, person, audit.
    with django_assert_num_queries(6):
        client.get(address_of(maya, "opt-out/"))
    client.post(address_of(maya, "opt-out/"), answers())
    client.get(address_of(maya))
    # The same, joins, the opt-out.
    with django_assert_num_queries(8):
        client.get(address_of(maya))
