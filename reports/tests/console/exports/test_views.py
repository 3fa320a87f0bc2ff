from __future__ import annotations

import hashlib
import io
import json
import re
from datetime import timedelta
from zipfile import ZipFile

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, Membership, School
from accounts.staff import dismiss
from accounts.tests.logging_in import log_in
from reports.console.exports import forms
from reports.models import Export
from reports.tests.exports.conftest import (
    FIRST,
    answer,
    answer_all,
    made,
    opened,
    published,
    requested,
    respondent_of,
    with_release,
)
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey
from survey.models import Respondent, Role
from survey.tests.workbooks import form, read
from survey.work.files import path_of

pytestmark = pytest.mark.django_db

REASON = "Consent has to be checked, by order of the board."


@pytest.fixture
def people(staff, fall) -> list[Respondent]:
    respondents = Respondent.objects.bulk_create(
        respondent_of(fall, school, completed_at=timezone.now() if n else None)
        for school in (staff.lincoln, staff.washington, staff.roosevelt)
        for n in range(2)
    )
    answer_all(
        fall,
        ((respondent, {"safe": "1", "comment": "fine"}) for respondent in respondents),
    )
    return respondents


@pytest.fixture
def submit(client, django_capture_on_commit_callbacks):
    """Submit the form and run the job; first make releases, if it needs them."""

    def submitted(user, *administrations, **choices):
        if "identities" not in choices:
            with_release(*administrations)
        log_in(client, user)
        given = {"format": "wide", "language": "en", **choices}
        given["administrations"] = [
            administration.pk for administration in administrations
        ]
        with django_capture_on_commit_callbacks(execute=True):
            return client.post(reverse("export_new"), given)

    return submitted


def download(client: Client, export: Export, route: str = "export_download"):
    response = client.get(reverse(route, args=[export.pk]))
    body = b"".join(response.streaming_content) if response.streaming else b""
    return response, body


def test_an_export_is_requested_made_and_downloaded(
    staff, fall, people, submit, client
):
    response = submit(staff.analyst, fall)

    export = Export.objects.get()
    assert response["Location"] == reverse("export_detail", args=[export.pk])
    page = client.get(response["Location"]).content.decode()
    assert "Download the file" in page
    assert export.sha256 in page
    response, body = download(client, export)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert f'filename="fall-wide-{export.pk}.csv"' in response["Content-Disposition"]
    assert hashlib.sha256(body).hexdigest() == export.sha256
    # A header, and the four people of Riverside.
    assert body.count(b"\r\n") == 5
    assert b"roosevelt" not in body
    done = AuditEntry.objects.filter(kind="reports.export").order_by("pk")
    assert [entry.action for entry in done] == [
        "ask for export",
        "make export",
        "download export",
    ]
    assert {entry.district_id for entry in done} == {staff.riverside.pk}
    codebook = download(client, export, "export_codebook")[1].decode()
    assert "I am safe." in codebook
    assert "Estoy a salvo." in codebook
    response, body = download(client, export, "export_codebook_table")
    assert f"fall-wide-{export.pk}-codebook.csv" in response["Content-Disposition"]
    assert "Estoy a salvo." in body.decode()


@pytest.mark.parametrize("kind", ["wide", "long", "xlsx"])
def test_each_format_can_be_requested(staff, fall, people, submit, kind):
    submit(staff.dana, fall, format=kind, labels="1", language="es", bom="on")
    export = Export.objects.get()
    assert (export.file_name[-4:], export.bom) == (
        {"xlsx": "xlsx"}.get(kind, ".csv"),
        kind != "xlsx",
    )
    assert export.labels


