"""Correct, move, withdraw and bring back one person."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from survey.models import CountedGroup, Identity, Respondent
from survey.people.opt_outs.records import opt_out
from survey.people.person_changes.records import (
    PersonConflict,
    bring_back_person,
    correct_person,
    reopen_survey,
    withdraw_person,
)
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.conftest import FIRST_PAGE, Browser, code_of
from survey.tests.opt_outs.conftest import ALI, HEADER, MAYA, NO_FORM
from survey.tests.people import invite
from survey.tests.rosters.roster_console import ConsoleClient, person
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    return administration


@pytest.fixture
def maya(administration, staff) -> Respondent:
    fields = {"grade": "07"}
    return invite(administration, staff.lincoln, "00123", "Maya Lopez", **fields)


def may_log_in(respondent) -> bool:
    try:
        return bool(log_in_respondent(code_of(respondent)))
    except LoginRefused:
        return False


@pytest.mark.sqlite
def test_a_name_is_corrected_until_the_next_roster(administration, staff, maya):
    changes = {"family_name": "López", "grade": "08", "given_name": "Maya"}
    assert correct_person(maya, changes, by=staff.chen) == ["family_name", "grade"]
    maya.refresh_from_db()
    assert (maya.grade, Identity.objects.get(pk=maya.pk).family_name) == ("08", "López")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.after["changed"]) == (
        "correct a person",
        ["family_name", "grade"],
    )
    assert "López" not in str(list(AuditEntry.objects.values()))
    # In figures of an open survey, the person stays in grade 7 for now.
    assert CountedGroup.objects.get().grade == "07"

    run_import(administration, HEADER, MAYA)
    maya.refresh_from_db()
    assert maya.grade == "07"


def test_the_same_values_change_nothing(staff, maya):
    changes = {"family_name": "Lopez", "school": staff.lincoln}
    assert correct_person(maya, changes, by=staff.chen) == []
    assert not AuditEntry.objects.exists()
    assert not CountedGroup.objects.exists()


@pytest.mark.sqlite
def test_a_person_who_is_answering_moves_with_the_answers(staff, maya):
    child = Browser().log_in(maya)
    base = child.bootstrap()["revision"]
    assert child.save(1, FIRST_PAGE, base).status_code == 200
    correct_person(maya, {"school": staff.washington}, by=staff.dana)
    maya.refresh_from_db()
    assert maya.school == staff.washington
    assert child.save(1, FIRST_PAGE, base + 1).status_code == 200
    assert CountedGroup.objects.get().school == staff.lincoln
    entry = AuditEntry.objects.get()
    assert (entry.before, entry.after["school"]) == (
        {"school": "Lincoln"},
        "Washington",
    )


@pytest.mark.sqlite
def test_a_withdrawn_person_is_brought_back_by_hand_or_by_a_roster(
    administration, staff, maya
):
    withdraw_person(maya, by=staff.chen)
    assert not may_log_in(maya)
    with pytest.raises(PersonConflict):
        withdraw_person(maya, by=staff.chen)
    bring_back_person(maya, by=staff.chen)
    assert may_log_in(maya)
    with pytest.raises(PersonConflict):
        bring_back_person(maya, by=staff.chen)
    withdraw_person(maya, by=staff.chen)
    assert run_import(administration, HEADER, MAYA).back == 1
    assert may_log_in(maya)
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == [
        "withdraw a person",
        "bring back a person",
        "withdraw a person",
    ]


def test_nobody_is_brought_back_who_has_opted_out_or_was_joined(staff, maya):
    opt_out(maya, NO_FORM, by=staff.chen)
    with pytest.raises(PersonConflict):
        bring_back_person(maya, by=staff.chen)
    twin = invite(
        maya.administration, staff.lincoln, "A-77", withdrawn_at=timezone.now()
    )
    Identity.objects.filter(pk=twin.pk).delete()
    with pytest.raises(PersonConflict):
        bring_back_person(twin, by=staff.chen)


@pytest.mark.sqlite
def test_a_roster_that_is_undone_keeps_a_correction(
    administration, staff, django_capture_on_commit_callbacks
):
    dana = ConsoleClient(staff.dana, django_capture_on_commit_callbacks)
    dana.apply(administration, HEADER, MAYA, ALI)
    upload = dana.apply(
        administration, HEADER, MAYA.replace(",7", ",8"), ALI.replace(",7", ",8")
    )
    correct_person(person("00123"), {"grade": "09"}, by=staff.dana)
    dana.post(f"/console/rosters/{upload.pk}/undo/")
    upload.refresh_from_db()
    assert upload.state == "undone", upload.message
    assert (person("00123").grade, person("00124").grade) == ("09", "07")


def test_corrections_take_few_statements(staff, maya, django_assert_num_queries):
    # A savepoint and its release, the row, the identity, the groups, the person, the
    # name, rosters that can be undone, the audit.
    with django_assert_num_queries(9):
        correct_person(maya, {"grade": "08", "family_name": "López"}, by=staff.chen)


@pytest.mark.sqlite
def test_a_finished_survey_is_reopened_and_finished_again(staff, maya):
    child = Browser().log_in(maya)
    base = child.bootstrap()["revision"]
    assert child.save(1, FIRST_PAGE, base).status_code == 200
    with pytest.raises(PersonConflict, match="has not finished"):
        reopen_survey(maya, by=staff.chen)
    Respondent.objects.filter(pk=maya.pk).update(completed_at=timezone.now())
    assert child.save(1, FIRST_PAGE, base + 1).status_code == 409

    reopen_survey(maya, by=staff.chen)
    assert AuditEntry.objects.get().action == "reopen a finished survey"
    child = Browser().log_in(maya)
    revision = child.bootstrap()["revision"]
    assert child.save(1, FIRST_PAGE, revision).status_code == 200
    maya.refresh_from_db()
    assert maya.started_at and maya.completed_at is None


def test_a_survey_is_only_reopened_while_the_person_can_go_on(
    administration, staff, maya
):
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(started_at=now, completed_at=now)
    withdraw_person(maya, by=staff.chen)
    with pytest.raises(PersonConflict, match="cannot go on"):
        reopen_survey(maya, by=staff.chen)
    bring_back_person(maya, by=staff.chen)
    administration.closes_at = now
    administration.save()
    with pytest.raises(PersonConflict, match="cannot go on"):
        reopen_survey(maya, by=staff.chen)


def test_reopening_does_not_tell_who_has_finished(administration, staff, maya):
    administration.coordinators_see_finished = False
    administration.save()
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(started_at=now, completed_at=now)
    with pytest.raises(PersonConflict, match="Nobody may see"):
        reopen_survey(maya, by=staff.chen)
