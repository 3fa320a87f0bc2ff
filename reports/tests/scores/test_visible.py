"""Scores are shown where the results of their items are."""

from __future__ import annotations

import math
from copy import deepcopy
from datetime import timedelta

import pytest
from django.db.models import Value

from reports.models import (
    GroupResults,
    ResultsRollUp,
    SchoolRate,
    ScoreRow,
    Scoring,
)
from reports.models.scores import FORMAT
from reports.rates.rollup import roll_up
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.rollup import roll_up_results
from reports.scores.scoring import score_administration
from reports.scores.visible import (
    earlier_waves,
    has_scores,
    score_to_sort_by,
    scores_of_waves,
    visible_scores,
)
from reports.tests.scores.conftest import closed, published, simulated, take_part
from survey.instrument.definitions.measures import measures_of
from survey.models import Administration

pytestmark = pytest.mark.django_db
STATE = ("state", 0)


def scored(administration):
    roll_up()
    roll_up_results(administration)
    hide_small_groups(administration)
    score_administration(administration)
    return administration


@pytest.fixture(scope="module")
def shared_fall(survey, shared_staff):
    """Lincoln has 60 people, Washington and Roosevelt 40."""
    administration = closed(survey)
    take_part(administration, shared_staff.lincoln, simulated(60, 1, shift=0.5))
    take_part(administration, shared_staff.washington, simulated(40, 2))
    take_part(administration, shared_staff.roosevelt, simulated(40, 3, shift=-0.5))
    return scored(administration)


@pytest.fixture
def fall(shared_fall):
    return deepcopy(shared_fall)


@pytest.fixture
def lincoln(staff):
    return ("school", staff.lincoln.pk)


def hide(administration, place, **fields):
    level, key = place
    rows = GroupResults.objects.filter(
        administration=administration, level=level, place_id=key, attribute=""
    )
    assert rows.update(**fields) == 1


def test_scores_have_their_people_error_and_band(fall, lincoln):
    scores = visible_scores(fall, [lincoln, STATE])
    stored = ScoreRow.objects.get(
        administration=fall, level="school", place_id=lincoln[1], attribute=""
    )
    trust = scores[lincoln]["trust"]
    people, _mean, error, score = stored.measures["trust"]
    assert (trust.score, trust.people) == (score, people)
    assert score > 50 and trust.band == 3
    # In points of the scale, of which 20 are a deviation.
    assert 1 < trust.error < 5 and trust.error > error
    assert scores[lincoln]["safe"].score == stored.essentials["safe"]
    assert scores[lincoln]["safe"].people is None
    assert scores[STATE]["trust"].score == 50


def test_an_essential_has_its_error(fall, lincoln):
    scores = visible_scores(fall, [lincoln])[lincoln]
    rows = ScoreRow.objects.filter(administration=fall)
    stored = rows.get(level="school", place_id=lincoln[1], attribute="")
    assert 1 < scores["safe"].error == stored.essential_errors["safe"] < 5


def test_an_essential_is_the_mean_of_the_measures_that_the_place_shows(staff, fall):
    places = [("school", school.pk) for school in (staff.lincoln, staff.roosevelt)]
    places += [("district", staff.riverside.pk), STATE]
    for scores in visible_scores(fall, places).values():
        mean = (scores["trust"].score + 100 - scores["noise"].score) / 2
        assert scores["safe"].score == math.floor(mean + 0.5)


def test_scores_in_another_format_do_not_exist(fall, lincoln):
    content = measures_of(fall.published.survey)

    def first():
        expression = score_to_sort_by(fall, content, "trust", without=-1)
        rates = SchoolRate.objects.filter(administration=fall)
        return max(rates.annotate(by=expression).values_list("by", flat=True))

    later = closed(fall.published, "later")
    later.closes_at += timedelta(minutes=1)
    assert visible_scores(fall, [lincoln, STATE])[lincoln]["trust"]
    assert earlier_waves(later) == [fall]
    assert first() > 0
    assert has_scores(Administration.objects.get(pk=fall.pk))
    Scoring.objects.update(format=FORMAT - 1)
    assert visible_scores(fall, [lincoln, STATE]) == {}
    assert earlier_waves(later) == []
    assert first() == -1
    assert not has_scores(Administration.objects.get(pk=fall.pk))


def test_a_district_shows_nothing_if_all_of_its_schools_hide_it(staff):
    few = closed(published(version="2"), "few")
    few.minimum_group = 10
    answers = simulated(60, 1, skipped=0)
    for school in (staff.lincoln, staff.washington):
        # Nine and nine people: more than the minimum together.
        left = [
            row if n < 9 else [*row[:4], *[""] * 3] for n, row in enumerate(answers)
        ]
        take_part(few, school, left)
    take_part(few, staff.roosevelt, simulated(40, 2, skipped=0))
    scored(few)
    riverside = ("district", staff.riverside.pk)
    scores = visible_scores(few, [riverside, STATE])
    assert scores[riverside]["noise"] is scores[riverside]["safe"] is None
    assert scores[riverside]["trust"].people == 120
    assert scores[STATE]["noise"].people == 40


