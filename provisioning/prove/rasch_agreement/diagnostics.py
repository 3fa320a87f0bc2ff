"""Compare groups, residuals, clusters and weights with what R says of the same answers.

Prints a line of JSON: the largest difference of each kind, in the units of the figure.
Runs in .venv. `make_diagnostics.R` has the groups, schools and weights, and
`make_second_opinions.R` what psychotools and metafor say of thresholds and schools.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from reports.rasch import MISSING, ResponseTable, calibrate, measure_people
from reports.rasch.dependence import first_contrast, local_dependence
from reports.rasch.dif import estimate_shifts, significance
from reports.rasch.responses import Floats, Integers
from reports.scores.comparisons import random_effects
from reports.technical.estimates import clustered_error, rake, wilson_interval


def main(folder: Path) -> None:
    largest: dict[str, float] = {}
    for reference in sorted(folder.glob("*/estimates.csv.gz")):
        for kind, difference in compare(reference.parent).items():
            largest[kind] = max(largest.get(kind, 0.0), difference)
    print(json.dumps(largest))


def compare(data_set: Path) -> dict[str, float]:
    """Return the largest differences in one data set."""
    answers = np.array(
        [
            [int(value) if value else MISSING for value in row.values()]
            for row in read(data_set / "answers.csv.gz")
        ]
    )
    thresholds = thresholds_of(data_set)
    residuals = of_residuals(data_set, answers, thresholds)
    return {
        **of_groups(data_set, answers, thresholds),
        **residuals,
        **of_thresholds(data_set, answers),
        **of_schools(data_set, answers),
    }


def of_thresholds(data_set: Path, answers: Integers) -> dict[str, float]:
    """Compare thresholds, and how groups differ in them, with psychotools."""
    reference = read(data_set / "psychotools.csv.gz")
    everyone = calibrate(ResponseTable.of_people(answers)[0])
    figures = {
        "psychotools_threshold": most(
            np.concatenate(everyone.thresholds), column(reference, "threshold")
        ),
        "psychotools_error": most(
            np.concatenate(everyone.standard_errors), column(reference, "error")
        ),
    }
    if reference[0]["difference"]:
        odd = np.arange(1, len(answers) + 1) % 2 == 1
        first, second = (
            calibrate(ResponseTable.of_people(answers[people])[0])
            for people in (odd, ~odd)
        )
        difference = np.concatenate(second.thresholds) - np.concatenate(
            first.thresholds
        )
        error = np.sqrt(np.diag(first.covariance + second.covariance))
        figures["psychotools_dif"] = most(difference, column(reference, "difference"))
        figures["psychotools_dif_error"] = most(
            error, column(reference, "error_of_difference")
        )
    return figures


def of_schools(data_set: Path, answers: Integers) -> dict[str, float]:
    """Compare how far schools differ with metafor."""
    known = (answers != MISSING).all(axis=1)
    scores, school = answers.sum(axis=1)[known], np.flatnonzero(known) // 20
    _schools, school, people = np.unique(
        school, return_inverse=True, return_counts=True
    )
    means = np.bincount(school, scores) / people
    around = ((scores - means[school]) ** 2).sum() / (len(scores) - len(people))
    ours = random_effects(means, around / people)._asdict()
    return {
        f"metafor_{line['name']}": abs(ours[line["name"]] - float(line["value"]))
        for line in read(data_set / "metafor.csv.gz")
    }


def of_groups(
    data_set: Path, answers: Integers, thresholds: list[Floats]
) -> dict[str, float]:
    reference = read(data_set / "dif.csv.gz")
    odd = np.arange(1, len(answers) + 1) % 2 == 1
    groups = [
        estimate_shifts(ResponseTable.of_people(answers[people])[0], thresholds)
        for people in (odd, ~odd)
    ]
    difference = groups[1].shifts - groups[0].shifts
    errors = np.sqrt(np.diag(groups[0].covariance + groups[1].covariance))
    _, adjusted = significance(difference, errors)
    figures = {
        "dif": most(difference, column(reference, "difference")),
        "dif_error": most(errors, column(reference, "error")),
        "adjusted_p": most(adjusted, column(reference, "adjusted")),
    }
    if reference[0]["wald"]:
        figures["dif_wald"] = most(difference / errors, column(reference, "wald"))
    return figures


def of_residuals(
    data_set: Path, answers: Integers, thresholds: list[Floats]
) -> dict[str, float]:
    table, row = ResponseTable.of_people(answers)
    measures = measure_people(table, thresholds)
    q3 = local_dependence(table, thresholds, measures).q3
    expected_q3 = column(read(data_set / "q3.csv.gz"), "q3")
    # R has the pairs by their second item.
    pairs = [(first, second) for second in range(len(q3)) for first in range(second)]
    contrast = first_contrast(table, thresholds, measures)
    expected = {
        line["name"]: float(line["value"])
        for line in read(data_set / "estimates.csv.gz")
    }
    number = np.arange(1, len(answers) + 1)
    known = ~measures.is_extreme[row] & np.isfinite(measures.wle[row])
    theta, number = measures.wle[row][known], number[known]
    school = (number - 1) // 20
    weights = (1 + number % 3).astype(np.float64)
    raked = rake(
        [
            (number % 2, np.array([0.6, 0.4])),
            (number % 3, np.array([0.5, 0.3, 0.2])),
        ]
    )
    low, high = wilson_interval(int((theta > 0).sum()), len(theta))
    estimates = {
        "eigenvalue": contrast.eigenvalue if contrast else float("nan"),
        "clustered": clustered_error(theta, school),
        "sandwich": clustered_error(theta, school),
        "weighted": clustered_error(theta, school, weights),
        "raked_mean": float(np.average(theta, weights=raked.weights)),
        "design_effect": raked.design_effect,
        "low": low,
        "high": high,
    }
    return {
        "q3": most(np.array([q3[pair] for pair in pairs]), expected_q3),
        **{name: abs(value - expected[name]) for name, value in estimates.items()},
    }


def thresholds_of(data_set: Path) -> list[Floats]:
    steps: dict[str, list[float]] = {}
    for line in read(data_set / "thresholds.csv.gz"):
        steps.setdefault(line["item"], []).append(float(line["threshold"]))
    return [np.array(of_item) for of_item in steps.values()]


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as file:
        return list(csv.DictReader(file))


def column(rows: Iterable[dict[str, str]], name: str) -> Floats:
    return np.array([float(row[name]) for row in rows])


def most(ours: Floats, theirs: Floats) -> float:
    return float(np.abs(ours - theirs).max())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
