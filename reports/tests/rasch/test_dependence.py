"""Items that share more than the measure."""

import numpy as np
import pytest

from reports.rasch import MISSING, ResponseTable, calibrate, measure_people
from reports.rasch.dependence import correlations, first_contrast, local_dependence
from reports.rasch.persons import moments
from reports.tests.rasch.simulated import simulate

STEPS = [[-1.5, -0.3, 0.6], [-0.8, 0.2, 1.0], [-1.0, 0.4, 1.6]] * 4


def estimated(answers):
    table, row = ResponseTable.of_people(answers)
    thresholds = calibrate(table).thresholds
    return table, thresholds, measure_people(table, thresholds), row


def test_items_of_one_measure_are_independent():
    table, thresholds, measures, _ = estimated(simulate(STEPS, people=2000))
    result = local_dependence(table, thresholds, measures)
    assert result.dependent_pairs() == []
    # Without dependence it is about -1 / (items - 1), which the correction takes out.
    assert result.mean == pytest.approx(-1 / 11, abs=0.02)
    assert np.nanmean(result.corrected[np.triu_indices(12, 1)]) == pytest.approx(0)
    contrast = first_contrast(table, thresholds, measures)
    assert 1 < contrast.eigenvalue < 1.5
    assert contrast.share == pytest.approx(contrast.eigenvalue / 12)


def test_an_item_that_repeats_another_is_dependent_on_it():
    answers = simulate(STEPS, people=2000)
    same = np.random.default_rng(1).random(2000) < 0.5
    answers[same, 7] = answers[same, 2]
    table, thresholds, measures, _ = estimated(answers)
    assert local_dependence(table, thresholds, measures).dependent_pairs() == [(2, 7)]


def test_a_second_dimension_is_the_first_contrast():
    half = STEPS[:6]
    answers = np.hstack(
        [simulate(half, people=2000, seed=1), simulate(half, people=2000, seed=2)]
    )
    contrast = first_contrast(*estimated(answers)[:3])
    assert contrast.eigenvalue > 2
    signs = np.sign(contrast.loadings)
    assert len(set(signs[:6])) == len(set(signs[6:])) == 1
    assert signs[0] != signs[6]
    # Correlations of items with the component: squares sum to its eigenvalue.
    assert (contrast.loadings**2).sum() == pytest.approx(contrast.eigenvalue)


def test_correlations_are_those_of_the_people_who_answered_both():
    answers = simulate(STEPS[:5], people=300)
    answers[np.random.default_rng(3).random(answers.shape) < 0.2] = MISSING
    answers = answers[(answers != MISSING).sum(axis=1) > 1]
    table, thresholds, measures, row = estimated(answers)
    q3 = local_dependence(table, thresholds, measures).q3

    inner = ~measures.is_extreme[row]
    wle = measures.wle[row][inner]
    answered = answers[inner] != MISSING
    residuals = answers[inner] - moments(answered, wle, thresholds)[0]
    for first, second in ((0, 1), (1, 4), (2, 3)):
        both = answered[:, first] & answered[:, second]
        pair = residuals[both][:, [first, second]].T
        assert q3[first, second] == pytest.approx(np.corrcoef(pair)[0, 1], abs=1e-9)
    assert np.diag(q3) == pytest.approx(1)


def test_pairs_that_hardly_anybody_answered_have_no_correlation():
    answers = simulate(STEPS[:4], people=200)
    answers[:100, 0] = answers[100:, 1] = MISSING
    table, thresholds, measures, _ = estimated(answers)
    result = local_dependence(table, thresholds, measures)
    assert np.isnan(result.q3[0, 1])
    assert np.isfinite(result.q3[0, 2])
    assert np.isfinite(result.mean)
    assert first_contrast(table, thresholds, measures) is None


def test_a_column_without_variance_has_no_correlation():
    values = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 5.0]])
    result = correlations(values, np.ones(3))
    assert np.isnan(result[0]).all()
    assert result[1, 1] == pytest.approx(1)
