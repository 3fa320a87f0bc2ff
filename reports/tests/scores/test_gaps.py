"""What is said of gaps: small ones are called small, uncertain ones uncertain."""

from __future__ import annotations

import numpy as np
import pytest

from reports.school_report.gap_panels import gap_sentence, gap_verdict
from reports.scores.gaps import Gap, judged

SMALL, MODERATE, LARGE = "A small gap.", "A moderate gap.", "A large gap."
AT_MOST, UNCERTAIN = "At most a small gap.", "Too uncertain to call a gap."


@pytest.mark.parametrize(
    ("points", "error", "verdict"),
    [
        # Of 50 points of deviation.
        (9.9, 1.0, SMALL),
        (-9.9, 1.0, SMALL),
        (10.1, 1.0, MODERATE),
        (24.9, 1.0, MODERATE),
        (25.1, 1.0, LARGE),
        (1.0, 2.0, AT_MOST),
        # It could be as large as 21 points.
        (1.0, 10.0, UNCERTAIN),
        (30.0, 20.0, UNCERTAIN),
    ],
)
def test_a_gap_is_called_by_its_size_and_its_interval(points, error, verdict):
    [gap] = judged([Gap("a", "b", points, error, 50.0)])
    assert gap_verdict(gap) == verdict


def test_without_a_deviation_no_gap_is_called_small():
    certain, uncertain = judged(
        [Gap("a", "b", 9.0, 1.0, None), Gap("a", "c", 0.1, 1.0, None)]
    )
    assert gap_verdict(certain) == "A gap that is more than chance."
    assert gap_verdict(uncertain) == UNCERTAIN


def test_of_many_groups_without_gaps_hardly_any_page_names_one():
    """Each gap alone would be named on one page in twenty: of 40, on most pages."""
    generator = np.random.default_rng(3)
    named = alone = 0
    for _page in range(200):
        gaps = [
            Gap(str(number), "", points, 1.0, 5.0)
            for number, points in enumerate(generator.normal(size=40))
        ]
        named += any(gap.is_certain for gap in judged(gaps))
        alone += any(judged([gap])[0].is_certain for gap in gaps)
    assert named / 200 < 0.08
    assert alone / 200 > 0.7


@pytest.mark.parametrize(
    ("points", "error", "words"),
    [
        (
            14.2,
            4.0,
            "scores 14 points higher than “b”. 95\xa0% interval: 6 to 22 points",
        ),
        (
            -14.2,
            4.0,
            "scores 14 points lower than “b”. 95\xa0% interval: 6 to 22 points",
        ),
        (1.0, 0.4, "scores 1 point higher than “b”."),
        (
            0.2,
            4.0,
            "about the same as “b”. 95\xa0% interval: 8 points lower to 8 points",
        ),
    ],
)
def test_sentences_say_both_ends_of_the_interval(points, error, words):
    assert words in gap_sentence(Gap("a", "b", points, error, 50.0))


def test_of_several_groups_the_others_are_compared():
    assert "than the other groups together." in gap_sentence(Gap("a", "", 5, 1.0, 50.0))
