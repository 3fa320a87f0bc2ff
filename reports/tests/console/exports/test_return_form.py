"""The page with which a district gets its data back."""

from __future__ import annotations

import html
import io
import re

import pyrage
import pytest
import pyzipper
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.models import Export
from reports.tests.console.exports.test_views import download
from reports.tests.exports.conftest import answer, identify
from survey.models import Respondent

pytestmark = pytest.mark.django_db

ADDRESS = "/console/exports/return/"
PURPOSE = "Returned at the end of the agreement."


@pytest.fixture
def maya(staff, fall, enrol) -> Respondent:
    person = enrol(fall, staff.lincoln)
    identify(person, external_id="S1", family_name="Zaragoza")
    answer(person, {"safe": "2"})
    return person


@pytest.fixture
def key() -> pyrage.x25519.Identity:
    return pyrage.x25519.Identity.generate()


@pytest.fixture
def submit(client, staff, fall, maya, django_capture_on_commit_callbacks):
    """Submit the form, and run the job."""

    def submitted(user, **choices):
        log_in(client, user)
        given = {
            "administrations": [fall.pk],
            "district": staff.riverside.pk,
            "reason": PURPOSE,
            "language": "en",
            **choices,
        }
        with django_capture_on_commit_callbacks(execute=True):
            return client.post(ADDRESS, given)

    return submitted


def shown_password(page: str) -> str:
    return re.search(r"<code[^>]*>([a-z2-9-]{23})</code>", page)[1]


def test_a_password_is_shown_once_and_opens_the_archive(staff, client, submit):
    log_in(client, staff.dana)
    assert ADDRESS in client.get(reverse("export_list")).content.decode()
    assert "Return data to a district" in client.get(ADDRESS).content.decode()

    response = submit(staff.dana, encryption="password", further_formats=["sav"])
    password = shown_password(response.content.decode())
    assert "no-store" in response["Cache-Control"]
    export = Export.objects.get()
    page = client.get(reverse("export_detail", args=[export.pk])).content.decode()
    assert password not in page
    assert "the password that was shown when it was requested" in page
    assert "Data for a district, encrypted (.csv, .sav)" in page
    assert export.sealed_password == ""

    reply, body = download(client, export)
    assert reply["Content-Disposition"].endswith(f'fall-return-{export.pk}.zip"')
    with pyzipper.AESZipFile(io.BytesIO(body)) as archive:
        archive.setpassword(password.encode())
        assert PURPOSE in archive.read("README.txt").decode()


def test_each_download_is_counted_and_recorded_as_a_disclosure(
    staff, client, submit, key
):
    recipient = str(key.to_public())
    response = submit(staff.dana, encryption="key", public_key=f" {recipient}\n")
    export = Export.objects.get()
    assert response["Location"] == reverse("export_detail", args=[export.pk])
    assert export.recipient == recipient
    reply, body = download(client, export)
    assert reply["Content-Disposition"].endswith(f'fall-return-{export.pk}.zip.age"')
    assert pyrage.decrypt(body, [key]).startswith(b"PK")
    page = client.get(response["Location"]).content.decode()
    assert "The archive was downloaded once." in page and recipient in page
    download(client, export)
    page = client.get(response["Location"]).content.decode()
    assert "The archive was downloaded 2 times." in page
    entries = AuditEntry.objects.filter(action="download data for a district")
    assert entries.count() == 2
    for entry in entries:
        assert (entry.user_id, entry.district_id) == (
            staff.dana.pk,
            staff.riverside.pk,
        )
        assert entry.after["purpose"] == PURPOSE
        assert entry.after["encrypted for"] == recipient
    asked = AuditEntry.objects.get(action="ask for export with names")
    assert asked.after["encrypted for"] == recipient


def test_it_is_for_people_who_may_see_names_and_answers_of_a_district(
    staff, client, submit
):
    for user in (staff.analyst, staff.chen):
        log_in(client, user)
        assert client.get(ADDRESS).status_code == 404
        assert submit(user, encryption="password").status_code == 404
    page = submit(
        staff.dana, encryption="password", district=staff.lakeside.pk
    ).content.decode()
    assert "Select a valid choice" in page
    assert not Export.objects.exists()
    # The state may, for any district.
    shown_password(submit(staff.state, encryption="password").content.decode())
    assert Export.objects.get().places["districts"] == [staff.riverside.pk]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"encryption": "key"}, "Enter the public key of the district."),
        ({"encryption": "key", "public_key": "age1xyz"}, "This is no public key"),
        ({"encryption": "password", "reason": "short"}, "Explain in one sentence"),
        ({"encryption": "password", "reason": ""}, "This field is required."),
        ({"encryption": "password", "district": ""}, "This field is required."),
        ({"encryption": ""}, "This field is required."),
        (
            {"encryption": "password", "further_formats": ["long"]},
            "Select a valid choice",
        ),
    ],
)
def test_a_wrong_choice_is_refused_with_advice(staff, submit, given, message):
    page = html.unescape(submit(staff.dana, **given).content.decode())
    assert message in page
    assert not Export.objects.exists()


def test_a_private_key_is_refused_and_stored_nowhere(staff, submit, key):
    response = submit(staff.dana, encryption="key", public_key=str(key))
    assert "This is a private key." in response.content.decode()
    assert not Export.objects.exists()
    assert not AuditEntry.objects.filter(action__startswith="ask").exists()


def test_the_questions_of_a_district_are_not_returned_with_names(staff, fall, submit):
    type(fall).objects.filter(pk=fall.pk).update(
        module_of=fall, district=staff.riverside, coordinators_see_finished=False
    )
    page = submit(staff.dana, encryption="password").content.decode()
    assert "are answered without names" in page
    assert not Export.objects.exists()
