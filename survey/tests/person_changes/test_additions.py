"""Add one person by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from survey.database import advisory_locks
from survey.models import (
    CountedGroup,
    Identity,
    RecordJoin,
    Respondent,
    RosterUpload,
)
from survey.people.access_codes import code_of
from survey.people.person_changes.additions import NewPerson, PersonExists, add_person
from survey.people.person_changes.records import PersonConflict
from survey.taking.login import log_in_respondent
from survey.tests.opt_outs.conftest import ALI, HEADER, MAYA
from survey.tests.people import invite
from survey.tests.rosters.roster_console import ConsoleClient
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

NEW = NewPerson("00123", "Maya", "Lopez", grade="07")


@pytest.fixture
def add(administration, staff):
    """Return a function that adds a person at Lincoln."""

    def run(new=NEW, **changes):
        options = {"school": staff.lincoln, "by": staff.chen, **changes}
        return add_person(administration, new, **options)

    return run


def test_a_new_pupil_logs_in_at_once(administration, staff, add):
    administration.subgroups = {"program": ["AVID"]}
    administration.save()
    person = add(NewPerson("00123", "Maya", attributes={"program": "AVID"}))
    person.refresh_from_db()
    assert (person.issue, person.attributes) == (1, {"program": "AVID"})
    assert log_in_respondent(code_of(person)).respondent_id == person.pk
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject_id, entry.school_id) == (
        "add a person",
        person.pk,
        staff.lincoln.pk,
    )
    assert "Maya" not in str(list(AuditEntry.objects.values()))


def test_the_next_complete_roster_decides(administration, add):
    person = add()
    same = run_import(administration, HEADER, MAYA, ALI, complete_for="schools")
    assert (same.added, same.unchanged) == (1, 1)
    assert run_import(administration, HEADER, ALI, complete_for="schools").imported
    person.refresh_from_db()
    assert person.withdrawn_at


def test_undoing_a_roster_leaves_the_added_person(
    administration, staff, django_capture_on_commit_callbacks
):
    # Where progress is confidential, so small a roster is not undone.
    type(administration).objects.update(coordinators_see_finished=True)
    dana = ConsoleClient(staff.dana, django_capture_on_commit_callbacks)
    upload = dana.apply(administration, HEADER, ALI)
    add_person(administration, NEW, school=staff.lincoln, by=staff.dana)
    dana.post(f"/console/rosters/{upload.pk}/undo/")
    assert [identity.external_id for identity in Identity.objects.all()] == ["00123"]


@pytest.mark.parametrize("known", ["00123", "123", "0000123"])
def test_one_id_is_one_person_with_and_without_its_zeros(
    administration, staff, add, known
):
    maya = invite(administration, staff.lincoln, known)
    with pytest.raises(PersonExists) as refused:
        add()
    assert (refused.value.person, refused.value.known_id) == (maya, known)
    assert refused.value.differs_in_zeros is (known != "00123")
    assert Respondent.objects.count() == 1


def test_other_ids_and_other_districts_are_other_people(administration, staff, add):
    invite(administration, staff.lincoln, "001230")
    invite(administration, staff.roosevelt, "00123")
    assert add().pk


def test_the_id_of_a_joined_record_leads_to_the_person(administration, staff, add):
    survivor = invite(administration, staff.lincoln, "7")
    twin = invite(administration, staff.lincoln, "x", withdrawn_at=timezone.now())
    twin.identity.delete()
    RecordJoin.objects.create(
        administration=administration,
        kept=survivor,
        other=twin,
        state="joined",
        district=staff.riverside,
        external_id="00123",
        by=staff.chen,
    )
    with pytest.raises(PersonExists) as refused:
        add()
    assert refused.value.person == survivor


def test_nobody_is_added_while_a_roster_is_applied(administration, staff, add):
    RosterUpload.objects.create(
        administration=administration,
        by=staff.dana,
        name="x.csv",
        size=1,
        state="applying",
        confirmed_at=timezone.now(),
    )
    with pytest.raises(PersonConflict, match="is being applied"):
        add()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'")
def test_nobody_is_added_while_an_import_has_the_lock(administration, add):
    def try_to_add():
        try:
            add()
        except PersonConflict as conflict:
            return str(conflict)
        finally:
            connection.close()

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)",
            [advisory_locks.ROSTER, administration.pk],
        )
        with ThreadPoolExecutor(1) as thread:
            refused = thread.submit(try_to_add).result(timeout=30)
    assert "A roster of this survey round is being applied" in refused
    assert not Respondent.objects.exists()


def test_nobody_is_added_where_anyone_can_take_part(administration, add):
    type(administration).objects.update(denominator="count")
    with pytest.raises(PersonConflict, match="has no roster"):
        add()


def test_figures_of_an_open_survey_follow_later(administration, staff, add):
    first = add()
    # Nobody else's number can be subtracted from the first person's.
    assert not CountedGroup.objects.exists()
    second = add(NewPerson("2"))
    assert CountedGroup.objects.get().respondent == second
    assert CountedGroup.objects.get().school is None
    assert first.school == second.school


def test_people_added_before_the_opening_count_at_once(administration, add):
    now = timezone.now()
    type(administration).objects.update(opens_at=now + timedelta(days=1))
    add()
    add(NewPerson("2"))
    assert not CountedGroup.objects.exists()


def test_a_merged_school_takes_nobody(staff, add):
    school = staff.washington
    type(school).objects.filter(pk=school.pk).delete()
    with pytest.raises(PersonConflict, match="no longer exists"):
        add(school=school)
