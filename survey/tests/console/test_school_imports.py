"""Lists of schools come in through the console: checked, confirmed, applied."""

from __future__ import annotations

import csv
import io

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from accounts.models import AuditEntry, School, SchoolListing
from accounts.tests.logging_in import log_in
from survey.console.schools.views import SchoolFileForm
from survey.models import Job, SchoolImport
from survey.people.schools import uploads
from survey.tests.spreadsheets.hostile_files import LAUGHS, with_entities
from survey.tests.workbooks import workbook
from survey.work import jobs

pytestmark = pytest.mark.django_db
UPLOAD = "/console/schools/import/"
LISTED = with_entities(workbook({"Schools": [["NAME", "LAT", "LON"]]}), LAUGHS)
HEADER = "LEAID,NCESSCH,NAME,STREET,CITY,STATE,ZIP,LAT,LON,PHONE\n"


@pytest.fixture
def state(staff, client, settings):
    # A worker runs the jobs: here `work`.
    settings.JOBS_BY_MESSAGE = False
    return log_in(client, staff.state)


def row_of(school, **cells):
    values = {
        "street": "1 Main St",
        "city": "Springfield",
        "state": "IL",
        "zip": "62701",
        "lat": "39.8",
        "lon": "-89.65",
        "phone": "217 555 0134",
    } | cells
    return ",".join([school.district.code, school.code, school.name, *values.values()])


def send(client, text, name="schools.csv", **fields):
    file = SimpleUploadedFile(name, text if isinstance(text, bytes) else text.encode())
    return client.post(UPLOAD, {"file": file, **fields}, follow=True)


def work():
    for pk in list(jobs.runnable_jobs().values_list("pk", flat=True)):
        assert jobs.run(pk)


def address(name):
    return reverse(name, args=[SchoolImport.objects.get().pk])


def test_a_list_is_checked_confirmed_and_shown_in_public(state, staff):
    rows = [row_of(staff.lincoln), row_of(staff.roosevelt, lat="95")]
    page = send(state, HEADER + "\n".join(rows))
    assert "Nothing changes until you confirm" in page.text
    work()
    checked = state.get(address("school_import")).text
    assert "Import 1 school<" in checked
    # The rejected row, by line and column.
    assert "LAT" in checked and "is not between -90 and 90" in checked
    assert SchoolListing.objects.get(school=staff.lincoln).city == ""

    state.post(address("school_import_confirm"))
    work()
    assert "These schools were imported" in state.get(address("school_import")).text
    listing = SchoolListing.objects.get(school=staff.lincoln)
    assert (listing.city, listing.latitude) == ("Springfield", 39.8)
    assert listing.contact_phone == "217 555 0134"
    assert SchoolListing.objects.get(school=staff.roosevelt).latitude is None
    assert "Lincoln" in state.get("/schools/?q=springfield").text
    # The file is not kept.
    assert SchoolImport.objects.get().content is None
    entry = AuditEntry.objects.get(action="import schools")
    assert (entry.by, entry.after["changed"]) == (staff.state.email, 1)
    # Both jobs may run again.
    for job in Job.objects.all():
        uploads.apply_schools(job, jobs.Progress(job))
    assert AuditEntry.objects.filter(action="import schools").count() == 1


def test_rejected_cells_are_downloaded_without_formulas(state, staff):
    send(state, HEADER + row_of(staff.lincoln, lat="=1+1"))
    work()
    reply = state.get(address("school_import_rejected"))
    rows = list(csv.reader(io.StringIO(reply.content.decode("utf-8-sig"))))
    assert rows == [
        ["row", "column", "reason", "text"],
        ["2", "LAT", "is not a number", "'=1+1"],
    ]
    # Nothing is left to import.
    assert (
        "No row of this file changes anything"
        in state.get(address("school_import")).text
    )
    assert state.post(address("school_import_confirm")).status_code == 409


def test_schools_are_added_only_if_that_was_chosen(state, staff):
    known = School.objects.count()
    row = "1700001,170000100001,Carver,1 A St,Peoria,IL,61602,40.6,-89.5,\n"
    send(state, HEADER + row)
    work()
    assert "is not a school here" in state.get(address("school_import")).text
    SchoolImport.objects.all().delete()
    send(state, HEADER + row, create="on")
    work()
    state.post(address("school_import_confirm"))
    work()
    assert School.objects.count() == known + 1


def test_a_workbook_is_read_like_a_text(state, staff):
    cells = [line.split(",") for line in (HEADER + row_of(staff.lincoln)).split("\n")]
    send(state, workbook({"Schools": cells}), name="schools.xlsx")
    work()
    assert "Import 1 school<" in state.get(address("school_import")).text


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"a,b\n1,2\n", "schools.csv", "names the columns"),
        (b"\x00\x01\x02", "schools.csv", "cannot be read"),
        (LISTED, "schools.xlsx", "document type"),
    ],
)
def test_a_file_that_is_no_list_of_schools_is_refused(state, content, name, message):
    send(state, content, name)
    work()
    upload = SchoolImport.objects.get()
    assert upload.state == "refused" and message in upload.message
    assert "Nothing was imported" in state.get(address("school_import")).text


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"x", "schools.pdf", "Only CSV and Excel files"),
        (b"", "schools.csv", "The submitted file is empty"),
        (b"x" * 101, "schools.csv", "larger than 30 MB"),
    ],
)
def test_a_wrong_file_is_refused_at_once(state, monkeypatch, content, name, message):
    monkeypatch.setattr(SchoolFileForm.base_fields["file"], "largest", 100)
    assert message in send(state, content, name).text
    assert not SchoolImport.objects.exists()


def test_a_cancelled_or_confirmed_import_cannot_be_confirmed_again(state, staff):
    send(state, HEADER + row_of(staff.lincoln))
    work()
    upload = SchoolImport.objects.get()
    state.post(address("school_import_cancel"))
    assert state.post(address("school_import_confirm")).status_code == 409
    with pytest.raises(ValidationError):
        uploads.confirm_schools(upload=upload, by=staff.state)
    upload.refresh_from_db()
    assert (upload.state, upload.content) == ("cancelled", None)
    assert Job.objects.count() == 1


def test_only_administrators_of_the_state_import_schools(state, staff, client):
    send(state, HEADER + row_of(staff.lincoln))
    work()
    paths = [UPLOAD, address("school_import"), address("school_import_rejected")]
    for user in (staff.dana, staff.chen):
        log_in(client, user)
        for path in paths:
            assert client.get(path).status_code == 404
        assert client.post(address("school_import_confirm")).status_code == 404
        assert client.post(address("school_import_cancel")).status_code == 404
        assert client.post(UPLOAD).status_code == 404
        assert "Import schools" not in client.get("/console/rosters/").text
    assert SchoolImport.objects.get().state == "checked"


def test_the_list_of_imports_costs_the_same_for_one_and_three(
    state, staff, django_assert_num_queries
):
    for count in (1, 3):
        while SchoolImport.objects.count() < count:
            SchoolImport.objects.create(by=staff.state, name="schools.csv")
        with django_assert_num_queries(5):
            state.get(UPLOAD)
