"""Opt-outs of IDs that are not on the roster yet."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from survey.database import advisory_locks
from survey.models import CountedGroup, ListedId, OptOut, RosterUpload
from survey.people.opt_outs.listed_ids import EarlyId, apply_listed_ids, keep_ids
from survey.people.opt_outs.records import OptOutConflict, take_back
from survey.people.person_changes.additions import NewPerson, add_person
from survey.people.person_changes.records import correct_person
from survey.people.rosters import apply
from survey.people.rosters.opted_out import LISTED
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.conftest import code_of
from survey.tests.opt_outs.conftest import ALI, HEADER, MAYA, NO_FORM
from survey.tests.people import invite
from survey.tests.rosters.roster_console import ConsoleClient, person
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db


def may_log_in(respondent) -> bool:
    try:
        return bool(log_in_respondent(code_of(respondent)))
    except LoginRefused:
        return False


@pytest.fixture
def keep(administration, staff):
    """Return a function that keeps an ID for a district, or for a school."""

    def run(external_id, *, by=staff.dana, school=None, district=staff.riverside):
        early = EarlyId(external_id, district.pk, school.pk if school else None)
        keep_ids([early], NO_FORM, administration=administration, by=by)

    return run


@pytest.mark.sqlite
def test_a_later_roster_opts_out_the_people_of_a_list(
    administration, staff, keep, roster
):
    keep("00123")
    report = roster(MAYA, ALI)
    assert (report.added, report.notes[LISTED]) == (2, 1)
    maya, ali = person("00123"), person("00124")
    assert not may_log_in(maya) and may_log_in(ali)
    saved = OptOut.objects.get()
    assert (saved.respondent, saved.by, saved.reason, saved.was_withdrawn_at) == (
        maya,
        staff.dana,
        "no consent form",
        None,
    )
    assert not ListedId.objects.waiting().exists()
    entry, done = AuditEntry.objects.order_by("pk")
    assert (entry.action, entry.after["IDs"]) == ("keep opt-outs for later rosters", 1)
    assert (done.action, done.after["people"], done.by) == (
        "opt out people of a list",
        1,
        staff.dana.email,
    )
    # They never counted among those invited.
    assert not CountedGroup.objects.filter(respondent=maya).exists()
    assert roster(MAYA, ALI).unchanged == 2


def test_without_the_check_in_the_batch_the_pupil_could_start(
    administration, keep, roster, monkeypatch
):
    """The twin: what the check protects from."""
    monkeypatch.setattr(apply, "apply_listed_ids", lambda *_, **__: None)
    keep("00123")
    roster(MAYA)
    assert may_log_in(person("00123"))


def test_no_other_district_is_touched(administration, staff, keep, roster):
    keep("00123", by=staff.state, district=staff.lakeside)
    roster(MAYA)
    assert may_log_in(person("00123"))


@pytest.mark.sqlite
def test_a_school_opts_out_its_own_people_only(administration, staff, keep, roster):
    keep("00123", by=staff.chen, school=staff.lincoln)
    roster(MAYA.replace("lincoln", "washington"))
    assert may_log_in(person("00123"))
    # Until they come to this school.
    roster(MAYA)
    assert not may_log_in(person("00123"))


def test_a_pupil_who_is_moved_by_hand_is_opted_out(administration, staff, keep):
    maya = invite(administration, staff.washington, "00123", "Maya Lopez")
    keep("00123", by=staff.chen, school=staff.lincoln)
    correct_person(maya, {"school": staff.lincoln}, by=staff.dana)
    assert not may_log_in(maya)


@pytest.mark.sqlite
def test_a_person_who_is_added_by_hand_is_opted_out(administration, staff, keep):
    keep("00123")
    maya = add_person(
        administration, NewPerson("00123"), school=staff.lincoln, by=staff.chen
    )
    assert not may_log_in(maya)


def test_nobody_keeps_ids_for_other_places(staff, keep):
    for place in (
        {"by": staff.chen},
        {"by": staff.chen, "school": staff.washington},
        {"by": staff.dana, "district": staff.lakeside},
    ):
        with pytest.raises(OptOutConflict, match="no longer in one of your schools"):
            keep("1", **place)
    assert not ListedId.objects.exists()


def test_a_list_is_refused_once_its_people_are_on_the_roster(keep, roster):
    roster(MAYA)
    with pytest.raises(OptOutConflict, match="is on the roster since"):
        keep("00123")
    assert not ListedId.objects.exists()


def test_a_list_waits_for_no_roster_that_is_applied(administration, staff, keep):
    RosterUpload.objects.create(
        administration=administration,
        by=staff.dana,
        name="x.csv",
        size=1,
        state="applying",
        confirmed_at=timezone.now(),
    )
    with pytest.raises(OptOutConflict, match="is being applied"):
        keep("00123")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'")
def test_a_list_is_refused_while_an_import_has_the_lock(administration, keep):
    def try_to_keep():
        try:
            keep("00123")
        except OptOutConflict as conflict:
            return str(conflict)
        finally:
            connection.close()

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)",
            [advisory_locks.ROSTER, administration.pk],
        )
        with ThreadPoolExecutor(1) as thread:
            refused = thread.submit(try_to_keep).result(timeout=30)
    assert "A roster of this survey round is being applied" in refused
    assert not ListedId.objects.exists()


@pytest.mark.sqlite
def test_an_opt_out_that_is_taken_back_does_not_come_again(
    administration, staff, keep, roster
):
    keep("00123")
    roster(MAYA, ALI)
    take_back(person("00123"), by=staff.dana)
    assert may_log_in(person("00123"))
    roster(ALI, complete_for="schools")
    roster(MAYA, ALI)
    assert may_log_in(person("00123"))


def test_an_undone_roster_leaves_nobody_uninvited_who_refused(
    administration, staff, keep, django_capture_on_commit_callbacks
):
    dana = ConsoleClient(staff.dana, django_capture_on_commit_callbacks)
    keep("00123")
    upload = dana.apply(administration, HEADER, MAYA, ALI)
    dana.post(f"/console/rosters/{upload.pk}/undo/")
    dana.apply(administration, HEADER, MAYA, ALI)
    assert not may_log_in(person("00123"))
    assert may_log_in(person("00124"))


@pytest.mark.sqlite
def test_a_roster_that_gives_a_listed_id_opts_out(administration, keep):
    run_import(administration, HEADER, MAYA)
    keep("A-77")
    header = f"{HEADER},previous ID"
    renamed = f"{MAYA.replace('00123', 'A-77')},00123"
    report = run_import(administration, header, renamed)
    assert report.changed == 1
    assert not may_log_in(person("A-77"))


@pytest.mark.sqlite
def test_ids_are_kept_once_for_each_place(staff, keep):
    keep("1")
    keep("1")
    keep("1", by=staff.chen, school=staff.lincoln)
    assert ListedId.objects.count() == 2


@pytest.mark.parametrize("number", [1, 3])
def test_three_people_take_as_many_statements_as_one(
    administration, staff, keep, django_assert_num_queries, number
):
    for key in range(3):
        keep(f"{key:05}")
    people = [
        invite(administration, staff.lincoln, f"{key:05}").pk for key in range(number)
    ]
    with connection.cursor() as cursor, django_assert_num_queries(7):
        apply_listed_ids(cursor, administration, people, are_new=True)
    assert OptOut.objects.count() == number


def test_before_the_opening_too(administration, keep, roster):
    now = timezone.now()
    type(administration).objects.update(opens_at=now + timedelta(days=1))
    keep("00123")
    roster(MAYA)
    assert person("00123").opted_out_at
