"""Opt people out, and take it back."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from survey.models import CardSet, CountedGroup, Identity, OptOut, Respondent, Response
from survey.people.opt_outs.records import OptOutConflict, opt_out, take_back
from survey.people.rosters import apply
from survey.people.rosters.opted_out import OPTED_OUT
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.conftest import FIRST_PAGE, Browser, code_of
from survey.tests.opt_outs.conftest import ALI, MAYA, NO_FORM

pytestmark = pytest.mark.django_db


def may_log_in(person) -> bool:
    try:
        log_in_respondent(code_of(person))
    except LoginRefused as refused:
        assert refused.key == "withdrawn"
        return False
    return True


def test_maya_opts_out_and_it_is_taken_back(administration, staff, maya):
    opt_out(maya, NO_FORM, by=staff.chen)
    maya.refresh_from_db()
    assert maya.opted_out_at and maya.withdrawn_at
    assert not may_log_in(maya)
    stored = OptOut.objects.get()
    assert (stored.respondent, stored.requested_by, stored.by) == (
        maya,
        "parent",
        staff.chen,
    )
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject_id, entry.school_id) == (
        "opt out a person",
        maya.pk,
        staff.lincoln.pk,
    )
    assert entry.after == {
        "administration": "students-2027",
        "requested on": "2026-09-01",
        "requested by": "parent",
    }

    take_back(maya, by=staff.dana)
    maya.refresh_from_db()
    assert (maya.opted_out_at, maya.withdrawn_at) == (None, None)
    assert may_log_in(maya)
    stored.refresh_from_db()
    assert stored.ended_by == staff.dana and stored.ended_at
    # It can be refused again.
    opt_out(maya, NO_FORM, by=staff.chen)
    assert not may_log_in(maya)


def test_an_open_tab_saves_no_more_and_keeps_what_was_saved(
    administration, staff, maya
):
    child = Browser().log_in(maya)
    base = child.bootstrap()["revision"]
    assert child.save(1, FIRST_PAGE, base).status_code == 200
    saved = list(Response.objects.order_by("item_id").values())
    assert saved

    opt_out(maya, NO_FORM, by=staff.chen, expects_start=True)

    refused = child.save(1, FIRST_PAGE, base + 1)
    assert (refused.status_code, refused.json()["error"]) == (409, "withdrawn")
    assert list(Response.objects.order_by("item_id").values()) == saved


def test_the_next_rosters_neither_bring_back_nor_miss_a_person(
    administration, staff, roster, maya, ali
):
    opt_out(maya, NO_FORM, by=staff.chen)
    report = roster(MAYA, ALI, complete_for="schools")
    assert (report.back, report.added, report.withdrawn) == (0, 0, 0)
    assert report.notes == {OPTED_OUT: 1}
    assert not may_log_in(maya)
    # What the roster says about the person is stored all the same.
    changed = roster(MAYA.replace("Lopez,7", "López,8"), ALI, complete_for="schools")
    assert changed.changed == 1
    maya.refresh_from_db()
    assert (maya.grade, Identity.objects.get(pk=maya.pk).family_name) == ("08", "López")
    assert not may_log_in(maya)
    assert roster(ALI, complete_for="schools").withdrawn == 0
    assert roster(MAYA, ALI).notes == {OPTED_OUT: 1}


def test_moving_to_another_school_changes_no_number_of_people(
    administration, staff, roster, maya, ali
):
    opt_out(maya, NO_FORM, by=staff.chen)
    report = roster(MAYA.replace("lincoln", "washington"), ALI)
    numbers = {
        row.name: (row.people, row.moved, row.moved_away) for row in report.schools
    }
    assert numbers == {"Lincoln": (1, 0, 0), "Washington": (0, 0, 0)}
    maya.refresh_from_db()
    assert maya.school == staff.washington
    assert not may_log_in(maya)


def test_a_roster_that_was_compared_before_does_not_bring_a_person_back(
    administration, staff, roster, maya, ali, monkeypatch
):
    """Somebody opts out between the comparison and the batch."""
    Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=timezone.now())
    change_people = apply.change_people

    def opt_out_first(*args):
        opt_out(maya, NO_FORM, by=staff.chen)
        change_people(*args)

    monkeypatch.setattr(apply, "change_people", opt_out_first)
    assert roster(MAYA, ALI).back == 1
    assert not may_log_in(maya)


def test_a_withdrawn_person_stays_withdrawn_once_it_is_taken_back(
    administration, staff, roster, maya
):
    Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=timezone.now())
    opt_out(maya, NO_FORM, by=staff.chen)
    assert roster(MAYA).back == 0
    take_back(maya, by=staff.chen)
    assert not may_log_in(maya)
    assert roster(MAYA).back == 1
    assert may_log_in(maya)


def test_the_database_keeps_opted_out_people_withdrawn(staff, maya):
    opt_out(maya, NO_FORM, by=staff.chen)
    refused = pytest.raises(IntegrityError, match="opted_out_people_are_withdrawn")
    with refused, transaction.atomic():
        Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=None)


def test_the_database_admits_one_opt_out_at_a_time(staff, maya):
    opt_out(maya, NO_FORM, by=staff.chen)
    first = OptOut.objects.get()
    first.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        first.save(force_insert=True)


def test_nobody_opts_out_twice_or_takes_back_twice(staff, maya):
    opt_out(maya, NO_FORM, by=staff.chen)
    with pytest.raises(OptOutConflict, match="already"):
        opt_out(maya, NO_FORM, by=staff.dana)
    take_back(maya, by=staff.chen)
    with pytest.raises(OptOutConflict, match="no longer"):
        take_back(maya, by=staff.chen)
    assert OptOut.objects.count() == 1


def test_a_start_in_the_meantime_has_to_be_confirmed(staff, maya):
    may_log_in(maya)
    with pytest.raises(OptOutConflict, match="in the meantime"):
        opt_out(maya, NO_FORM, by=staff.chen, expects_start=False)
    maya.refresh_from_db()
    assert maya.opted_out_at is None
    opt_out(maya, NO_FORM, by=staff.chen, expects_start=True)


def test_files_with_a_card_of_the_person_say_that_it_no_longer_works(
    administration, staff, maya
):
    sets = [
        CardSet.objects.create(
            administration=administration, school=school, format="pdf", by=staff.chen
        )
        for school in (staff.lincoln, staff.washington)
    ]
    opt_out(maya, NO_FORM, by=staff.chen)
    outdated = [CardSet.objects.get(pk=card_set.pk).outdated_at for card_set in sets]
    assert outdated[0] and not outdated[1]


def test_the_groups_in_which_a_person_counts_are_kept(administration, staff, maya):
    """Figures before and after would tell whether the person has finished."""
    opt_out(maya, NO_FORM, by=staff.chen)
    group = CountedGroup.objects.get()
    assert (group.respondent, group.school, group.grade) == (maya, staff.lincoln, "07")
    take_back(maya, by=staff.chen)
    assert CountedGroup.objects.get().school == staff.lincoln


def test_opting_out_takes_few_statements(staff, maya, django_assert_num_queries):
    # A savepoint and its release, the row, its groups, the person, the opt-out,
    # the modules, the card sets, the audit.
    with django_assert_num_queries(9):
        opt_out(maya, NO_FORM, by=staff.chen)
    # A savepoint and its release, the row, the opt-out, the groups, the modules, the
    # person, the opt-out, the ID of a list, the audit.
    with django_assert_num_queries(10):
        take_back(maya, by=staff.chen)


def test_an_opt_out_is_not_lost_with_the_names(staff, maya):
    opt_out(maya, NO_FORM, by=staff.chen)
    Identity.objects.all().delete()
    assert not may_log_in(maya)
