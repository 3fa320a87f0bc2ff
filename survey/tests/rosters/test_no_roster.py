"""An administration that anyone can take part in takes no roster."""

from __future__ import annotations

import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from survey.models import Administration, Job, Respondent, RosterUpload
from survey.tests.open_codes.cast import open_to_parents
from survey.tests.rosters.roster_console import ALI, HEADER, MAYA, errors_of

pytestmark = pytest.mark.django_db


def test_the_form_says_why_and_stores_nothing(staff, administration, console_of):
    parents = open_to_parents(published=administration.published)
    dana = console_of(staff.dana)
    address = f"/console/administrations/{parents.pk}/roster/"
    assert "anyone can take part" in dana.get(address).content.decode()
    response = dana.post(
        address,
        file=SimpleUploadedFile("a.csv", f"{HEADER}\n{MAYA}".encode()),
        complete_for="schools",
    )
    assert response.status_code == 200
    assert "anyone can take part" in str(errors_of(response))
    assert not RosterUpload.objects.exists() and not Job.objects.exists()
    # Nor does the list of rosters offer it, unlike others.
    page = dana.get("/console/rosters/").content.decode()
    assert f"/administrations/{administration.pk}/roster/" in page
    assert address not in page


def test_the_jobs_check_it_again(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ALI)
    assert upload.state == "checked"
    Administration.objects.update(denominator="count")
    dana.confirm(upload)
    assert upload.state == "failed" and "anyone can take part" in upload.message
    assert not Respondent.objects.exists()
    dana.post(f"/console/rosters/{upload.pk}/again/")
    assert not Respondent.objects.exists()


def test_the_dry_run_checks_it_too(staff, administration, console_of, monkeypatch):
    monkeypatch.setattr(
        "survey.people.rosters.uploads.check_takes_roster", lambda each: None
    )
    Administration.objects.update(denominator="count")
    upload = console_of(staff.dana).upload(administration, HEADER, MAYA)
    assert upload.state == "failed" and "anyone can take part" in upload.message


def test_the_command_refuses_it(staff, tmp_path):
    parents = open_to_parents()
    file = tmp_path / "roster.csv"
    file.write_text(f"{HEADER}\n{MAYA}")
    with pytest.raises(CommandError, match="anyone can take part"):
        call_command(
            "import_roster", file, administration=parents.name, stdout=io.StringIO()
        )
    assert not Respondent.objects.exists()
