"""Destroyed answers leave the release, and nothing that is made of single answers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from reports import retention as of_reports
from reports.exports.destroyed import destroyed_message
from reports.models import (
    CountedSchool,
    ReleasedSentence,
    ResultsRollUp,
    SchoolRate,
)
from reports.rates.rollup import roll_up
from reports.rates.rollup_query import count
from reports.releases import frozen_people, rollup
from reports.releases.rollup import is_outdated
from reports.results.job import count_results, request_results
from reports.scores import scoring
from reports.tests.releases.conftest import release, stored
from reports.tests.releases.test_release import closed as closed  # noqa: PLC0414
from reports.tests.releases.test_release import people
from survey.models import Administration, Identity, Job, OptOut, Respondent, Response
from survey.people.retention.counting import count_rows
from survey.people.retention.orders import DestructionRefused, order_destruction
from survey.tests.erasing.conftest import (
    jobs_run_by_hand as jobs_run_by_hand,  # noqa: PLC0414
)
from survey.tests.retention.conftest import ANSWERS, NAMES, close, destroy, keep_for
from survey.work import jobs
from survey.work.jobs import JobRefused

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture
def due(closed):
    """Results of a month ago."""
    release(closed)
    close(closed)
    keep_for(closed, timezone.now() - timedelta(days=31), answers_days=5)
    return closed


def test_the_release_stays_and_what_is_of_single_people_goes(due, staff):
    ReleasedSentence.objects.create(
        administration=due, item="comment", text="Good", released_by=staff.dana
    )
    before = stored(due)
    counts = count_rows(due.pk, ANSWERS)
    assert counts["reports_countedschool"] and counts["reports_releasedsentence"]
    destruction = destroy(due, ANSWERS)
    assert stored(due) == before
    assert not Response.objects.filter(administration_id=due.pk).exists()
    assert not CountedSchool.objects.exclude(people=b"").exists()
    assert not ReleasedSentence.objects.exists()
    rows = {name: table["rows"] for name, table in destruction.tables.items()}
    assert rows == {name: count for name, count in counts.items() if count}


def test_no_release_or_score_is_counted_without_answers(due, staff, monkeypatch):
    destroy(due, ANSWERS)
    before = stored(due)
    job = request_results(due, by=staff.state)
    with pytest.raises(JobRefused, match="The results stay as they are"):
        count_results(job, None)
    with pytest.raises(JobRefused, match="Scores"):
        scoring.score_administration(due)
    assert rollup.keeps_earlier_answers(due)
    assert stored(due) == before
    # The twin: without the mark, schools would be counted anew, of nobody.
    Administration.objects.filter(pk=due.pk).update(answers_destroyed_at=None)
    due.refresh_from_db()
    assert not frozen_people.counts_erased_people(due)


def test_answers_wait_for_the_results(closed, monkeypatch):
    close(closed)
    keep_for(closed, timezone.now() - timedelta(days=31), answers_days=5)
    with pytest.raises(DestructionRefused, match="not been counted yet"):
        order_destruction(closed, ANSWERS)


@pytest.fixture
def reopened(due):
    """Opened again after its results were counted, and closed long ago since."""
    early = due.closes_at - timedelta(days=1)
    ResultsRollUp.objects.update(as_of=early, released_at=early)
    Response.objects.filter(administration_id=due.pk).update(saved_at=due.closes_at)
    return due


def test_answers_given_after_a_reopening_wait_for_a_new_release(reopened, staff):
    with pytest.raises(DestructionRefused, match="Count new results first"):
        order_destruction(reopened, ANSWERS)
    assert is_outdated(reopened)
    job = request_results(reopened, by=staff.state)
    jobs.run(job.pk)
    roll_up = ResultsRollUp.objects.get()
    assert roll_up.released_at < reopened.closes_at < roll_up.as_of
    assert destroy(reopened, ANSWERS)


def test_otherwise_they_would_be_destroyed_uncounted(reopened, monkeypatch):
    """The twin: any earlier release is taken for one of these answers."""
    monkeypatch.setattr(of_reports, "AFTER_CLOSING", -timedelta(days=3650))
    destroy(reopened, ANSWERS)
    assert ResultsRollUp.objects.get().as_of < reopened.closes_at
    assert not Response.objects.filter(administration_id=reopened.pk).exists()


@pytest.mark.parametrize("minutes, is_counted", [(14, False), (16, True)])
def test_a_release_before_the_last_saves_is_outdated(due, minutes, is_counted):
    """Pages that were begun are saved until ten minutes after the closing."""
    as_of = due.closes_at + timedelta(minutes=minutes)
    ResultsRollUp.objects.update(as_of=as_of)
    due.refresh_from_db()
    assert (of_reports.results_are_counted(due, ANSWERS) == "") is is_counted
    assert is_outdated(due) is not is_counted


@pytest.mark.parametrize("kind", ["results.count", "scores.calculate"])
def test_answers_wait_for_jobs_that_read_them(due, kind):
    job = Job.objects.create(kind=kind, subject_id=due.pk, state="running")
    with pytest.raises(DestructionRefused, match="being calculated"):
        order_destruction(due, ANSWERS)
    assert of_reports.results_are_counted(due, NAMES) == ""
    Job.objects.filter(pk=job.pk).update(state="done", ended_at=timezone.now())
    assert order_destruction(due, ANSWERS)


def test_files_of_destroyed_data_are_refused(due):
    assert destroyed_message([due], with_names=True) == ""
    destroy(due, ANSWERS)
    assert "answers of" in destroyed_message([due], with_names=False)
    Administration.objects.filter(pk=due.pk).update(
        answers_destroyed_at=None, identities_destroyed_at=timezone.now()
    )
    due.refresh_from_db()
    assert destroyed_message([due], with_names=False) == ""
    assert "names of" in destroyed_message([due], with_names=True)


def test_rates_stay_as_they_were(due, staff):
    keep_for(due, timezone.now() - timedelta(days=31), identities_days=5)
    [person, *_others] = people(staff)
    Respondent.objects.filter(pk=person.pk).update(
        withdrawn_at=due.closes_at, opted_out_at=due.closes_at
    )
    OptOut.objects.create(
        respondent=person,
        requested_on=due.closes_at.date(),
        requested_by="parent",
        by=staff.dana,
    )

    def figures():
        roll_up()
        due.refresh_from_db()
        _as_of, counts = count([due])
        rates = SchoolRate.objects.filter(administration=due).order_by("school")
        rates = rates.values_list("school", "eligible", "started", "finished")
        return list(rates), dict(counts[due.pk].opted_out)

    before = figures()
    assert before[1] == {staff.lincoln.pk: 1}
    destroy(due, NAMES)
    assert not OptOut.objects.exists()
    assert not Identity.objects.filter(administration=due).exists()
    assert figures() == before
