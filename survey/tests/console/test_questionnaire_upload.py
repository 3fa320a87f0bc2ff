"""Questionnaires of other programs come in through the page of surveys."""

from __future__ import annotations

import csv
import io

import pytest
from django.core.management import call_command
from django.urls import reverse

from accounts.tests.logging_in import log_in
from survey.instrument.definitions import uploads
from survey.instrument.xlsform import read_xlsform
from survey.models import Job, Survey, SurveyUpload
from survey.tests.console.test_survey_upload import send
from survey.tests.console.test_surveys import book
from survey.tests.foreign.samples import dictionary, school_lss, school_qsf

pytestmark = pytest.mark.django_db


def test_questionnaire_becomes_a_draft_with_a_report(staff, client):
    log_in(client, staff.dana)
    response = send(client, school_lss(), name="pets.lss")
    upload = SurveyUpload.objects.get()
    report = reverse("survey_upload_report", args=[upload.pk])
    assert response.redirect_chain[-1][0] == report
    text = response.content.decode()
    assert "pets.lss was uploaded as a draft." in text
    assert "ranking is not possible here" in text and "rand(1, 2) == 1" in text
    # Problems first.
    assert text.index("Rank the pets") < text.index("formatting is lost")

    survey = Survey.objects.get()
    assert (survey.title, survey.source_name) == ({"en": "Pets"}, "pets.xlsx")
    assert read_xlsform(bytes(survey.source)).draft.name == survey.name
    page = client.get(reverse("survey_detail", args=[survey.pk])).content.decode()
    assert report in page

    refused = client.get(report, {"outcome": "refused"}).content.decode()
    assert "ranking is not possible" in refused and "formatting is lost" not in refused
    file = client.get(reverse("survey_upload_report_file", args=[upload.pk]))
    lines = list(csv.reader(io.StringIO(file.content.decode("utf-8-sig"))))
    assert lines[0] == ["part", "place", "text", "outcome", "reason"]
    assert len(lines) == 1 + len(upload.report)


def test_file_is_recognised_whatever_its_name(staff, client):
    log_in(client, staff.dana)
    send(client, school_qsf(), name="pets.xlsx")
    assert Survey.objects.get().title == {"en": "Pets"}


def test_workbook_has_no_report(staff, client):
    log_in(client, staff.dana)
    send(client, book())
    upload = SurveyUpload.objects.get()
    assert upload.report == []
    for name in ("survey_upload_report", "survey_upload_report_file"):
        assert client.get(reverse(name, args=[upload.pk])).status_code == 404
    page = client.get(reverse("survey_detail", args=[upload.survey_id]))
    assert "Report of the conversion" not in page.content.decode()


def test_damaged_questionnaire_is_refused_with_the_place(staff, client):
    log_in(client, staff.dana)
    text = send(client, school_lss()[:900], name="pets.lss").content.decode()
    assert "damaged or cut off in line 7" in text and not Survey.objects.exists()


def test_questionnaire_of_which_nothing_is_left_shows_the_report(staff, client):
    log_in(client, staff.dana)
    rows = ["photo,pets,,file,A picture,,,,,,,,"]
    text = send(client, dictionary(rows=rows), name="pets.csv").content.decode()
    assert "No question of this file can be taken over." in text
    upload = SurveyUpload.objects.get()
    report = reverse("survey_upload_report", args=[upload.pk])
    assert report in text
    assert "respondents cannot send files" in client.get(report).content.decode()


def test_long_questionnaire_is_converted_by_a_job(staff, client, monkeypatch):
    monkeypatch.setattr(uploads, "CONVERTED_AT_ONCE", 100)
    log_in(client, staff.dana)
    send(client, school_lss(), name="pets.lss")
    assert Job.objects.get().kind == uploads.read_upload.name


def test_report_has_pages(staff, client):
    log_in(client, staff.dana)
    rows = [f"q{n},pets,,text,Question {n},,,,,,,," for n in range(300)]
    send(client, dictionary(rows=rows), name="pets.csv")
    upload = SurveyUpload.objects.get()
    report = reverse("survey_upload_report", args=[upload.pk])
    second = client.get(report, {"page": 2}).content.decode()
    assert "Question 299" in second and "Question 5<" not in second


@pytest.mark.parametrize("count", [1, 30])
def test_report_takes_the_same_queries_for_any_length(
    staff, client, count, django_assert_num_queries
):
    log_in(client, staff.dana)
    rows = [f"q{n},pets,,text,Question {n},,,,,,,," for n in range(count)]
    send(client, dictionary(rows=rows), name="pets.csv")
    report = reverse("survey_upload_report", args=[SurveyUpload.objects.get().pk])
    client.get(report)
    with django_assert_num_queries(5):
        client.get(report)


def test_other_districts_cannot_see_the_report(staff, client):
    log_in(client, staff.dana)
    send(client, school_lss(), name="pets.lss")
    report = reverse("survey_upload_report", args=[SurveyUpload.objects.get().pk])
    assert client.get(report).status_code == 200
    upload = SurveyUpload.objects.get()
    SurveyUpload.objects.filter(pk=upload.pk).update(district=staff.lakeside)
    assert client.get(report).status_code == 404


def test_command_imports_a_questionnaire(tmp_path, capsys):
    file = tmp_path / "pets.lss"
    file.write_bytes(school_lss())
    call_command("import_survey", str(file))
    shown = capsys.readouterr().out
    assert "ranking is not possible here" in shown and "Imported" in shown
    assert Survey.objects.get().source_name == "pets.xlsx"


def test_command_prints_shares_and_stores_nothing(tmp_path, capsys):
    file = tmp_path / "pets.qsf"
    file.write_bytes(school_qsf())
    call_command("convert_survey", str(file), "--output", str(tmp_path / "out"))
    shown = capsys.readouterr().out
    assert "qualtrics: 1 files, 0 unreadable, 1 accepted; 6 questions" in shown
    assert (tmp_path / "out" / "pets.xlsx").exists()
    assert not Survey.objects.exists()
