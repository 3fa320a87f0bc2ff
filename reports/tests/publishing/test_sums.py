"""Figures of published schools together."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from reports.publishing.sums import SumOfSchools
from reports.results.reading import ItemDistribution
from reports.results.visible import VisibleGroup
from reports.scores.visible import VisibleScore

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
    total = SumOfSchools()
    total.add(school(20, {"q1": {"1": 12, "2": 7}}), {})
    total.add(school(30, {"q1": {"1": 10, "2": 19}}), {})
    group, _scores = total.figures()
    assert (group.people, group.finished) == (50, 48)
    item = group.items["q1"]
    assert (item.answered, item.skipped, item.values) == (48, 2, {"1": 22, "2": 26})


def test_the_figures_of_a_school_are_not_changed():
    first = school(20, {"q1": {"1": 12}})
    total = SumOfSchools()
    total.add(first, {})
    total.add(school(30, {"q1": {"1": 10}}), {})
    assert first.items["q1"].values == {"1": 12}
    assert first.items["q1"].answered == 12


def test_an_item_that_a_school_hides_in_part_is_of_the_other_schools():
    total = SumOfSchools()
    total.add(school(20, {"q1": {"1": 12}}, hidden_options={"q1": {"2"}}), {})
    total.add(school(30, {"q1": {"1": 10, "2": 5}}), {})
    group, _scores = total.figures()
    assert group.items["q1"].values == {"1": 10, "2": 5}
    assert list(group.hidden_items) == []


def test_an_item_that_every_school_hides_is_hidden():
    total = SumOfSchools()
    total.add(school(20, {"q2": {"1": 12}}, hidden_items=["q1"]), {})
    total.add(school(30, {"q1": {"1": 9}}, hidden_options={"q1": {"2"}}), {})
    group, _scores = total.figures()
    assert list(group.items) == ["q2"]
    assert group.hidden_items == ["q1"]


def test_scores_are_weighted_by_people():
    total = SumOfSchools()
    total.add(school(20, {}), {"trust": score(40, 2.0, people=10)})
    total.add(school(30, {}), {"trust": score(61, 1.0, people=30)})
    _group, scores = total.figures()
    assert scores["trust"].score == 56  # 55.75
    assert scores["trust"].benchmarks == {7}
    assert scores["trust"].error == pytest.approx(math.hypot(20, 30) / 40)


@pytest.mark.parametrize("second", [None, score(60, None, people=20)])
def test_hidden_scores_and_unknown_errors_are_left_out(second):
    total = SumOfSchools()
    total.add(school(20, {}), {"trust": score(40, 2.0, people=20)})
    total.add(school(20, {}), {"trust": second})
    _group, scores = total.figures()
    expected = (50, None) if second else (40, 2.0)
    assert (scores["trust"].score, scores["trust"].error) == expected


def test_a_score_that_every_school_hides_is_hidden():
    total = SumOfSchools()
    total.add(school(20, {}), {"trust": None})
    _group, scores = total.figures()
    assert scores == {"trust": None}


def test_without_schools_there_is_nothing():
    assert SumOfSchools().figures() is None
