"""Files of an approved project are linked until it ends, and never to another one."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from reports.exports import approved_projects, key_table
from reports.exports.approved_projects import (
    _needs_ending,
    approve_project,
    end_due_projects,
    end_project,
)
from reports.exports.job import PROJECT_OVER
from reports.models import Export, PanelProject
from reports.models.exports import KEY_TABLE
from reports.tests.exports.conftest import (
    made_as_it_is,
    panel_of,
    requested,
)
from reports.tests.exports.test_formats import content
from reports.tests.exports.test_panel import ids_by_age
from survey.models import Job, Respondent
from survey.people.erasing import files
from survey.work import jobs
from survey.work.files import path_of
from survey.work.requested_files import delete_file

pytestmark = pytest.mark.django_db


@pytest.fixture
def approve(staff):
    def approved(name="Attendance", *, days=30) -> PanelProject:
        return approve_project(
            name=name,
            purpose="Does safety go with attendance?",
            people="Dr Okafor, State University",
            approval_number="IRB 12",
            ends_on=timezone.localdate() + timedelta(days=days),
            by=staff.state,
        )

    return approved


@pytest.fixture
def people(staff, waves, take_part) -> None:
    """S1 was in both waves, S2 in the second one, and S3 did not begin."""
    fall, spring = waves
    take_part(fall, staff.lincoln, "S1", 10)
    take_part(spring, staff.lincoln, "S1", 11)
    take_part(spring, staff.washington, "S2", 21)
    take_part(fall, staff.lincoln, "S3", 30, started_at=None)
    take_part(spring, staff.roosevelt, "S1", 41)


def keys_of(staff, waves, project, **choices) -> Export:
    return made_as_it_is(
        staff.state,
        *waves,
        project=project,
        format=KEY_TABLE,
        identities=True,
        reason="Linked with attendance.",
        **choices,
    )


def lines_of(export: Export) -> dict[tuple[str, str], str]:
    """Return the key by district and ID."""
    rows = csv.DictReader(io.StringIO(content(export).decode()))
    return {
        (row["district_code"], row["external_id"]): row["project_key"] for row in rows
    }


def test_the_key_table_links_the_files_of_a_project(staff, waves, people, approve):
    project = approve()
    first = panel_of(staff.state, waves[:1], project=project)
    ids = ids_by_age(panel_of(staff.state, waves, project=project))
    assert ids["10"] == ids["11"] == ids_by_age(first)["10"]
    assert len(set(ids.values())) == 3

    table = keys_of(staff, waves, project)
    keys = lines_of(table)
    assert keys["riverside", "S1"] == ids["10"]
    assert keys["riverside", "S2"] == ids["21"]
    assert keys["lakeside", "S1"] == ids["41"]
    assert (table.rows, table.respondents) == (4, 4)
    # Nobody can see in the table who has taken part.
    assert keys["riverside", "S3"] not in ids.values()
    header = content(table).decode().splitlines()[0]
    assert header == "project_key,role,district_code,external_id"
    entry = AuditEntry.objects.get(action="make export", subject_id=table.pk)
    assert entry.after["project"] == "Attendance"


def test_the_files_have_no_ids(staff, waves, people, approve):
    person = waves[1].respondents.get(identity__external_id="S2")
    person.identity.given_name = "Zaragoza"
    person.identity.save(update_fields=["given_name"])
    project = approve()
    file = content(panel_of(staff.state, waves, project=project))
    table = content(keys_of(staff, waves, project))
    # Names are in neither, and IDs in the table alone.
    for name in (b"S2", b"Zaragoza", person.code_digest):
        assert name not in file
    assert b"S2" in table and b"Zaragoza" not in table


def test_people_who_opted_out_and_other_places_are_in_no_key_table(
    staff, waves, people, approve
):
    project = approve()
    places = {"districts": [staff.riverside.pk]}
    assert ("riverside", "S2") in lines_of(keys_of(staff, waves, project))
    now = datetime(2027, 3, 4, tzinfo=UTC)
    Respondent.objects.filter(identity__external_id="S2").update(
        opted_out_at=now, withdrawn_at=now
    )
    keys = lines_of(keys_of(staff, waves, project, places=places))
    assert keys.keys() == {("riverside", "S1"), ("riverside", "S3")}
    places = {"schools": [staff.washington.pk]}
    assert lines_of(keys_of(staff, waves, project, places=places)) == {}


def test_an_id_like_a_formula_or_with_a_tab_stays_one_cell(
    staff, waves, people, approve, take_part
):
    strange = '=1+1\t,"x"'
    take_part(waves[0], staff.lincoln, strange, 50)
    text = content(keys_of(staff, waves, approve())).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 5
    assert [row["external_id"] for row in rows].count(f"'{strange}") == 1


def test_keys_of_two_projects_have_nothing_in_common(staff, waves, people, approve):
    first, second = approve("First"), approve("Second")
    of_first, of_second = (
        lines_of(keys_of(staff, waves, project)) for project in (first, second)
    )
    assert of_first.keys() == of_second.keys()
    assert not set(of_first.values()) & set(of_second.values())


def test_with_one_key_for_all_projects_they_would_be_linked(
    staff, waves, people, approve
):
    first, second = approve("First"), approve("Second")
    PanelProject.objects.filter(pk=second.pk).update(key=bytes(first.key))
    second.refresh_from_db()
    assert lines_of(keys_of(staff, waves, first)) == lines_of(
        keys_of(staff, waves, second)
    )


class TestEnd:
    def test_no_file_and_no_key_is_left(self, staff, waves, people, approve):
        project = approve()
        exports = [
            panel_of(staff.state, waves, project=project),
            keys_of(staff, waves, project),
        ]
        unrelated = panel_of(staff.state, waves)
        names = [
            getattr(export, field)
            for export in exports
            for field in Export.FILE_NAMES
            if getattr(export, field)
        ]
        assert len(names) == 5 and all(path_of(name).exists() for name in names)
        end_project(project, by=staff.state)

        project.refresh_from_db()
        assert project.key is None and project.is_over
        assert not any(path_of(name).exists() for name in names)
        for export in exports:
            export.refresh_from_db()
            assert (export.file_name, bool(export.deleted_at)) == ("", True)
        # Files of nobody else.
        assert path_of(unrelated.file_name).exists()
        # Once, although it is ended again.
        end_project(project, by=staff.dana)
        entry = AuditEntry.objects.get(action="end research project")
        assert (entry.subject_id, entry.user_id) == (project.pk, staff.state.pk)

    def test_no_file_is_made_afterwards(self, staff, waves, people, approve):
        project = approve()
        ids_by_age(panel_of(staff.state, waves, project=project))
        end_project(project, by=staff.state)
        project.refresh_from_db()
        for export in (
            panel_of(staff.state, waves, project=project),
            keys_of(staff, waves, project),
        ):
            assert not export.file_name
            assert export.job.message == PROJECT_OVER

    def test_a_new_project_of_the_same_title_has_other_keys(
        self, staff, waves, people, approve
    ):
        project = approve()
        before = lines_of(keys_of(staff, waves, project))
        end_project(project, by=staff.state)
        PanelProject.objects.filter(pk=project.pk).update(name="Before")
        after = lines_of(keys_of(staff, waves, approve()))
        assert not set(before.values()) & set(after.values())

    def test_a_waiting_job_is_cancelled(self, staff, waves, people, approve):
        project = approve()
        export = requested(staff.state, *waves, project=project, is_panel=True)
        end_project(project, by=staff.state)
        jobs.run(export.job_id)
        export.refresh_from_db()
        assert export.job.state == Job.State.CANCELLED and not export.file_name

    def test_a_job_that_runs_meanwhile_leaves_no_file(
        self, staff, waves, people, approve, monkeypatch
    ):
        project, make = approve(), key_table.joined_ids

        def end_meanwhile(roles):
            end_project(project, by=staff.state)
            return make(roles)

        monkeypatch.setattr(key_table, "joined_ids", end_meanwhile)
        export = keys_of(staff, waves, project)
        assert export.job.state == Job.State.CANCELLED
        assert not export.file_name

    def test_without_its_cancellation_the_file_would_be_there(
        self, staff, waves, people, approve, monkeypatch
    ):
        project, make = approve(), key_table.joined_ids
        monkeypatch.setattr(approved_projects, "request_cancel", lambda job: None)

        def end_meanwhile(roles):
            end_project(project, by=staff.state)
            return make(roles)

        monkeypatch.setattr(key_table, "joined_ids", end_meanwhile)
        export = keys_of(staff, waves, project)
        assert path_of(export.file_name).exists()
        # Until the task looks again.
        end_due_projects()
        assert not path_of(export.file_name).exists()

    def test_it_ends_after_its_last_day(self, staff, waves, people, approve):
        project = approve(days=0)
        export = panel_of(staff.state, waves, project=project)
        end_due_projects()
        export.refresh_from_db()
        assert path_of(export.file_name).exists()

        yesterday = timezone.localdate() - timedelta(days=1)
        PanelProject.objects.filter(pk=project.pk).update(ends_on=yesterday)
        project.refresh_from_db()
        # Over at midnight, before the task runs.
        assert project.is_over and project.ended_at is None
        assert panel_of(staff.state, waves, project=project).file_name == ""
        end_due_projects()
        project.refresh_from_db()
        assert project.key is None
        assert not path_of(export.file_name).exists()
        assert AuditEntry.objects.get(action="end research project").by == (
            approved_projects.TASK
        )

    def test_the_task_finds_a_project_with_one_of_several_files_left(
        self, staff, waves, people, approve
    ):
        """As after a task that was killed between two files."""
        project = approve()
        deleted, left = (panel_of(staff.state, waves, project=project) for _ in "12")
        waiting = requested(staff.state, *waves, project=project, is_panel=True)
        delete_file(deleted, by=staff.state)
        now = timezone.now()
        PanelProject.objects.filter(pk=project.pk).update(key=None, ended_at=now)
        path = path_of(left.file_name)
        assert path.exists()
        end_due_projects()
        assert not path.exists()
        # Its job has not ended yet.
        jobs.run(waiting.job_id)
        waiting.job.refresh_from_db()
        assert waiting.job.state == Job.State.CANCELLED
        assert not PanelProject.objects.filter(_needs_ending()).exists()

    def test_a_file_that_cannot_be_deleted_keeps_no_other_project(
        self, staff, waves, people, approve, monkeypatch, caplog
    ):
        exports = [
            panel_of(staff.state, waves, project=approve(name)) for name in ("A", "B")
        ]
        yesterday = timezone.localdate() - timedelta(days=1)
        PanelProject.objects.update(ends_on=yesterday)
        delete = approved_projects.delete_file

        def fail_once(export, *, by):
            if export.pk == exports[0].pk:
                raise OSError("Storage is away")
            delete(export, by=by)

        monkeypatch.setattr(approved_projects, "delete_file", fail_once)
        end_due_projects()
        assert "was not ended as a whole" in caplog.text
        first, second = (path_of(export.file_name) for export in exports)
        assert first.exists() and not second.exists()
        # Keys go before files, and the next run deletes what is left.
        assert not PanelProject.objects.exclude(key=None).exists()
        monkeypatch.setattr(approved_projects, "delete_file", delete)
        end_due_projects()
        assert not first.exists()

    def test_projects_of_users_do_not_end(self, staff, waves, people):
        project = PanelProject.objects.create(name="Study", by=staff.dana)
        export = panel_of(staff.state, waves, project=project)
        end_due_projects()
        project.refresh_from_db()
        assert project.key and path_of(export.file_name).exists()


class TestRules:
    def test_a_key_and_an_end_exclude_each_other(self, approve):
        project = approve()
        rows = PanelProject.objects.filter(pk=project.pk)
        for values in ({"ended_at": timezone.now()}, {"key": None}):
            with (
                pytest.raises(IntegrityError, match="has_a_key_until_it_ends"),
                transaction.atomic(),
            ):
                rows.update(**values)

    def test_an_approved_project_says_what_for_and_who(self, approve):
        rows = PanelProject.objects.filter(pk=approve().pk)
        for values in ({"purpose": ""}, {"people": ""}):
            with (
                pytest.raises(IntegrityError, match="has_a_purpose_and_people"),
                transaction.atomic(),
            ):
                rows.update(**values)

    def test_a_key_table_needs_names_of_the_whole_state(
        self, staff, waves, people, approve
    ):
        project = approve()
        export = made_as_it_is(
            staff.analyst,
            *waves,
            project=project,
            format=KEY_TABLE,
            identities=True,
            reason="Linked with attendance.",
        )
        assert not export.file_name
        with (
            pytest.raises(IntegrityError, match="a_key_table_is_of_a_project"),
            transaction.atomic(),
        ):
            Export.objects.create(
                by=staff.state, format=KEY_TABLE, identities=True, reason="x"
            )


def test_erasing_a_person_deletes_the_files_of_projects(staff, waves, people, approve):
    project = approve()
    exports = [
        panel_of(staff.state, waves, project=project),
        keys_of(staff, waves, project),
    ]
    paths = [path_of(export.file_name) for export in exports]
    rounds = {wave.pk for wave in waves}
    deleted = files.delete_requested_files(rounds, staff.riverside.pk, timezone.now())
    assert deleted == (0, 2)
    assert not any(path.exists() for path in paths)