@pytest.mark.parametrize("kind", ["sav", "zsav", "dta", "parquet"])
def test_typed_files_and_their_documents_can_be_downloaded(
    client, staff, fall, people, submit, kind
):
    response = submit(staff.dana, fall, format=kind, labels="1", language="es")
    export = Export.objects.get()
    # Codes, with labels beside them.
    assert (export.labels, export.language) == (False, "es")
    assert "codes with labels (" in client.get(response["Location"]).text
    response, body = download(client, export)
    assert (
        f'filename="fall-{kind}-{export.pk}.{kind}"' in response["Content-Disposition"]
    )
    assert hashlib.sha256(body).hexdigest() == export.sha256
    response, body = download(client, export, "export_documents")
    assert f"fall-{kind}-{export.pk}-documents.zip" in response["Content-Disposition"]
    with ZipFile(io.BytesIO(body)) as archive:
        package = json.loads(archive.read("datapackage.json"))
    assert package["resources"][0]["hash"] == f"sha256:{export.sha256}"
    codebook = download(client, export, "export_codebook")[1].decode()
    assert "Texts are complete" in codebook


def test_filters_apply_to_the_file(staff, fall, people, submit):
    submit(staff.state, fall, district=staff.riverside.pk, finished_only="1")
    submit(
        staff.state,
        fall,
        district=staff.riverside.pk,
        school=staff.lincoln.pk,
        role="student",
    )
    first_export, second_export = Export.objects.order_by("pk")
    assert (first_export.rows, second_export.rows) == (2, 2)
    assert first_export.places == {
        "state": False,
        "districts": [staff.riverside.pk],
        "schools": [],
    }
    assert second_export.places["schools"] == [staff.lincoln.pk]


def test_a_reason_that_names_require_is_not_called_optional(staff, fall, client):
    log_in(client, staff.dana)
    page = client.get(reverse("export_new")).content.decode()
    assert ">Reason for including names</label>" in page
    assert 'Language of labels <span class="optional">' in page


def test_names_need_a_reason_that_is_logged(staff, fall, people, submit, client):
    response = submit(staff.dana, fall, identities="on", reason="hm")
    assert "Explain in one sentence why" in response.content.decode()
    assert not Export.objects.exists()

    submit(staff.dana, fall, identities="on", reason=REASON)
    export = Export.objects.get()
    assert (export.identities, export.reason) == (True, REASON)
    entry = AuditEntry.objects.get(action="ask for export with names")
    assert entry.after["reason"] == REASON


def test_analysts_are_not_offered_names(staff, fall, people, submit, client):
    log_in(client, staff.analyst)
    assert "identities" not in client.get(reverse("export_new")).content.decode()
    with_release(fall)
    submit(staff.analyst, fall, identities="on", reason=REASON)
    assert not Export.objects.get().identities


def test_names_need_permission_for_every_place(staff, fall, people, submit):
    """Dana is administrator of one district and analyst of another."""
    Membership.objects.create(
        user=staff.dana, role=Membership.Role.ANALYST, district=staff.lakeside
    )
    response = submit(staff.dana, fall, identities="on", reason=REASON)
    assert "You may not see the names of everyone" in response.content.decode()
    response = submit(
        staff.dana, fall, identities="on", reason=REASON, district=staff.lakeside.pk
    )
    assert response.status_code == 200
    submit(
        staff.dana, fall, identities="on", reason=REASON, district=staff.riverside.pk
    )
    assert Export.objects.get().rows == 4


def test_schools_of_other_districts_cannot_be_chosen(staff, fall, people, submit):
    for place in ({"school": staff.roosevelt.pk}, {"district": staff.lakeside.pk}):
        submit(staff.dana, fall, **place)
    for export in Export.objects.all():
        assert export.rows == 4
        assert export.places["districts"] == [staff.riverside.pk]
    response = submit(staff.state, fall, school=staff.roosevelt.pk)
    assert "Select a valid choice" in response.content.decode()


