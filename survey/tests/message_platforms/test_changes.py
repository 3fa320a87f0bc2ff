"""What changes about a person is in Redis after the commit."""

from __future__ import annotations

import time

import pytest
from django.utils import timezone

from survey.message_platforms import hashes
from survey.message_platforms.directory import write_windows
from survey.message_platforms.hashes import write_people
from survey.message_platforms.hooks import person_finished, send_finished
from survey.message_platforms.store import message_store, read_hash
from survey.models import Respondent
from survey.tests.conftest import Browser
from survey.tests.message_platforms.cast import (
    answer_and_finish,
    needs_servers,
    write_hashes,
)

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
