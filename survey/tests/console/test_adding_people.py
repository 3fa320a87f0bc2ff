"""The console page to add one person."""

from __future__ import annotations

import html
import re

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.models import Identity, Respondent
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


def text_of(response) -> str:
    text = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"\s+", " ", html.unescape(text))


@pytest.fixture
def administration(administration):
    administration.coordinators_see_finished = True
    administration.save()
    return administration


@pytest.fixture
def send(client, administration):
    """Return a function that sends the form for a school."""

    def run(school, **fields):
        address = f"/console/administrations/{administration.pk}/people/new/"
        values = {"external_id": "40313", **fields}
        return client.post(f"{address}?school={school.pk}", values, follow=True)

    return run


def form_page(client, administration, school=None):
    address = f"/console/administrations/{administration.pk}/people/new/"
    return client.get(address, {"school": school.pk} if school else {})


def test_ms_chen_adds_a_pupil_and_prints_the_card(client, staff, administration, send):
    log_in(client, staff.chen)
    people = client.get(f"/console/administrations/{administration.pk}/people/")
    assert "people/new/" in people.content.decode()
    page = form_page(client, administration)
    assert "does not list them, they are withdrawn" in text_of(page)
    done = send(
        staff.lincoln,
        given_name=" Maya ",
        family_name="López",
        grade="7th",
        classroom="7B",
        birth_date="2014-03-04",
        email="maya@example.org",
        language="es",
    )
    text = text_of(done)
    assert "This person was added." in text and "López, Maya" in text
    assert "Print card again" in text
    pupil = Identity.objects.get()
    assert (pupil.external_id, pupil.birth_date.isoformat()) == ("40313", "2014-03-04")
    person = pupil.respondent
    assert (person.grade, person.classroom, person.language) == ("07", "7B", "es")
    card = f"/console/administrations/{administration.pk}/people/{person.pk}/card/"
    assert card in done.content.decode()
    assert client.post(card).status_code == 302


def test_bad_input_adds_nobody(client, staff, send):
    cases = [
        ({"external_id": ""}, "This field is required"),
        ({"external_id": "1.2E+07"}, "was shortened by Excel"),
        ({"external_id": "EXAMPLE"}, "is the template's example"),
        ({"grade": "seventh and a half"}, "What you typed is not a grade"),
        ({"email": "maya"}, "What you typed is not an e-mail address"),
        ({"birth_date": "1850-01-01"}, "not a plausible birth date"),
        ({"language": "xx"}, "Select a valid choice"),
        ({"given_name": "a\x00b"}, "Null characters are not allowed"),
    ]
    log_in(client, staff.chen)
    for fields, message in cases:
        assert message in text_of(send(staff.lincoln, **fields))
    assert not Respondent.objects.exists()


def test_staff_have_no_grade_and_no_birth_date(client, staff, administration):
    administration.role = "teacher"
    administration.coordinators_see_finished = False
    administration.save()
    log_in(client, staff.chen)
    form = form_page(client, administration).context["form"]
    assert not {"grade", "birth_date"} & set(form.fields)
    assert form.fields["external_id"].label == "Staff ID"


def test_declared_subgroups_are_offered(client, staff, administration, send):
    administration.subgroups = {"program": ["AVID", "IB"]}
    administration.save()
    log_in(client, staff.chen)
    refused = send(staff.lincoln, **{"subgroup-program": "secret"})
    assert '<details class="folded-fields" open>' in refused.content.decode()
    assert "Select a valid choice" in text_of(refused)
    page = form_page(client, administration, staff.lincoln).content.decode()
    assert '<details class="folded-fields">' in page and "Program" in page
    send(staff.lincoln, **{"subgroup-program": "IB"})
    assert Respondent.objects.get().attributes == {"program": "IB"}


def test_a_person_on_the_roster_is_linked(client, staff, administration, send):
    maya = invite(administration, staff.lincoln, "040313", "Maya López")
    log_in(client, staff.chen)
    page = send(staff.lincoln)
    text = text_of(page)
    assert "Nobody was added" in text and "López, Maya" in text
    assert "differ in their leading zeros only" in text
    assert f"/people/{maya.pk}/" in page.content.decode()
    assert "Bring back" not in text
    assert AuditEntry.objects.get(action="look at a person").subject_id == maya.pk
    assert Respondent.objects.count() == 1


def test_a_withdrawn_person_is_brought_back_instead(
    client, staff, administration, send
):
    gone = timezone.now()
    maya = invite(administration, staff.lincoln, "40313", "Maya", withdrawn_at=gone)
    log_in(client, staff.chen)
    page = send(staff.lincoln)
    assert "Bring back" in text_of(page)
    people = f"/console/administrations/{administration.pk}/people/"
    assert f"{people}{maya.pk}/bring-back/" in page.content.decode()
    client.post(f"{people}{maya.pk}/bring-back/")
    maya.refresh_from_db()
    assert maya.withdrawn_at is None


def test_opted_out_stays_opted_out(client, staff, administration, send):
    now = timezone.now()
    invite(
        administration,
        staff.lincoln,
        "40313",
        "Maya",
        withdrawn_at=now,
        opted_out_at=now,
    )
    log_in(client, staff.chen)
    text = text_of(send(staff.lincoln))
    assert "The opt-out stays" in text and "Bring back" not in text


def test_people_of_other_schools_are_not_shown(client, staff, administration, send):
    leo = invite(administration, staff.washington, "40313", "Leo Sand")
    log_in(client, staff.chen)
    page = send(staff.lincoln)
    assert "is on another school's roster" in text_of(page)
    assert "Sand" not in text_of(page)
    assert f"/people/{leo.pk}/" not in page.content.decode()
    # Whoever may see them is told.
    log_in(client, staff.dana)
    assert "Sand" in text_of(send(staff.lincoln))


def test_the_school_is_one_of_the_users_and_takes_part(
    client, staff, administration, send
):
    log_in(client, staff.chen)
    assert send(staff.washington).status_code == 404
    assert send(staff.roosevelt).status_code == 404
    log_in(client, staff.dana)
    administration.schools.set([staff.washington])
    assert "not one of this survey round's schools" in text_of(send(staff.lincoln))
    schools = text_of(form_page(client, administration))
    assert "Washington" in schools and "Lincoln" not in schools
    send(staff.washington)
    assert Respondent.objects.get().school == staff.washington


def test_the_page_costs_a_fixed_number_of_statements(
    client, staff, administration, send, django_assert_num_queries
):
    log_in(client, staff.chen)
    form_page(client, administration)
    with django_assert_num_queries(8):
        form_page(client, administration)
