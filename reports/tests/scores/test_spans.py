"""Schools are compared with those of their grade span, if somebody chose that."""

from __future__ import annotations

import re

import numpy as np
import pytest
from django.urls import reverse

from accounts.models import School
from accounts.tests.logging_in import log_in
from reports.models import Calibration, ScoreRow
from reports.rates.rollup import roll_up
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.rollup import roll_up_results
from reports.scores.benchmark_choice import choose_benchmark
from reports.scores.benchmark_titles import ComparedWith, title_of_benchmark
from reports.scores.scale import MIDDLE, POINTS, Sums, within_scale
from reports.scores.scoring import score_administration
from reports.scores.shrinkage import estimate_differences
from reports.scores.spans import spans_of_schools
from reports.scores.visible import measures_in_survey, visible_scores
from reports.scores.visible_groups import visible_group_scores
from reports.tests.scores.conftest import closed, run_jobs, simulated, take_part

pytestmark = pytest.mark.django_db
GRADES = {"elementary": "04", "high": "10"}
# Elementary schools are so much better off, in logits.
OFFSET = {"elementary": 1.0, "high": -1.0}


def answered(survey, staff, name="fall", seed=0):
    """Return a round with 11 schools of two spans, and three of none."""
    administration = closed(survey, name)
    district = staff.lincoln.district
    effects = np.random.default_rng(5).normal(0, 0.6, 22)
    for number, effect in enumerate(effects):
        span = "elementary" if number % 2 else "high"
        school, _new = School.objects.get_or_create(
            district=district, code=f"{span}-{number}", defaults={"name": span}
        )
        take_part(
            administration,
            school,
            simulated(20, seed + number, shift=OFFSET[span] + effect),
            grade=GRADES[span],
        )
    # Of both, of a span that has too few schools, and without grades.
    take_part(administration, staff.lincoln, simulated(12, seed + 50), grade="05")
    take_part(administration, staff.lincoln, simulated(12, seed + 51), grade="06")
    take_part(administration, staff.roosevelt, simulated(20, seed + 52), grade="07")
    unknown, _new = School.objects.get_or_create(district=district, code="unknown")
    take_part(administration, unknown, simulated(20, seed + 53), grade="")
    roll_up()
    return administration


def released(administration):
    roll_up_results(administration)
    hide_small_groups(administration)
    score_administration(administration, recalculate=True)


@pytest.fixture
def fall(survey, staff):
    administration = answered(survey, staff)
    released(administration)
    return administration


@pytest.fixture
def by_span(staff, fall):
    choose_benchmark(administration=fall, because="All", by=staff.state, by_span=True)
    run_jobs()
    return fall


def school_means(administration, span):
    return [
        row.measures["trust"]
        for row in ScoreRow.objects.filter(
            administration=administration, level="school", attribute=""
        )
        if School.objects.get(pk=row.place_id).code.startswith(span)
    ]


def trust(administration):
    return Calibration.objects.get(administration=administration, measure="trust")


def test_a_span_is_that_of_three_quarters_of_the_students(staff, fall):
    spans = spans_of_schools(fall)
    codes = {
        School.objects.get(pk=school).code.split("-")[0]: span
        for school, span in spans.items()
    }
    assert codes["elementary"] == "elementary"
    assert codes["high"] == "high"
    assert spans[staff.roosevelt.pk] == "middle"
    # Half of it is elementary, and nothing is known of the other.
    assert staff.lincoln.pk not in spans
    assert "unknown" not in codes
    assert len(spans) == 23


def test_each_span_has_the_mean_50_and_its_own_deviation(fall, by_span):
    calibration = trust(fall)
    assert set(calibration.span_scales) == {"elementary", "high"}
    for span in GRADES:
        people, means, _errors, _scores = map(
            np.array, zip(*school_means(fall, span), strict=True)
        )
        stored = calibration.span_scales[span]
        assert stored["people"] == people.sum()
        mean = (people * means).sum() / people.sum()
        assert stored["scale"]["mean"] == pytest.approx(mean, abs=1e-3)
        assert stored["scale"]["unit"] == "schools"
        assert stored["scale"]["deviation"] == stored["differences"]["between"] > 0
    mean = calibration.scale_mean
    assert calibration.span_scales["high"]["scale"]["mean"] < mean - 0.5
    assert calibration.span_scales["elementary"]["scale"]["mean"] > mean + 0.5


