"""Scores are calculated by themselves once a closed administration is counted."""

from __future__ import annotations

import pytest

from reports.models import Scoring
from reports.results.job import request_results
from reports.scores.scoring import score_administration
from reports.tasks import start_due_results
from reports.tests.scores.conftest import closed, published, simulated, take_part
from survey import jobs
from survey.models import Job

pytestmark = pytest.mark.django_db


def run_jobs():
    waiting = Job.objects.filter(state=Job.State.WAITING).order_by("pk")
    while job := waiting.first():
        jobs.run(job.pk)


def scored_kinds():
    kinds = Job.objects.filter(kind__startswith="scores").values_list("kind", "state")
    return list(kinds)


def test_scores_follow_the_first_count(staff):
    administration = closed(published(), "fall-2026")
    take_part(administration, staff.lincoln, simulated(60, 1))
    start_due_results()
    run_jobs()
    assert scored_kinds() == [("scores.calculate", "done")]
    before = Scoring.objects.get(pk=administration.pk)
    # What was calculated stays as it is when answers are counted again.
    request_results(administration)
    run_jobs()
    assert scored_kinds() == [("scores.calculate", "done")]
    assert Scoring.objects.get().calculated_at == before.calculated_at


def test_scores_from_before_it_was_decided_what_is_hidden_are_calculated_again(staff):
    administration = closed(published(), "fall-2026")
    take_part(administration, staff.lincoln, simulated(60, 1))
    score_administration(administration)
    request_results(administration)
    run_jobs()
    assert scored_kinds() == [("scores.recalculate", "done")]


def test_a_survey_without_measures_has_no_scores(staff):
    administration = closed(published(measures=[]), "fall-2026")
    take_part(administration, staff.lincoln, simulated(20, 1))
    request_results(administration)
    run_jobs()
    assert scored_kinds() == []
