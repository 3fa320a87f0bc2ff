"""Differential item functioning: is an item harder for one group than for another?

The distances between an item's thresholds are those of everyone; each group has a
shift of all of them, estimated by conditional likelihood from its own answers. So
groups may differ in what is measured, and need not use all categories. With two
categories it is Lord's test for the Rasch model (Lord 1980, Wright and Stone 1979),
as eRm's `Waldtest` calculates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import false_discovery_control

from reports.rasch.calibration import LARGEST_ERROR, centred, optimum
from reports.rasch.conditional import ConditionalLikelihood
from reports.rasch.problems import examine
from reports.rasch.responses import Floats, ResponseTable

Mask = NDArray[np.bool_]

# In logits: 1 and 1.5 on the delta scale of ETS, of which 2.35 are a logit.
SMALL, LARGE = 0.43, 0.64
# False discoveries among the items that are called different.
LEVEL = 0.05
# One-sided at that level, beyond `SMALL`.
CRITICAL = 1.645
NEGLIGIBLE, MODERATE, STRONG = "A", "B", "C"
# Fewer items do not say which of them is the different one.
FEWEST_ANCHORS = 2
PURIFICATIONS = 10


@dataclass(frozen=True)
class Shifts:
    """How much harder each item is than for everyone, in logits; their mean is 0.

    NaN, and in `covariance` 0, for items that the group cannot place.
    """

    shifts: Floats
    covariance: Floats


@dataclass(frozen=True)
class DifferentialFunctioning:
    """The comparison of a focal with a reference group, a value for each item.

    `differences` are in logits, positive if the item is harder to agree to for the
    focal group; `p_values` are two-sided, `adjusted` those after Benjamini and
    Hochberg. `sizes` are the classes A, B and C of ETS, "" without an estimate.
    `anchors` are the items whose mean difference is 0.
    """

    differences: Floats
    standard_errors: Floats
    p_values: Floats
    adjusted: Floats
    sizes: tuple[str, ...]
    anchors: tuple[bool, ...]


def compare_groups(
    reference: ResponseTable, focal: ResponseTable, thresholds: Sequence[Floats]
) -> DifferentialFunctioning:
    """Estimate how much harder each item is for the focal group.

    `thresholds` are those of everyone, of the same items in both tables. Items that
    differ are taken out of the mean that makes the groups comparable, until these
    stay the same (purification: Lord 1980, Candell and Drasgow 1988).
    """
    usable = _usable(reference) & _usable(focal)
    items = np.flatnonzero(usable)
    if len(items) < FEWEST_ANCHORS:
        return _no_comparison(len(thresholds))
    steps = [thresholds[item] for item in items.tolist()]
    of_groups = [
        estimate_shifts(table.select(items.tolist()), steps)
        for table in (reference, focal)
    ]
    raw = of_groups[1].shifts - of_groups[0].shifts
    covariance = of_groups[0].covariance + of_groups[1].covariance
    if not np.isfinite(raw).all():
        return _no_comparison(len(thresholds))
    anchors = _purified(raw, covariance)
    differences, errors = _anchored(raw, covariance, anchors)
    p_values, adjusted = significance(differences, errors)
    sizes = size_classes(differences, errors, adjusted)
    empty = np.full(len(thresholds), np.nan)

    def of_all(values: Floats) -> Floats:
        result = empty.copy()
        result[items] = values
        return result

    by_item = dict(zip(items.tolist(), zip(sizes, anchors, strict=True), strict=True))
    of_items = [by_item.get(item, ("", False)) for item in range(len(thresholds))]
    return DifferentialFunctioning(
        of_all(differences),
        of_all(errors),
        of_all(p_values),
        of_all(adjusted),
        tuple(size for size, _ in of_items),
        tuple(bool(anchor) for _, anchor in of_items),
    )


def estimate_shifts(table: ResponseTable, thresholds: Sequence[Floats]) -> Shifts:
    """Estimate one shift for all thresholds of each item, by conditional likelihood.

    The items need to be linked (see `problems.examine`).
    """
    steps = [len(of_item) for of_item in thresholds]
    likelihood = ConditionalLikelihood(table, steps)
    free_shifts = centred(len(steps))
    design = np.repeat(free_shifts, steps, axis=0)
    fixed = np.concatenate(thresholds)
    people = float(table.people.sum())

    def objective(free: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood(fixed + design @ free)
        return -value / people, -(gradient @ design) / people

    def information(free: Floats) -> Floats:
        curvature: Floats = design.T @ likelihood.information(fixed + design @ free)
        return curvature @ design / people

    free, precision = optimum(objective, information, np.zeros(len(steps) - 1))
    covariance = free_shifts @ precision @ free_shifts.T / people
    shifts: Floats = free_shifts @ free
    if not np.isfinite(shifts).all() or np.diag(covariance).max() > LARGEST_ERROR**2:
        return Shifts(np.full(len(steps), np.nan), np.zeros_like(covariance))
    return Shifts(shifts, covariance)


def size_classes(
    differences: Floats, errors: Floats, adjusted: Floats
) -> tuple[str, ...]:
    """Return the classes of ETS (Zieky 1993): A negligible, B moderate, C large.

    A is below 0.43 logits or not significant, C at least 0.64 and significantly
    beyond 0.43; "" without a difference.
    """
    sizes = []
    for difference, error, p_value in zip(
        np.abs(differences).tolist(), errors.tolist(), adjusted.tolist(), strict=True
    ):
        if not np.isfinite(difference):
            sizes.append("")
        elif difference < SMALL or p_value > LEVEL:
            sizes.append(NEGLIGIBLE)
        elif difference >= LARGE and difference - SMALL > CRITICAL * error:
            sizes.append(STRONG)
        else:
            sizes.append(MODERATE)
    return tuple(sizes)


def _no_comparison(items: int) -> DifferentialFunctioning:
    empty = np.full(items, np.nan)
    return DifferentialFunctioning(
        empty, empty, empty, empty, ("",) * items, (False,) * items
    )


def _purified(raw: Floats, covariance: Floats) -> Mask:
    """Return the items that do not differ from each other, at least two."""
    anchors = np.ones(len(raw), dtype=np.bool_)
    for _ in range(PURIFICATIONS):
        differences, errors = _anchored(raw, covariance, anchors)
        _, adjusted = significance(differences, errors)
        sizes = size_classes(differences, errors, adjusted)
        purified = np.array([size == NEGLIGIBLE for size in sizes])
        if purified.sum() < FEWEST_ANCHORS or (purified == anchors).all():
            break
        anchors = purified
    return anchors


def _usable(table: ResponseTable) -> Mask:
    usable = np.ones(table.items, dtype=np.bool_)
    usable[[problem.item for problem in examine(table) if problem.excludes]] = False
    return usable


def _anchored(raw: Floats, covariance: Floats, anchors: Mask) -> tuple[Floats, Floats]:
    """Return differences from the mean of the anchors, and their standard errors."""
    centre = np.eye(len(raw)) - anchors / anchors.sum()
    variance = np.diag(centre @ covariance @ centre.T)
    return centre @ raw, np.sqrt(np.clip(variance, 0, None))


def significance(differences: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return two-sided p-values, and those that hold the rate of false discoveries."""
    p_values = np.full(len(differences), np.nan)
    known = np.isfinite(differences) & (errors > 0)
    p_values[known] = 2 * ndtr(-np.abs(differences[known] / errors[known]))
    adjusted = p_values.copy()
    if known.any():
        adjusted[known] = false_discovery_control(p_values[known])
    return p_values, adjusted