def test_a_school_has_the_score_of_its_span_and_others_that_of_all(
    staff, fall, by_span
):
    calibration = trust(fall)
    scores = {
        row.place_id: row
        for row in ScoreRow.objects.filter(administration=fall, attribute="")
        if row.level == "school"
    }
    elementary = School.objects.get(code="elementary-1")
    row = scores[elementary.pk]
    assert row.span == "elementary"
    place = ("school", elementary.pk)
    shown = visible_scores(fall, [place])[place]["trust"]
    scale = calibration.span_scales["elementary"]["scale"]
    points = (
        MIDDLE
        + POINTS * (row.measures["trust"][1] - scale["mean"]) / scale["deviation"]
    )
    assert shown.mean == round(within_scale(points))
    assert {key.span for key in shown.benchmarks} == {"elementary"}
    # The same school beside all schools, for sums.
    points = (
        MIDDLE
        + POINTS
        * (row.measures["trust"][1] - calibration.scale_mean)
        / calibration.scale_deviation
    )
    assert shown.of_all_schools.mean == round(within_scale(points))
    for school in (staff.lincoln, staff.roosevelt):
        assert scores[school.pk].span == ""
        place = ("school", school.pk)
        shown = visible_scores(fall, [place])[place]["trust"]
        assert {key.span for key in shown.benchmarks} == {""}
        assert shown.of_all_schools is None
    state = ScoreRow.objects.get(administration=fall, level="state", attribute="")
    assert state.span == ""
    assert state.measures["trust"][3] == 50


def test_groups_of_a_school_are_on_the_scale_of_its_span(fall, by_span):
    schools = School.objects.filter(code__in=("elementary-1", "high-0"))
    places = [("school", school.pk) for school in schools]
    everyone = visible_scores(fall, places)
    groups = visible_group_scores(fall, measures_in_survey(fall), everyone)
    for place in places:
        [scores] = [groups[place]["grade", grade] for _, grade in groups[place]]
        # All people of the school are in one grade.
        assert scores["trust"].of_answers == everyone[place]["trust"].of_answers
        assert scores["trust"].score == everyone[place]["trust"].score
        assert scores["trust"].benchmarks == everyone[place]["trust"].benchmarks


def test_without_the_choice_one_span_is_above_the_other(fall):
    assert trust(fall).span_scales == {}
    elementary = [score for *_rest, score in school_means(fall, "elementary")]
    high = [score for *_rest, score in school_means(fall, "high")]
    assert np.mean(elementary) > 60 > 40 > np.mean(high)


def test_later_waves_have_the_spans_of_the_benchmark(survey, staff, fall, by_span):
    spring = answered(survey, staff, "spring", seed=100)
    released(spring)
    now, before = trust(spring), trust(fall)
    assert now.anchored_to == before
    for span, stored in before.span_scales.items():
        assert now.span_scales[span]["scale"] == stored["scale"]
        assert now.span_scales[span]["people"] == stored["people"]
        assert now.span_scales[span]["differences"] != stored["differences"]
    place = ("school", School.objects.get(code="high-0").pk)
    key = visible_scores(fall, [place])[place]["trust"].benchmarks
    assert visible_scores(spring, [place])[place]["trust"].benchmarks == key
    compared = ComparedWith.of(spring)
    assert compared.by_span
    assert compared.titles == [title_of_benchmark(before)]


def test_the_comparison_by_span_can_be_taken_back(staff, fall, by_span):
    choose_benchmark(administration=fall, because="One scale", by=staff.state)
    run_jobs()
    assert trust(fall).span_scales == {}
    assert not ScoreRow.objects.exclude(span="").exists()


def test_few_schools_of_a_span_have_no_scale(fall, by_span, monkeypatch, staff):
    monkeypatch.setattr("reports.scores.scale.FEWEST_SCHOOLS", 12)
    choose_benchmark(administration=fall, because="Again", by=staff.state)
    choose_benchmark(administration=fall, because="All", by=staff.state, by_span=True)
    run_jobs()
    assert trust(fall).span_scales == {}


def test_differences_are_those_of_schools_of_the_span(fall, by_span):
    people, means, errors, _scores = map(
        np.array, zip(*school_means(fall, "high"), strict=True)
    )
    squares = errors**2 * people * (people - 1) + people * means**2
    expected = estimate_differences(Sums(people, people * means, squares))
    stored = trust(fall).span_scales["high"]["differences"]
    assert stored["between"] == pytest.approx(expected.between, rel=0.01)


def test_a_report_of_a_span_has_no_scores_of_another_scale_beside_it(
    client, staff, fall, by_span
):
    """The average elementary school is above all schools, and has 50 of its span."""
    log_in(client, staff.state)
    for code, is_of_span in (("elementary-1", True), ("lincoln", False)):
        school = School.objects.get(code=code)
        address = reverse("school_report", args=[fall.pk, school.pk])
        page = client.get(address).text
        assert ("so they are not beside it" in page) is is_of_span
        assert (re.search(r"All schools: \d+", page) is None) is is_of_span
