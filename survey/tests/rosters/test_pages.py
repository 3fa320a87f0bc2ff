"""Show the roster pages of the console to the right people."""

from __future__ import annotations

import io

import openpyxl
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import AuditEntry
from survey.console.rosters import forms
from survey.models import RosterUpload
from survey.tests.rosters.roster_console import (
    ALI,
    BAD,
    HEADER,
    MAYA,
    ZOE,
    counts,
    errors_of,
    reasons,
)
from survey.tests.workbooks import workbook

pytestmark = pytest.mark.django_db


PAGES = ("", "rejected/", "rejected.csv")

ACTIONS = ("confirm/", "cancel/", "again/")


def test_other_districts_cannot_see_an_upload(staff, administration, console_of):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    assert (
        console_of(staff.chen).get(f"/console/rosters/{upload.pk}/").status_code == 200
    )
    assert (
        console_of(staff.dana).get(f"/console/rosters/{upload.pk}/").status_code == 200
    )
    for user in (staff.sam, staff.analyst):
        guest = console_of(user)
        for page in PAGES:
            assert guest.get(f"/console/rosters/{upload.pk}/{page}").status_code == 404
        for act in ACTIONS:
            address = f"/console/rosters/{upload.pk}/{act}"
            assert guest.post(address, seen=0).status_code == 404
    assert b"roster.csv" in console_of(staff.chen).get("/console/rosters/").content
    assert b"roster.csv" not in console_of(staff.sam).get("/console/rosters/").content
    upload.refresh_from_db()
    assert upload.state == "checked"


def test_the_page_names_the_system_of_a_recognised_file(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    header = "Student_Number,First_Name,Last_Name,Grade_Level,SchoolID,Enroll_Status"
    upload = dana.upload(administration, header, "00123,Maya,Lopez,7,lincoln,0")
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "PowerSchool student export, recognized by the headers." in page


def test_analysts_cannot_upload_rosters(staff, administration, console_of):
    address = f"/console/administrations/{administration.pk}/roster/"
    analyst = console_of(staff.analyst)
    for page in ("", "template.csv", "template.xlsx"):
        assert analyst.get(address + page).status_code == 404
    assert analyst.post(address).status_code == 404
    assert analyst.get("/console/rosters/").status_code == 404


def test_an_administration_of_another_district_is_not_found(
    staff, administration, console_of
):
    administration.district = staff.lakeside
    administration.save(update_fields=["district"])
    address = f"/console/administrations/{administration.pk}/roster/"
    assert console_of(staff.sam).get(address).status_code == 200
    assert console_of(staff.chen).get(address).status_code == 404


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.docm", b"Maya", "Only CSV and Excel files"),
        ("r.ods", b"PK\x03\x04", "Only CSV and Excel files"),
        ("r.csv", b"", "empty"),
        ("r.csv", b"Maya,Lopez\n", "names the columns"),
        ("r.xlsx", b"PK\x03\x04 and no more", "damaged"),
    ],
)
def test_unreadable_files_are_reported_beside_the_field(
    staff, administration, console_of, name, content, message
):
    response = console_of(staff.chen).post(
        f"/console/administrations/{administration.pk}/roster/",
        file=SimpleUploadedFile(name, content),
        complete_for="changes",
    )
    assert message in str(errors_of(response)["file"])
    assert b'value="changes" ' in response.content
    assert not RosterUpload.objects.exists()


def test_new_schools_are_shown_before_they_are_added(staff, administration, console_of):
    """A misspelt name would create a school."""
    dana = console_of(staff.dana)
    misspelt = MAYA.replace("lincoln", "lincon")
    upload = dana.upload(administration, HEADER, misspelt, ALI)
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "creates 1 school" in page
    assert "1 school to check" in page
    assert "Did you mean Lincoln (Riverside)?" in page

    upload = dana.upload(administration, HEADER, MAYA, ALI)
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "new school" not in page and "to check" not in page


def test_new_districts_are_shown_before_they_are_added(
    staff, administration, console_of
):
    state = console_of(staff.state)
    misspelt = MAYA.replace("riverside", "rivreside")
    upload = state.upload(administration, HEADER, misspelt, ALI)
    page = state.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "1 new district will be added" in page
    assert (
        "<strong>rivreside</strong> (new). Did you mean <strong>Riverside</strong>?"
        in page
    )


def test_rejected_cells_are_listed_and_viewing_them_is_logged(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, *BAD)
    page = chen.get(f"/console/rosters/{upload.pk}/rejected/").content.decode()
    assert "student ID" in page and "is missing" in page
    assert "=1+1" not in page
    assert [reason[:2] for reason in reasons(upload)] == [
        (2, "student ID"), (3, "grade"), (4, "grade"),
    ]  # fmt: skip
    looks = AuditEntry.objects.filter(action="see rejected rows")
    assert looks.get().subject_id == upload.pk


