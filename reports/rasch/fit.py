"""Compare answers with what the model expects: infit, outfit and separation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.rasch.persons import PersonMeasures, moments
from reports.rasch.responses import Floats, ResponseTable


@dataclass(frozen=True)
class Fit:
    """Mean squares per item (1 is expected) and the number of people they are of."""

    infit: Floats
    outfit: Floats
    people: Floats


@dataclass(frozen=True)
class Separation:
    """How far measures differ between people, compared with their errors."""

    separation: float
    reliability: float


def fit_statistics(
    table: ResponseTable, thresholds: Sequence[Floats], measures: PersonMeasures
) -> Fit:
    """Return the fit of items, over all people but those with an extreme score."""
    rows = ~measures.is_extreme
    answered = table.answered[rows]
    people = table.people[rows][:, None] * answered
    mean, variance, _ = moments(answered, measures.mle[rows], thresholds)
    squares = np.where(answered, table.categories[rows] - mean, 0) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        standardised = np.where(answered, squares / variance, 0)
        count = people.sum(axis=0)
        return Fit(
            infit=(people * squares).sum(axis=0) / (people * variance).sum(axis=0),
            outfit=(people * standardised).sum(axis=0) / count,
            people=count,
        )


def separation(table: ResponseTable, measures: PersonMeasures) -> Separation:
    """Return person separation and reliability of the weighted-likelihood measures.

    Reliability is the share of the variance of measures that is not error;
    separation is the ratio of the true spread to the error.
    """
    is_measured = np.isfinite(measures.wle)
    people = table.people[is_measured]
    if people.sum() < 2:
        return Separation(float("nan"), float("nan"))
    wle = measures.wle[is_measured]
    mean = np.average(wle, weights=people)
    variance = float((people * (wle - mean) ** 2).sum() / (people.sum() - 1))
    noise = float(np.average(measures.standard_error[is_measured] ** 2, weights=people))
    true = max(variance - noise, 0.0)
    return Separation(
        separation=float(np.sqrt(true / noise)),
        reliability=true / variance if variance else float("nan"),
    )
