"""The console pages that record consents."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.models import Consent, ListedId, Respondent
from survey.people.access_codes import code_of
from survey.people.opt_outs.consents import await_consent
from survey.people.opt_outs.records import Request, opt_out
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    administration.coordinators_see_finished = True
    administration.requires_consent = True
    administration.save()
    return administration


@pytest.fixture
def people(administration, staff) -> dict[str, Respondent]:
    cast = {"00123": "Maya López", "00124": "Ali Diaz", "00125": "Zoe Kim"}
    invited = {
        key: invite(administration, staff.lincoln, key, name)
        for key, name in cast.items()
    }
    await_consent([person.pk for person in invited.values()])
    for person in invited.values():
        person.refresh_from_db()
    return invited


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def people_of(administration, action="") -> str:
    return f"/console/administrations/{administration.pk}/people/{action}"


def answers(**changes) -> dict[str, str]:
    return {
        "requested_by": "parent",
        "requested_on": timezone.localdate().isoformat(),
        "reason": "signed by Ana",
        **changes,
    }


@pytest.fixture
def upload(client, administration):
    def send(*lines, **changes):
        file = SimpleUploadedFile("forms.csv", "\n".join(lines).encode())
        address = people_of(administration, "consents/")
        return client.post(address, {"file": file, **answers(), **changes})

    return send


@pytest.fixture
def confirm(client, administration):
    def send(page, to="consents/save/"):
        data = {"checked": page.context["checked"]}
        return client.post(people_of(administration, to), data, follow=True)

    return send


def awaiting() -> set[str]:
    rows = Respondent.objects.filter(awaits_consent=True)
    return set(rows.values_list("identity__external_id", flat=True))


def test_ms_chen_records_a_consent_in_three_clicks(
    client, staff, administration, people
):
    maya = people["00123"]
    log_in(client, staff.chen)
    shown = text_of(client.get(people_of(administration), {"q": "López"}))
    assert "awaiting consent" in shown
    page = client.get(people_of(administration, f"{maya.pk}/"))
    assert "The consent for this person is missing" in text_of(page)
    assert "Print card" not in text_of(page)
    address = people_of(administration, f"{maya.pk}/consent/")
    assert address in page.content.decode()

    form = client.get(address)
    fields = form.context["form"]
    assert fields["requested_by"].value() == "parent"
    assert fields["requested_on"].value() == timezone.localdate()
    assert "School or district" not in text_of(form)
    done = text_of(client.post(address, answers(), follow=True))
    assert "The consent was recorded." in done and "Print card" in done
    assert "A parent or guardian" in done and "signed by Ana" in done
    assert "chen@example.org" in done
    assert awaiting() == {"00124", "00125"}
    assert "Ana" not in str(list(AuditEntry.objects.values()))
    repeated = text_of(client.post(address, answers(), follow=True))
    assert "does not await consent, or no longer" in repeated
    assert "does not await consent" in text_of(client.get(address))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"requested_on": ""}, "This field is required"),
        ({"requested_on": "tomorrow"}, "Enter a valid date"),
        ({"requested_by": ""}, "This field is required"),
        ({"requested_by": "school"}, "Select a valid choice"),
    ],
)
def test_bad_input_is_explained(
    client, staff, administration, people, changes, message
):
    log_in(client, staff.chen)
    address = people_of(administration, f"{people['00123'].pk}/consent/")
    assert message in text_of(client.post(address, answers(**changes)))
    later = timezone.localdate() + timedelta(days=2)
    page = client.post(address, answers(requested_on=later.isoformat()))
    assert "in the future" in text_of(page)
    assert len(awaiting()) == 3


def test_sam_reaches_nobody_of_another_district(client, staff, administration, people):
    log_in(client, staff.sam)
    address = people_of(administration, f"{people['00123'].pk}/consent/")
    assert client.get(address).status_code == 404
    assert client.post(address, answers()).status_code == 404
    assert len(awaiting()) == 3


def test_where_no_consent_is_required_there_are_no_pages(
    client, staff, administration, people
):
    type(administration).objects.update(requires_consent=False)
    log_in(client, staff.chen)
    for action in ("consents/", f"{people['00123'].pk}/consent/"):
        assert client.get(people_of(administration, action)).status_code == 404
    page = client.get(people_of(administration)).content.decode()
    assert "Upload consents" not in page


def test_a_list_is_checked_and_confirmed(
    client, staff, administration, people, upload, confirm
):
    log_in(client, staff.chen)
    opt_out(people["00125"], Request(timezone.localdate(), "parent"), by=staff.chen)
    page = upload("Student ID", "00123", "00124", "00125", "99999", "00123")
    text = text_of(page)
    assert "The consents of 2 people would be recorded" in text
    assert "1 row names a person of an earlier row" in text
    assert "1 ID is not on the roster of your schools yet" in text
    assert "00125 has opted out: take the opt-out back" in text
    assert len(awaiting()) == 2

    done = text_of(confirm(page))
    assert "The consents of 2 people were recorded." in done
    assert "1 ID was kept" in done and "99999" in done
    assert "Opt-outs and consents count as soon as a roster lists" in done
    assert "Upload consents" in done
    assert awaiting() == set()
    people["00125"].refresh_from_db()
    assert people["00125"].has_opted_out
    assert Consent.objects.count() == 2
    assert ListedId.objects.get().kind == "consent"
    repeated = text_of(upload("Student ID", "00123", "00124"))
    assert "The consents of 2 people were recorded before" in repeated


def test_a_checked_list_of_one_kind_is_not_confirmed_as_the_other(
    client, staff, administration, people, upload, confirm
):
    """Else a list of refusals could let everybody of it start."""
    log_in(client, staff.chen)
    page = upload("Student ID", "00123")
    assert "too old" in text_of(confirm(page, to="opt-outs/save/"))
    file = SimpleUploadedFile("no.csv", b"Student ID\n00123\n")
    refusals = client.post(
        people_of(administration, "opt-outs/"), {"file": file, **answers()}
    )
    assert "too old" in text_of(confirm(refusals))
    assert len(awaiting()) == 3


def test_people_who_await_consent_are_found_apart(
    client, staff, administration, people
):
    opt_out(people["00125"], Request(timezone.localdate(), "parent"), by=staff.chen)
    log_in(client, staff.chen)

    def ids_in(state):
        address = people_of(administration)
        page = client.get(address, {"school": staff.lincoln.pk, "state": state})
        return {row.identity.external_id for row in page.context["rows"]}

    assert ids_in("awaiting-consent") == {"00123", "00124"}
    assert ids_in("opted-out") == {"00125"}
    assert ids_in("withdrawn") == ids_in("invited") == set()


@pytest.mark.parametrize("number", [1, 3])
def test_a_list_costs_the_same_for_three_people(
    client, staff, people, upload, django_assert_num_queries, number
):
    log_in(client, staff.chen)
    upload("Student ID", "00123")
    with django_assert_num_queries(9):
        upload("Student ID", *list(people)[:number])


def test_cards_and_the_roster_file_leave_them_out(
    client, staff, administration, people
):
    log_in(client, staff.chen)
    maya, ali = people["00123"], people["00124"]
    client.post(people_of(administration, f"{ali.pk}/consent/"), answers())
    file = client.get(people_of(administration, "roster.csv"))
    content = file.content.decode()
    assert "00124" in content and "00123" not in content
    for action in ("code/", "reissue/", "card/"):
        address = people_of(administration, f"{maya.pk}/{action}")
        response = client.post(address, follow=True)
        assert response.redirect_chain[0][0] == people_of(administration, f"{maya.pk}/")
        assert "consent" in text_of(response), action
        assert code_of(maya) not in response.content.decode().replace("-", "")
