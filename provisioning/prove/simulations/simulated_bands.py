"""Simulate schools, band them by the functions of the product, and compare."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from provisioning.prove.simulations.answers import DEVIATION, answers, calibrated
from reports.rasch.responses import Floats, Integers
from reports.scores.scale import (
    SCHOOLS,
    Scale,
    Sums,
    band,
    band_chances,
    benchmark_scale,
    rounded,
    within_scale,
)
from reports.scores.shrinkage import LEAST_RELIABILITY, Shrinkage, estimate_differences
from reports.scores.visible import LEAST_CHANCE, VisibleScore

# Shares of the variance of people that lie between schools.
SHARES = (0.02, 0.03, 0.05, 0.07, 0.10)
SCHOOLS_OF_A_SURVEY, IDENTICAL_SCHOOLS = 30, 15
FEWEST, MOST = 20, 300
# Sizes of schools are counted in so many groups.
GROUPS = 4
# The least probability of another band that is named; None for the rule before, which
# named all bands of the 95 % interval.
RULES = (None, 0.1, 0.2, 0.3)
# Ordinary surveys: least share of the variance between schools, and people in a school.
ORDINARY_SHARE, ORDINARY_PEOPLE = 0.05, 100


@dataclass(frozen=True)
class Survey:
    """The true scores of its schools, and the sums of their people's measures."""

    people: Integers
    true_scores: Floats
    true_variance: float
    sums: Sums

    @classmethod
    def of(cls, random: np.random.Generator, share: float, schools: int) -> Survey:
        people = np.exp(random.uniform(np.log(FEWEST), np.log(MOST), schools))
        people = people.round().astype(int)
        between = DEVIATION * np.sqrt(share)
        true = random.normal(0, between, schools) if share else np.zeros(schools)
        school = np.repeat(np.arange(schools), people)
        within = DEVIATION * np.sqrt(1 - share)
        measures = random.normal(true[school], within)
        _result, measured = calibrated(answers(random, measures))
        middle = np.average(true, weights=people)
        scores = 50 + 20 * (true - middle) / between if share else np.full(schools, 50)
        return cls(people, scores, between**2, sums_of(school, measured, schools))

    def bands(self) -> list[VisibleScore]:
        """Return the scores that the product shows."""
        differences = estimate_differences(self.sums)
        scale = benchmark_scale(self.sums, differences.between)
        if scale is None:
            raise ValueError("All simulated people answered alike")
        shrinkage = Shrinkage.of(scale, differences)
        return [
            VisibleScore.drawn(
                rounded(scale.points(mean)),
                20 * error / scale.deviation,
                benchmarks=frozenset(),
                people=people,
                shrinkage=shrinkage,
            )
            for people, mean, error in zip(
                self.people.tolist(),
                self.sums.means.tolist(),
                self.sums.errors.tolist(),
                strict=True,
            )
        ]

    def bands_before(self) -> list[int]:
        """Return bands on a scale of observed means, as the rule before."""
        means = self.sums.means
        middle = float(np.average(means, weights=self.people))
        scale = Scale(middle, float(means.std(ddof=1)), SCHOOLS)
        return [band(rounded(scale.points(mean))) for mean in means.tolist()]

    @property
    def true_reliabilities(self) -> Floats:
        within = self.sums.squares_around.sum() / (self.people.sum() - len(self.people))
        return self.true_variance / (self.true_variance + within / self.people)


def sums_of(school: Integers, measured: Floats, schools: int) -> Sums:
    known = np.isfinite(measured)
    people, sums, squares = (
        np.bincount(school[known], measured[known] ** power, schools).astype(float)
        for power in range(3)
    )
    return Sums(people, sums, squares)


