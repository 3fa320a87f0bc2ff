"""Scores of schools are likely ones, and bands come with their doubt."""

from __future__ import annotations

import numpy as np
import pytest

from reports.publishing.csv_files import score_rows
from reports.publishing.page import frozen_score
from reports.scores.scale import SCHOOLS, Scale, Sums, band_chances
from reports.scores.shrinkage import (
    SchoolDifferences,
    Shrinkage,
    estimate_differences,
)
from reports.scores.visible import VisibleScore, essential_of
from reports.scores.words import (
    SCORE_COLUMNS,
    score_figures,
    score_tone,
    score_words,
)


def sums(random, between, sizes, within=1.0):
    """Return the true means of schools, and the sums of their people."""
    true = random.normal(0, between, len(sizes))
    people = [
        random.normal(mean, within, size)
        for mean, size in zip(true, sizes, strict=True)
    ]
    return true, Sums(
        *(np.array([(of**power).sum() for of in people]) for power in range(3))
    )


def test_the_true_differences_are_estimated_without_errors():
    random = np.random.default_rng(1)
    sizes = np.tile([20, 60, 200], 400)
    _true, schools = sums(random, 0.2, sizes)
    differences = estimate_differences(schools)
    assert differences.between == pytest.approx(0.2, abs=0.01)
    assert differences.within == pytest.approx(1, abs=0.01)
    assert differences.intraclass_correlation == pytest.approx(0.04 / 1.04, abs=0.005)
    # The deviation of observed means has that of their errors as well.
    assert schools.means.std() > 0.24


def test_schools_that_do_not_differ_have_no_bands():
    of_chance = 0
    for seed in range(400):
        random = np.random.default_rng(seed)
        _true, schools = sums(random, 0.0, [20, 60, 200] * 5)
        of_chance += bool(estimate_differences(schools).between)
    # The level of the test.
    assert of_chance <= 12
    assert estimate_differences(Sums(*np.ones((3, 5)))).between == 0
    same = Sums(*np.array([[20.0, 20.0], [10.0, 12.0], [5.0, 7.2]]))
    assert estimate_differences(same) == SchoolDifferences()


def test_likely_scores_are_closer_to_the_true_ones():
    true, schools = sums(np.random.default_rng(2), 0.2, [20, 60, 200] * 100)
    differences = estimate_differences(schools)
    scale = Scale(0.0, 0.2, SCHOOLS)
    shrinkage = Shrinkage.of(scale, differences)
    raw = 50 + 100 * schools.means
    people = schools.people
    likely = np.array(
        [shrinkage.draw(mean, n) for mean, n in zip(raw, people, strict=True)]
    )
    errors = np.array([shrinkage.error(shrinkage.reliability(n)) for n in people])
    wrong = likely - (50 + 100 * true)
    assert np.square(wrong).mean() < 0.7 * np.square(raw - 50 - 100 * true).mean()
    # The error is that of the likely score.
    assert np.square(wrong / errors).mean() == pytest.approx(1, abs=0.2)
    assert np.mean(np.abs(wrong) < 1.96 * errors) > 0.9


def drawn(mean, people, *, between=20.0, within=100.0, center=50.0):
    return VisibleScore.drawn(
        mean,
        within / people**0.5,
        benchmarks=frozenset({1}),
        people=people,
        shrinkage=Shrinkage(center, between, within),
    )


def test_a_band_comes_with_its_doubt():
    certain = drawn(70, 10_000)
    assert (score_words(certain), score_tone(certain)) == ("strong", 4)
    near = drawn(61, 2_500)
    assert score_words(near) == "strong, but could be neutral"
    assert (score_tone(near), near.is_unreliable) == (4, False)
    # 25 / (25 + 25): half of its distance is true.
    few = drawn(90, 25)
    assert (few.score, few.reliability, few.mean) == (70, 0.5, 90)
    assert score_words(few) == "strong, but could be neutral or very strong"
    assert score_tone(few) == 0
    # On a scale of people the interval may lie in one band.
    narrow = drawn(50, 25, between=2.0, within=10.0)
    assert narrow.possible_bands == (3, 3)
    assert score_words(narrow) == "neutral, but uncertain"


@pytest.mark.parametrize(
    ("score", "error", "bands"),
    [
        # 22 % below 59.5, and 18 %.
        (61, 1.95, (3, 4)),
        (61, 1.6, (4, 4)),
        # 11 % on either side, and 25 %.
        (70, 8.0, (4, 4)),
        (70, 15.0, (3, 5)),
        (99, 9.0, (5, 5)),
        (50, None, (3, 3)),
    ],
)
def test_a_band_is_named_if_it_is_probable_enough(score, error, bands):
    visible = VisibleScore(score, frozenset(), error=error, reliability=0.9)
    assert visible.possible_bands == bands
    assert visible.is_doubtful == (bands[0] != bands[1])


