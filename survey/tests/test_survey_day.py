"""Survey days: what waits, what goes on, how they end, and two people at once."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, time, timedelta
from io import StringIO
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings as project
from django.core.cache import caches
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connections, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from settings.monitoring import job_queues
from survey.models import Job, SurveyDay
from survey.tasks import run_job
from survey.tests import example_jobs
from survey.tests.example_jobs import make_after_survey_days, make_slowly
from survey.tests.test_jobs import in_other_connection
from survey.work import jobs, survey_day
from survey.work.job_kinds import JOB_KINDS, JobKind

pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif(
    not project.SERVERS, reason="SQLite has one writer at a time"
)


@pytest.fixture(autouse=True)
def by_hand(settings):
    """Send no messages: the test runs the jobs itself."""
    settings.JOBS_BY_MESSAGE = False
    caches["lists"].clear()
    yield
    caches["lists"].clear()
    example_jobs.in_the_middle.clear()


def begin(hours: float = 2, by: str = "test") -> SurveyDay:
    ends_at = timezone.now() + timedelta(hours=hours)
    return survey_day.begin(ends_at=ends_at, reason="Everybody answers", by=by)


def let_hours_pass(hours: float) -> None:
    for day in SurveyDay.objects.all():
        day.began_at -= timedelta(hours=hours)
        day.ends_at -= timedelta(hours=hours)
        day.save(update_fields=["began_at", "ends_at"])


def state_of(job: Job) -> str:
    return Job.objects.get(pk=job.pk).state


def command(*arguments: str) -> tuple[dict[str, object], int]:
    out, status = StringIO(), 0
    try:
        call_command("survey_day", *arguments, stdout=out)
    except SystemExit as end:
        status = int(str(end.code))
    return json.loads(out.getvalue()), status


def test_work_that_can_wait_starts_after_the_end_and_other_work_at_once():
    begin(hours=2)
    export, cards = jobs.start(make_after_survey_days), jobs.start(make_slowly)
    for job in (export, cards):
        run_job(job.pk)
    assert (state_of(export), state_of(cards)) == ("waiting", "done")
    assert jobs.run(export.pk) is False

    # Nobody acts: the time comes, and the next message finds the job.
    let_hours_pass(2)
    jobs.wake_forgotten()
    run_job(export.pk)
    assert state_of(export) == "done"
    assert SurveyDay.objects.get().ended_at is None


def test_without_the_switch_the_job_would_run(monkeypatch):
    """The twin: the same day, and workers that do not ask."""
    begin()
    export = jobs.start(make_after_survey_days)
    kind = JOB_KINDS[export.kind]
    monkeypatch.setitem(
        JOB_KINDS, export.kind, JobKind(kind.name, kind.run, kind.queue)
    )
    run_job(export.pk)
    assert state_of(export) == "done"


def test_kinds_that_wait_are_those_that_the_page_names():
    waiting = {name for name, kind in JOB_KINDS.items() if kind.waits}
    assert {name for name in waiting if not name.startswith("test.")} == {
        "export.make",
        "school_reports.make",
        "results.count",
        "scores.calculate",
        "scores.recalculate",
        "feed.download",
        "feed.scan",
        "feed.confirmed",
        "retention.count",
        "retention.destroy",
    }


def test_a_running_job_goes_on_and_another_attempt_waits():
    running = jobs.start(make_after_survey_days)
    example_jobs.in_the_middle.append(lambda job, progress: begin())
    jobs.run(running.pk)
    assert state_of(running) == "done"

    # A worker that died in the middle: its job waits as one that never began.
    died = jobs.start(make_after_survey_days)
    Job.objects.filter(pk=died.pk).update(
        state=Job.State.RUNNING,
        attempts=1,
        heartbeat_at=timezone.now() - timedelta(minutes=5),
    )
    assert jobs.run(died.pk) is False
    survey_day.end(by="test")
    assert jobs.run(died.pk) is True


@on_postgresql
def test_a_switch_that_is_not_committed_holds_nothing():
    before, after = (jobs.start(make_after_survey_days) for _ in range(2))
    with transaction.atomic():
        begin()
        assert in_other_connection(lambda: jobs.run(before.pk)) is True
    assert in_other_connection(lambda: jobs.run(after.pk)) is False


@on_postgresql
def test_of_two_switches_at_once_one_counts():
    outcomes, both = [], threading.Barrier(2)

    def act() -> None:
        try:
            both.wait()
            begin()
            outcomes.append("on")
        except ValidationError as error:
            outcomes.append(error.messages[0])
        finally:
            connections.close_all()

    threads = [threading.Thread(target=act) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refusal = "A survey day is on already. End it first, then begin another one."
    assert sorted(outcomes) == [refusal, "on"]
    assert AuditEntry.objects.filter(action="begin survey day").count() == 1
    # Both end it, and one of them did.
    assert [survey_day.end(by="test"), survey_day.end(by="test")] == [True, False]
    assert AuditEntry.objects.filter(action="end survey day").count() == 1


def test_the_database_itself_refuses_a_second_one():
    """The twin: without the sentence of `begin`."""
    day = begin()
    with pytest.raises(IntegrityError), transaction.atomic():
        SurveyDay.objects.create(ends_at=day.ends_at, reason="another one")
    with pytest.raises(IntegrityError), transaction.atomic():
        SurveyDay.objects.create(ends_at=day.began_at, ended_at=day.ends_at, reason="")


def test_a_day_that_is_over_makes_room_for_the_next_one():
    begin(hours=1)
    let_hours_pass(1.5)
    second = begin()
    first = SurveyDay.objects.exclude(pk=second.pk).get()
    assert first.ended_at == first.ends_at
    assert survey_day.current() == second


@pytest.mark.parametrize("hours", [-1, 0, 24.01])
def test_an_end_too_far_or_in_the_past_is_refused(hours):
    with pytest.raises(ValidationError, match="within the next 24 hours"):
        begin(hours=hours)
    assert not SurveyDay.objects.exists()


@pytest.mark.parametrize(
    ("now", "clock", "expected"),
    [
        # 10:00 in Chicago: today.
        ("2026-11-30T16:00", "16:00", "2026-11-30T22:00"),
        # Its clocks already show more: tomorrow.
        ("2026-11-30T22:00", "16:00", "2026-12-01T22:00"),
        # 1:30 comes twice on this day: the first one, then the second one.
        ("2026-11-01T05:00", "01:30", "2026-11-01T06:30"),
        ("2026-11-01T06:45", "01:30", "2026-11-01T07:30"),
        # 2:30 is left out on this one: where it would be.
        ("2027-03-14T07:00", "02:30", "2027-03-15T07:30"),
    ],
)
def test_the_next_time_follows_the_clocks_of_the_state(
    monkeypatch, now, clock, expected
):
    def moment(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    monkeypatch.setattr(survey_day.timezone, "now", lambda: moment(now))
    ends_at = survey_day.next_time(
        time.fromisoformat(clock), zone=ZoneInfo("America/Chicago")
    )
    assert ends_at == moment(expected)


def test_pages_read_the_end_without_a_statement(django_assert_num_queries):
    day = begin()
    with django_assert_num_queries(0):
        assert abs(survey_day.shown_end() - day.ends_at) < timedelta(milliseconds=1)
    # A cache that was emptied is filled within a quarter of a minute.
    caches["lists"].clear()
    assert survey_day.shown_end() is None
    jobs.wake_forgotten()
    assert survey_day.shown_end() is not None
    # What is left of a day that is over is not shown.
    caches["lists"].set(survey_day.KEY, timezone.now().timestamp() - 1)
    assert survey_day.shown_end() is None
    survey_day.end(by="test")
    assert caches["lists"].get(survey_day.KEY) is None


def test_the_choice_of_a_job_takes_no_statement_more(django_assert_num_queries):
    export = jobs.start(make_after_survey_days)
    begin()
    with django_assert_num_queries(1):
        assert export.pk not in {job.pk for job in jobs.runnable_jobs()}


@on_postgresql
def test_jobs_that_wait_for_the_day_are_no_reason_for_an_alert():
    def samples() -> dict[tuple[str, ...], float]:
        answer = job_queues.read_jobs()
        return {(name, *labels): number for name, number, labels in answer.samples}

    jobs.start(make_after_survey_days)
    assert samples()["jobs_waiting", "long"] == 1
    assert samples()["survey_day_ends_timestamp_seconds",] == 0
    day = begin()
    figures = samples()
    assert figures["jobs_waiting", "long"] == 0 and figures["jobs_held", "long"] == 1
    ends_at = figures["survey_day_ends_timestamp_seconds",]
    assert ends_at == pytest.approx(day.ends_at.timestamp(), abs=1)


def test_the_command_begins_tells_and_ends():
    assert command("status") == (
        {
            "on": False,
            "until": None,
            "zone": project.TIME_ZONE,
            "reason": None,
            "by": None,
        },
        0,
    )
    in_an_hour = timezone.localtime(timezone.now() + timedelta(hours=1))
    until = f"{in_an_hour:%H:%M}"
    begun, status = command("on", "--until", until, "--reason", "Everybody answers")
    assert begun["on"] is True and status == 0
    reported, status = command("status")
    assert reported == begun and status == 3
    assert reported["until"][11:16] == until
    assert (reported["reason"], reported["by"]) == ("Everybody answers", "survey_day")
    with pytest.raises(CommandError, match="on already"):
        command("on", "--until", until, "--reason", "again")
    assert command("off")[0]["on"] is False
    with pytest.raises(CommandError, match="No survey day is on"):
        command("off")
    assert AuditEntry.objects.filter(action="begin survey day").count() == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["on"],
        ["on", "--until", "16:00"],
        ["on", "--until", "16:00", "--reason", " "],
        ["on", "--until", "4pm", "--reason", "x"],
        ["on", "--until", "16:00:30", "--reason", "x"],
    ],
)
def test_the_command_refuses_what_is_incomplete(arguments):
    with pytest.raises(CommandError):
        command(*arguments)
    assert not SurveyDay.objects.exists()
