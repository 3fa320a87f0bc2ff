"""How far people of a class are alike, beside simulated truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reports.technical.classes import UNKNOWN, class_errors
from reports.technical.estimates import clustered_error

SIZES = (12, 20, 25)


def people_in_classes(seed, correlation=0.2, schools=40):
    """Return measures with the school and the class of each person."""
    random = np.random.default_rng(seed)
    sizes = np.tile(SIZES, schools)
    class_of_person = np.repeat(np.arange(len(sizes)), sizes)
    school = class_of_person // len(SIZES)
    of_class = random.normal(0, math.sqrt(correlation), len(sizes))
    alone = random.normal(0, math.sqrt(1 - correlation), len(school))
    return of_class[class_of_person] + alone, school, class_of_person


@pytest.mark.parametrize("correlation", [0.0, 0.05, 0.2])
def test_the_correlation_is_the_true_one(correlation):
    estimates, effects = [], []
    for seed in range(60):
        known = class_errors(*people_in_classes(seed, correlation))
        estimates.append(known.intraclass_correlation)
        effects.append(known.design_effect)
    assert np.mean(estimates) == pytest.approx(correlation, abs=0.015)
    size = sum(each**2 for each in SIZES) / sum(SIZES)
    assert np.mean(effects) == pytest.approx(1 + correlation * (size - 1), rel=0.12)


def test_intervals_of_schools_with_the_design_effect_hold_their_means():
    """Without it, they miss far more often."""
    missed, missed_alone, schools = 0, 0, 0
    for seed in range(30):
        measured, school, class_ = people_in_classes(seed)
        effect = class_errors(measured, school, class_).design_effect
        of_school = measured.reshape(-1, sum(SIZES))
        errors = of_school.std(axis=1, ddof=1) / math.sqrt(sum(SIZES))
        distance = np.abs(of_school.mean(axis=1))
        missed += (distance > 1.96 * errors * math.sqrt(effect)).sum()
        missed_alone += (distance > 1.96 * errors).sum()
        schools += len(distance)
    assert 0.02 < missed / schools < 0.09
    assert missed_alone / schools > 0.25


def test_the_error_of_everyone_is_clustered_by_class():
    measured, school, class_ = people_in_classes(1)
    known = class_errors(measured, school, class_)
    assert known.schools == 40
    assert known.clustered == clustered_error(measured, class_)


def test_people_without_a_class_or_measure_have_no_part():
    measured, school, class_ = people_in_classes(2)
    expected = class_errors(*(each[57:] for each in (measured, school, class_)))
    class_[:20] = UNKNOWN
    measured[20:57] = np.nan
    assert class_errors(measured, school, class_) == expected


def test_few_schools_with_several_classes_tell_nothing():
    measured, school, class_ = people_in_classes(3, schools=9)
    assert class_errors(measured, school, class_) is None
    measured, school, _class = people_in_classes(3)
    assert class_errors(measured, school, school) is None
