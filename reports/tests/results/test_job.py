"""Closed administrations are counted by themselves, open ones on request."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from reports.models import ResultsRollUp
from reports.releases.rollup import due, is_outdated, roll_up_results
from reports.results.job import request_results
from reports.tasks import start_due_results
from reports.tests.exports.conftest import answer
from reports.tests.releases.stored_figures import distributions
from survey.models import Administration, CountedGroup, Job, OptOut, Respondent
from survey.work import jobs

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed(staff, fall, enrol):
    answer(enrol(fall, staff.lincoln), {"safe": "1"})
    now = timezone.now()
    Administration.objects.filter(pk=fall.pk).update(
        opens_at=now - timedelta(days=9), closes_at=now - timedelta(hours=1)
    )
    return Administration.objects.get(pk=fall.pk)


def run_jobs() -> list[str]:
    waiting = Job.objects.filter(kind="results.count", state=Job.State.WAITING)
    for key in list(waiting.values_list("pk", flat=True)):
        jobs.run(key)
    ended = Job.objects.filter(kind="results.count").order_by("pk")
    return [f"{job.state}: {job.message}" for job in ended]


def test_a_closed_administration_is_counted_once(closed):
    start_due_results()
    start_due_results()
    assert run_jobs() == ["done: Ready: the answers of 1 school were counted."]
    assert distributions(closed).people == 1
    start_due_results()
    assert Job.objects.filter(kind="results.count").count() == 1


def test_an_open_administration_is_counted_on_request_only(staff, fall, enrol):
    answer(enrol(fall, staff.lincoln), {"safe": "1"})
    start_due_results()
    assert not Job.objects.filter(kind="results.count").exists()
    job = request_results(fall, by=staff.state)
    assert request_results(fall, by=staff.state) == job
    run_jobs()
    assert distributions(fall).people == 1


def test_pages_may_arrive_for_a_quarter_of_an_hour_after_closing(closed):
    now = timezone.now()
    minutes = timedelta(minutes=14)
    Administration.objects.filter(pk=closed.pk).update(closes_at=now - minutes)
    assert due() == []
    roll_up_results(closed)
    # Counted too early.
    assert due(now + timedelta(minutes=2)) == [closed]


@pytest.mark.parametrize(
    "event", ["opt-out", "opt-out taken back", "roster", "reopened"]
)
def test_a_release_is_outdated_and_stays_as_it_is_after(staff, closed, event):
    roll_up_results(closed, release=True)
    assert not is_outdated(closed)
    person = Respondent.objects.get()
    now = timezone.now() + timedelta(seconds=1)
    if event.startswith("opt-out"):
        OptOut.objects.create(
            respondent=person,
            requested_on=now.date(),
            requested_by="parent",
            by=staff.state,
            recorded_at=now if event == "opt-out" else now - timedelta(days=3),
            ended_at=None if event == "opt-out" else now,
            ended_by=None if event == "opt-out" else staff.state,
        )
    elif event == "roster":
        CountedGroup.objects.create(
            respondent=person,
            administration=closed,
            school=staff.lincoln,
            grade="05",
            attributes={},
            cohort=1,
            changed_at=now,
        )
    else:
        closed.closes_at = now
        closed.save()
    assert is_outdated(closed)
    assert due(now + timedelta(days=2)) == []


def test_a_job_that_failed_is_started_again_an_hour_later(closed, monkeypatch):
    Administration.objects.filter(pk=closed.pk).update(name="closed")
    Job.objects.create(
        kind="results.count",
        subject_id=closed.pk,
        state=Job.State.FAILED,
        ended_at=timezone.now(),
    )
    start_due_results()
    assert Job.objects.count() == 1
    Job.objects.update(ended_at=timezone.now() - timedelta(hours=1, minutes=1))
    start_due_results()
    assert Job.objects.count() == 2


def test_figures_of_another_process_are_not_overwritten(closed, monkeypatch):
    from reports.releases import rollup

    find = rollup.LastRollUp.find

    def find_and_be_overtaken(administration):
        last = find(administration)
        monkeypatch.undo()
        roll_up_results(administration)
        return last

    monkeypatch.setattr(rollup.LastRollUp, "find", find_and_be_overtaken)
    assert roll_up_results(closed).rows_changed == 0
    assert ResultsRollUp.objects.count() == 1


def test_the_scheduler_looks_for_closed_administrations(settings):
    entry = settings.CELERY_BEAT_SCHEDULE["count results"]
    assert entry["task"] == "reports.tasks.start_due_results"


def test_finding_what_is_due_takes_few_statements(closed, django_assert_num_queries):
    roll_up_results(closed, release=True)
    with django_assert_num_queries(3):
        start_due_results()
