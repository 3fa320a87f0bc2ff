"""Everybody is written in batches, and checked every night."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.fieldwork.message_platforms import rebuild as rebuilding
from survey.fieldwork.message_platforms.directory import forget_directory
from survey.fieldwork.message_platforms.rebuild import (
    check_all,
    check_job,
    keep_up,
    rebuild,
    rebuild_job,
)
from survey.fieldwork.message_platforms.store import message_store, read_hash
from survey.models import Administration, Identity, Job, Respondent
from survey.tests.conftest import code_of, enrol
from survey.tests.message_platforms.cast import (
    identify,
    needs_servers,
    platform_of,
)

pytestmark = [pytest.mark.django_db, needs_servers]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(rebuilding, "SETTLE_SECONDS", 0)


@pytest.fixture
def class_of(administration, lincoln):
    return [identify(enrol(administration, lincoln, grade=f"{n}")) for n in range(5)]


def test_a_rebuild_writes_everybody_whom_a_platform_may_ask_about(
    braze, maya, noor, django_assert_num_queries
):
    assert rebuild(message_store()) == 1
    assert read_hash(message_store(), noor.pk) == {}
    with django_assert_num_queries(0):
        assert braze.ask(maya).json()["school"] == "Lincoln"
    expires = message_store().command("EXPIRETIME", f"r:{maya.pk}")
    closes = maya.administration.closes_at.timestamp()
    assert 29 < (expires - closes) / 86400 < 31


def test_a_platform_of_the_state_asks_about_everybody(state, maya, noor):
    everywhere = platform_of(None, state)
    assert rebuild(message_store()) == 2
    assert everywhere.ask(maya).status_code == everywhere.ask(noor).status_code == 200


def test_without_platforms_nothing_is_written(maya):
    assert rebuild(message_store()) == 0
    # That it was built, and that there are no platforms.
    assert sorted(message_store().command("KEYS", "*")) == [b"built", b"platforms"]


def test_an_interrupted_rebuild_goes_on_where_it_stopped(braze, class_of, monkeypatch):
    monkeypatch.setattr(rebuilding, "BATCH", 2)
    done = []

    class Killed(Exception):
        pass

    def killed(count: int) -> None:
        done.append(count)
        if len(done) == 2:
            raise Killed

    with pytest.raises(Killed):
        rebuild(message_store(), advance=killed)
    assert rebuild(message_store()) == 5 - sum(done) == 1
    assert rebuild(message_store(), restart=True) == 5


def test_a_check_finds_no_drift_after_a_rebuild(braze, class_of):
    rebuild(message_store())
    check = check_all(message_store())
    assert (check.checked, check.drift) == (5, 0)


@pytest.mark.parametrize(
    "damage",
    [
        ("HDEL", "s"),
        ("HSET", "x", "1"),
        ("HSET", "f", "1"),
        ("HSET", "s", "Elsewhere"),
        ("DEL",),
    ],
)
def test_a_check_reports_and_repairs_a_difference(braze, class_of, damage):
    rebuild(message_store())
    command, *rest = damage
    message_store().command(command, f"r:{class_of[2].pk}", *rest)
    assert check_all(message_store()).drift == 1
    assert check_all(message_store()).drift == 0
    assert braze.ask(class_of[2]).json()["send"] is True


def test_a_check_finds_people_who_finished_while_redis_was_down(braze, class_of):
    rebuild(message_store())
    now = timezone.now()
    Respondent.objects.filter(pk=class_of[0].pk).update(
        started_at=now, completed_at=now
    )
    assert check_all(message_store()).drift == 1
    assert braze.ask(class_of[0]).json()["send"] is False


def test_a_restarted_redis_is_filled_again(braze, maya):
    Job.objects.all().delete()
    keep_up()
    assert Job.objects.filter(kind=rebuild_job.name).count() == 1
    # Not while one is waiting or running.
    keep_up()
    assert Job.objects.filter(kind=rebuild_job.name).count() == 1
    rebuild(message_store())
    Job.objects.all().delete()
    keep_up()
    assert not Job.objects.filter(kind=rebuild_job.name).exists()


def test_the_nightly_job_tells_what_it_found(braze, class_of):
    rebuilding.start_check()
    rebuilding.start_check()
    assert Job.objects.filter(kind=check_job.name).count() == 1
    stored = message_store()
    check_all(stored)
    assert json.loads(stored.command("GET", "last_check"))["drift"] == 5


def test_the_command_ends_with_one_line_of_json(braze, class_of, capsys):
    call_command("rebuild_messages")
    printed = json.loads(capsys.readouterr().out)
    assert printed["people"] == 5
    assert printed["redis_bytes"] > 0
    call_command("rebuild_messages", "--check")
    assert json.loads(capsys.readouterr().out)["drift"] == 0
    message_store().command("DEL", f"r:{class_of[0].pk}")
    with pytest.raises(SystemExit):
        call_command("rebuild_messages", "--check")


def test_codes_are_in_links_only_where_the_administration_allows_them(braze, maya):
    rebuild(message_store())
    assert braze.ask(maya).json()["link"] == "https://survey.example.org/"
    Administration.objects.update(
        coordinators_see_finished=True, messages_have_codes=True
    )
    rebuild(message_store())
    forget_directory()
    code = code_of(maya)
    assert braze.ask(maya).json()["link"] == f"https://survey.example.org/#{code}"
    # A copy of Redis is no list of codes.
    assert code.encode() not in b"".join(read_hash(message_store(), maya.pk).values())


def test_a_school_with_a_long_name_stays_compact(braze, maya, lincoln):
    lincoln.name = "L" * 200
    lincoln.save()
    rebuild(message_store())
    assert Identity.objects.count() == 1
    assert braze.ask(maya).json()["school"] == "L" * 200
