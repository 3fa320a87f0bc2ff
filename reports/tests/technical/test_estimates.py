"""Intervals, errors and weights, beside other programs and slow formulas."""

import numpy as np
import pytest
from scipy.stats import binomtest

from reports.technical.estimates import (
    MOST_WEIGHT,
    clustered_error,
    mean_error,
    rake,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "people"), [(0, 12), (1, 12), (7, 20), (480, 500), (500, 500)]
)
def test_intervals_of_proportions_are_those_of_scipy(successes, people):
    expected = binomtest(successes, people).proportion_ci(method="wilson")
    assert wilson_interval(successes, people) == pytest.approx(tuple(expected))


def test_without_people_there_is_no_interval():
    assert np.isnan(wilson_interval(0, 0)).all()


def schools(people=20, number=200, between=0.5, seed=1):
    """Return values of people whose schools differ, and their schools."""
    random = np.random.default_rng(seed)
    of_person = np.repeat(np.arange(number), people)
    return random.normal(0, between, number)[of_person] + random.normal(
        0, 1, people * number
    ), of_person


def test_errors_of_people_in_schools_are_those_of_the_means_of_schools():
    values, clusters = schools()
    means = values.reshape(-1, 20).mean(axis=1)
    # Of schools of one size.
    expected = means.std(ddof=1) / np.sqrt(200)
    assert clustered_error(values, clusters) == pytest.approx(expected)
    # As if they were independent, it would be less than half of it.
    assert mean_error(values) < expected / 2


def test_people_each_in_a_school_of_their_own_are_independent():
    values, _ = schools(people=3, number=30)
    alone = np.arange(len(values))
    assert clustered_error(values, alone) == pytest.approx(mean_error(values))


def test_errors_hold_their_level():
    missed = {"clustered": 0, "independent": 0}
    for seed in range(200):
        values, clusters = schools(number=40, seed=seed)
        distance = abs(values.mean())
        missed["clustered"] += distance > 1.96 * clustered_error(values, clusters)
        missed["independent"] += distance > 1.96 * mean_error(values)
    assert missed["clustered"] < 200 * 0.1
    # Without clusters, the interval misses far more often.
    assert missed["independent"] > 200 * 0.2


def test_unknown_values_and_a_single_school_have_no_part():
    values, clusters = schools(number=10)
    shorter = clustered_error(values[:-20], clusters[:-20])
    values[-20:] = np.nan
    assert clustered_error(values, clusters) == pytest.approx(shorter)
    assert np.isnan(clustered_error(values, np.zeros(len(values), int)))
    assert np.isnan(mean_error(values[:1]))


def test_a_difference_of_the_same_people_has_a_smaller_error():
    first, clusters = schools()
    second = first + np.random.default_rng(2).normal(0, 0.3, len(first))
    independent = np.hypot(mean_error(first), mean_error(second))
    assert mean_error(first - second) < independent / 3


def test_an_error_of_weighted_people_is_that_of_repeated_people():
    values, clusters = schools(number=50)
    weights = np.random.default_rng(3).integers(1, 4, len(values))
    repeated = clustered_error(np.repeat(values, weights), np.repeat(clusters, weights))
    weighted = clustered_error(values, clusters, weights.astype(float))
    assert weighted == pytest.approx(repeated)


def test_weighted_people_are_like_the_roster():
    random = np.random.default_rng(4)
    grade, sex = random.integers(0, 3, 900), random.integers(0, 2, 900)
    shares = np.array([0.5, 0.3, 0.2]), np.array([0.35, 0.65])
    raked = rake([(grade, shares[0]), (sex, shares[1])])
    for codes, wanted in ((grade, shares[0]), (sex, shares[1])):
        sums = np.bincount(codes, raked.weights) / raked.weights.sum()
        assert sums == pytest.approx(wanted, abs=1e-5)
    assert raked.weights.mean() == pytest.approx(1)
    assert raked.distance < 1e-5
    assert raked.trimmed == 0
    # Kish: 1 and the squared coefficient of variation.
    assert raked.design_effect == pytest.approx(1 + raked.weights.var())


def test_people_like_the_roster_have_the_weight_1():
    codes = np.repeat([0, 1], 50)
    raked = rake([(codes, np.array([0.5, 0.5]))])
    assert raked.weights == pytest.approx(1)
    assert raked.design_effect == pytest.approx(1)


def test_a_few_people_do_not_speak_for_many():
    codes = np.repeat([0, 1], [980, 20])
    raked = rake([(codes, np.array([0.5, 0.5]))])
    assert raked.weights.max() / raked.weights.min() <= MOST_WEIGHT**2 + 1e-9
    assert raked.trimmed == 20
    # It is said that they are still unlike it.
    assert raked.distance > 0.1


def test_a_group_of_the_roster_in_which_nobody_answered_is_left_out():
    codes = np.repeat([0, 2], 50)
    raked = rake([(codes, np.array([0.4, 0.2, 0.4]))])
    assert raked.weights == pytest.approx(1)
