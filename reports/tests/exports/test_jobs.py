"""An export is made whole or not at all, by somebody who may have it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import AuditEntry, User
from accounts.staff import dismiss
from reports.exports import job, requests, snapshot
from reports.models import Export
from reports.tests.exports.conftest import answer, identify, made, ordered
from reports.tests.exports.test_formats import content, rows_of
from survey import jobs
from survey.files import ORPHANED_AFTER, path_of
from survey.models import Job, Respondent, Response

ROOT = Path(__file__).parents[3]


@pytest.fixture
def people(staff, fall, enrol) -> list[Respondent]:
    found = [
        enrol(fall, school)
        for school in (staff.lincoln, staff.washington, staff.roosevelt)
        for _ in range(4)
    ]
    for respondent in found:
        answer(respondent, {"safe": "1", "comment": "fine"})
    return found


def folder() -> Path:
    return path_of("exports/any").parent


def left() -> set[str]:
    return {path.name for path in folder().iterdir()}


@pytest.mark.django_db
def test_a_worker_makes_the_file_and_the_record(staff, fall, people):
    before = left()
    export = made(staff.dana, fall, places={"districts": [staff.riverside.pk]})

    assert export.job.state == Job.State.DONE
    assert (export.job.done, export.job.total) == (8, 8)
    assert (export.rows, export.responses) == (8, 16)
    kept = {Path(export.file_name).name, Path(export.codebook_name).name}
    assert left() - before == kept
    assert path_of(export.file_name).stat().st_mode & 0o777 == 0o600
    [entry] = AuditEntry.objects.filter(action="make export")
    assert (entry.subject_id, entry.district_id) == (export.pk, staff.riverside.pk)
    assert entry.after["sha256"] == export.sha256


@pytest.mark.django_db
def test_who_was_dismissed_meanwhile_gets_nothing(staff, fall, people):
    export = ordered(staff.dana, fall, places={"districts": [staff.riverside.pk]})
    dismiss(membership=staff.dana.memberships.get(), by=staff.state)
    jobs.run(export.job_id)

    export.refresh_from_db()
    export.job.refresh_from_db()
    assert export.file_name == ""
    assert export.job.state == Job.State.FAILED
    assert export.job.message == job.RIGHTS_CHANGED


@pytest.mark.django_db
def test_another_district_is_not_made_even_when_it_is_asked_for(staff, fall, people):
    for places in (
        {"state": True},
        {"districts": [staff.riverside.pk, staff.lakeside.pk]},
        {"districts": [staff.riverside.pk], "schools": [staff.roosevelt.pk]},
        {},
    ):
        export = made(staff.dana, fall, places=places)
        assert (export.file_name, export.job.state) == ("", Job.State.FAILED)


@pytest.mark.django_db
def test_names_are_only_for_one_role_that_may_see_both(staff, fall, people):
    from accounts.models import Membership

    Membership.objects.create(
        user=staff.analyst,
        role=Membership.Role.COORDINATOR,
        school=staff.lincoln,
    )
    lincoln = {"schools": [staff.lincoln.pk]}
    why = {"identities": True, "reason": "consent has to be checked"}
    export = made(staff.analyst, fall, places=lincoln, **why)
    assert export.file_name == ""

    export = made(staff.dana, fall, places=lincoln, **why)
    assert export.rows == 4


@pytest.mark.django_db
def test_with_names_the_answers_stand_beside_them(staff, fall, people):
    identify(people[0], given_name="=Maya", family_name="Diaz", email="m@example.org")
    export = made(
        staff.dana,
        fall,
        places={"schools": [staff.lincoln.pk]},
        identities=True,
        reason="consent has to be checked",
    )
    found = {row["external_id"]: row for row in rows_of(export)}
    maya = found[f"S{people[0].pk}"]
    assert (maya["given_name"], maya["family_name"]) == ("'=Maya", "Diaz")
    # With names nothing is left to be tied together: the time is told.
    assert maya["started"] == "2027-03-01 08:05:06"
    # Destroyed identities leave their answers.
    assert len(found) == 2
    assert found[""]["comment"] == "fine"


@pytest.mark.django_db
def test_without_names_nothing_of_them_is_in_the_file(staff, fall, people):
    for respondent in people:
        identify(respondent, given_name="Maya", email="m@example.org")
    for kind in ("wide", "long"):
        text = content(made(staff.state, fall, format=kind)).decode()
        assert "Maya" not in text
        assert "S1" not in text
        assert "14:" not in text


@pytest.mark.django_db
def test_two_exports_cannot_be_laid_side_by_side(staff, fall, enrol):
    for number in range(40):
        answer(enrol(fall, staff.lincoln), {"age": str(number)})
    exports = [rows_of(made(staff.state, fall)) for _ in range(2)]
    one, two = ([row["research_id"] for row in found] for found in exports)
    assert not set(one) & set(two)
    assert one == sorted(one)
    ages = [[row["age"] for row in found] for found in exports]
    assert sorted(ages[0]) == sorted(ages[1])
    # In the order of the database's keys they would be the same.
    assert ages[0] != ages[1]


@pytest.mark.django_db
def test_an_export_in_two_runs_is_still_one(staff, fall, people):
    export = made(staff.state, fall)
    checksum, name = export.sha256, export.file_name
    Job.objects.filter(pk=export.job_id).update(state="waiting", ended_at=None)
    jobs.run(export.job_id)
    export.refresh_from_db()
    assert (export.sha256, export.file_name) == (checksum, name)


@pytest.mark.django_db
def test_a_worker_that_was_taken_for_dead_keeps_nothing(
    staff, fall, people, monkeypatch
):
    before = left()
    reconcile = job._reconcile

    def meanwhile(done):
        reconcile(done)
        Job.objects.update(attempts=2)

    monkeypatch.setattr(job, "_reconcile", meanwhile)
    export = made(staff.state, fall)
    assert (export.file_name, export.made_at) == ("", None)
    assert left() == before


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["wide", "long", "xlsx"])
def test_a_line_that_is_lost_fails_the_export(staff, fall, people, kind, monkeypatch):
    before = left()
    add = job.Shuffle.add

    def forgetful(self, respondent, line):
        if respondent != str(people[3].pk).encode():
            add(self, respondent, line)

    monkeypatch.setattr(job.Shuffle, "add", forgetful)
    export = made(staff.state, fall, format=kind)
    assert export.job.state == Job.State.FAILED
    assert export.file_name == ""
    assert left() == before


@pytest.mark.django_db
def test_an_answer_that_is_lost_fails_the_export(staff, fall, people, monkeypatch):
    answers = snapshot.Snapshot.responses
    monkeypatch.setattr(snapshot.Snapshot, "responses", lambda self: answers(self) + 1)
    assert made(staff.state, fall).job.state == Job.State.FAILED


@pytest.mark.django_db
def test_an_answer_to_an_unknown_item_is_not_dropped_in_silence(staff, fall, people):
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
def test_cancelling_leaves_nothing(staff, fall, people, monkeypatch):
    before = left()
    monkeypatch.setattr(job, "TELL_EVERY", 2)
    advance = jobs.Progress.advance

    def cancelled(self, count=1):
        self.cancel_asked = True
        advance(self, count)

    monkeypatch.setattr(jobs.Progress, "advance", cancelled)
    export = made(staff.state, fall)
    assert (export.file_name, export.job.state) == ("", Job.State.CANCELLED)
    assert left() == before
    # The connection is good for the next one.
    monkeypatch.undo()
    assert made(staff.state, fall).rows == 12


@pytest.mark.django_db
def test_cancelled_at_the_very_end_it_leaves_nothing(staff, fall, people, monkeypatch):
    before = left()
    confirm = jobs.Progress.confirm

    def asked_to_stop(progress):
        jobs.request_cancel(progress.job)
        confirm(progress)

    monkeypatch.setattr(jobs.Progress, "confirm", asked_to_stop)
    export = made(staff.state, fall)
    assert (export.job.state, export.made_at) == (Job.State.CANCELLED, None)
    assert left() == before


@pytest.mark.django_db
def test_asked_too_late_to_stop_it_is_ready(staff, fall, people, monkeypatch):
    """Not "nothing of it was kept", with a file that can be downloaded."""
    keep = job._keep

    def too_late(*args):
        keep(*args)
        args[-1].cancel_asked = True

    monkeypatch.setattr(job, "_keep", too_late)
    export = made(staff.state, fall)
    assert (export.job.state, export.standing) == (Job.State.DONE, "ready")
    assert (export.job.done, export.job.total) == (12, 12)


@pytest.mark.django_db
def test_many_respondents_go_through_bundles_on_disk(staff, fall, people, monkeypatch):
    monkeypatch.setattr("reports.exports.anonymise.ROOM", 300)
    monkeypatch.setattr(job, "AT_ONCE", 400)
    before = left()
    found = rows_of(made(staff.state, fall))
    assert len(found) == 12
    ids = [row["research_id"] for row in found]
    assert ids == sorted(ids)
    assert len(left() - before) == 2


@pytest.mark.django_db
def test_too_many_rows_for_a_sheet_are_refused_before_it_is_begun(
    staff, fall, people, monkeypatch
):
    monkeypatch.setattr(job, "MOST_ROWS", 12)
    export = made(staff.state, fall, format="xlsx")
    assert "Choose CSV" in export.job.message
    monkeypatch.setattr(job, "MOST_ROWS", 13)
    assert made(staff.state, fall, format="xlsx").rows == 12
    monkeypatch.setattr(job, "MOST_COLUMNS", 20)
    assert "Choose CSV" in made(staff.state, fall, format="xlsx").job.message


@pytest.mark.django_db
def test_a_full_disk_is_told(staff, fall, people, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(job.WideRows, "write", full)
    assert made(staff.state, fall).job.message == job.NO_ROOM


@pytest.mark.django_db
def test_after_seven_days_the_file_is_deleted_and_the_record_stays(staff, fall, people):
    old, new = made(staff.state, fall), made(staff.state, fall)
    past = timezone.now() - timedelta(seconds=1)
    Export.objects.filter(pk=old.pk).update(expires_at=past)
    names = [old.file_name, old.codebook_name]
    requests.delete_old_exports()
    old.refresh_from_db()
    assert (old.file_name, old.codebook_name, old.standing) == ("", "", "deleted")
    assert old.rows == 12
    assert not any(path_of(name).exists() for name in names)
    assert path_of(new.file_name).exists()
    assert AuditEntry.objects.filter(action="delete export").count() == 1


@pytest.mark.django_db
def test_what_a_dead_worker_left_is_swept_up(staff, fall, people):
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
    requests.delete_old_exports()
    assert not forgotten.exists()
    assert not stray.exists()
    assert fresh.exists()
    assert path_of(export.file_name).exists()
    fresh.unlink()


WORKER = """
import sys, time, django
django.setup()
import reports.tasks
from reports.exports import anonymise, job
from survey import jobs
anonymise.ROOM = 100
add = anonymise.Shuffle.add
def slow(self, respondent, line):
    add(self, respondent, line)
    if self.count == 6:
        print("halfway", flush=True)
        time.sleep(60)