def test_probabilities_of_bands_are_those_of_a_normal_distribution():
    draws = np.random.default_rng(4).normal(52, 11, 200_000)
    bands = np.digitize(draws, [19.5, 39.5, 59.5, 79.5])
    shares = np.bincount(bands, minlength=5) / len(draws)
    assert band_chances(52, 11) == pytest.approx(shares.tolist(), abs=0.005)


def test_an_unreliable_score_has_no_band_without_doubt():
    """Also where its own band is by far the most probable one."""
    score = VisibleScore(50, frozenset(), error=1.0, reliability=0.74)
    assert score.possible_bands == (3, 3)
    assert score.is_doubtful and score_words(score) == "neutral, but uncertain"
    assert not score._replace(reliability=0.75).is_doubtful
    # Its color goes later: an estimate below 0.75 may stand for a truth below 0.6.
    assert score_tone(score) and not score_tone(score._replace(reliability=0.59))


def test_without_differences_the_score_is_that_of_the_answers():
    score = drawn(90, 25, between=0.0)
    assert (score.score, score.error, score.reliability) == (90, 20.0, 0.0)
    assert (score.band, score_words(score), score_tone(score)) == (0, "", 0)
    assert score_figures(score) == [90, 20.0, 0.0, 90, 20.0]


def test_an_older_score_keeps_its_band_and_says_what_its_error_allows():
    score = VisibleScore(65, frozenset(), error=1.0)
    assert (score_words(score), score_tone(score)) == ("strong", 4)
    assert score_words(score._replace(error=7.0)) == "strong, but could be neutral"
    assert score_words(score._replace(error=None)) == "strong"


def test_publications_of_both_formats_are_read():
    older, newer = frozen_score([65, 3.0]), frozen_score([65, 3.0, 0.4, 70, 4.0])
    assert (older.band, older.error, older.is_unreliable) == (4, 3.0, False)
    assert (newer.band, newer.error, newer.is_unreliable) == (4, 3.0, True)
    assert frozen_score([65, 3.0, 0.0, 65, 3.0]).band == 0
    rate = {"eligible": 9, "finished": 8, "rate": 88}
    frame = {"measures": {"essentials": [], "measures": [{"name": "m"}]}}
    place = ("school", "d", "s", "Name")
    for figures, cells in (
        ([65, 3.0], [65, 3.0, None, None, None]),
        ([65, 3.0, 0.4, 70, 4.0], [65, 3.0, 0.4, 70, 4.0]),
        (None, ["*"] * 5),
    ):
        summary = {"rate": rate, "schools": 1, "scores": {"m": figures}}
        header, row = score_rows(frame, [(*place, summary)])
        assert header[-5:] == [f"m{suffix}" for suffix in SCORE_COLUMNS]
        assert row[-5:] == cells


def test_the_likely_error_of_a_larger_place_is_by_school_too():
    alone = drawn(70, 2_500)
    place = VisibleScore.drawn(
        *(70, 2.0),
        benchmarks=frozenset(),
        people=2_500,
        shrinkage=alone.shrinkage,
        school_error=6.0,
    )
    assert place.score == alone.score
    assert place.mean_error == 6.0 and place.people_error == 2.0
    assert place.error == pytest.approx(6.0 * alone.reliability**0.5)
    # Changes of the same schools are those of people.
    assert place.error_of_change(place) == alone.error_of_change(alone)
    # A smaller one by chance changes nothing.
    same = VisibleScore.drawn(
        *(70, 2.0),
        benchmarks=frozenset(),
        people=2_500,
        shrinkage=alone.shrinkage,
        school_error=0.5,
    )
    assert (same.error, same.mean_error) == (alone.error, alone.mean_error)


def test_changes_are_those_of_the_answers_alone():
    before, now = drawn(30, 25), drawn(70, 25)
    # Each is drawn half of the way to 50.
    assert now.score - before.score == 20
    assert now.change_since(before) == 40
    assert now.error_of_change(before) == pytest.approx(np.hypot(20, 20), rel=1e-3)


def test_an_essential_is_as_reliable_as_its_least_reliable_measure():
    strong, few = drawn(70, 10_000), drawn(90, 25)
    essential = essential_of([(strong, True), (few, False)], 8.0)
    assert essential.reliability == 0.5
    assert (essential.score, essential.mean) == (50, 40)
    assert essential.error < essential.mean_error == 8.0
    unbanded = drawn(90, 25, between=0.0)
    assert essential_of([(strong, True), (unbanded, True)], 8.0).band == 0
