"""Delete uploaded files in time."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from survey.models import RosterUpload
from survey.people.rosters import dry_run, retention
from survey.tests.rosters.roster_console import BAD, HEADER, MAYA, roster_folder
from survey.work import files
from survey.work.files import path_of, private_files

pytestmark = pytest.mark.django_db


def test_files_are_deleted_after_30_days(
    staff, administration, console_of, django_capture_on_commit_callbacks
):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    RosterUpload.objects.update(samples={"header": ["given name"]})
    with django_capture_on_commit_callbacks(execute=True):
        assert retention.delete_old_files() == 0
    old = timezone.now() - timedelta(days=31)
    RosterUpload.objects.update(uploaded_at=old)
    with django_capture_on_commit_callbacks(execute=True):
        assert retention.delete_old_files() == 1
    assert not private_files().exists(upload.file)
    assert not upload.rejections.exists()
    assert not RosterUpload.objects.filter(samples__isnull=False).exists()
    chen = console_of(staff.chen)
    assert (
        b"after 30 days" in chen.get(f"/console/rosters/{upload.pk}/rejected/").content
    )
    chen.confirm(upload)
    assert (upload.state, upload.message) == ("failed", dry_run.FILE_DELETED)


def test_files_without_an_upload_are_deleted(staff, administration, console_of):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    left, fresh = (
        roster_folder() / name for name in (".left.csv.4711", "fresh.roster")
    )
    for path in (left, fresh):
        path.write_text("00123,Maya,Lopez")
    used = [path_of(name) for name in (upload.file, upload.rejected_file)]
    long_ago = time.time() - files.ORPHANED_AFTER - 60
    for path in (left, *used):
        os.utime(path, (long_ago, long_ago))
    retention.delete_old_files()
    assert not left.exists()
    assert all(path.exists() for path in (fresh, *used))


def test_samples_are_deleted_with_the_file(staff, administration, console_of):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA)
    upload.samples = {"given name": ["Maya"]}
    upload.save(update_fields=["samples"])
    with pytest.raises(IntegrityError), transaction.atomic():
        RosterUpload.objects.update(file="")


def test_uploads_that_nobody_confirms_are_cancelled_and_leave_the_list(
    staff, administration, console_of, django_capture_on_commit_callbacks
):
    chen = console_of(staff.chen)
    applied = chen.apply(administration, HEADER, MAYA)
    checked = chen.upload(administration, HEADER, MAYA, BAD[1])
    unclear = chen.upload(
        administration, "Kennung,Vorname,Nachname,Haus,Stufe", "1,Maya,Lopez,lincoln,7"
    )
    assert (checked.state, unclear.state) == ("checked", "mapping")
    assert retention.cancel_abandoned_uploads() == 0
    late = timezone.now() - RosterUpload.CONFIRMED_WITHIN - timedelta(hours=1)
    RosterUpload.objects.exclude(pk=unclear.pk).update(uploaded_at=late)
    listed = chen.get("/console/rosters/")
    # Also before the nightly task.
    assert {upload.pk for upload in listed.context["rows"]} == {applied.pk, unclear.pk}
    assert "within 14 days" in listed.text
    with django_capture_on_commit_callbacks(execute=True):
        assert retention.cancel_abandoned_uploads() == 1
    states = dict(RosterUpload.objects.values_list("pk", "state"))
    assert states == {
        applied.pk: "applied",
        checked.pk: "cancelled",
        unclear.pk: "mapping",
    }
    assert not private_files().exists(checked.file)
    assert AuditEntry.objects.filter(action="cancel abandoned roster").count() == 1
    assert "cancelled" in chen.get(f"/console/rosters/{checked.pk}/").text
