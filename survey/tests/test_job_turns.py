"""Users take turns with their background jobs."""

from __future__ import annotations

import pytest

from accounts.models import User
from survey.management.commands.work import run_waiting_jobs
from survey.models import Job
from survey.tasks import run_job
from survey.tests.example_jobs import make, make_slowly
from survey.work import job_turns, jobs
from survey.work.job_turns import TooManyJobs, next_job, refuse_many, run_next

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def by_hand(settings):
    """Send no messages: the test runs the jobs itself."""
    settings.JOBS_BY_MESSAGE = False


@pytest.fixture
def users() -> list[User]:
    return [
        User.objects.create_user(f"{name}@example.org", "a long password")
        for name in ("dana", "sam")
    ]


def test_another_users_job_runs_after_one_of_many(users):
    dana, sam = users
    many = [jobs.start(make_slowly, by=dana) for _ in range(5)]
    only = jobs.start(make_slowly, by=sam)

    # Messages arrive in the order in which the jobs were started.
    for job in (*many, only):
        run_job(job.pk)

    order = list(Job.objects.order_by("started_at").values_list("pk", flat=True))
    assert order == [many[0].pk, only.pk, *(job.pk for job in many[1:])]
    assert set(Job.objects.values_list("state", flat=True)) == {Job.State.DONE}


def test_oldest_first_would_keep_the_other_user_waiting(users):
    """The twin: without turns."""
    dana, sam = users
    many = [jobs.start(make_slowly, by=dana) for _ in range(5)]
    only = jobs.start(make_slowly, by=sam)
    waiting = jobs.runnable_jobs(jobs.LONG).values_list("pk", flat=True)
    assert list(waiting) == [*(job.pk for job in many), only.pk]


def test_users_take_turns_without_a_broker_too(users):
    dana, sam = users
    many = [jobs.start(make_slowly, by=dana) for _ in range(3)]
    only = jobs.start(make_slowly, by=sam)
    run_waiting_jobs(jobs.LONG)
    order = list(Job.objects.order_by("started_at").values_list("pk", flat=True))
    assert order == [many[0].pk, only.pk, many[1].pk, many[2].pk]


def test_a_turn_stays_in_its_queue(users):
    quick = jobs.start(make, by=users[0])
    long = jobs.start(make_slowly, by=users[1])
    assert next_job(jobs.LONG) == long.pk
    run_next(quick.pk)
    assert Job.objects.get(pk=quick.pk).state == Job.State.DONE
    assert Job.objects.get(pk=long.pk).state == Job.State.WAITING


def test_a_job_that_another_worker_takes_gives_the_turn_to_the_next(users, monkeypatch):
    taken, left = (jobs.start(make_slowly, by=each) for each in users)
    run = jobs.run

    def slower(pk: int) -> bool:
        if pk == taken.pk:
            Job.objects.filter(pk=pk, state=Job.State.WAITING).delete()
        return run(pk)

    monkeypatch.setattr(jobs, "run", slower)
    run_next(left.pk)
    assert Job.objects.get(pk=left.pk).state == Job.State.DONE


def test_a_user_has_a_limited_number_of_unfinished_jobs(users, monkeypatch):
    monkeypatch.setattr(job_turns, "MOST_UNFINISHED", 2)
    dana, sam = users
    first, _ = (jobs.start(make, by=dana) for _ in range(2))
    with pytest.raises(TooManyJobs, match="started 2 tasks"):
        refuse_many(dana)
    refuse_many(sam)
    jobs.run(first.pk)
    refuse_many(dana)
