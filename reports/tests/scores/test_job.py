"""Scores are calculated by themselves once a closed administration is counted."""

from __future__ import annotations

from copy import deepcopy

import pytest
from django.db import connection
from django.utils import timezone

from reports.models import Scoring
from reports.models.scores import FORMAT
from reports.results.job import request_results
from reports.scores.job import RETRY_AFTER, start_outdated
from reports.scores.scoring import score_administration
from reports.tasks import start_due_results
from reports.tests.scores.conftest import (
    closed,
    published,
    run_jobs,
    simulated,
    take_part,
)
from survey.models import Job

pytestmark = pytest.mark.django_db


def scored_kinds():
    kinds = Job.objects.filter(kind__startswith="scores").values_list("kind", "state")
    return list(kinds)


def test_scores_follow_the_first_count(staff, survey):
    administration = closed(survey, "fall-2026")
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


def test_scores_from_before_it_was_decided_what_is_hidden_are_calculated_again(
    staff, survey
):
    administration = closed(survey, "fall-2026")
    take_part(administration, staff.lincoln, simulated(60, 1))
    score_administration(administration)
    request_results(administration)
    run_jobs()
    assert scored_kinds() == [("scores.recalculate", "done")]


def outdated():
    scorings = Scoring.objects.exclude(format=FORMAT).order_by("pk")
    return [scoring.administration for scoring in scorings]


@pytest.fixture(scope="class")
def shared_waves(class_data, survey, shared_staff):
    fall, spring = closed(survey, "fall"), closed(published(version="2"), "spring")
    for seed, wave in enumerate((fall, spring), 1):
        take_part(wave, shared_staff.lincoln, simulated(60, seed))
        request_results(wave)
        run_jobs()
    return fall, spring


class TestOutdatedScores:
    @pytest.fixture
    def waves(self, shared_waves):
        return deepcopy(shared_waves)

    def test_scores_in_another_format_are_calculated_again_benchmarks_first(
        self, waves
    ):
        _fall, spring = waves
        assert outdated() == []
        Scoring.objects.update(format=FORMAT - 1)
        jobs_before = Job.objects.count()
        start_outdated()
        # A waiting job is not started twice.
        start_outdated()
        assert Job.objects.count() == jobs_before + 1
        run_jobs()
        assert outdated() == [spring]
        start_outdated()
        run_jobs()
        assert outdated() == []
        start_outdated()
        assert Job.objects.count() == jobs_before + 2

    def test_calculating_that_failed_waits_for_an_hour(self, waves):
        Scoring.objects.update(format=FORMAT - 1)
        start_outdated()
        jobs_before = Job.objects.count()
        failed = Job.objects.filter(kind="scores.calculate", ended_at=None)
        now = timezone.now()
        failed.update(state=Job.State.FAILED, ended_at=now)
        start_outdated()
        assert Job.objects.count() == jobs_before
        Job.objects.update(ended_at=now - RETRY_AFTER)
        start_outdated()
        assert Job.objects.count() == jobs_before + 1

    def test_a_program_that_knows_no_format_stores_an_old_one(self, waves):
        """During a deploy, workers of the release before may store scores."""
        fall, _spring = waves
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM reports_scoring WHERE administration_id=%s", [fall.pk]
            )
            cursor.execute(
                "INSERT INTO reports_scoring"
                " (administration_id, as_of, calculated_at, people, problems)"
                " VALUES (%s, %s, %s, 60, '[]')",
                [fall.pk, timezone.now(), timezone.now()],
            )
        assert outdated() == [fall]


def test_a_survey_without_measures_has_no_scores(staff):
    administration = closed(published(measures=[], version="2"), "fall-2026")
    take_part(administration, staff.lincoln, simulated(20, 1))
    request_results(administration)
    run_jobs()
    assert scored_kinds() == []