def simulate(simulations: int) -> dict[str, object]:
    counts: Counter[str] = Counter()
    cells: Counter[tuple[float, int, str]] = Counter()
    for share in SHARES:
        for seed in range(simulations):
            random = np.random.default_rng([seed, round(1000 * share)])
            count(counts, cells, share, Survey.of(random, share, SCHOOLS_OF_A_SURVEY))
    for seed in range(5 * simulations):
        survey = Survey.of(np.random.default_rng([seed, 0]), 0, IDENTICAL_SCHOOLS)
        counts["identical"] += 1
        counts["identical_banded"] += bool(survey.bands()[0].band)
        counts["identical_before"] += len(set(survey.bands_before())) > 1
    schools, identical = counts["schools"], counts["identical"]
    worst = {
        rule: max(
            cells[share, size, rule] / cells[share, size, "schools"]
            for share in SHARES
            for size in range(GROUPS)
        )
        for rule in ("now", "before")
    }
    return {
        "surveys": len(SHARES) * simulations + identical,
        "schools": schools,
        "banded": round(counts["banded"] / schools, 3),
        "wrong_without_doubt": figures_of_rule(counts, LEAST_CHANCE)["wrong_alone"],
        "ordinary_schools": counts["ordinary"],
        "another_band_named_from": {
            "interval" if rule is None else f"{rule:.0%}": figures_of_rule(counts, rule)
            for rule in RULES
        },
        "intervals_hold_true_score": round(counts["held"] / counts["banded"], 3),
        "bands_without_doubt": counts["undoubted"],
        "bands_without_doubt_before": counts["undoubted_before"],
        "worst_two_steps_wrong": round(worst["now"], 3),
        "worst_two_steps_wrong_before": round(worst["before"], 3),
        "bands_of_identical_schools": round(counts["identical_banded"] / identical, 3),
        "bands_of_identical_schools_before": round(
            counts["identical_before"] / identical, 3
        ),
        "two_steps_wrong": round(counts["wrong"] / schools, 4),
        "two_steps_wrong_before": round(counts["wrong_before"] / schools, 4),
    }


def figures_of_rule(counts: Counter[str], rule: float | None) -> dict[str, float]:
    """Return shares of bands that name another one, and of those that are wrong."""
    figures = {}
    for kind, all_bands in (("", "banded"), ("ordinary_", "ordinary")):
        for fact in ("doubtful", "named"):
            share = counts[f"{kind}{fact} {rule}"] / max(counts[all_bands], 1)
            figures[kind + fact] = round(share, 3)
        alone = counts[all_bands] - counts[f"{kind}doubtful {rule}"]
        wrong = counts[f"{kind}wrong_alone {rule}"] / max(alone, 1)
        figures[f"{kind}wrong_alone"] = round(wrong, 3)
    return figures


def named_bands(score: VisibleScore, rule: float | None) -> tuple[int, int]:
    """Return the lowest and the highest band that a rule names."""
    if rule is None:
        margin = score.margin or 0.0
        ends = (score.score - margin, score.score + margin)
        low, high = (band(rounded(within_scale(end))) for end in ends)
        return low, high
    bands = [score.band]
    if error := round(score.error or 0.0, 1):
        chances = enumerate(band_chances(score.score, error), 1)
        bands += [number for number, chance in chances if chance >= rule]
    return min(bands), max(bands)


def count_doubt(
    counts: Counter[str], score: VisibleScore, right: int, *, is_ordinary: bool
) -> None:
    """Count a band by each rule: if it names another one, and if the true one."""
    for rule in RULES:
        low, high = named_bands(score, rule)
        is_doubtful = score.is_unreliable or low != high
        facts = {
            "doubtful": is_doubtful,
            "named": low <= right <= high,
            "wrong_alone": not is_doubtful and score.band != right,
        }
        for fact, holds in facts.items():
            counts[f"{fact} {rule}"] += holds
            counts[f"ordinary_{fact} {rule}"] += holds and is_ordinary
    counts["ordinary"] += is_ordinary


def count(
    counts: Counter[str],
    cells: Counter[tuple[float, int, str]],
    share: float,
    survey: Survey,
) -> None:
    """Count the schools of a survey, by share and size."""
    size = np.log(survey.people / FEWEST) / np.log(MOST / FEWEST) * GROUPS
    for number, (score, before) in enumerate(
        zip(survey.bands(), survey.bands_before(), strict=True)
    ):
        cell = share, min(int(size[number]), GROUPS - 1)
        true = survey.true_scores[number]
        right = band(rounded(min(max(true, 1), 99)))
        is_unreliable = bool(survey.true_reliabilities[number] < LEAST_RELIABILITY)
        is_wrong = bool(score.band) and abs(score.band - right) > 1
        is_wrong_before = abs(before - right) > 1
        counts["schools"] += 1
        counts["banded"] += bool(score.band)
        if score.band:
            is_ordinary = (
                share >= ORDINARY_SHARE and survey.people[number] >= ORDINARY_PEOPLE
            )
            count_doubt(counts, score, right, is_ordinary=bool(is_ordinary))
            counts["held"] += bool(abs(true - score.score) <= (score.margin or 0))
            counts["undoubted"] += is_unreliable and not score.is_doubtful
        counts["undoubted_before"] += is_unreliable
        counts["wrong"] += is_wrong
        counts["wrong_before"] += is_wrong_before
        cells[*cell, "schools"] += 1
        cells[*cell, "now"] += is_wrong
        cells[*cell, "before"] += is_wrong_before