def test_the_template_is_a_valid_roster_but_its_example_is_rejected(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    address = f"/console/administrations/{administration.pk}/roster/template"
    for ending in ("csv", "xlsx"):
        content = chen.get(f"{address}.{ending}").content
        upload = chen.upload(administration, content=content, name=f"t.{ending}")
        assert counts(upload) == {"rejected": 1}
        assert "the template's example" in reasons(upload)[0][2]
    book = openpyxl.load_workbook(io.BytesIO(content))
    book.active["C2"] = "00123"
    file = io.BytesIO()
    book.save(file)
    upload = chen.upload(administration, content=file.getvalue(), name="t.xlsx")
    assert counts(upload) == {"added": 1}


def test_the_template_names_a_school_of_the_user(staff, administration, console_of):
    for user, school in ((staff.dana, "riverside,lincoln"), (staff.sam, "lakeside,")):
        content = console_of(user).get(
            f"/console/administrations/{administration.pk}/roster/template.csv"
        )
        example = content.content.decode("utf-8-sig").splitlines()[1]
        assert example.startswith(school)


def test_lists_take_the_same_queries_for_three_rows_as_for_one(
    staff, administration, console_of, django_assert_num_queries
):
    dana = console_of(staff.dana)

    def pages(upload, rows):
        with django_assert_num_queries(6):
            response = dana.get("/console/rosters/")
        assert len(response.context["rows"]) == rows
        with django_assert_num_queries(7):
            response = dana.get(f"/console/rosters/{upload.pk}/")
        assert len(response.context["rows"]) == rows
        with django_assert_num_queries(7):
            response = dana.get(f"/console/rosters/{upload.pk}/rejected/")
        assert len(response.context["rows"]) == rows

    pages(dana.upload(administration, HEADER, MAYA, BAD[1]), 1)
    dana.upload(administration, HEADER, MAYA)
    adams = ALI.replace("lincoln", "adams")
    pages(dana.upload(administration, HEADER, MAYA, ZOE, adams, *BAD), 3)


def test_the_school_table_can_be_searched_and_sorted(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ALI, ZOE)
    page = dana.get(f"/console/rosters/{upload.pk}/", q="washing").content.decode()
    assert "Washington" in page and '<th scope="row">Lincoln' not in page
    rows = dana.get(f"/console/rosters/{upload.pk}/", sort="-added").context["rows"]
    assert [row.name for row in rows] == ["Lincoln", "Washington"]
    part = dana.client.get(
        f"/console/rosters/{upload.pk}/", headers={"HX-Request": "true"}
    ).content.decode()
    assert "Washington" in part and "<html" not in part and "Confirm roster" not in part


def test_a_workbook_that_is_large_when_unpacked_is_left_to_a_worker(
    staff, administration, console_of, monkeypatch
):
    """A small file may take minutes to read, and no request may wait for that."""
    content = workbook({"people": [HEADER.split(","), MAYA.split(",")]})
    opened = []
    monkeypatch.setattr(forms, "open_roster_file", lambda *_, **__: opened.append(1))
    monkeypatch.setattr(forms, "UNPACKED_AT_ONCE", 1000)
    upload = console_of(staff.dana).upload(
        administration, content=content, name="people.xlsx"
    )
    assert counts(upload) == {"added": 1}
    assert not opened


STAFF = [
    f"riverside,lincoln,{number},Ann,Ortiz,,,{role}"
    for number, role in enumerate(("parent", "teacher", "teacher"))
]


def test_a_file_of_other_roles_offers_nothing_to_apply(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, f"{HEADER},role", *STAFF)
    assert (upload.state, counts(upload)) == ("checked", {})
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "Nobody in this file has the role of this survey round" in page
    assert "which is for students" in page and "Teacher: 2 rows" in page
    assert "Apply roster" not in page and "/confirm/" not in page
    assert "<h2>Schools</h2>" not in page
    refused = dana.client.post(
        f"/console/rosters/{upload.pk}/confirm/", {"seen": "0"}, follow=True
    )
    assert "There is nothing to apply: nobody in this file" in refused.content.decode()
    upload.refresh_from_db()
    assert upload.state == "checked"
    assert not AuditEntry.objects.filter(action="confirm roster").exists()
    dana.post(f"/console/rosters/{upload.pk}/cancel/")
    upload.refresh_from_db()
    assert upload.state == "cancelled"

    mixed = dana.upload(administration, f"{HEADER},role", f"{MAYA},student", *STAFF)
    page = dana.get(f"/console/rosters/{mixed.pk}/").content.decode()
    assert "Apply roster" in page and "Nobody in this file" not in page


def test_a_file_of_other_roles_can_still_withdraw_everybody(
    staff, administration, console_of
):
    """Where somebody has asked for it, the number has to be typed."""
    state = console_of(staff.state)
    state.apply(administration, HEADER, MAYA)
    upload = state.upload(
        administration, f"{HEADER},role", *STAFF, complete_for="state"
    )
    assert counts(upload) == {"withdrawn": 1}
    page = state.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "Apply roster and withdraw 1" in page


def test_a_file_without_rows_is_not_offered_to_apply(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, "")
    page = dana.get(f"/console/rosters/{upload.pk}/")
    assert "No rows to read" in page.text and "Apply roster" not in page.text
    # No tile says 0, and no sentence says that everything stays.
    assert page.context["totals"] == []


def test_corrected_rows_come_after_the_first_roster(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, *BAD)
    link = f"/console/administrations/{administration.pk}/roster/?corrects={upload.pk}"
    assert link in dana.get(f"/console/rosters/{upload.pk}/rejected/").text
    waiting = "is still waiting to be applied. Apply it first"
    shown = dana.get(link).text
    assert waiting in shown and f'href="/console/rosters/{upload.pk}/"' in shown
    # Nobody else learns of it, and an applied roster does not wait.
    assert waiting not in console_of(staff.chen).get(link).text
    dana.confirm(upload)
    assert waiting not in dana.get(link).text
