"""Rasch measurement: thresholds, person measures and fit, from numbers to numbers.

Nothing here reads the database or knows of surveys. Items have categories 0, 1, …;
the probability of category x of item i for a person with the measure θ is
proportional to exp(xθ - δ_i1 - … - δ_ix), where δ_ik is the item's k-th threshold
(Masters' partial-credit model; in Andrich's rating-scale model all items share the
distances between their thresholds).
"""

from __future__ import annotations

from reports.rasch.calibration import (
    PARTIAL_CREDIT,
    RATING_SCALE,
    Calibration,
    calibrate,
)
from reports.rasch.fit import Fit, fit_statistics, separation
from reports.rasch.persons import PersonMeasures, measure_people
from reports.rasch.problems import Problem, examine
from reports.rasch.responses import MISSING, ResponseTable

# Stored with each calibration. To be raised when the same answers give other numbers.
VERSION = "1"

__all__ = [
    "MISSING",
    "PARTIAL_CREDIT",
    "RATING_SCALE",
    "VERSION",
    "Calibration",
    "Fit",
    "PersonMeasures",
    "Problem",
    "ResponseTable",
    "calibrate",
    "examine",
    "fit_statistics",
    "measure_people",
    "separation",
]
