"""Errors of larger places know that people of a school are alike."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings

from reports.rasch import MISSING, ResponseTable, measure_people
from reports.scores import clusters as clusters_module
from reports.scores.clusters import Clusters, mean_parts
from reports.scores.gaps import gaps_between
from reports.scores.visible import ROUNDING, VisibleScore

DATA_SETS = Path(settings.BASE_DIR, "provisioning/prove/rasch_agreement/data_sets")


def cells(values, school, group=None, groups=1):
    """Return the numbers of people and the sums of schools: [school, group]."""
    group = np.zeros(len(values), int) if group is None else group
    shape = school.max() + 1, groups
    people, sums = np.zeros(shape), np.zeros(shape)
    np.add.at(people, (school, group), 1)
    np.add.at(sums, (school, group), values)
    return people, sums


def error(values, school, *, between=0.0, within=1.0):
    clusters = Clusters(np.zeros(school.max() + 1, int), 1)
    parts = clusters.parts(*cells(values, school), between, within)
    return float(clusters.errors(parts)[0, 0])


def simulated(schools, people=30, between=1.0, within=4.0, seed=1):
    random = np.random.default_rng(seed)
    school = np.repeat(
        np.arange(schools), random.integers(people // 2, people, schools)
    )
    true = random.normal(0, between, schools)
    return true[school] + random.normal(0, within, len(school)), school


def by_hand(values, school):
    """CR1, person by person."""
    mean, total = sum(values) / len(values), 0.0
    clusters = sorted(set(school.tolist()))
    for cluster in clusters:
        residual = 0.0
        for value, of in zip(values, school, strict=True):
            if of == cluster:
                residual += value - mean
        total += residual**2
    count = len(clusters)
    return math.sqrt(count / (count - 1) * total) / len(values)


@pytest.mark.parametrize("schools", [10, 25, 30])
def test_the_error_is_that_of_the_sandwich_estimator(schools):
    values, school = simulated(schools)
    assert error(values, school) == pytest.approx(by_hand(values, school))


@pytest.mark.parametrize("schools", [10, 29, 30])
def test_below_thirty_schools_the_larger_error_of_both_counts(schools):
    values, school = simulated(schools)
    shares = np.bincount(school) / len(school)
    model = math.sqrt(9 * (shares**2).sum() + 16 / len(school))
    sandwich = by_hand(values, school)
    assert model > sandwich
    expected = model if schools < 30 else sandwich
    assert error(values, school, between=3.0, within=4.0) == pytest.approx(expected)


def test_few_schools_that_seem_alike_have_no_error_by_school():
    """They are too few to show that schools do not differ."""
    values, school = simulated(9)
    assert math.isnan(error(values, school, between=0.0))
    assert error(values, school, between=0.1) > 0
    # A gap of equally large groups has no differences of schools in it: that is known.
    people, sums = cells(values, school, np.arange(len(values)) % 2, groups=2)
    people[:] = 10
    clusters = Clusters(np.zeros(9, int), 1)
    for between, is_known in ((1.0, True), (0.0, False)):
        parts = clusters.parts(people, sums, between, 4.0)
        rest = clusters.parts(people[:, ::-1], sums[:, ::-1], between, 4.0)
        gap = float(clusters.errors(parts.minus(rest))[0, 0])
        assert math.isfinite(gap) is is_known


@pytest.mark.parametrize("name", ["five_categories", "public_bfi_agreeableness"])
def test_the_error_is_that_of_r(name):
    """R's package sandwich with its correction, recorded for `run agreement`."""

    def read(file):
        with gzip.open(DATA_SETS / name / f"{file}.csv.gz", "rt") as lines:
            return list(csv.DictReader(lines))

    answers = np.array(
        [
            [int(value) if value else MISSING for value in row.values()]
            for row in read("answers")
        ]
    )
    thresholds = {}
    for row in read("thresholds"):
        thresholds.setdefault(row["item"], []).append(float(row["threshold"]))
    table, row = ResponseTable.of_people(answers)
    people = measure_people(table, [np.array(each) for each in thresholds.values()])
    known = ~people.is_extreme[row] & np.isfinite(people.wle[row])
    school = np.unique(np.arange(len(answers))[known] // 20, return_inverse=True)[1]
    [expected] = [
        float(line["value"]) for line in read("estimates") if line["name"] == "sandwich"
    ]
    assert error(people.wle[row][known], school) == pytest.approx(expected, abs=2e-4)


def test_of_few_schools_it_is_made_of_how_far_all_schools_differ():
    values, school = simulated(3)
    shares = np.bincount(school) / len(school)
    expected = 4 * (shares**2).sum() + 25 / len(school)
    assert error(values, school, between=2.0, within=5.0) == pytest.approx(
        math.sqrt(expected)
    )
    # Of a single school there is none.
    assert math.isnan(error(values[school == 0], school[school == 0]))


def share_missed(schools):
    """Return how often an interval does not hold the true mean."""
    missed = 0
    for seed in range(300):
        values, school = simulated(schools, seed=seed)
        of_mean = error(values, school, between=1.0, within=4.0)
        missed += abs(values.mean()) > 1.96 * of_mean
    return missed / 300


@pytest.mark.parametrize("schools", [3, 9, 10, 15, 29, 40])
def test_intervals_hold_the_true_mean(schools):
    missed, independent = share_missed(schools), 0
    for seed in range(300):
        values, _school = simulated(schools, seed=seed)
        error_of_people = values.std(ddof=1) / math.sqrt(len(values))
        independent += abs(values.mean()) > 1.96 * error_of_people
    assert missed < 0.08
    # As if people were independent, intervals miss more than twice as often.
    assert independent / 300 > max(0.15, missed * 2)


@pytest.mark.parametrize("schools", [10, 15])
def test_with_the_sandwich_alone_intervals_would_be_too_short(schools, monkeypatch):
    monkeypatch.setattr(clusters_module, "ENOUGH_SCHOOLS", 0)
    assert share_missed(schools) >= 0.1


def test_an_essential_has_the_residuals_of_its_measures():
    trust, school = simulated(30)
    noise = -trust + np.random.default_rng(3).normal(0, 1, len(trust))
    clusters = Clusters(np.zeros(30, int), 1)
    parts = [
        clusters.parts(*cells(values, school), 1.0, 4.0) for values in (trust, noise)
    ]
    essential = mean_parts([(parts[0], True), (parts[1], False)])
    expected = by_hand((trust - noise) / 2, school)
    assert clusters.errors(essential)[0, 0] == pytest.approx(expected)
    # Of few schools, differences go together fully.
    few = Clusters(np.zeros(2, int), 1)
    alone = few.parts(*cells(trust[school < 2], school[school < 2]), 1.0, 4.0)
    both = mean_parts([(alone, True), (alone, True)])
    assert few.errors(both)[0, 0] == pytest.approx(few.errors(alone)[0, 0])


def test_a_gap_within_the_same_schools_has_no_differences_between_them():
    values, school = simulated(30, between=8.0)
    group = np.arange(len(values)) % 2
    clusters = Clusters(np.zeros(30, int), 1)
    people, sums = cells(values, school, group, groups=2)
    parts = clusters.parts(people, sums, 8.0, 4.0)
    rest = clusters.parts(people[:, ::-1], sums[:, ::-1], 8.0, 4.0)
    gap = float(clusters.errors(parts.minus(rest))[0, 0])
    residuals = sum(
        np.where(group == side, sign * (values - values[group == side].mean()), 0)
        / (group == side).sum()
        for side, sign in ((0, 1), (1, -1))
    )
    expected = math.sqrt(30 / 29 * (np.bincount(school, residuals) ** 2).sum())
    assert gap == pytest.approx(expected)
    # The errors of both means, as if their schools were others, are far larger.
    apart = np.hypot(*clusters.errors(parts)[0])
    assert apart > 4 * gap


def group(mean, people_error, school_error, gap=None, people=100):
    return VisibleScore(
        mean,
        frozenset(),
        people=people,
        mean=mean,
        mean_error=max(people_error, school_error),
        people_error=people_error,
        school_error=school_error,
        gap=gap,
    )


def test_gaps_have_the_larger_error_of_both():
    first, second = group(60, 1.0, 4.0, (2.5, 2)), group(50, 1.0, 4.0, (2.5, 2))
    [gap] = gaps_between({"f": first, "m": second}, 60.0)
    assert gap.error == pytest.approx(math.hypot(2.5, ROUNDING))
    alike = [each._replace(gap=(0.1, 2)) for each in (first, second)]
    [gap] = gaps_between(dict(zip("fm", alike, strict=True)), 60.0)
    assert gap.error == pytest.approx(math.hypot(1, 1, ROUNDING))
    # It was stored of three groups, of which one is hidden since.
    stale = [each._replace(gap=(2.5, 3)) for each in (first, second)]
    [gap] = gaps_between(dict(zip("fm", stale, strict=True)), 60.0)
    assert gap.error == pytest.approx(math.hypot(4, 4, ROUNDING))


def missed_changes(schools, *, by_school=True):
    """Return how often the interval of a change does not hold the true one, 0."""
    missed = 0
    clusters = Clusters(np.zeros(schools, int), 1)
    for seed in range(300):
        random = np.random.default_rng(seed)
        people = random.integers(15, 30, schools)
        school = np.repeat(np.arange(schools), people)
        true, changes = random.normal(0, 3, schools), random.normal(0, 2, schools)
        rounds = [
            effects[school] + random.normal(0, 4, len(school))
            for effects in (true, true + changes)
        ]
        parts = [clusters.parts(*cells(each, school), 1.0, 4.0) for each in rounds]
        change = clusters.change_parts(*parts, 3.0, 2.0)
        error = float(clusters.errors(change)[0, 0])
        if not by_school:
            error = 4 * math.sqrt(2 / len(school))
        missed += abs(rounds[1].mean() - rounds[0].mean()) > 1.96 * error
    return missed / 300


@pytest.mark.parametrize("schools", [3, 12, 40])
def test_intervals_of_changes_hold_the_true_change(schools):
    missed = missed_changes(schools)
    assert missed < 0.08
    # As if people were independent, they miss far more often.
    assert missed_changes(schools, by_school=False) > max(0.12, missed * 2)


def test_few_schools_have_no_error_of_a_change_if_true_changes_are_not_known():
    for schools, is_known in ((9, False), (10, True)):
        values, school = simulated(schools)
        clusters = Clusters(np.zeros(schools, int), 1)
        parts = clusters.parts(*cells(values, school), 1.0, 4.0)
        later = clusters.parts(*cells(values[::-1], school), 1.0, 4.0)
        change = clusters.change_parts(parts, later, 3.0, None)
        error = float(clusters.errors(change)[0, 0])
        assert math.isfinite(error) is is_known
        known = clusters.change_parts(parts, later, 3.0, 1.0)
        assert math.isfinite(float(clusters.errors(known)[0, 0]))
