"""Workbooks come in through the page: good ones, wrong ones, hostile ones."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from openpyxl import load_workbook
from openpyxl.chart import BarChart

from accounts.models import AuditEntry, Membership
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from survey.instrument.definitions import uploads
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.spreadsheets.workbook_guard import SURVEY, UPLOAD_WORKBOOK
from survey.models import Job, Survey, SurveyUpload
from survey.tests.console.test_surveys import CHOICES, book
from survey.tests.spreadsheets.hostile_files import (
    EXTERNAL,
    LAUGHS,
    padded,
    with_entities,
)
from survey.tests.workbooks import form, workbook

pytestmark = pytest.mark.django_db
UPLOAD = "/console/surveys/upload/"
SPREADSHEETS = Path(__file__).parents[1] / "spreadsheets" / "sample_files"


def send(client, content, name="pets.xlsx", address=UPLOAD, **fields):
    return client.post(
        address, {"file": SimpleUploadedFile(name, content), **fields}, follow=True
    )


def wrong(count: int) -> bytes:
    """Build a workbook with this many problems, one a row, and one warning."""
    rows = [["type", "name", "label", "relevant"]]
    rows += [
        ["integer", f"q{n}", "How many?", f"${{gone}} > {n}"] for n in range(count)
    ]
    return form(rows, CHOICES, [["form_id", "version"], ["pets", "1"]])


def test_workbook_with_problems_is_fixed_and_becomes_a_draft(staff, client):
    log_in(client, staff.dana)
    assert "XLSForm" in client.get(UPLOAD).content.decode()

    refused = send(client, wrong(5))
    text = refused.content.decode()
    assert "5 problems" in text and "there is no item ${gone}" in text
    assert "<code>${gone} &gt; 0</code>" in text
    assert not Survey.objects.exists()

    content = book()
    accepted = send(client, content)
    survey = Survey.objects.get()
    assert "pets.xlsx was uploaded as a draft." in accepted.content.decode()
    assert accepted.redirect_chain[-1][0] == reverse("survey_detail", args=[survey.pk])
    assert (survey.district, survey.uploaded_by) == (staff.riverside, staff.dana)
    assert bytes(survey.source) == content
    entry = AuditEntry.objects.get(action="upload survey")
    assert (entry.by, entry.address) == ("dana@example.org", "127.0.0.1")
    assert entry.district_id == staff.riverside.pk
    # What was read is not kept twice, and what was refused only for the choice.
    assert SurveyUpload.objects.get(survey=survey).content is None
    refused_upload = SurveyUpload.objects.get(survey=None)
    assert uploads.can_leave_out(refused_upload)
    later = timezone.now() - uploads.MAX_AGE_UNREAD - timedelta(minutes=1)
    SurveyUpload.objects.filter(pk=refused_upload.pk).update(created_at=later)
    read_at = refused_upload.read_at
    send(client, book(version="2"))
    refused_upload.refresh_from_db()
    assert (refused_upload.content, refused_upload.report, refused_upload.read_at) == (
        None,
        [],
        read_at,
    )
    page = client.get(
        reverse("survey_uploaded", args=[refused_upload.pk])
    ).content.decode()
    assert "5 problems" in page and "without" not in page


ODD_ROWS = [
    ["type", "name", "label", "relevant", "media::image", "note to self"],
    ["select_one pets", "pet", "Which pet?", None, None, "ask Ann"],
    ["image", "photo", "A photo"],
    ["rank pets", "best", "Rank them"],
    ["begin repeat", "each", "Each pet"],
    ["text", "called", "Its name?"],
    ["end repeat"],
    ["begin group", "pictures", "Pictures"],
    ["image", "second", "One more photo"],
    ["end group"],
    ["text", "why", "Why this photo?", "${photo} != ''"],
    ["text", "look", "How does it look?", "${pet} = 'cat'", "cat.png"],
]


def lines_of(upload, outcome: str) -> list[tuple[str, str]]:
    lines = [line for line in upload.report if line["outcome"] == outcome]
    return [(line["part"], line["place"]) for line in lines]


def test_workbook_is_imported_without_what_a_survey_cannot_have(staff, client):
    content = form(ODD_ROWS, CHOICES, [["form_id", "version"], ["pets", "1"]])
    log_in(client, staff.dana)
    page = send(client, content)
    upload = SurveyUpload.objects.get()
    text = page.content.decode()
    assert "Import without these 8 parts" in text and not Survey.objects.exists()
    assert lines_of(upload, "refused") == [
        *(("question", "photo"), ("question", "best")),
        *(("group", "each"), ("question", "called")),
        *(("question", "second"), ("group", "pictures")),
        ("rule", "why"),
    ]
    assert lines_of(upload, "changed") == [("question", "look")]
    address = reverse("survey_upload_without", args=[upload.pk])
    reply = client.post(address, follow=True)
    survey = Survey.objects.get()
    assert "pets.xlsx was uploaded as a draft." in reply.content.decode()
    names = survey.items.order_by("position").values_list("name", flat=True)
    assert list(names) == ["pet", "why", "look"]
    assert survey.items.get(name="look").rules["relevant"]
    upload.refresh_from_db()
    assert lines_of(upload, "taken") == [("question", "pet"), ("question", "why")]
    assert "Its name?" in reply.content.decode()
    # A column that nobody reads is given back.
    sheet = load_workbook(io.BytesIO(bytes(survey.source)))["survey"]
    cells = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert cells[0] == ODD_ROWS[0] and cells[1][5] == "ask Ann"
    assert "cat.png" not in str(cells)
    # Once, and with an audit entry of who chose it.
    client.post(address)
    assert Survey.objects.get() == survey
    assert AuditEntry.objects.get(action="upload survey").by == "dana@example.org"


@pytest.mark.parametrize(
    "rows",
    [
        [["name", "label"], ["q1", "Why?"]],
        [["type", "name", "label"], ["image", "q1", "Why?"]],
        [["type", "name", "label"], ["text", "q1", "Why?"], ["begin group", "g", "G"]],
    ],
    ids=["no column of types", "nothing is left", "group without an end"],
)
def test_workbook_that_cannot_be_imported_in_part_is_only_refused(staff, client, rows):
    log_in(client, staff.dana)
    text = send(client, form(rows)).content.decode()
    upload = SurveyUpload.objects.get()
    assert upload.problems and "Import without" not in text
    assert (upload.content, upload.report) == (None, [])
    client.post(reverse("survey_upload_without", args=[upload.pk]))
    assert not Survey.objects.exists()


def test_a_part_of_a_workbook_does_not_replace_a_published_survey(staff, client):
    log_in(client, staff.dana)
    send(client, wrong(1))
    upload = SurveyUpload.objects.get()
    send(client, book())
    publish_survey(survey=Survey.objects.get())
    address = reverse("survey_upload_without", args=[upload.pk])
    text = client.post(address, follow=True).content.decode()
    assert "give the file a new version" in text and Survey.objects.count() == 1


def test_author_is_told_which_parts_of_a_workbook_are_not_kept(staff, client):
    file = load_workbook(io.BytesIO(book()))
    file.active.add_chart(BarChart(), "H2")
    with_chart = io.BytesIO()
    file.save(with_chart)
    log_in(client, staff.dana)
    send(client, with_chart.getvalue())
    [warning] = SurveyUpload.objects.get().warnings
    assert "charts, pictures and macros are not in the workbook" in warning["reason"]
    send(client, book(version="2"))
    assert SurveyUpload.objects.latest("pk").warnings == []


def test_problems_are_downloaded_as_csv_without_formulas(staff, client):
    rows = [["type", "name", "label"], ["integer", "q1", "Why?"]]
    log_in(client, staff.dana)
    send(client, form([*rows, ["@SUM(1)", "q2", "Why?"]]))
    upload = SurveyUpload.objects.get()
    response = client.get(reverse("survey_upload_problems", args=[upload.pk]))
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    lines = list(csv.reader(io.StringIO(response.content.decode("utf-8-sig"))))
    assert lines[0] == ["kind", "sheet", "row", "column", "reason", "text"]
    assert lines[1][:4] == ["problem", "survey", "3", "type"]
    assert lines[1][5] == "'@SUM(1)"


def test_warnings_are_listed_and_do_not_block_the_upload(staff, client):
    rows = [["type", "name", "label", "label::Español (es)"]]
    rows += [["integer", "q1", "How many?", None]]
    rows += [["select_one agree", "q2", "How much?", "¿Cuánto?"]]
    log_in(client, staff.dana)
    text = send(client, form(rows)).content.decode()
    assert (
        "warnings from the workbook" in text
        and "row 2 has no Spanish translation" in text
    )
    assert Survey.objects.count() == 1


def test_state_administrator_chooses_the_owner(staff, client):
    log_in(client, staff.state)
    assert "The state" in client.get(UPLOAD).content.decode()
    send(client, book(), owner="state")
    send(client, book(), owner=str(staff.lakeside.pk))
    owners = Survey.objects.order_by("pk").values_list("district__name", flat=True)
    assert list(owners) == [None, "Lakeside"]


@pytest.mark.parametrize("owner", ["", "0", "state", "lakeside"])
def test_district_administrator_uploads_for_the_own_district_only(staff, client, owner):
    owner = str(staff.lakeside.pk) if owner == "lakeside" else owner
    log_in(client, staff.dana)
    send(client, book(), owner=owner)
    assert Survey.objects.get().district == staff.riverside


@pytest.mark.parametrize("owner", ["0", "nonsense", "-1", "9" * 40, "\x00"])
def test_invalid_owner_is_refused_with_a_message(staff, client, owner):
    log_in(client, staff.state)
    response = send(client, book(), owner=owner)
    assert "Select a valid choice" in response.content.decode()
    assert not SurveyUpload.objects.exists()


def test_upload_replaces_a_draft_but_not_a_published_survey(staff, client):
    log_in(client, staff.dana)
    send(client, book())
    send(client, book())
    survey = Survey.objects.get()
    publish_survey(survey=survey)
    text = send(client, book()).content.decode()
    assert "1 problem" in text and "give the file a new version" in text
    assert Survey.objects.get() == survey


def test_an_upload_says_which_draft_it_replaces_and_where_that_went(staff, client):
    log_in(client, staff.dana)
    response = send(client, book())
    assert "replaces" not in response.content.decode()
    first = Survey.objects.get()
    entries = AuditEntry.objects.filter(action="upload survey")
    day = date_format(timezone.localtime(entries.get().at), "DATE_FORMAT")
    text = send(client, book()).content.decode()
    assert f"It replaces the draft of {day}." in text
    send(client, book())
    third = Survey.objects.get()
    moved = client.get(reverse("survey_detail", args=[first.pk]), follow=True)
    assert moved.redirect_chain == [(reverse("survey_detail", args=[third.pk]), 302)]
    assert "This draft was replaced by a newer upload" in moved.content.decode()
    # Users of another district do not learn of it.
    lee = member("lee@example.org", Membership.Role.DISTRICT, district=staff.lakeside)
    log_in(client, lee)
    assert client.get(reverse("survey_detail", args=[first.pk])).status_code == 404
    third.delete()
    log_in(client, staff.dana)
    assert client.get(reverse("survey_detail", args=[first.pk])).status_code == 404


def zipped_roster() -> bytes:
    return workbook({"Roster": [["role", "name"], ["student", "Maya"]]})


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("climate.csv", b"type,name,label\ntext,a,A", "This is not an Excel workbook"),
        ("roster.xlsx", b"district,school\nr,l", "This is not an Excel workbook"),
        ("scan.pdf", b"%PDF-1.7\n1 0 obj\n", f"This is a PDF. {UPLOAD_WORKBOOK}"),
        ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF", "This is an image. Upload the w"),
        (
            "qualtrics.qsf",
            b'{"SurveyEntry":{"SurveyID":"SV_1"}}',
            "This is a JSON file. U",
        ),
        (
            "link.gsheet",
            b'{"url":"https://docs.google.com/d/1"}',
            "Download, then Micro",
        ),
        ("roster.xlsx", zipped_roster(), "There is no sheet named survey"),
        ("cut.xlsx", book()[:500], "The workbook is damaged"),
        ("bomb.xlsx", padded(book(), 40 * 2**20), "larger than 32 MB"),
        ("laughs.xlsx", with_entities(book(), LAUGHS), "document type"),
        ("passwd.xlsx", with_entities(book(), EXTERNAL), "document type"),
    ],
    ids=[
        "csv",
        "csv renamed",
        "pdf",
        "photo",
        "another survey tool",
        "link to a Google Sheet",
        "roster",
        "cut",
        "bomb",
        "laughs",
        "external",
    ],
)
def test_file_that_is_no_survey_is_refused_with_a_message(
    staff, client, name, content, reason
):
    log_in(client, staff.dana)
    response = send(client, content, name)
    assert response.status_code == 200
    assert reason in response.content.decode()
    assert not Survey.objects.exists() and not Job.objects.exists()


def test_survey_with_another_file_extension_is_read(staff, client):
    log_in(client, staff.dana)
    send(client, book(), "pets.csv")
    assert Survey.objects.get().source_name == "pets.csv"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "Choose a file."),
        ({"file": "text, no file"}, "Choose a file."),
        ({"file": SimpleUploadedFile("a.xlsx", b"")}, "The file is empty"),
    ],
    ids=["none", "text", "empty"],
)
def test_form_without_a_workbook_shows_an_error(staff, client, files, reason):
    log_in(client, staff.dana)
    response = client.post(UPLOAD, files)
    assert response.status_code == 200
    assert reason in response.content.decode()
    assert not SurveyUpload.objects.exists()


def test_file_of_200_megabytes_is_refused_without_being_read(
    staff, client, monkeypatch
):
    monkeypatch.setattr(
        "survey.console.surveys.upload.receive_upload",
        lambda **_: pytest.fail("was read"),
    )
    log_in(client, staff.dana)
    file = SimpleUploadedFile("large.xlsx", b"PK\x03\x04" + bytes(200 * 2**20))
    response = client.post(UPLOAD, {"file": file})
    assert "larger than 10 MB" in response.content.decode()


def test_file_of_10_megabytes_is_read(staff, client):
    log_in(client, staff.dana)
    text = send(client, bytes(SURVEY.file)).content.decode()
    assert "This is not an Excel workbook" in text


def test_markup_in_a_file_name_is_escaped(staff, client):
    log_in(client, staff.dana)
    text = send(
        client, b"no workbook", "<script>alert(1)<script>.xlsx"
    ).content.decode()
    assert "<script>alert" not in text and "alert(1)" in text


def test_concurrent_uploads_of_one_version_give_a_problem(staff, client, monkeypatch):
    def collides(**_):
        raise IntegrityError

    monkeypatch.setattr(uploads, "import_survey", collides)
    log_in(client, staff.dana)
    text = send(client, book()).content.decode()
    assert "uploaded twice in the same moment" in text


# Large ones are read by a worker


def test_large_workbook_is_read_by_a_worker(
    staff, client, monkeypatch, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(uploads, "READ_AT_ONCE", 100)
    log_in(client, staff.dana)
    with django_capture_on_commit_callbacks() as waiting:
        response = send(client, book())
    [job] = Job.objects.all()
    assert f"/console/jobs/{job.pk}/" in response.content.decode()
    assert not Survey.objects.exists()

    waiting[-1]()
    job.refresh_from_db()
    assert (job.state, job.message) == ("done", "The workbook was read.")
    survey = Survey.objects.get()
    assert survey.uploaded_by == staff.dana
    shown = client.get(reverse("survey_uploaded", args=[job.subject_id]))
    assert shown["Location"] == reverse("survey_detail", args=[survey.pk])


@pytest.mark.parametrize("length", [None, 3000])
def test_old_excel_file_is_read_by_a_worker(
    staff, client, length, django_capture_on_commit_callbacks
):
    log_in(client, staff.dana)
    content = (SPREADSHEETS / "climate.xls").read_bytes()[:length]
    with django_capture_on_commit_callbacks() as waiting:
        send(client, content, "climate.xls")
    assert not SurveyUpload.objects.exclude(read_at=None).exists()
    waiting[-1]()
    upload = SurveyUpload.objects.get()
    if length:
        assert "The .xls file is damaged" in upload.problems[0]["reason"]
        return
    assert upload.survey.source_name == "climate.xls"
    original = client.get(reverse("survey_original", args=[upload.survey_id]))
    assert original.content == content
    assert original["Content-Type"] == "application/vnd.ms-excel"
    assert "climate 1.xls" in original["Content-Disposition"]


def test_job_that_runs_twice_creates_one_draft(staff, monkeypatch):
    monkeypatch.setattr(uploads, "READ_AT_ONCE", 100)
    upload = uploads.receive_upload(
        name="pets.xlsx", content=book(), district=None, by=staff.state
    )
    uploads.read_stored_upload(upload.pk)
    draft = Survey.objects.get()
    uploads.read_stored_upload(upload.pk)
    assert Survey.objects.get() == draft


def test_failed_job_is_shown_and_can_be_uploaded_again(staff, client, monkeypatch):
    monkeypatch.setattr(uploads, "READ_AT_ONCE", 100)
    upload = uploads.receive_upload(
        name="pets.xlsx", content=book(), district=staff.riverside, by=staff.dana
    )
    job = uploads.job_of(upload)
    Job.objects.filter(pk=job.pk).update(
        state="failed", ended_at=upload.created_at, message="It went wrong."
    )
    log_in(client, staff.dana)
    address = reverse("survey_uploaded", args=[upload.pk])
    text = client.get(address).content.decode()
    assert "It went wrong." in text and "Upload again" in text


def test_worker_presumed_dead_does_not_overwrite_the_result_of_another(
    staff, client, monkeypatch
):
    read, late = uploads.read_xlsform, []

    def slowly(content, name):
        if not late:
            late.append(SurveyUpload.objects.get())
            uploads.read_stored_upload(late[0].pk)
            publish_survey(survey=Survey.objects.get())
        return read(content, name=name)

    monkeypatch.setattr(uploads, "read_xlsform", slowly)
    log_in(client, staff.dana)
    send(client, book())
    upload, survey = SurveyUpload.objects.get(), Survey.objects.get()
    assert late
    assert (upload.survey, upload.problems) == (survey, [])
    assert AuditEntry.objects.filter(action="upload survey").count() == 1


def test_workbook_of_a_cancelled_job_is_deleted_after_a_day(staff, client, monkeypatch):
    monkeypatch.setattr(uploads, "READ_AT_ONCE", 100)
    receive = {"content": book(), "district": staff.riverside, "by": staff.dana}
    old = uploads.receive_upload(name="old.xlsx", **receive)
    SurveyUpload.objects.update(created_at=old.created_at - 2 * uploads.MAX_AGE_UNREAD)
    new = uploads.receive_upload(name="new.xlsx", **receive)
    with_content = SurveyUpload.objects.exclude(content=None)
    assert [upload.pk for upload in with_content] == [new.pk]
    uploads.read_stored_upload(old.pk)
    assert not Survey.objects.exists()


# Permissions


def test_upload_is_visible_to_its_district_and_the_state(staff, client):
    log_in(client, staff.dana)
    send(client, wrong(1))
    upload = SurveyUpload.objects.get()
    addresses = [
        reverse(route, args=[upload.pk])
        for route in ("survey_uploaded", "survey_upload_problems")
    ]
    for user, status in ((staff.dana, 200), (staff.state, 200), (staff.chen, 404)):
        log_in(client, user)
        assert [client.get(url).status_code for url in addresses] == [status] * 2

    SurveyUpload.objects.update(district=staff.lakeside)
    log_in(client, staff.dana)
    assert [client.get(url).status_code for url in addresses] == [404] * 2
    SurveyUpload.objects.update(district=None)
    assert [client.get(url).status_code for url in addresses] == [404] * 2


def test_upload_page_says_that_the_draft_was_deleted(staff, client):
    log_in(client, staff.dana)
    send(client, book())
    Survey.objects.all().delete()
    address = reverse("survey_uploaded", args=[SurveyUpload.objects.get().pk])
    assert "replaced or deleted later" in client.get(address).content.decode()