def test_different_surveys_cannot_be_combined(staff, fall, people, submit):
    about = [["form_id", "version", "default_language"], ["other", "1", "en"]]
    rows = [["type", "name", "label"], ["text", "safe", "Something else?"]]
    content = form(rows, [], about)
    other_survey = publish_survey(
        survey=import_survey(
            draft=read(rows, [], about).draft, source_name="x", source=content
        )
    )
    response = submit(staff.state, fall, opened(other_survey, "other"))
    assert "These are different surveys" in response.content.decode()
    assert not Export.objects.exists()


def test_surveys_of_different_owners_cannot_be_combined(staff, fall, people, submit):
    other_district = opened(published(FIRST, "1", staff.riverside), "other")
    response = submit(staff.state, fall, other_district)
    assert "climate of Riverside, climate of the state" in response.content.decode()


def test_an_invalid_form_keeps_its_input(staff, fall, people, submit):
    page = submit(staff.dana, reason=REASON, format="nonsense").content.decode()
    assert "Choose at least one survey round." in page
    assert REASON in page
    page = submit(staff.dana, fall, role="teacher").content.decode()
    assert "None of the chosen survey rounds has this audience." in page


def test_the_form_refuses_an_export_too_large_for_excel(
    staff, fall, people, submit, monkeypatch
):
    monkeypatch.setattr(forms, "MOST_ROWS", 4)
    page = submit(staff.dana, fall, format="xlsx").content.decode()
    assert "Choose CSV" in page
    assert not Export.objects.exists()


def test_without_a_release_the_form_says_what_to_wait_for(staff, fall, people, client):
    log_in(client, staff.state)
    given = {"administrations": fall.pk, "format": "wide", "language": "en"}
    wait = "wait until the survey round has closed and its answers are counted"
    page = client.post(reverse("export_new"), given).content.decode()
    assert wait in page
    for some in (given, {"administrations": fall.pk}):
        page = client.get(reverse("export_new"), some, headers={"HX-Request": "true"})
        assert wait in page.content.decode()
    assert not Export.objects.exists()


def test_the_form_shows_the_size_of_the_export(staff, fall, people, client):
    with_release(fall)
    log_in(client, staff.state)
    response = client.get(
        reverse("export_new"),
        {"administrations": fall.pk, "district": staff.riverside.pk},
        headers={"HX-Request": "true"},
    )
    page = response.content.decode()
    assert "4 respondents" in page
    assert "at most 44 responses" in page
    # Together with the schools of the chosen district.
    assert "Washington" in page
    assert "Roosevelt" not in page
    nothing = client.get(
        reverse("export_new"), {"format": "x"}, headers={"HX-Request": "true"}
    )
    assert "Choose a survey round to see the size" in nothing.content.decode()


def test_permission_is_checked_at_each_download(staff, fall, people, client):
    export = made(staff.dana, fall, places={"districts": [staff.riverside.pk]})
    log_in(client, staff.dana)
    assert download(client, export)[0].status_code == 200
    Membership.objects.create(
        user=staff.dana, role=Membership.Role.ANALYST, district=staff.lakeside
    )
    dismiss(
        membership=staff.dana.memberships.get(district=staff.riverside), by=staff.state
    )
    # Ending a role ends the session.
    staff.dana.refresh_from_db()
    log_in(client, staff.dana)
    routes = ("export_download", "export_codebook", "export_codebook_table")
    for route in (*routes, "export_documents"):
        assert download(client, export, route)[0].status_code == 404
    page = client.get(reverse("export_detail", args=[export.pk])).content.decode()
    assert "you can no longer download it" in page
    assert "Download the file" not in page


def test_names_need_that_permission_at_download(staff, fall, people, client):
    export = made(
        staff.dana,
        fall,
        places={"districts": [staff.riverside.pk]},
        identities=True,
        reason=REASON,
    )
    log_in(client, staff.dana)
    assert download(client, export)[0].status_code == 200
    staff.dana.memberships.update(role=Membership.Role.ANALYST)
    assert download(client, export)[0].status_code == 404


