"""Undo an applied roster."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from django.utils.formats import date_format

from accounts.models import AuditEntry, District, School
from settings.tests.patience import patience
from survey.models import (
    CardSet,
    CountedGroup,
    EmailDelivery,
    EmailSchedule,
    EmailStep,
    Identity,
    Respondent,
    Response,
    RosterChange,
    RosterUndo,
)
from survey.people.access_codes import code_of
from survey.people.rosters import retention, undo, uploads
from survey.people.rosters.change_record import BEING_UNDONE
from survey.people.rosters.undo import LATER_ROSTER, NOT_RECORDED, STARTED, TOO_FEW
from survey.taking.login import LoginRefused, log_in_respondent
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.rosters.roster_console import (
    ALI,
    HEADER,
    MAYA,
    ZOE,
    all_people,
    person,
)
from survey.tests.rosters.roster_imports import run_import
from survey.work import jobs

pytestmark = pytest.mark.django_db

MANY = [MAYA.replace("00123", f"{n:05}") for n in range(300, 306)]


@pytest.fixture
def dana(staff, console_of):
    return console_of(staff.dana)


@pytest.fixture(autouse=True)
def completion_is_visible(administration):
    """Let rosters of one person be undone; see TOO_FEW."""
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])


def undo_upload(console, upload):
    response = console.post(f"/console/rosters/{upload.pk}/undo/")
    upload.refresh_from_db()
    return response


def everything():
    return all_people(), list(School.objects.values()), list(District.objects.values())


def answer(respondent, text="mine"):
    item = respondent.administration.published.survey.items.get(name="comment")
    return save_page(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=respondent.issue,
        revision=1,
        rows=[AnswerRow(item.pk, "a", text)],
    ).outcome


def test_undoing_restores_everybody(administration, dana, staff):
    run_import(administration, HEADER, MAYA, ALI, ZOE)
    # Ali has answered, and leaves with the next roster.
    log_in_respondent(code_of(person("00124")))
    assert answer(person("00124")) is Outcome.SAVED
    before = everything()

    upload = dana.apply(
        administration,
        HEADER,
        MAYA.replace("Maya,Lopez,7,7B", "Mia,López,8,8A"),
        ZOE.replace("washington", "newton"),
        MAYA.replace("00123", "00200"),
        complete_for="districts",
    )
    assert everything() != before
    assert person("00124").withdrawn_at

    undo_upload(dana, upload)
    assert upload.state == "undone", upload.message
    assert everything() == before
    assert not RosterChange.objects.filter(upload=upload).exists()
    assert list(Response.objects.values_list("value", flat=True)) == ["mine"]
    entry = AuditEntry.objects.get(action="roster undone")
    assert (entry.after["removed"], entry.after["restored"]) == (1, 3)


@pytest.fixture
def withdrawn(administration, staff):
    """Maya, who is not in the second roster of her school."""
    run_import(administration, HEADER, MAYA, ALI)
    run_import(administration, HEADER, ALI, complete_for="schools")
    maya = person("00123")
    assert maya.withdrawn_at
    return maya


@pytest.mark.usefixtures("withdrawn")
def test_people_who_came_back_are_withdrawn_again(administration, dana):
    before = everything()
    upload = dana.apply(administration, HEADER, MAYA.replace(",7,", ",9,"), ALI)
    assert not person("00123").withdrawn_at
    undo_upload(dana, upload)
    assert everything() == before


@pytest.fixture
def back(administration, dana, withdrawn):
    """A roster that brought Maya back."""
    return dana.apply(administration, HEADER, MAYA, ALI)


def test_a_roster_is_not_undone_once_somebody_it_brought_back_has_started(dana, back):
    log_in_respondent(code_of(person("00123")))
    before = everything()
    undo_upload(dana, back)
    assert back.state == "applied"
    assert everything() == before
    page = dana.get(f"/console/rosters/{back.pk}/undo/").content.decode()
    assert STARTED in page


def test_somebody_who_came_back_and_starts_while_it_is_undone_stays(
    dana, back, monkeypatch
):
    maya = person("00123")

    def starts_now(*_):
        log_in_respondent(code_of(maya))
        assert answer(maya) is Outcome.SAVED
        return ""

    monkeypatch.setattr(undo, "_refusal", starts_now)
    undo_upload(dana, back)
    assert (back.state, back.undo.kept) == ("undone", 1)
    assert not person("00123").withdrawn_at
    assert list(Response.objects.values_list("value", flat=True)) == ["mine"]


def test_rosters_are_undone_one_after_the_other(administration, dana):
    first = dana.apply(administration, HEADER, MAYA)
    second = dana.apply(administration, HEADER, MAYA, ALI)
    undo_upload(dana, first)
    assert first.state == "applied"
    when = date_format(timezone.localtime(second.uploaded_at), "DATETIME_FORMAT")
    page = dana.get(f"/console/rosters/{first.pk}/undo/").content.decode()
    assert LATER_ROSTER.format(name="roster.csv", date=when) in page

    undo_upload(dana, second)
    undo_upload(dana, first)
    assert (first.state, second.state) == ("undone", "undone")
    assert not Respondent.objects.exists()


def test_a_later_roster_of_another_school_does_not_block(administration, dana):
    first = dana.apply(administration, HEADER, MAYA)
    dana.apply(administration, HEADER, ZOE)
    undo_upload(dana, first)
    assert first.state == "undone"
    assert list(Identity.objects.values_list("external_id", flat=True)) == ["00125"]


def test_a_roster_with_a_started_person_is_not_undone(administration, dana):
    upload = dana.apply(administration, HEADER, MAYA, ALI)
    log_in_respondent(code_of(person("00123")))
    before = everything()
    page = dana.get(f"/console/rosters/{upload.pk}/undo/").content.decode()
    assert STARTED in page
    undo_upload(dana, upload)
    assert upload.state == "applied"
    assert everything() == before
    assert not AuditEntry.objects.filter(action="undo roster").exists()


def test_a_start_before_the_job_runs_keeps_the_whole_roster(
    administration, dana, monkeypatch
):
    """Nobody had started when the page was confirmed."""
    upload = dana.apply(administration, HEADER, MAYA, ALI)
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    undo_upload(dana, upload)
    assert upload.state == "undoing"
    log_in_respondent(code_of(person("00123")))
    before = everything()
    jobs.run(uploads.latest_job(upload).pk)
    upload.refresh_from_db()
    assert (upload.state, upload.message) == ("applied", STARTED)
    assert everything() == before
    # What it changed is still known.
    assert RosterChange.objects.filter(upload=upload).count() == 2


def test_whoever_starts_while_it_is_undone_stays(administration, dana, monkeypatch):
    upload = dana.apply(administration, HEADER, MAYA, ALI)
    maya = person("00123")

    def starts_now(*_):
        log_in_respondent(code_of(maya))
        assert answer(maya) is Outcome.SAVED
        return ""

    monkeypatch.setattr(undo, "_refusal", starts_now)
    undo_upload(dana, upload)
    assert upload.state == "undone"
    assert list(Respondent.objects.all()) == [maya]
    assert list(Response.objects.values_list("value", flat=True)) == ["mine"]
    assert (upload.undo.removed, upload.undo.kept) == (1, 1)


def test_without_the_second_check_an_answer_would_lose_its_person(
    administration, dana, monkeypatch
):
    """Shows that the test above would fail without the check in each batch."""
    upload = dana.apply(administration, HEADER, MAYA, ALI)
    maya = person("00123")

    def starts_now(*_):
        log_in_respondent(code_of(maya))
        assert answer(maya) is Outcome.SAVED
        return ""

    monkeypatch.setattr(undo, "_refusal", starts_now)
    monkeypatch.setattr(undo, "not_started", lambda ids: list(ids))
    undo_upload(dana, upload)
    assert Response.objects.exists()
    assert not Respondent.objects.exists()


def test_answers_without_a_start_keep_their_person(administration, dana):
    """A start can be lost with a server; the tab sends the answers again."""
    upload = dana.apply(administration, HEADER, MAYA, ALI)
    assert answer(person("00123")) is Outcome.SAVED
    undo_upload(dana, upload)
    assert list(Respondent.objects.all()) == [person("00123")]


def test_a_removed_person_cannot_log_in_or_save(administration, dana):
    upload = dana.apply(administration, HEADER, MAYA)
    maya = person("00123")
    code = code_of(maya)
    undo_upload(dana, upload)
    with pytest.raises(LoginRefused) as refused:
        log_in_respondent(code)
    assert refused.value.key == "code_wrong"
    assert answer(maya) is Outcome.WITHDRAWN
    assert not Response.objects.exists()
    # And the code never opens another person's survey.
    dana.apply(administration, HEADER, ALI)
    assert person("00124").pk > maya.pk
    with pytest.raises(LoginRefused):
        log_in_respondent(code)


def test_people_whose_card_was_printed_alone_are_withdrawn(administration, dana, staff):
    upload = dana.apply(administration, HEADER, MAYA, ALI)
    maya = person("00123")
    CardSet.objects.create(
        administration=administration,
        school=staff.lincoln,
        respondent=maya,
        by=staff.dana,
        file_name="x",
    )
    undo_upload(dana, upload)
    assert list(Respondent.objects.all()) == [maya]
    maya.refresh_from_db()
    assert maya.withdrawn_at
    assert CardSet.objects.exists()
    with pytest.raises(LoginRefused) as refused:
        log_in_respondent(code_of(maya))
    assert refused.value.key == "withdrawn"


def test_too_few_new_people_would_show_who_has_started(administration, dana):
    administration.coordinators_see_finished = False
    administration.save(update_fields=["coordinators_see_finished"])
    few = dana.apply(administration, HEADER, MAYA)
    undo_upload(dana, few)
    assert few.state == "applied"
    assert TOO_FEW in dana.get(f"/console/rosters/{few.pk}/undo/").content.decode()
    many = dana.apply(administration, HEADER, MAYA, *MANY)
    undo_upload(dana, many)
    assert many.state == "undone"


def test_the_schools_that_a_roster_created_are_removed(administration, dana):
    before = list(School.objects.values())
    upload = dana.apply(administration, HEADER, MAYA.replace("lincoln", "newton"))
    assert School.objects.filter(code="newton").exists()
    undo_upload(dana, upload)
    assert list(School.objects.values()) == before


def test_a_created_school_that_is_used_stays(administration, dana, staff):
    upload = dana.apply(administration, HEADER, MAYA.replace("lincoln", "newton"))
    newton = School.objects.get(code="newton")
    administration.schools.add(newton)
    undo_upload(dana, upload)
    assert School.objects.filter(pk=newton.pk).exists()


def test_counted_groups_follow(administration, dana):
    """After the opening, people count in their groups of before for a day."""
    run_import(administration, HEADER, MAYA, ALI)
    upload = dana.apply(administration, HEADER, MAYA.replace(",7,", ",8,"), ALI, *MANY)
    assert CountedGroup.objects.exists()
    undo_upload(dana, upload)
    maya = CountedGroup.objects.get(respondent=person("00123"))
    assert (maya.grade, person("00123").grade) == ("07", "07")
    assert not CountedGroup.objects.exclude(
        respondent__in=Respondent.objects.all()
    ).exists()


def test_an_import_without_the_console_ends_undoing(administration, dana):
    upload = dana.apply(administration, HEADER, MAYA)
    run_import(administration, HEADER, ALI)
    assert not RosterChange.objects.exists()
    undo_upload(dana, upload)
    assert upload.state == "applied"
    assert (
        NOT_RECORDED in dana.get(f"/console/rosters/{upload.pk}/undo/").content.decode()
    )


def test_records_are_deleted_after_30_days(administration, dana):
    upload = dana.apply(administration, HEADER, MAYA)
    assert RosterChange.objects.exists()
    retention.delete_old_files()
    assert RosterChange.objects.exists()
    type(upload).objects.update(uploaded_at=timezone.now() - timedelta(days=31))
    retention.delete_old_files()
    assert not RosterChange.objects.exists()
    assert not RosterUndo.objects.exists()


def test_an_undone_roster_keeps_its_figures_after_30_days(administration, dana):
    upload = dana.apply(administration, HEADER, MAYA)
    undo_upload(dana, upload)
    type(upload).objects.update(uploaded_at=timezone.now() - timedelta(days=31))
    retention.delete_old_files()
    assert RosterUndo.objects.get().removed == 1


def test_a_coordinator_undoes_rosters_of_their_school_only(
    administration, console_of, staff
):
    dana, chen = console_of(staff.dana), console_of(staff.chen)
    of_district = dana.apply(administration, HEADER, ZOE)
    assert undo_upload(chen, of_district).status_code == 404
    of_school = chen.apply(administration, HEADER, MAYA)
    assert undo_upload(chen, of_school).status_code == 302
    assert (of_school.state, of_district.state) == ("undone", "applied")


def test_permission_is_checked_again_by_the_job(
    administration, console_of, staff, monkeypatch
):
    chen = console_of(staff.chen)
    upload = chen.apply(administration, HEADER, MAYA)
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    undo_upload(chen, upload)
    staff.chen.memberships.update(ended_at=timezone.now())
    jobs.run(uploads.latest_job(upload).pk)
    upload.refresh_from_db()
    assert (upload.state, upload.message) == ("applied", undo.NOT_PERMITTED)
    assert Respondent.objects.exists()


def test_an_interrupted_undo_goes_on(administration, dana, monkeypatch):
    monkeypatch.setattr(undo, "CHANGE_AT_ONCE", 2)
    run_import(administration, HEADER, MAYA)
    before = everything()
    upload = dana.apply(administration, HEADER, MAYA.replace(",7,", ",8,"), *MANY)
    restore = undo._restore_people

    def breaks(*_):
        raise RuntimeError("the worker fails")

    monkeypatch.setattr(undo, "_restore_people", breaks)
    undo_upload(dana, upload)
    assert upload.state == "undoing"
    assert Respondent.objects.count() == 1
    # Meanwhile nothing else is applied.
    second = dana.upload(administration, HEADER, ALI, complete_for="changes")
    dana.confirm(second)
    assert (second.state, second.message) == ("failed", BEING_UNDONE)

    monkeypatch.setattr(undo, "_restore_people", restore)
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert f"/console/rosters/{upload.pk}/undo/" in page
    undo_upload(dana, upload)
    assert upload.state == "undone"
    assert everything() == before
    assert upload.undo.removed == len(MANY)


def test_emails_that_were_sent_keep_their_person(administration, dana, staff):
    upload = dana.apply(administration, HEADER, MAYA)
    schedule = EmailSchedule.objects.create(administration=administration)
    step = EmailStep.objects.create(schedule=schedule, kind="invitation")
    EmailDelivery.objects.create(
        step=step,
        respondent=person("00123"),
        state="sent",
        address_digest="x",
        claimed_at=timezone.now(),
        job_id=1,
        job_attempt=1,
    )
    undo_upload(dana, upload)
    assert person("00123").withdrawn_at
    assert EmailDelivery.objects.count() == 1
    assert upload.undo.withdrawn == 1


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")
@pytest.mark.django_db(transaction=True)
def test_a_start_at_the_same_moment_loses_no_answer(administration, dana, monkeypatch):
    """The login has read the person; undoing has locked the row, and deletes it."""
    upload = dana.apply(administration, HEADER, MAYA)
    maya = person("00123")
    code, outcomes = code_of(maya), []

    def start_and_answer():
        try:
            log_in_respondent(code)
            outcomes.append(answer(maya))
        except LoginRefused as refused:
            outcomes.append(refused.key)
        finally:
            connection.close()

    thread = threading.Thread(target=start_and_answer)
    lock = undo.not_started

    def lock_and_let_start(ids):
        locked = lock(ids)
        thread.start()
        # Long enough for the login to read the person and to wait for the row.
        thread.join(0.3)
        assert thread.is_alive()
        return locked

    monkeypatch.setattr(undo, "not_started", lock_and_let_start)
    undo_upload(dana, upload)
    thread.join(patience(10))
    assert outcomes == ["code_wrong"]
    assert not Respondent.objects.exists()
    assert not Response.objects.exists()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")
@pytest.mark.django_db(transaction=True)
def test_a_start_at_the_same_moment_loses_no_answer_of_somebody_who_came_back(
    dana, back, monkeypatch
):
    """The login has read the person; undoing has locked the row, and withdraws it."""
    maya = person("00123")
    code, outcomes = code_of(maya), []

    def start_and_answer():
        try:
            log_in_respondent(code)
            outcomes.append(answer(maya))
        finally:
            connection.close()

    thread = threading.Thread(target=start_and_answer)
    keep_groups = undo.keep_groups_of_withdrawn

    def keep_groups_and_let_start(*args):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        keep_groups(*args)

    monkeypatch.setattr(undo, "keep_groups_of_withdrawn", keep_groups_and_let_start)
    undo_upload(dana, back)
    thread.join(patience(10))
    assert back.state == "undone"
    assert outcomes == [Outcome.WITHDRAWN]
    assert person("00123").withdrawn_at
    assert not Response.objects.exists()


@pytest.mark.parametrize("people", [1, 3])
def test_the_page_costs_the_same_for_any_number_of_people(
    administration, dana, people, django_assert_num_queries
):
    upload = dana.apply(administration, HEADER, *MANY[:people])
    # Session, user, permissions; the upload, its changes, the record, later
    # rosters, its changes and whether somebody has started.
    with django_assert_num_queries(9):
        dana.get(f"/console/rosters/{upload.pk}/undo/")
