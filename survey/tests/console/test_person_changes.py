"""The console pages to correct, move, withdraw and bring back one person."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from accounts.tests.logging_in import log_in
from survey.models import Identity, Respondent
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    administration.coordinators_see_finished = True
    administration.save()
    return administration


@pytest.fixture
def maya(administration, staff) -> Respondent:
    return invite(
        administration,
        staff.lincoln,
        "40313",
        "Maya López",
        "maya@example.org",
        grade="07",
        classroom="7B",
    )


def address_of(person, action=""):
    people = f"/console/administrations/{person.administration_id}/people/"
    return f"{people}{person.pk}/{action}"


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def post_form(client, person, **changes):
    """Send the form as a browser does: what it showed, with these changes."""
    form = client.get(address_of(person, "correct/")).context["form"]
    data = {}
    for field in form:
        data[f"initial-{field.name}"] = data[field.name] = field.value() or ""
    return client.post(address_of(person, "correct/"), {**data, **changes}, follow=True)


def test_ms_chen_corrects_a_name_and_a_class(client, staff, maya):
    log_in(client, staff.chen)
    page = client.get(address_of(maya, "correct/"))
    assert "The next roster that lists this person replaces" in text_of(page)
    assert "school" not in page.context["form"].fields
    done = post_form(
        client, maya, family_name=" Lopez  Ruiz ", classroom="7C", grade="8th"
    )
    assert "corrections were saved" in text_of(done)
    assert "Lopez Ruiz" in text_of(done)
    maya.refresh_from_db()
    assert (maya.grade, maya.classroom) == ("08", "7C")


def test_a_value_that_a_roster_changed_meanwhile_stays(client, staff, maya):
    log_in(client, staff.chen)
    form = client.get(address_of(maya, "correct/")).context["form"]
    data = {}
    for field in form:
        data[f"initial-{field.name}"] = data[field.name] = field.value() or ""
    Respondent.objects.filter(pk=maya.pk).update(grade="08")
    client.post(address_of(maya, "correct/"), {**data, "classroom": "7C"})
    maya.refresh_from_db()
    assert (maya.grade, maya.classroom) == ("08", "7C")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grade": "seventh and a half"}, "What you typed is not a grade"),
        ({"email": "maya"}, "What you typed is not an e-mail address"),
        ({"given_name": "x" * 201}, "at most 200 characters"),
        ({"family_name": "a\x00b"}, "Null characters are not allowed"),
    ],
)
def test_bad_input_changes_nothing(client, staff, maya, changes, message):
    log_in(client, staff.chen)
    before = Respondent.objects.values().get(), Identity.objects.values().get()
    assert message in text_of(post_form(client, maya, **changes))
    assert before == (
        Respondent.objects.values().get(),
        Identity.objects.values().get(),
    )


@pytest.mark.parametrize("login", ["dana", "state"])
def test_a_pupil_is_moved_within_the_district(client, staff, maya, login):
    log_in(client, getattr(staff, login))
    form = client.get(address_of(maya, "correct/")).context["form"]
    assert [school.name for school in form.fields["school"].queryset] == [
        "Lincoln",
        "Washington",
    ]
    refused = post_form(client, maya, school=staff.roosevelt.pk)
    assert "Select a valid choice" in text_of(refused)
    post_form(client, maya, school=staff.washington.pk)
    maya.refresh_from_db()
    assert maya.school == staff.washington


def test_coordinators_cannot_redirect_secret_codes(client, staff, administration, maya):
    log_in(client, staff.chen)
    assert "email" in client.get(address_of(maya, "correct/")).context["form"].fields
    Respondent.objects.filter(pk=maya.pk).update(started_at=timezone.now())
    assert "only your district" in text_of(client.get(address_of(maya, "correct/")))
    administration.coordinators_see_finished = False
    administration.save()
    Respondent.objects.filter(pk=maya.pk).update(started_at=None)
    post_form(client, maya, email="chen@example.org")
    assert Identity.objects.get().email == "maya@example.org"
    log_in(client, staff.dana)
    post_form(client, maya, email="new@example.org")
    assert Identity.objects.get().email == "new@example.org"


def test_a_person_is_withdrawn_and_brought_back(client, staff, maya):
    log_in(client, staff.chen)
    assert (
        address_of(maya, "withdraw/") in client.get(address_of(maya)).content.decode()
    )
    page = text_of(client.get(address_of(maya, "withdraw/")))
    assert "The next roster that lists this person brings them back" in page
    done = client.post(address_of(maya, "withdraw/"), follow=True)
    assert "This person was withdrawn." in text_of(done)
    assert "Print card" not in text_of(done)
    assert client.get(address_of(maya, "bring-back/")).status_code == 405
    back = client.post(address_of(maya, "bring-back/"), follow=True)
    assert "invited again" in text_of(back) and "Print card" in text_of(back)


@pytest.mark.parametrize("started", [False, True])
def test_withdrawing_does_not_tell_who_has_started(
    client, staff, administration, maya, started
):
    administration.coordinators_see_finished = False
    administration.save()
    if started:
        Respondent.objects.filter(pk=maya.pk).update(started_at=timezone.now())
    log_in(client, staff.chen)
    page = text_of(client.get(address_of(maya, "withdraw/")))
    assert "has not started" not in page
    assert "Answers that were saved before are kept" in page


@pytest.mark.parametrize("act", ["correct/", "withdraw/", "bring-back/"])
def test_people_of_other_schools_are_not_found(client, staff, maya, act):
    for user in (staff.sam, staff.analyst):
        log_in(client, user)
        assert client.post(address_of(maya, act)).status_code == 404
    maya.refresh_from_db()
    assert maya.withdrawn_at is None


def test_a_finished_survey_is_reopened_on_request(client, staff, administration, maya):
    log_in(client, staff.chen)
    assert "Reopen survey" not in text_of(client.get(address_of(maya)))
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(started_at=now, completed_at=now)
    assert "Reopen survey" in text_of(client.get(address_of(maya)))
    page = client.get(address_of(maya, "reopen/"))
    assert "Saved answers stay as they are" in text_of(page)
    done = client.post(address_of(maya, "reopen/"), follow=True)
    assert "open again for this person" in text_of(done)
    maya.refresh_from_db()
    assert maya.completed_at is None

    administration.coordinators_see_finished = False
    administration.save()
    Respondent.objects.filter(pk=maya.pk).update(completed_at=now)
    hidden = client.get(address_of(maya, "reopen/"))
    assert "can't be reopened" in hidden.content.decode()
    assert "Reopen survey" not in text_of(hidden)
    client.post(address_of(maya, "reopen/"))
    maya.refresh_from_db()
    assert maya.completed_at == now