def test_a_hidden_place_has_no_scores(fall, lincoln):
    assert visible_scores(fall, [lincoln])[lincoln]["trust"]
    hide(fall, lincoln, is_hidden=True)
    scores = visible_scores(fall, [lincoln, STATE])
    assert scores[lincoln] == {"trust": None, "noise": None, "safe": None}
    assert scores[STATE]["trust"]


def test_figures_without_a_decision_have_no_scores(fall, lincoln):
    ResultsRollUp.objects.update(hidden_as_of=None)
    assert not any(visible_scores(fall, [lincoln])[lincoln].values())


def test_a_hidden_item_hides_its_measure_and_essential(fall, lincoln):
    hide(fall, lincoln, hidden_items=["q6"])
    scores = visible_scores(fall, [lincoln])[lincoln]
    assert scores["trust"]
    assert scores["noise"] is None
    assert scores["safe"] is None


def test_a_measure_of_few_people_is_hidden(staff, fall):
    few = closed(published(version="2"), "few")
    answers = simulated(60, 1, skipped=0)
    # 51 people have left the page with the measure of noise out.
    answers[9:] = [[*row[:4], "", "", ""] for row in answers[9:]]
    take_part(few, staff.lincoln, answers)
    take_part(few, staff.roosevelt, simulated(40, 2, skipped=0))
    scored(few)
    lincoln = ("school", staff.lincoln.pk)
    [row] = ScoreRow.objects.filter(
        administration=few, level="school", attribute="", place_id=staff.lincoln.pk
    )
    assert row.measures["noise"][0] == 9
    few.minimum_group = 9
    hide(few, lincoln, is_hidden=False, hidden_items=[])
    assert visible_scores(few, [lincoln])[lincoln]["noise"]
    few.minimum_group = 10
    scores = visible_scores(few, [lincoln])[lincoln]
    assert scores["noise"] is None
    assert scores["safe"] is None
    assert scores["trust"]


@pytest.mark.parametrize("name", ["trust", "noise", "safe"])
@pytest.mark.parametrize(
    "hidden",
    [{}, {"is_hidden": True}, {"hidden_items": ["q6"]}, {"hidden_items": ["q1"]}],
)
def test_schools_are_sorted_by_what_they_show(staff, fall, lincoln, name, hidden):
    if hidden:
        hide(fall, lincoln, **hidden)
    if name == "noise":
        fall.minimum_group = 40
    content = measures_of(fall.published.survey)
    expression = score_to_sort_by(fall, content, name, without=-1)
    rates = SchoolRate.objects.filter(administration=fall)
    sorted_by = dict(rates.annotate(by=expression).values_list("school", "by"))
    assert len(sorted_by) == 3
    scores = visible_scores(fall, [("school", school) for school in sorted_by])
    assert sorted_by == {
        school: score.score if (score := scores["school", school][name]) else -1
        for school in sorted_by
    }


def test_nothing_is_sorted_by_scores_without_a_decision(fall):
    ResultsRollUp.objects.update(hidden_as_of=None)
    content = measures_of(fall.published.survey)
    assert isinstance(score_to_sort_by(fall, content, "trust", without=-1), Value)


def test_waves_can_be_compared_where_they_have_the_same_benchmark(
    staff, fall, lincoln, django_assert_num_queries
):
    spring = closed(published(version="2"), "spring")
    take_part(spring, staff.lincoln, simulated(60, 4))
    take_part(spring, staff.roosevelt, simulated(60, 5))
    scored(spring)
    assert earlier_waves(spring) == [fall]
    assert earlier_waves(fall) == []
    with django_assert_num_queries(4):
        by_wave = scores_of_waves([fall, spring], [lincoln, STATE])
    before, now = by_wave[fall.pk][lincoln], by_wave[spring.pk][lincoln]
    assert now["trust"].benchmarks == before["trust"].benchmarks
    assert now["trust"].score < before["trust"].score
    assert now["safe"].benchmarks > now["trust"].benchmarks


def test_scores_of_several_places_take_as_many_statements(
    staff, fall, lincoln, django_assert_num_queries
):
    schools = [staff.lincoln, staff.washington, staff.roosevelt]
    with django_assert_num_queries(4):
        assert len(visible_scores(fall, [("school", s.pk) for s in schools])) == 3
    with django_assert_num_queries(0):
        assert visible_scores(fall, []) == {}