def test_other_users_cannot_download_the_file(staff, fall, people, client):
    export = made(staff.dana, fall, places={"districts": [staff.riverside.pk]})
    assert export.file_name
    routes = ["export_detail", "export_download", "export_codebook"]
    routes += ["export_codebook_table", "export_documents"]
    for user in (staff.analyst, staff.chen, staff.sam):
        log_in(client, user)
        for route in routes:
            assert client.get(reverse(route, args=[export.pk])).status_code == 404
        response = client.post(reverse("export_delete", args=[export.pk]))
        assert response.status_code == 404
    assert path_of(export.file_name).exists()
    # State administrators see the record, but cannot download the file.
    log_in(client, staff.state)
    page = client.get(reverse("export_detail", args=[export.pk])).content.decode()
    assert "Only dana@example.org can download the file" in page
    for route in routes[1:]:
        assert client.get(reverse(route, args=[export.pk])).status_code == 404


def test_coordinators_find_no_exports(staff, fall, people, client):
    log_in(client, staff.chen)
    for route in ("export_list", "export_new"):
        assert client.get(reverse(route)).status_code == 404
    assert client.post(reverse("export_new"), {}).status_code == 404


def test_only_state_administrators_see_exports_of_others(staff, fall, client):
    mine = requested(staff.dana, fall)
    foreign = requested(staff.state, fall, format="xlsx")
    log_in(client, staff.dana)
    page = client.get(reverse("export_list"), {"whose": "all"}).content.decode()
    assert f"Export {mine.pk}<" in page
    assert f"Export {foreign.pk}<" not in page
    log_in(client, staff.state)
    page = client.get(reverse("export_list")).content.decode()
    assert f"Export {mine.pk}<" not in page
    page = client.get(reverse("export_list"), {"whose": "all"}).content.decode()
    assert f"Export {mine.pk}<" in page


def test_an_export_with_two_matches_is_listed_once(staff, fall, spring, client):
    mine = requested(staff.dana, fall, spring)
    log_in(client, staff.dana)
    for words in ("l", "fall spr", "our school", "dana", str(mine.pk)):
        page = client.get(reverse("export_list"), {"q": words}).content.decode()
        assert re.search(r"1 of 1\s*</p>", page)


def test_the_list_needs_as_many_queries_for_three_exports(
    staff, fall, spring, client, django_assert_num_queries
):
    log_in(client, staff.dana)
    for count in (1, 3):
        while Export.objects.count() < count:
            requested(staff.dana, fall, spring)
        with django_assert_num_queries(6):
            page = client.get(reverse("export_list")).content.decode()
        for name in ("fall", "spring"):
            assert page.count(f'<span class="hint">{name}</span>') == count
        assert "waiting" in page


def test_the_form_needs_as_many_queries_for_three_administrations(
    staff, fall, client, django_assert_num_queries
):
    log_in(client, staff.dana)
    for names in ([], ["two", "three"]):
        for name in names:
            opened(fall.published, name)
        with django_assert_num_queries(7):
            client.get(reverse("export_new"))


def test_number_of_queries_of_the_detail_page(
    staff, fall, spring, people, client, django_assert_num_queries
):
    export = made(staff.dana, fall, spring, places={"districts": [staff.riverside.pk]})
    log_in(client, staff.dana)
    with django_assert_num_queries(5):
        client.get(reverse("export_detail", args=[export.pk]))


def test_empty_pages_say_what_to_do(staff, client):
    log_in(client, staff.dana)
    assert (
        "You have no exports yet."
        in client.get(reverse("export_list")).content.decode()
    )
    assert (
        "There is nothing to export yet."
        in client.get(reverse("export_new")).content.decode()
    )
    page = client.get(reverse("export_list"), {"q": "'\x00\"%"}).content.decode()
    assert "No exports match." in page


