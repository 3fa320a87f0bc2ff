"""Files are complete or absent, and made only for people with permission."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.models import AuditEntry, User
from accounts.staff import dismiss
from reports.answers import snapshot
from reports.exports import anonymise, job, reading
from reports.models import Export
from reports.tests.exports.conftest import (
    answer,
    answer_all,
    identify,
    made,
    requested,
    respondent_of,
)
from reports.tests.exports.test_formats import content, rows_of
from survey.fieldwork.administrations import ChangeBlocked
from survey.fieldwork.administrations.removal import remove_administration
from survey.models import Job, Respondent, Response
from survey.work import jobs, requested_files
from survey.work.files import ORPHANED_AFTER, path_of


@pytest.fixture
def people(staff, fall) -> list[Respondent]:
    respondents = Respondent.objects.bulk_create(
        respondent_of(fall, school)
        for school in (staff.lincoln, staff.washington, staff.roosevelt)
        for _ in range(4)
    )
    answer_all(
        fall,
        ((respondent, {"safe": "1", "comment": "fine"}) for respondent in respondents),
    )
    return respondents


def folder() -> Path:
    return path_of("exports/any").parent


def files() -> set[str]:
    return {path.name for path in folder().iterdir()}


@pytest.mark.django_db
def test_the_job_makes_the_file_and_its_record(staff, fall, people):
    before = files()
    export = made(staff.dana, fall, places={"districts": [staff.riverside.pk]})

    assert export.job.state == Job.State.DONE
    assert (export.job.done, export.job.total) == (8, 8)
    assert (export.rows, export.responses) == (8, 16)
    names = {Path(getattr(export, field)).name for field in Export.FILE_NAMES}
    assert files() - before == names
    assert path_of(export.file_name).stat().st_mode & 0o777 == 0o600
    [entry] = AuditEntry.objects.filter(action="make export")
    assert (entry.subject_id, entry.district_id) == (export.pk, staff.riverside.pk)
    assert entry.after["sha256"] == export.sha256


@pytest.mark.django_db
def test_no_file_is_made_after_the_role_has_ended(staff, fall, people):
    export = requested(staff.dana, fall, places={"districts": [staff.riverside.pk]})
    dismiss(membership=staff.dana.memberships.get(), by=staff.state)
    jobs.run(export.job_id)

    export.refresh_from_db()
    export.job.refresh_from_db()
    assert export.file_name == ""
    assert export.job.state == Job.State.FAILED
    assert export.job.message == job.PERMISSIONS_CHANGED


@pytest.mark.django_db
def test_a_scope_beyond_the_permissions_is_refused(staff, fall, people):
    for places in (
        {"state": True},
        {"districts": [staff.riverside.pk, staff.lakeside.pk]},
        {"districts": [staff.riverside.pk], "schools": [staff.roosevelt.pk]},
        {},
    ):
        export = made(staff.dana, fall, places=places)
        assert (export.file_name, export.job.state) == ("", Job.State.FAILED)


@pytest.mark.django_db
def test_names_need_one_role_that_sees_answers_and_identities(staff, fall, people):
    from accounts.models import Membership

    Membership.objects.create(
        user=staff.analyst,
        role=Membership.Role.COORDINATOR,
        school=staff.lincoln,
    )
    lincoln = {"schools": [staff.lincoln.pk]}
    names = {"identities": True, "reason": "consent has to be checked"}
    export = made(staff.analyst, fall, places=lincoln, **names)
    assert export.file_name == ""

    export = made(staff.dana, fall, places=lincoln, **names)
    assert export.rows == 4


@pytest.mark.django_db
def test_an_export_with_names_has_identities_and_answers(staff, fall, people):
    identify(people[0], given_name="=Maya", family_name="Diaz", email="m@example.org")
    export = made(
        staff.dana,
        fall,
        places={"schools": [staff.lincoln.pk]},
        identities=True,
        reason="consent has to be checked",
    )
    by_id = {row["external_id"]: row for row in rows_of(export)}
    maya = by_id[f"S{people[0].pk}"]
    assert (maya["given_name"], maya["family_name"]) == ("'=Maya", "Diaz")
    # Names identify rows anyway, so times are exact.
    assert maya["started"] == "2027-03-01 08:05:06"
    # Answers stay when an identity is erased.
    assert len(by_id) == 2
    assert by_id[""]["comment"] == "fine"


@pytest.mark.django_db
def test_an_export_without_names_has_no_identities(staff, fall, people):
    for respondent in people:
        identify(respondent, given_name="Maya", email="m@example.org")
    for kind in ("wide", "long"):
        text = content(made(staff.state, fall, format=kind)).decode()
        assert "Maya" not in text
        assert "S1" not in text
        assert "14:" not in text


@pytest.mark.django_db
def test_ids_and_order_of_rows_differ_between_exports(staff, fall, enrol):
    for number in range(40):
        answer(enrol(fall, staff.lincoln), {"age": str(number)})
    exports = [rows_of(made(staff.state, fall)) for _ in range(2)]
    first_ids, second_ids = ([row["research_id"] for row in rows] for rows in exports)
    assert not set(first_ids) & set(second_ids)
    assert first_ids == sorted(first_ids)
    ages = [[row["age"] for row in rows] for rows in exports]
    assert sorted(ages[0]) == sorted(ages[1])
    # In the order of primary keys they would be the same.
    assert ages[0] != ages[1]


@pytest.mark.django_db
def test_running_the_job_again_keeps_the_first_file(staff, fall, people):
    export = made(staff.state, fall)
    checksum, name = export.sha256, export.file_name
    Job.objects.filter(pk=export.job_id).update(state="waiting", ended_at=None)
    jobs.run(export.job_id)
    export.refresh_from_db()
    assert (export.sha256, export.file_name) == (checksum, name)


@pytest.mark.django_db
def test_a_worker_that_was_replaced_keeps_nothing(staff, fall, people, monkeypatch):
    before = files()
    write = job.codebook.write

    def replaced_meanwhile(*args, **options):
        write(*args, **options)
        Job.objects.update(attempts=2)

    monkeypatch.setattr(job.codebook, "write", replaced_meanwhile)
    export = made(staff.state, fall)
    assert (export.file_name, export.made_at) == ("", None)
    assert files() == before


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["wide", "long", "xlsx"])
def test_a_lost_line_fails_the_export(staff, fall, people, kind, monkeypatch):
    before = files()
    add = anonymise.Shuffle.add

    def forgetful(self, respondent, line):
        if respondent != str(people[3].pk).encode():
            add(self, respondent, line)

    monkeypatch.setattr(anonymise.Shuffle, "add", forgetful)
    export = made(staff.state, fall, format=kind)
    assert export.job.state == Job.State.FAILED
    assert export.file_name == ""
    assert files() == before


@pytest.mark.django_db
def test_a_lost_answer_fails_the_export(staff, fall, people, monkeypatch):
    count = snapshot.Snapshot.count_responses
    monkeypatch.setattr(
        snapshot.Snapshot, "count_responses", lambda self: count(self) + 1
    )
    assert made(staff.state, fall).job.state == Job.State.FAILED


@pytest.mark.django_db
def test_an_answer_to_an_unknown_item_fails_the_export(staff, fall, people):
    Response.objects.filter(respondent_id=people[0].pk).update(revision=2)
    Response.objects.create(
        administration_id=fall.pk,
        respondent_id=people[0].pk,
        item_id=99_999_999,
        state="s",
        revision=1,
        saved_at=timezone.now(),
    )
    assert made(staff.state, fall).job.state == Job.State.FAILED


@pytest.mark.django_db
def test_cancelling_leaves_no_files(staff, fall, people, monkeypatch):
    before = files()
    monkeypatch.setattr(reading, "REPORT_EVERY", 2)
    advance = jobs.Progress.advance

    def cancelled(self, count=1):
        self.cancel_asked = True
        advance(self, count)

    monkeypatch.setattr(jobs.Progress, "advance", cancelled)
    export = made(staff.state, fall)
    assert (export.file_name, export.job.state) == ("", Job.State.CANCELLED)
    assert files() == before
    # The connection can be used for the next export.
    monkeypatch.undo()
    assert made(staff.state, fall).rows == 12


@pytest.mark.django_db
def test_cancelling_before_the_commit_leaves_no_files(staff, fall, people, monkeypatch):
    before = files()
    confirm = jobs.Progress.confirm

    def asked_to_stop(progress):
        jobs.request_cancel(progress.job)
        confirm(progress)

    monkeypatch.setattr(jobs.Progress, "confirm", asked_to_stop)
    export = made(staff.state, fall)
    assert (export.job.state, export.made_at) == (Job.State.CANCELLED, None)
    assert files() == before


@pytest.mark.django_db
def test_cancelling_after_the_commit_keeps_the_file(staff, fall, people, monkeypatch):
    keep = job.keep_export

    def cancel_too_late(*args):
        keep(*args)
        args[-1].cancel_asked = True

    monkeypatch.setattr(job, "keep_export", cancel_too_late)
    export = made(staff.state, fall)
    assert (export.job.state, export.status) == (Job.State.DONE, "ready")
    assert (export.job.done, export.job.total) == (12, 12)


@pytest.mark.django_db
def test_many_respondents_are_shuffled_on_disk(staff, fall, people, monkeypatch):
    monkeypatch.setattr("reports.exports.anonymise.MEMORY", 300)
    monkeypatch.setattr(job, "BATCH_BYTES", 400)
    before = files()
    rows = rows_of(made(staff.state, fall))
    assert len(rows) == 12
    ids = [row["research_id"] for row in rows]
    assert ids == sorted(ids)
    assert len(files() - before) == len(Export.FILE_NAMES)


@pytest.mark.django_db
def test_an_export_too_large_for_excel_is_refused(staff, fall, people, monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROWS", 12)
    export = made(staff.state, fall, format="xlsx")
    assert "Choose CSV" in export.job.message
    monkeypatch.setattr(reading, "MOST_ROWS", 13)
    assert made(staff.state, fall, format="xlsx").rows == 12
    monkeypatch.setattr(job, "MOST_COLUMNS", 20)
    assert "Choose CSV" in made(staff.state, fall, format="xlsx").job.message


@pytest.mark.django_db
def test_a_full_disk_is_reported(staff, fall, people, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(job.WideRowBuilder, "write", full)
    assert made(staff.state, fall).job.message == requested_files.DISK_FULL


@pytest.mark.django_db
def test_expired_files_are_deleted_and_records_stay(staff, fall, people):
    old, new = made(staff.state, fall), made(staff.state, fall)
    past = timezone.now() - timedelta(seconds=1)
    Export.objects.filter(pk=old.pk).update(expires_at=past)
    names = [getattr(old, field) for field in Export.FILE_NAMES]
    requested_files.delete_expired(Export)
    old.refresh_from_db()
    assert (old.file_name, old.codebook_table_name, old.status) == ("", "", "deleted")
    assert old.rows == 12
    assert not any(path_of(name).exists() for name in names)
    assert path_of(new.file_name).exists()
    assert AuditEntry.objects.filter(action="delete export").count() == 1


@pytest.mark.django_db
def test_exports_of_a_removed_administration_are_deleted(
    staff, fall, spring, django_capture_on_commit_callbacks
):
    alone, both = made(staff.state, fall), made(staff.state, fall, spring)
    waiting = requested(staff.state, fall)
    job = Job.objects.create(kind="export.make", subject_id=waiting.pk)
    Export.objects.filter(pk=waiting.pk).update(job=job)
    removal = {
        "administration": fall, "seen": None, "confirmed": fall.name, "by": "a test",
    }  # fmt: skip
    with pytest.raises(ChangeBlocked, match="export of it is being made"):
        remove_administration(**removal)
    assert path_of(alone.file_name).exists()
    waiting.delete()
    with django_capture_on_commit_callbacks(execute=True):
        remove_administration(**removal)
    assert list(Export.objects.all()) == [both]
    assert list(both.administrations.all()) == [spring]
    assert not path_of(alone.file_name).exists()
    assert path_of(both.file_name).exists()


@pytest.mark.django_db
def test_leftovers_of_dead_workers_are_deleted(staff, fall, people):
    export = made(staff.state, fall)
    forgotten = folder() / ".1-left"
    forgotten.mkdir()
    (forgotten / "3.lines").write_bytes(b"x")
    stray = folder() / "stray.csv"
    stray.write_bytes(b"x")
    fresh = folder() / "fresh.csv"
    fresh.write_bytes(b"x")
    long_ago = time.time() - ORPHANED_AFTER - 60
    for path in (forgotten, stray, path_of(export.file_name)):
        os.utime(path, (long_ago, long_ago))
    requested_files.delete_expired(Export)
    assert not forgotten.exists()
    assert not stray.exists()
    assert fresh.exists()
    assert path_of(export.file_name).exists()
    fresh.unlink()


@pytest.mark.django_db
def test_no_file_is_made_for_a_deactivated_user(staff, fall, people):
    export = requested(staff.state, fall)
    User.objects.filter(pk=staff.state.pk).update(is_active=False)
    jobs.run(export.job_id)
    export.refresh_from_db()
    assert export.file_name == ""


@pytest.mark.django_db
def test_the_class_is_exported_with_names_only(staff, fall, people):
    for person in people:
        identify(person)
    Respondent.objects.update(classroom="7B")
    lincoln = {"schools": [staff.lincoln.pk]}
    names = {"identities": True, "reason": "consent has to be checked"}
    rows = rows_of(made(staff.dana, fall, places=lincoln, **names))
    assert {row["class"] for row in rows} == {"7B"}
    long = made(staff.dana, fall, places=lincoln, format="long", **names)
    assert {row["class"] for row in rows_of(long)} == {"7B"}
    for shape in ("wide", "long"):
        export = made(staff.dana, fall, places=lincoln, format=shape)
        assert "class" not in rows_of(export)[0]
        assert b"7B" not in content(export)