job.Shuffle.add = slow
jobs.run(int(sys.argv[1]))
"""


@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_leaves_nothing_and_the_next_one_makes_it(staff, fall, people):
    export = ordered(staff.state, fall)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(export.job_id)],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
            "GROUNDSWELL_TEST_DATABASE": str(connection.settings_dict["NAME"]),
            "GROUNDSWELL_TEST_SERVERS": settings.SERVERS,
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout.readline() == "halfway\n"
    worker.send_signal(signal.SIGKILL)
    worker.wait(10)
    worker.stdout.close()
    export.refresh_from_db()
    assert export.file_name == ""
    Job.objects.filter(pk=export.job_id).update(
        heartbeat_at=timezone.now() - 2 * jobs.DEAD_AFTER
    )
    jobs.run(export.job_id)
    export.refresh_from_db()
    assert export.rows == len(rows_of(export)) == 12
    assert Job.objects.get(pk=export.job_id).attempts == 2


@pytest.mark.django_db(transaction=True)
def test_what_is_saved_meanwhile_is_not_in_it(staff, fall, people, monkeypatch):
    """Rows and counts are of one moment, whatever is saved while it is read."""
    count = snapshot.Snapshot.people

    def and_then_somebody_saves(self):
        found = count(self)
        if not meanwhile:
            from threading import Thread

            thread = Thread(target=save_more)
            thread.start()
            thread.join()
        return found

    meanwhile = []

    def save_more():
        from django.db import connections

        answer(people[0], {"last": "late"})
        meanwhile.append(True)
        connections.close_all()

    monkeypatch.setattr(snapshot.Snapshot, "people", and_then_somebody_saves)
    export = made(staff.state, fall)
    assert meanwhile
    assert Response.objects.count() == 25
    assert export.responses == 24
    assert b"late" not in content(export)


@pytest.mark.django_db
def test_the_state_of_a_user_is_read_anew(staff, fall, people):
    export = ordered(staff.state, fall)
    User.objects.filter(pk=staff.state.pk).update(is_active=False)
    jobs.run(export.job_id)
    export.refresh_from_db()
    assert export.file_name == ""