def test_the_owner_can_delete_the_file(staff, fall, people, client):
    export = made(staff.dana, fall, places={"districts": [staff.riverside.pk]})
    log_in(client, staff.dana)
    assert client.get(reverse("export_delete", args=[export.pk])).status_code == 405
    response = client.post(reverse("export_delete", args=[export.pk]), follow=True)
    assert "File deleted." in response.content.decode()
    assert not path_of(export.file_name).exists()
    assert download(client, export)[0].status_code == 404
    assert AuditEntry.objects.filter(action="delete export", by="dana@example.org")


def test_an_expired_file_cannot_be_downloaded(staff, fall, people, client):
    export = made(staff.dana, fall, places={"districts": [staff.riverside.pk]})
    log_in(client, staff.dana)
    past = timezone.now() - timedelta(seconds=1)
    Export.objects.filter(pk=export.pk).update(expires_at=past)
    assert download(client, export)[0].status_code == 404


def test_surveys_of_teachers_and_students_can_be_combined(
    staff, fall, people, submit, enrol
):
    teachers = opened(fall.published, "teachers", Role.TEACHER)
    answer(enrol(teachers, staff.lincoln), {"safe": "2"})
    submit(staff.dana, fall, teachers)
    submit(staff.dana, fall, teachers, role="teacher")
    both, alone = Export.objects.order_by("pk")
    assert (both.rows, alone.rows) == (5, 1)


def test_headers_that_look_like_formulas_are_escaped(
    staff, fall, people, submit, client
):
    Respondent.objects.filter(pk=people[0].pk).update(attributes={"=grade": "+x"})
    School.objects.filter(pk=staff.lincoln.pk).update(name="@Lincoln")
    submit(staff.dana, fall)
    _, body = download(client, Export.objects.get())
    assert b",'=grade," in body.split(b"\r\n")[0]
    assert b",'+x," in body
    assert b",'@Lincoln," in body


def test_the_administration_in_the_address_is_preselected(staff, fall, client):
    log_in(client, staff.dana)
    address = reverse("export_new")
    box = f'name="administrations" value="{fall.pk}"'

    def is_ticked(query):
        page = client.get(address + query).content.decode()
        return "checked" in page.split(box)[1].split(">")[0]

    assert is_ticked(f"?administrations={fall.pk}")
    assert not is_ticked("") and not is_ticked("?administrations=zebra")


@pytest.mark.sqlite
@pytest.mark.parametrize("field", ["administrations", "district", "school"])
def test_a_number_too_long_for_a_key_is_refused_by_the_form(staff, fall, client, field):
    log_in(client, staff.state)
    address, given = reverse("export_new"), {"format": "wide", "language": "en"}
    for digits in (18, 19, 20, 400):
        given |= {"administrations": [fall.pk], field: ["9" * digits]}
        page = client.post(address, given).content.decode()
        assert "Select a valid choice" in page
        assert not Export.objects.exists()
        # Also while the form is filled in, and in the link of another page.
        for headers in ({"HX-Request": "true"}, {}):
            assert client.get(address, given, headers=headers).status_code == 200


def test_types_whose_missing_answers_are_blank_can_be_chosen(
    staff, fall, people, submit, client
):
    response = submit(staff.dana, fall, blank_missing=["date", "text"])
    export = Export.objects.get()
    assert export.blank_missing == ["date", "text"]
    page = client.get(response["Location"]).content.decode()
    assert "Blank in columns of dates and times, text" in page
    page = submit(staff.dana, fall, blank_missing=["zebra"]).content.decode()
    assert "Select a valid choice" in page


def test_an_older_export_has_no_codebook_table(staff, fall, people, client):
    export = made(staff.dana, fall, places={"districts": [staff.riverside.pk]})
    Export.objects.update(codebook_table_name="")
    log_in(client, staff.dana)
    page = client.get(reverse("export_detail", args=[export.pk])).content.decode()
    assert "Download the codebook" in page
    assert "Codebook as CSV" not in page
    assert download(client, export, "export_codebook_table")[0].status_code == 404
