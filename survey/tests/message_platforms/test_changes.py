"""What changes about a person is in Redis after the commit."""

from __future__ import annotations

import time
from collections import deque
from datetime import date

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Membership
from accounts.tests.conftest import member
from survey.fieldwork.administrations import close_administration
from survey.fieldwork.emails.suppression import digest_of, suppress
from survey.fieldwork.message_platforms import hashes, hooks
from survey.fieldwork.message_platforms.directory import forget_directory, write_windows
from survey.fieldwork.message_platforms.hashes import write_people
from survey.fieldwork.message_platforms.hooks import (
    address_suppressed,
    person_finished,
    send_finished,
)
from survey.fieldwork.message_platforms.store import message_store, read_hash
from survey.models import Respondent, SuppressedAddress
from survey.people.opt_outs.records import Request, opt_out, take_back
from survey.people.person_changes.records import reopen_survey
from survey.tests.conftest import Browser, enrol
from survey.tests.message_platforms.cast import (
    answer_and_finish,
    identify,
    needs_servers,
    platform_of,
    write_hashes,
)
from survey.tests.rosters.roster_imports import ALI, HEADER, MAYA, run_import

Role = Membership.Role
pytestmark = [pytest.mark.django_db(transaction=True), needs_servers]


def test_people_who_finish_read_false_within_a_second(braze, maya):
    write_windows(message_store())
    write_hashes(maya)
    assert braze.ask(maya).json()["send"] is True
    answer_and_finish(Browser().log_in(maya))
    began = time.monotonic()
    assert braze.ask(maya).json()["send"] is False
    assert time.monotonic() - began < 1


def test_a_worker_that_read_the_person_before_cannot_undo_finishing(
    braze, maya, monkeypatch
):
    write_windows(message_store())
    read = hashes.read_people

    def read_then_finish(people, ids):
        rows = read(people, ids)
        Respondent.objects.update(
            completed_at=timezone.now(), started_at=timezone.now()
        )
        person_finished(maya.pk, maya.administration_id)
        # It is sent at the commit, which another process makes at once.
        send_finished()
        return rows

    monkeypatch.setattr(hashes, "read_people", read_then_finish)
    assert write_people(message_store(), [maya.pk]) == 1
    assert braze.ask(maya).json()["send"] is False


def test_threads_that_send_the_same_people_do_not_fail(braze, maya, monkeypatch):
    class Shared(deque):
        def __len__(self) -> int:
            # Another thread took one after this was asked.
            return super().__len__() + 1

    monkeypatch.setattr(hooks, "_unsent", Shared())
    write_windows(message_store())
    write_hashes(maya)
    answer_and_finish(Browser().log_in(maya))
    assert braze.ask(maya).json()["send"] is False


def test_finishing_is_not_noted_where_no_platform_asks(maya):
    answer_and_finish(Browser().log_in(maya))
    assert read_hash(message_store(), maya.pk) == {}


def test_a_person_who_finished_before_the_hash_was_lost_is_read_from_the_database(
    braze, maya
):
    answer_and_finish(Browser().log_in(maya))
    assert braze.ask(maya).json()["send"] is False
    assert read_hash(message_store(), maya.pk)[b"f"] == b"1"


def test_what_redis_knows_about_finishing_counts_before_the_replica(braze, maya):
    """The replica may be behind: here the database has nothing at all."""
    write_windows(message_store())
    person_finished(maya.pk, maya.administration_id)
    assert braze.ask(maya).json()["send"] is False
    assert braze.ask(maya).json()["send"] is False


def test_a_roster_writes_withdraws_and_brings_back_people(state, administration):
    everywhere = platform_of(None, state)

    def ask_about_maya():
        maya = Respondent.objects.get(identity__external_id="00123")
        with CaptureQueriesContext(connection) as statements:
            reply = everywhere.ask(maya).json()
        # Redis has her already.
        return reply["send"], len(statements)

    whole = {"complete_for": "districts"}
    run_import(administration, HEADER, MAYA, ALI)
    everywhere.ask("/messages/0/x.json")
    assert ask_about_maya() == (True, 0)
    run_import(administration, HEADER, ALI, **whole)
    assert ask_about_maya() == (False, 0)
    run_import(administration, HEADER, MAYA, ALI, **whole)
    assert ask_about_maya() == (True, 0)


def test_closing_counts_at_once(state, administration, maya):
    everywhere = platform_of(None, state)
    write_hashes(maya)
    assert everywhere.ask(maya).json()["send"] is True
    close_administration(administration=administration, seen=None, by="a test")
    # After a second, each process reads the window again.
    forget_directory()
    reply = everywhere.ask(maya).json()
    assert (reply["send"], reply["days_left"]) == (False, 0)


def test_opting_out_of_emails_counts_for_everyone_with_the_address(
    braze, maya, administration, lincoln
):
    sister = identify(enrol(administration, lincoln), email=maya.identity.email.upper())
    write_hashes(maya, sister)
    suppress(digest_of(maya.identity.email), SuppressedAddress.Reason.OPTED_OUT)
    address_suppressed(maya)
    assert braze.ask(maya).json()["send"] is False
    assert braze.ask(sister).json()["send"] is False


def test_nothing_is_sent_to_people_whose_parents_have_refused(braze, maya):
    write_windows(message_store())
    write_hashes(maya)
    by = member("chen@example.org", Role.STATE)
    opt_out(maya, Request(date(2026, 9, 1), "parent"), by=by)
    assert braze.ask(maya).json()["send"] is False
    take_back(maya, by=by)
    assert braze.ask(maya).json()["send"] is True


def test_a_person_whose_survey_was_reopened_is_reminded_again(braze, maya):
    write_windows(message_store())
    write_hashes(maya)
    administration = maya.administration
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    answer_and_finish(Browser().log_in(maya))
    assert braze.ask(maya).json()["send"] is False
    reopen_survey(maya, by=member("chen@example.org", Role.STATE))
    assert braze.ask(maya).json()["send"] is True
