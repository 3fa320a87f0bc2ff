"""Categories that do not work in their order."""

import numpy as np
import pytest

from reports.rasch import MISSING, ResponseTable, calibrate, measure_people
from reports.rasch.category_diagnostics import category_diagnostics
from reports.tests.rasch.simulated import simulate

STEPS = [[-1.5, -0.3, 0.6], [-0.8, 0.2, 1.0], [-1.0, 0.4, 1.6], [-0.6, -0.2, 0.6]] * 3


def diagnostics(answers):
    table, row = ResponseTable.of_people(answers)
    thresholds = calibrate(table).thresholds
    measures = measure_people(table, thresholds)
    return category_diagnostics(table, thresholds, measures), measures.wle[row]


def test_categories_in_order_have_rising_measures_and_expected_answers():
    answers = simulate(STEPS, people=5000)
    answers[np.random.default_rng(1).random(answers.shape) < 0.1] = MISSING
    answers = answers[(answers != MISSING).any(axis=1)]
    of_items, wle = diagnostics(answers)
    for item, of_item in enumerate(of_items):
        chosen = [answers[:, item] == category for category in range(4)]
        assert of_item.counts.tolist() == [people.sum() for people in chosen]
        assert of_item.mean_measures == pytest.approx(
            [wle[people].mean() for people in chosen]
        )
        assert not of_item.falls.any()
        assert not of_item.is_reversed.any()
        # A person's measure follows the answer a little, which brings it below 1.
        assert (of_item.outfit > 0.75).all()
        assert (of_item.outfit < 1.1).all()


def test_a_category_that_is_never_the_likeliest_has_a_reversed_threshold():
    steps = [*STEPS[:11], [-0.8, 0.9, -0.2]]
    of_items, _ = diagnostics(simulate(steps, people=5000))
    assert [of_item.is_reversed.tolist() for of_item in of_items] == [
        *[[False] * 3] * 11,
        [False, False, True],
    ]


def test_a_category_that_is_chosen_by_chance_has_a_large_outfit():
    answers = simulate(STEPS, people=5000)
    by_chance = np.random.default_rng(2).random(5000) < 0.2
    answers[by_chance, 1] = 0
    of_items, _ = diagnostics(answers)
    assert of_items[1].outfit[0] > 1.5
    assert of_items[0].outfit[0] < 1.2


def test_a_category_whose_people_have_lower_measures_falls():
    # Two options in the wrong order.
    answers = simulate(STEPS, people=3000)
    answers[:, 3] = np.array([0, 2, 1, 3])[answers[:, 3]]
    of_items, _ = diagnostics(answers)
    assert of_items[3].falls.tolist() == [False, False, True, False]
