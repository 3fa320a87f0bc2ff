from __future__ import annotations

import math

import numpy as np
import pytest

from reports.scores.comparisons import (
    correlation,
    is_more_than_chance,
    likely_changes,
)
from reports.scores.visible import VisibleScore


def score(points, error):
    return VisibleScore(points, frozenset((1,)), 30, error)


def schools_that_change(seed):
    """Return true changes with a deviation of 5, and what few and many people show."""
    random = np.random.default_rng(seed)
    errors = np.where(np.arange(2000) < 1000, 12.0, 2.0)
    true = random.normal(1, 5, 2000)
    return true, true + random.normal(0, errors), errors


def test_likely_changes_are_closer_to_the_true_ones():
    true, observed, errors = schools_that_change(1)
    likely = np.array(likely_changes(observed.tolist(), errors.tolist()))
    assert np.square(likely - true).mean() < np.square(observed - true).mean() / 4
    # Those of large schools hardly move.
    assert np.abs(likely - observed)[1000:].mean() < 1


def test_small_schools_are_not_first_because_of_chance():
    _true, observed, errors = schools_that_change(2)
    few = set(range(1000))

    def of_few_people(changes):
        return len(few & set(np.argsort(-np.abs(changes))[:50].tolist()))

    # As they are, nearly all of the largest changes are those of few people.
    assert of_few_people(observed) > 45
    assert (
        of_few_people(np.array(likely_changes(observed.tolist(), errors.tolist()))) < 10
    )


def test_changes_without_more_than_chance_are_all_the_mean():
    assert likely_changes([], []) == []
    assert likely_changes([4], [2.0]) == [4]
    assert likely_changes([1, 3], [5.0, 5.0]) == [2, 2]


def test_equal_schools_or_few_have_no_correlation():
    rates = list(range(50, 70))
    assert correlation(rates, [2 * rate for rate in rates]) == pytest.approx(1)
    assert is_more_than_chance(1.0, 20)
    assert correlation(rates[:9], rates[:9]) is None
    assert correlation(rates, [50] * 20) is None
    assert not is_more_than_chance(0.4, 20)
    assert is_more_than_chance(-0.4, 40)


def test_a_change_always_has_an_error_because_scores_are_rounded():
    assert score(50, 0.0).error_of_change(score(49, 0.0)) == math.sqrt(1 / 6)
    assert score(50, 3.0).error_of_change(score(49, 4.0)) == pytest.approx(5.017, 0.001)
    assert score(50, None).error_of_change(score(49, 4.0)) is None
