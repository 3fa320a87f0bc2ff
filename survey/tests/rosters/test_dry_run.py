"""Check uploaded rosters without changing anything."""

from __future__ import annotations

import csv
import io

import pytest

from accounts.models import AuditEntry
from survey.models import Identity, Respondent
from survey.people.rosters import dry_run, uploads
from survey.tests.rosters.roster_console import (
    ALI,
    BAD,
    HEADER,
    MAYA,
    counts,
    person,
    roster_folder,
)
from survey.work import jobs
from survey.work.files import path_of

pytestmark = pytest.mark.django_db


def test_corrected_rejected_rows_can_be_uploaded(staff, administration, console_of):
    chen = console_of(staff.chen)
    good = [ALI.replace("00124", f"{number:05}") for number in range(500, 520)]
    upload = chen.apply(administration, HEADER, MAYA, ALI, *good)
    upload = chen.apply(administration, HEADER, *BAD[1:], MAYA, *good)
    assert upload.rejected == 2
    # Ali's row was rejected, so he was not withdrawn.
    assert person("00124").withdrawn_at is None

    response = chen.get(f"/console/rosters/{upload.pk}/rejected.csv")
    content = b"".join(response.streaming_content).decode("utf-8-sig")
    lines = list(csv.reader(io.StringIO(content)))
    assert lines[0] == ["Rejected because", *HEADER.split(",")]
    assert "grade is not a grade" in lines[1][0]
    assert lines[2][4] == "'=1+1"
    for line in lines[1:]:
        line[6] = "9"
    file = io.StringIO()
    csv.writer(file).writerows(lines)

    # By default missing people are withdrawn, but not with a corrected file.
    corrected = chen.apply(administration, content=file.getvalue().encode())
    assert counts(corrected) == {"added": 1, "changed": 1}
    assert person("00124").grade == "09"
    assert Identity.objects.get(external_id="00126").given_name == "=1+1"
    assert Respondent.objects.filter(withdrawn_at=None).count() == 23
    page = chen.get(f"/console/rosters/{corrected.pk}/").content.decode()
    assert "has corrected rows only" in page


def test_rows_without_an_id_prevent_withdrawals(staff, administration, console_of):
    chen = console_of(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    # The row without an ID could be Maya's.
    upload = chen.apply(administration, HEADER, BAD[0], ALI)
    assert counts(upload) == {"unchanged": 1, "rejected": 1}
    assert person("00123").withdrawn_at is None
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "1 row lacks an ID, so nobody was withdrawn" in page


def test_damage_in_the_middle_of_a_file_refuses_it(staff, administration, console_of):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, *[MAYA] * 500, '"riverside')
    assert (upload.state, upload.report) == ("refused", {})
    assert "never closed" in upload.message
    assert b"never closed" in chen.get(f"/console/rosters/{upload.pk}/").content
    assert chen.confirm(upload).status_code == 302
    assert upload.state == "refused"


def test_a_failed_check_can_be_started_again(
    staff, administration, console_of, monkeypatch
):
    chen = console_of(staff.chen)
    with monkeypatch.context() as broken:
        broken.setattr(dry_run, "store_result", None)
        upload = chen.upload(administration, HEADER, MAYA)
    assert upload.state == "failed"
    assert b"Start again" in chen.get(f"/console/rosters/{upload.pk}/").content
    chen.post(f"/console/rosters/{upload.pk}/again/")
    upload.refresh_from_db()
    assert upload.state == "checked"


def test_a_check_can_be_stopped(staff, administration, console_of, monkeypatch):
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    job = uploads.latest_job(upload)
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert f"/console/jobs/{job.pk}/cancel/" in page
    chen.post(f"/console/jobs/{job.pk}/cancel/")
    chen.post(f"/console/jobs/{job.pk}/cancel/")
    [entry] = AuditEntry.objects.filter(action="cancel job")
    assert (entry.by, entry.school_id) == (staff.chen.email, staff.lincoln.pk)
    assert entry.after == {"kind": "roster.check", "of": upload.pk}
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "Processing has stopped" in page and "Cancel roster" in page
    chen.post(f"/console/rosters/{upload.pk}/cancel/")
    upload.refresh_from_db()
    assert upload.state == "cancelled"


def test_a_check_cancelled_at_its_end_leaves_no_file(
    staff, administration, console_of, monkeypatch
):
    before = set(roster_folder().iterdir())
    confirm = jobs.Progress.confirm

    def asked_to_stop(progress):
        jobs.request_cancel(progress.job)
        confirm(progress)

    monkeypatch.setattr(jobs.Progress, "confirm", asked_to_stop)
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    assert (upload.state, uploads.latest_job(upload).state) == (
        "cancelled",
        "cancelled",
    )
    assert not upload.rejections.exists()
    assert set(roster_folder().iterdir()) - before == {path_of(upload.file)}


def test_a_check_stopped_too_late_is_completed(
    staff, administration, console_of, monkeypatch
):
    """Otherwise the job would say that nothing was kept."""
    store = dry_run.store_result

    def too_late(upload, *args):
        store(upload, *args)
        args[2].cancel_asked = True

    monkeypatch.setattr(dry_run, "store_result", too_late)
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA)
    assert (upload.state, uploads.latest_job(upload).state) == ("checked", "done")
