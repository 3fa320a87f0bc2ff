"""A benchmark is chosen on purpose, and a pilot never becomes it by itself."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.models import Calibration, ChosenBenchmark, Scoring
from reports.rates.rollup import roll_up
from reports.scores.benchmark_choice import choose_benchmark
from reports.scores.benchmark_titles import benchmark_title
from reports.scores.drift import DecisionRefused
from reports.scores.scoring import score_administration
from reports.tests.scores.conftest import closed, run_jobs, simulated, take_part

pytestmark = pytest.mark.django_db


def scored(survey, staff, name, people, seed, **fields):
    administration = closed(survey, name, **fields)
    take_part(administration, staff.lincoln, simulated(people, seed))
    roll_up()
    score_administration(administration)
    return administration


def benchmark_of(administration):
    trust = Calibration.objects.get(administration=administration, measure="trust")
    return trust.anchored_to and trust.anchored_to.administration


@pytest.fixture
def pilot(survey, staff):
    return scored(survey, staff, "pilot", 40, 1)


@pytest.fixture
def fall(survey, staff, pilot):
    return scored(survey, staff, "fall", 200, 2)


def test_a_pilot_never_becomes_the_benchmark_by_itself(survey, staff, pilot, fall):
    assert benchmark_of(fall) is None
    # Nor for a later round that is as small.
    spring = scored(survey, staff, "spring", 60, 3)
    assert benchmark_of(spring) == fall


def test_without_the_rule_it_would(survey, staff, pilot, monkeypatch):
    monkeypatch.setattr("reports.scores.benchmark.SMALLEST_SHARE", 0)
    assert benchmark_of(scored(survey, staff, "fall", 200, 2)) == pilot


def test_a_chosen_one_is_that_of_all_rounds(
    survey, staff, pilot, fall, django_capture_on_commit_callbacks
):
    choose_benchmark(administration=pilot, because="The same schools", by=staff.state)
    run_jobs()
    assert benchmark_of(fall) == pilot
    assert benchmark_of(pilot) is None
    spring = scored(survey, staff, "spring", 200, 3)
    assert benchmark_of(spring) == pilot
    entry = AuditEntry.objects.get(action="choose benchmark")
    assert entry.after == {"reason": "The same schools"}
    with pytest.raises(DecisionRefused, match="the benchmark already"):
        choose_benchmark(administration=pilot, because="x", by=staff.state)
    # A later choice takes its place, also for itself and for earlier rounds.
    choose_benchmark(administration=spring, because="All schools", by=staff.state)
    run_jobs()
    assert ChosenBenchmark.objects.get().administration == spring
    assert benchmark_of(spring) is None
    assert benchmark_of(pilot) == benchmark_of(fall) == spring


def test_a_round_that_was_anchored_can_be_chosen(survey, staff, fall):
    spring = scored(survey, staff, "spring", 200, 3)
    assert benchmark_of(spring) == fall
    choose_benchmark(administration=spring, because="All schools", by=staff.state)
    run_jobs()
    assert benchmark_of(spring) is None
    assert benchmark_of(fall) == spring


def test_rounds_of_others_are_left_alone(survey, staff, fall):
    teachers = scored(survey, staff, "teachers", 200, 4, role="teacher")
    choose_benchmark(administration=teachers, because="First", by=staff.state)
    run_jobs()
    assert benchmark_of(fall) is None


def test_it_is_chosen_on_the_page_about_quality(client, staff, fall):
    log_in(client, staff.state)
    path = reverse("scores_benchmark", args=[fall.pk])
    page = client.get(path)
    assert "calculated again and change" in page.text
    assert "Say why you decide this" in client.post(path, {"because": ""}).text
    assert not ChosenBenchmark.objects.exists()
    shown = client.post(path, {"because": "A whole year"}, follow=True)
    assert "This survey round is the benchmark" in shown.text
    assert ChosenBenchmark.objects.get().by == staff.state
    log_in(client, staff.chen)
    assert client.post(path, {"because": "x"}).status_code in (403, 404)


def test_its_size_is_rounded(fall):
    scoring = Scoring.objects.get(administration=fall)
    for people, words in ((123_456, "120,000 people"), (96, "96 people"), (1, "1 p")):
        scoring.people = fall.scoring.people = people
        assert f"{fall.title} (about {words}" in benchmark_title(fall)
