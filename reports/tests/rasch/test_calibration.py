from itertools import product

import numpy as np
import pytest
from scipy.optimize import check_grad

from reports.rasch import (
    MISSING,
    RATING_SCALE,
    ResponseTable,
    calibrate,
    fit_statistics,
    measure_people,
)
from reports.rasch.conditional import ConditionalLikelihood
from reports.tests.rasch.simulated import simulate

AGREEMENT = [[-1.5, -0.3, 0.6], [-0.8, 0.2, 1.0], [-1.0, 0.4, 1.6], [-0.6, -0.2, 0.6]]


def test_thresholds_of_simulated_answers_are_found():
    answers = simulate(AGREEMENT, people=20_000)
    answers[np.random.default_rng(2).random(answers.shape) < 0.1] = MISSING
    table, _ = ResponseTable.of_people(answers)
    result = calibrate(table)
    assert result.is_converged
    errors = np.concatenate(result.thresholds) - np.concatenate(AGREEMENT)
    # Five standard errors: a wrong formula is further away.
    assert (np.abs(errors) < 5 * np.concatenate(result.standard_errors)).all()
    assert np.concatenate(result.thresholds).sum() == pytest.approx(0, abs=1e-9)


def test_two_items_have_the_ratio_of_their_unequal_answers():
    # With two items of two categories the estimate is a formula (Rasch 1960).
    answers = [[1, 0]] * 30 + [[0, 1]] * 10 + [[1, 1]] * 7 + [[0, 0]] * 5
    table, _ = ResponseTable.of_people(np.array(answers))
    easy, hard = calibrate(table).thresholds
    assert hard[0] - easy[0] == pytest.approx(np.log(3), abs=1e-6)


def test_the_gradient_is_the_derivative_of_the_likelihood():
    answers = simulate(AGREEMENT, people=300)
    answers[:40, 2:] = MISSING
    table, _ = ResponseTable.of_people(answers)
    likelihood = ConditionalLikelihood(table, [3, 3, 3, 3])
    at = np.linspace(-1, 1, 12)
    difference = check_grad(lambda x: likelihood(x)[0], lambda x: likelihood(x)[1], at)
    assert difference < 1e-3
    assert np.abs(likelihood(at)[1]).max() > 1


def test_the_information_is_the_derivative_of_the_gradient():
    # Items of six, two and four categories: three blocks.
    steps = [5, 5, 5, 1, 3, 5, 5, 5]
    thresholds = [np.linspace(-1, 1, most) for most in steps]
    answers = simulate(thresholds, people=200)
    answers[np.random.default_rng(4).random(answers.shape) < 0.3] = MISSING
    table, _ = ResponseTable.of_people(answers)
    likelihood = ConditionalLikelihood(table, steps)
    assert len(likelihood.blocks) == 3
    at, unit = np.concatenate(thresholds), np.eye(sum(steps)) * 1e-4
    derivative = [
        (likelihood(at - step)[1] - likelihood(at + step)[1]) / 2e-4 for step in unit
    ]
    assert likelihood.information(at) == pytest.approx(np.array(derivative), abs=1e-4)


def test_the_likelihood_is_that_of_all_ways_to_reach_the_score():
    answers = np.array([[2, 0, 1], [0, 1, 1], [2, MISSING, 0], [1, 1, 0]])
    table, _ = ResponseTable.of_people(answers)
    thresholds = np.array([-0.5, 0.4, 0.3, -0.2])
    expected = 0.0
    for person in answers:
        ways = [
            np.array(way)
            for way in product(range(3), range(2), range(2))
            if sum(way) == person[person >= 0].sum()
            and all(np.array(way)[person == MISSING] == 0)
        ]
        weights = [
            np.exp(-thresholds[: way[0]].sum() - way[1:] @ thresholds[2:])
            for way in ways
        ]
        mine = [(way == np.maximum(person, 0)).all() for way in ways].index(True)
        expected += np.log(weights[mine] / sum(weights))
    value, _ = ConditionalLikelihood(table, [2, 1, 1])(thresholds)
    assert value == pytest.approx(expected)


def test_items_of_the_rating_scale_share_the_distances_of_their_thresholds():
    scale = np.array([-1.0, 0.1, 0.9])
    answers = simulate([scale - 0.5, scale, scale + 0.5], people=3000)
    table, _ = ResponseTable.of_people(answers)
    result = calibrate(table, model=RATING_SCALE)
    distances = np.diff(np.array(result.thresholds), axis=1)
    assert np.ptp(distances, axis=0) == pytest.approx(0, abs=1e-9)
    assert distances[0] == pytest.approx([1.1, 0.8], abs=0.2)


def test_items_of_different_lengths_are_no_rating_scale():
    table, _ = ResponseTable.of_people(np.array([[0, 1], [1, 0], [1, 2], [0, 2]]))
    with pytest.raises(ValueError, match="equal items"):
        calibrate(table, model=RATING_SCALE)


def test_anchored_items_put_a_new_item_on_their_scale():
    shifted = [[step + 2 for step in steps] for steps in AGREEMENT]
    table, _ = ResponseTable.of_people(simulate(shifted, people=20_000))
    anchors = dict(enumerate(shifted[:3]))
    result = calibrate(table, anchors=anchors)
    for item, thresholds in anchors.items():
        assert result.thresholds[item] == pytest.approx(thresholds)
        assert result.standard_errors[item] == pytest.approx([0, 0, 0])
    assert result.thresholds[3] == pytest.approx(shifted[3], abs=0.15)


def test_an_order_without_exceptions_has_no_estimate():
    # Whoever agrees to the second item agrees to the first.
    answers = [[1, 0]] * 30 + [[1, 1]] * 10 + [[0, 0]] * 10
    table, _ = ResponseTable.of_people(np.array(answers))
    assert not calibrate(table).is_converged


def test_answers_that_follow_the_model_fit_and_random_ones_do_not():
    answers = simulate(AGREEMENT, people=5000)
    answers[:, 3] = np.random.default_rng(3).integers(0, 4, 5000)
    table, _ = ResponseTable.of_people(answers)
    thresholds = calibrate(table).thresholds
    fit = fit_statistics(table, thresholds, measure_people(table, thresholds))
    assert fit.infit[3] > 1.3
    assert (fit.infit[:3] < 1.1).all()
    assert fit.people.max() < 5000
