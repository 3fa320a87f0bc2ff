"""Undo rosters and join records of people who have opted out."""

from __future__ import annotations

import pytest

from survey.models import Job, OptOut, Respondent
from survey.people.merging import joins
from survey.people.merging.joins import request_join
from survey.people.opt_outs.records import opt_out, take_back
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.conftest import code_of
from survey.tests.opt_outs.conftest import ALI, HEADER, MAYA, NO_FORM
from survey.tests.rosters.roster_console import ConsoleClient, person
from survey.tests.rosters.roster_imports import run_import
from survey.work import jobs

pytestmark = pytest.mark.django_db

TWICE = MAYA.replace("00123", "A-77")


@pytest.fixture
def dana(staff, django_capture_on_commit_callbacks):
    return ConsoleClient(staff.dana, django_capture_on_commit_callbacks)


def undo_upload(console, upload):
    console.post(f"/console/rosters/{upload.pk}/undo/")
    upload.refresh_from_db()
    assert upload.state == "undone", upload.message


def may_log_in(respondent) -> bool:
    try:
        return bool(log_in_respondent(code_of(respondent)))
    except LoginRefused:
        return False


def test_undoing_a_roster_keeps_the_opt_outs_of_its_new_people(
    administration, staff, dana
):
    run_import(administration, HEADER, ALI)
    upload = dana.apply(administration, HEADER, ALI, MAYA)
    opt_out(person("00123"), NO_FORM, by=staff.dana)
    undo_upload(dana, upload)
    assert (upload.undo.removed, upload.undo.withdrawn) == (0, 1)
    dana.apply(administration, HEADER, ALI, MAYA)
    assert not may_log_in(person("00123"))


def test_undoing_a_roster_brings_nobody_back_who_has_opted_out(
    administration, staff, dana
):
    run_import(administration, HEADER, ALI, MAYA)
    upload = dana.apply(administration, HEADER, ALI, typed="1")
    opt_out(person("00123"), NO_FORM, by=staff.dana)
    undo_upload(dana, upload)
    assert upload.undo.restored == 0
    assert not may_log_in(person("00123"))


def test_a_roster_that_brought_a_person_back_is_undone(administration, staff, dana):
    run_import(administration, HEADER, ALI, MAYA)
    run_import(administration, HEADER, ALI, complete_for="schools")
    upload = dana.apply(administration, HEADER, ALI, MAYA)
    opt_out(person("00123"), NO_FORM, by=staff.dana)
    undo_upload(dana, upload)
    assert not may_log_in(person("00123"))


@pytest.fixture
def join(administration, staff, monkeypatch):
    """Return a function that joins the two records of Maya."""
    run_import(administration, HEADER, MAYA, TWICE, ALI)
    monkeypatch.setattr(jobs, "wake", lambda *_: None)

    def run(target, duplicate):
        created = request_join(person(target), person(duplicate), by=staff.chen)
        jobs.run(Job.objects.get(kind=joins.KIND, subject_id=created.pk).pk)
        created.refresh_from_db()
        assert created.state == "joined", created.message
        return Respondent.objects.get(pk=created.kept_id), Respondent.objects.get(
            pk=created.other_id
        )

    return run


def test_a_refusal_counts_for_both_records_of_a_person(join, staff):
    """The record that stays had not opted out."""
    opt_out(person("00123"), NO_FORM, by=staff.chen)
    survivor, twin = join("A-77", "00123")
    assert not may_log_in(survivor) and not may_log_in(twin)
    assert OptOut.objects.get(ended_at=None).respondent == survivor
    # Exports leave out both.
    assert survivor.opted_out_at and twin.opted_out_at
    take_back(survivor, by=staff.chen)
    assert may_log_in(survivor) and not may_log_in(twin)


def test_a_record_that_could_be_used_does_not_bring_the_other_one_back(join, staff):
    opt_out(person("00123"), NO_FORM, by=staff.chen)
    survivor, twin = join("00123", "A-77")
    assert not may_log_in(survivor) and not may_log_in(twin)
    assert survivor.opted_out_at and twin.opted_out_at
    take_back(survivor, by=staff.chen)
    assert may_log_in(survivor) and not may_log_in(twin)


def test_two_opt_outs_of_one_person_become_one(join, staff):
    opt_out(person("00123"), NO_FORM, by=staff.chen)
    opt_out(person("A-77"), NO_FORM, by=staff.chen)
    survivor, twin = join("00123", "A-77")
    assert not may_log_in(survivor) and not may_log_in(twin)
    assert OptOut.objects.get(ended_at=None).respondent == survivor
