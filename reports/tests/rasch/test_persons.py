import numpy as np
import pytest

from reports.rasch import MISSING, ResponseTable, measure_people, separation
from reports.tests.rasch.simulated import simulate

EASY, HARD = np.array([-1.0]), np.array([1.0])


def measures(rows, thresholds):
    table, row = ResponseTable.of_people(np.array(rows))
    result = measure_people(table, thresholds)
    return [float(value) for value in result.wle[row]], result


def test_the_measure_makes_the_score_the_expected_one():
    table, _ = ResponseTable.of_people(np.array([[1, 0]]))
    theta = measure_people(table, [EASY, HARD]).mle[0]
    expected = sum(1 / (1 + np.exp(step - theta)) for step in (-1, 1))
    assert expected == pytest.approx(1)


def test_a_skipped_item_is_missing_and_not_wrong():
    (skipped, wrong, easy), _ = measures(
        [[1, MISSING], [1, 0], [MISSING, 1]], [EASY, HARD]
    )
    assert wrong < skipped < easy


def test_the_lowest_and_highest_scores_are_finite():
    (none, everything), result = measures([[0, 0], [1, 1]], [EASY, HARD])
    assert -5 < none < 0 < everything < 5
    assert none == pytest.approx(-everything)
    assert np.isnan(result.mle).all()
    assert np.isfinite(result.standard_error).all()


def test_people_without_answers_have_no_measure():
    (blank, _), result = measures([[MISSING, MISSING], [1, 0]], [EASY, HARD])
    assert np.isnan(blank)
    assert np.isfinite(result.wle).sum() == 1


def test_weighted_likelihood_removes_the_bias_outwards():
    thresholds = [np.array([-1.0, 0.0, 1.0])] * 4
    answers = simulate(thresholds, people=2000)
    table, _ = ResponseTable.of_people(answers)
    result = measure_people(table, thresholds)
    inner = ~result.is_extreme
    assert (np.abs(result.wle[inner]) <= np.abs(result.mle[inner]) + 1e-9).all()


def test_reliability_is_the_share_of_true_variance():
    thresholds = [np.array([-1.0, 0.0, 1.0])] * 10
    table, _ = ResponseTable.of_people(simulate(thresholds, people=5000))
    result = separation(table, measure_people(table, thresholds))
    assert 0.75 < result.reliability < 0.95
    assert result.separation == pytest.approx(
        np.sqrt(result.reliability / (1 - result.reliability))
    )
