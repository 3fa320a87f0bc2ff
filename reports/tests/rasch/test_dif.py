"""Items that mean something else to a group, and those that only seem to."""

import numpy as np
import pytest

from reports.rasch import MISSING, ResponseTable, calibrate
from reports.rasch.dif import compare_groups, estimate_shifts, size_classes
from reports.tests.rasch.simulated import simulate

STEPS = [[-1.5, -0.3, 0.6], [-0.8, 0.2, 1.0], [-1.0, 0.4, 1.6], [-0.6, -0.2, 0.6]] * 2


def table_of(answers):
    return ResponseTable.of_people(answers)[0]


def moved(item, logits):
    return [
        [step + (logits if number == item else 0) for step in steps]
        for number, steps in enumerate(STEPS)
    ]


def compare(reference, focal):
    thresholds = calibrate(table_of(np.vstack([reference, focal]))).thresholds
    return compare_groups(table_of(reference), table_of(focal), thresholds)


def test_an_item_that_is_harder_for_a_group_is_large_and_the_others_are_not():
    reference = simulate(STEPS, people=2000, seed=1)
    focal = simulate(moved(2, 0.9), people=1000, seed=2)
    result = compare(reference, focal)

    assert result.sizes == tuple("AACAAAAA")
    assert result.differences[2] == pytest.approx(
        0.9, abs=3 * result.standard_errors[2]
    )
    # It is not in the mean that makes the groups comparable.
    assert not result.anchors[2]
    assert result.differences[list(result.anchors)].mean() == pytest.approx(0)


def test_groups_that_differ_in_what_is_measured_differ_in_no_item():
    reference = simulate(STEPS, people=2000, seed=3)
    lower = [[step + 0.8 for step in steps] for steps in STEPS]
    result = compare(reference, simulate(lower, people=1500, seed=4))

    assert set(result.sizes) == {"A"}
    assert (result.adjusted > 0.05).all()


def test_with_two_categories_it_is_the_difference_of_two_calibrations():
    steps = [[-1.0], [-0.4], [0.0], [0.5], [1.1]]
    groups = [
        simulate(steps, people=800, seed=5),
        simulate(steps, people=500, seed=6),
    ]
    result = compare(*groups)

    reference, focal = (calibrate(table_of(group)) for group in groups)
    difference = np.concatenate(focal.thresholds) - np.concatenate(reference.thresholds)
    errors = np.sqrt(np.diag(reference.covariance + focal.covariance))
    assert all(result.anchors)
    assert result.differences == pytest.approx(difference, abs=1e-4)
    assert result.standard_errors == pytest.approx(errors, abs=1e-4)


def test_a_group_need_not_use_all_categories():
    reference = simulate(STEPS, people=1000, seed=7)
    focal = simulate(STEPS, people=300, seed=8)
    focal[focal[:, 0] == 3, 0] = MISSING
    result = compare(reference, focal)
    assert np.isfinite(result.differences).all()


def test_an_item_that_a_group_was_not_asked_is_not_compared():
    reference = simulate(STEPS, people=500, seed=9)
    focal = simulate(STEPS, people=500, seed=10)
    focal[:, 1] = MISSING
    result = compare(reference, focal)
    assert np.isnan(result.differences).tolist() == [n == 1 for n in range(8)]
    assert result.sizes[1] == ""
    assert not result.anchors[1]

    focal[:, 1:] = MISSING
    assert compare(reference, focal).sizes == ("",) * 8


def test_shifts_are_those_that_a_group_was_given():
    shifts = np.linspace(-0.5, 0.5, len(STEPS))
    steps = [
        [step + shift for step in of_item]
        for of_item, shift in zip(STEPS, shifts, strict=True)
    ]
    table = table_of(simulate(steps, people=20_000, seed=11))
    result = estimate_shifts(table, [np.array(of_item) for of_item in STEPS])
    errors = np.sqrt(np.diag(result.covariance))
    assert (np.abs(result.shifts - shifts) < 4 * errors).all()
    assert errors.max() < 0.02
    assert result.shifts.sum() == pytest.approx(0, abs=1e-9)


def test_p_values_are_adjusted_for_the_number_of_items():
    reference = simulate(STEPS, people=400, seed=12)
    result = compare(reference, simulate(STEPS, people=400, seed=13))
    ordered = np.sort(result.p_values)
    by_hand = [
        min(ordered[later] * 8 / (later + 1) for later in range(rank, 8))
        for rank in range(8)
    ]
    assert np.sort(result.adjusted) == pytest.approx(np.minimum(by_hand, 1))
    assert (result.adjusted > result.p_values).any()


@pytest.mark.parametrize(
    ("difference", "error", "adjusted", "size"),
    [
        (0.42, 0.01, 0.001, "A"),
        (0.5, 0.3, 0.2, "A"),
        (0.5, 0.1, 0.001, "B"),
        (-0.5, 0.1, 0.001, "B"),
        (0.7, 0.2, 0.001, "B"),
        (0.7, 0.1, 0.001, "C"),
        (-0.7, 0.1, 0.001, "C"),
        (np.nan, np.nan, np.nan, ""),
    ],
)
def test_sizes_are_those_of_ets(difference, error, adjusted, size):
    of_item = (np.array([value]) for value in (difference, error, adjusted))
    assert size_classes(*of_item) == (size,)
