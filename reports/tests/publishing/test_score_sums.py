"""Scores of published schools together."""

from __future__ import annotations

import math

import pytest

from reports.publishing.score_sums import SumOfScores
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


def score(points, error=None, people=20):
    return VisibleScore(points, frozenset((7,)), people, error)


def test_scores_are_weighted_by_people():
    total = SumOfScores(CONTENT)
    total.add({"trust": score(40, 2.0, people=10)})
    total.add({"trust": score(61, 1.0, people=30)})
    scores = total.scores()
    assert scores["trust"].score == 56  # 55.75
    assert scores["trust"].benchmarks == {7}
    assert scores["trust"].error == pytest.approx(math.hypot(20, 30) / 40)


@pytest.mark.parametrize("second", [None, score(60, None, people=20)])
def test_hidden_scores_and_unknown_errors_are_left_out(second):
    total = SumOfScores(CONTENT)
    total.add({"trust": score(40, 2.0, people=20)})
    total.add({"trust": second})
    scores = total.scores()
    expected = (50, None) if second else (40, 2.0)
    assert (scores["trust"].score, scores["trust"].error) == expected


def test_a_score_that_every_school_hides_is_hidden():
    total = SumOfScores(CONTENT)
    total.add({"trust": None})
    scores = total.scores()
    assert scores == {"trust": None}


def test_without_schools_there_is_nothing():
    assert SumOfScores(CONTENT).scores() == {}


def essential_of(total):
    scores = total.scores()
    return scores.get("other", "none")


def test_an_essential_is_the_mean_of_the_measures_of_its_place():
    """Each school shows one of the two measures, and so no essential."""
    total = SumOfScores(CONTENT)
    total.add({"one": score(40, 3.0), "two": None, "other": None})
    total.add({"one": None, "two": score(71, 4.0), "other": None})
    essential = essential_of(total)
    assert essential.score == 56  # 55.5
    # Other people have answered each measure.
    assert essential.error == pytest.approx(math.hypot(3, 4) / 2)
    assert essential.benchmarks == {7}


def test_it_is_not_the_mean_of_the_essentials_of_schools():
    total = SumOfScores(CONTENT)
    total.add({"one": score(40), "two": score(60), "other": score(50)})
    total.add({"one": None, "two": score(80), "other": None})
    scores = total.scores()
    assert (scores["one"].score, scores["two"].score) == (40, 70)
    assert scores["other"].score == 55


def test_negative_measures_are_turned_round():
    total = SumOfScores(CONTENT)
    scores = {"trust": score(60), "noise": score(20), "pride": score(70)}
    total.add(scores)
    scores = total.scores()
    assert scores["safe"].score == 70


@pytest.mark.parametrize(("second", "expected"), [({"two": None}, None), ({}, "none")])
def test_it_is_there_if_all_of_its_measures_are(second, expected):
    total = SumOfScores(CONTENT)
    total.add({"one": score(40), **second})
    assert essential_of(total) == expected


@pytest.mark.parametrize("shared", [-0.4, 0.0, 0.6, 1.0])
def test_the_error_knows_how_far_errors_of_measures_go_together(shared):
    """Two schools, of which different numbers of people have the measures."""
    total, variance = SumOfScores(CONTENT), 0.0
    for people, other_people, first_error, second_error in (
        (20, 30, 3.0, 4.0),
        (60, 10, 2.0, 5.0),
    ):
        of_mean = (
            math.sqrt(
                first_error**2
                + second_error**2
                + 2 * shared * first_error * second_error
            )
            / 2
        )
        scores = {
            "one": score(40, first_error, people),
            "two": score(50, second_error, other_people),
            "other": score(45, of_mean),
        }
        total.add(scores)
        first, second = first_error * people / 80, second_error * other_people / 40
        variance += first**2 + second**2 + 2 * shared * first * second
    assert essential_of(total).error == pytest.approx(math.sqrt(variance) / 2)


def test_where_all_people_have_all_measures_it_is_that_of_the_schools_essentials():
    total = SumOfScores(CONTENT)
    for people, error in ((20, 2.5), (60, 1.5)):
        measures = {
            name: score(50, 3.0, people) for name in ("trust", "noise", "pride")
        }
        total.add({**measures, "safe": score(50, error)})
    scores = total.scores()
    assert scores["safe"].error == pytest.approx(math.hypot(20 * 2.5, 60 * 1.5) / 80)


def test_where_a_school_hides_one_of_three_the_others_go_together_fully():
    total = SumOfScores(CONTENT)
    both = {"trust": score(50, 3.0, 20), "noise": score(50, 4.0, 20)}
    total.add({**both, "pride": None, "safe": None})
    total.add({"pride": score(50, 0.0, 20)})
    scores = total.scores()
    assert scores["safe"].error == pytest.approx((3 + 4) / 3)


def test_without_an_error_of_a_measure_there_is_none():
    total = SumOfScores(CONTENT)
    total.add({"one": score(40, 3.0), "two": score(50, None)})
    assert essential_of(total).error is None
