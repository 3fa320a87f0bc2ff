"""Figures of published schools together."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from reports.publishing.sums import SumOfSchools
from reports.results.reading import ItemDistribution
from reports.results.visible import VisibleGroup
from reports.scores.visible import VisibleScore


def measure(name, essential="", direction="positive"):
    return {"name": name, "essential": essential, "direction": direction, "items": []}


CONTENT = {
    "essentials": [{"name": "safe"}, {"name": "other"}],
    "measures": [
        measure("trust", "safe"),
        measure("noise", "safe", "negative"),
        measure("pride", "safe"),
        measure("one", "other"),
        measure("two", "other"),
    ],
}
AS_OF = datetime(2026, 11, 1, tzinfo=UTC)


def school(people, values, *, hidden_items=(), hidden_options=None):
    items = {
        name: ItemDistribution(
            "choice", answered=sum(counts.values()), skipped=1, values=dict(counts)
        )
        for name, counts in values.items()
    }
    options = hidden_options or {}
    return VisibleGroup(AS_OF, people, people - 1, items, hidden_items, options)


def score(points, error=None, people=None):
    return VisibleScore(points, frozenset((7,)), people, error)


def test_answers_are_added_up():
    total = SumOfSchools(CONTENT)
    total.add(school(20, {"q1": {"1": 12, "2": 7}}), {})
    total.add(school(30, {"q1": {"1": 10, "2": 19}}), {})
    group, _scores = total.figures()
    assert (group.people, group.finished) == (50, 48)
    item = group.items["q1"]
    assert (item.answered, item.skipped, item.values) == (48, 2, {"1": 22, "2": 26})


def test_the_figures_of_a_school_are_not_changed():
    first = school(20, {"q1": {"1": 12}})
    total = SumOfSchools(CONTENT)
    total.add(first, {})
    total.add(school(30, {"q1": {"1": 10}}), {})
    assert first.items["q1"].values == {"1": 12}
    assert first.items["q1"].answered == 12


def test_an_item_that_a_school_hides_in_part_is_of_the_other_schools():
    total = SumOfSchools(CONTENT)
    total.add(school(20, {"q1": {"1": 12}}, hidden_options={"q1": {"2"}}), {})
    total.add(school(30, {"q1": {"1": 10, "2": 5}}), {})
    group, _scores = total.figures()
    assert group.items["q1"].values == {"1": 10, "2": 5}
    assert list(group.hidden_items) == []


def test_an_item_that_every_school_hides_is_hidden():
    total = SumOfSchools(CONTENT)
    total.add(school(20, {"q2": {"1": 12}}, hidden_items=["q1"]), {})
    total.add(school(30, {"q1": {"1": 9}}, hidden_options={"q1": {"2"}}), {})
    group, _scores = total.figures()
    assert list(group.items) == ["q2"]
    assert group.hidden_items == ["q1"]


def test_scores_are_weighted_by_people():
    total = SumOfSchools(CONTENT)
    total.add(school(20, {}), {"trust": score(40, 2.0, people=10)})
    total.add(school(30, {}), {"trust": score(61, 1.0, people=30)})
    _group, scores = total.figures()
    assert scores["trust"].score == 56  # 55.75
    assert scores["trust"].benchmarks == {7}
    assert scores["trust"].error == pytest.approx(math.hypot(20, 30) / 40)


@pytest.mark.parametrize("second", [None, score(60, None, people=20)])
def test_hidden_scores_and_unknown_errors_are_left_out(second):
    total = SumOfSchools(CONTENT)
    total.add(school(20, {}), {"trust": score(40, 2.0, people=20)})
    total.add(school(20, {}), {"trust": second})
    _group, scores = total.figures()
    expected = (50, None) if second else (40, 2.0)
    assert (scores["trust"].score, scores["trust"].error) == expected


def test_a_score_that_every_school_hides_is_hidden():
    total = SumOfSchools(CONTENT)
    total.add(school(20, {}), {"trust": None})
    _group, scores = total.figures()
    assert scores == {"trust": None}


def test_without_schools_there_is_nothing():
    assert SumOfSchools(CONTENT).figures() is None


def essential_of(total):
    _group, scores = total.figures()
    return scores.get("other", "none")


def test_an_essential_is_the_mean_of_the_measures_of_its_place():
    """Each school shows one of the two measures, and so no essential."""
    total = SumOfSchools(CONTENT)
    total.add(school(20, {}), {"one": score(40, 3.0), "two": None, "other": None})
    total.add(school(60, {}), {"one": None, "two": score(71, 4.0), "other": None})
    found = essential_of(total)
    assert found.score == 56  # 55.5
    # Other people have answered each measure.
    assert found.error == pytest.approx(math.hypot(3, 4) / 2)
    assert found.benchmarks == {7}


def test_it_is_not_the_mean_of_the_essentials_of_schools():
    total = SumOfSchools(CONTENT)
    total.add(school(20, {}), {"one": score(40), "two": score(60), "other": score(50)})
    total.add(school(20, {}), {"one": None, "two": score(80), "other": None})
    _group, scores = total.figures()
    assert (scores["one"].score, scores["two"].score) == (40, 70)
    assert scores["other"].score == 55


def test_negative_measures_are_turned_round():
    total = SumOfSchools(CONTENT)
    scores = {"trust": score(60), "noise": score(20), "pride": score(70)}
    total.add(school(20, {}), scores)
    _group, scores = total.figures()
    assert scores["safe"].score == 70


@pytest.mark.parametrize(("second", "expected"), [({"two": None}, None), ({}, "none")])
def test_it_is_there_if_all_of_its_measures_are(second, expected):
    total = SumOfSchools(CONTENT)
    total.add(school(20, {}), {"one": score(40), **second})
    assert essential_of(total) == expected


@pytest.mark.parametrize("shared", [-0.4, 0.0, 0.6, 1.0])
def test_the_error_knows_how_far_errors_of_measures_go_together(shared):
    """Two schools, of which different numbers of people have the measures."""
    total, variance = SumOfSchools(CONTENT), 0.0
    for people, others, one, two in ((20, 30, 3.0, 4.0), (60, 10, 2.0, 5.0)):
        of_mean = math.sqrt(one**2 + two**2 + 2 * shared * one * two) / 2
        scores = {
            "one": score(40, one, people),
            "two": score(50, two, others),
            "other": score(45, of_mean),
        }
        total.add(school(99, {}), scores)
        first, second = one * people / 80, two * others / 40
        variance += first**2 + second**2 + 2 * shared * first * second
    assert essential_of(total).error == pytest.approx(math.sqrt(variance) / 2)


def test_where_all_people_have_all_measures_it_is_that_of_the_schools_essentials():
    total = SumOfSchools(CONTENT)
    for people, error in ((20, 2.5), (60, 1.5)):
        measures = {
            name: score(50, 3.0, people) for name in ("trust", "noise", "pride")
        }
        total.add(school(people, {}), {**measures, "safe": score(50, error)})
    _group, scores = total.figures()
    assert scores["safe"].error == pytest.approx(math.hypot(20 * 2.5, 60 * 1.5) / 80)


def test_where_a_school_hides_one_of_three_the_others_go_together_fully():
    total = SumOfSchools(CONTENT)
    both = {"trust": score(50, 3.0, 20), "noise": score(50, 4.0, 20)}
    total.add(school(20, {}), {**both, "pride": None, "safe": None})
    total.add(school(20, {}), {"pride": score(50, 0.0, 20)})
    _group, scores = total.figures()
    assert scores["safe"].error == pytest.approx((3 + 4) / 3)


def test_without_an_error_of_a_measure_there_is_none():
    total = SumOfSchools(CONTENT)
    total.add(school(20, {}), {"one": score(40, 3.0), "two": score(50, None)})
    assert essential_of(total).error is None
