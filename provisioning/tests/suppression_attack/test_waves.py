"""Somebody who knows that nobody changed an answer compares two waves."""

from __future__ import annotations

import numpy as np
import pytest

from provisioning.suppression_attack.database import (
    AN_HOUR_BEFORE,
    published_survey,
    store,
)
from provisioning.suppression_attack.hierarchies import Hierarchy, draw, next_wave
from provisioning.suppression_attack.views import differences, staff_view
from provisioning.suppression_attack.waves import WavesAttack
from reports.suppression.tables import EVERYONE, GroupCounts, PlaceTree

pytestmark = pytest.mark.django_db

LINCOLN = 2
SIXTH, SEVENTH, EIGHTH = 1, 2, 3
LARGE = [[20, 20, 20]] * 3


def wave(lincoln, came=None):
    """Return the answers of two schools, of which the second has large grades."""

    def whole(schools):
        table = np.array(schools)
        table = np.concatenate([table.sum(axis=1, keepdims=True), table], axis=1)
        total = table.sum(axis=0, keepdims=True)
        return np.concatenate([total, total, table])

    answers = whole([lincoln, LARGE])
    people = answers.sum(axis=2)
    nobody = np.zeros_like(LARGE)
    return Hierarchy(
        PlaceTree(np.array([-1, 0, 1, 1])),
        GroupCounts(((SIXTH, SEVENTH, EIGHTH),), people, people + 20),
        {"item_1": answers},
        5,
        came={"item_1": whole([nobody if came is None else came, nobody])},
    )


@pytest.fixture
def first():
    small, seventh, eighth = [2, 1, 1], [4, 3, 3], [4, 4, 3]
    return store(
        wave([small, seventh, eighth]),
        published_survey(),
        "first",
        closed=AN_HOUR_BEFORE,
    )


def later(first, survey):
    """Store the next wave, in which two more people are in grade 7."""
    came = np.zeros_like(LARGE)
    came[SEVENTH - 1] = [1, 1, 0]
    small, seventh, eighth = [2, 1, 1], [5, 4, 3], [4, 4, 3]
    return store(
        wave([small, seventh, eighth], came),
        survey,
        f"later-{survey.survey.name}",
        before=first,
    )


def attacked(*waves, **options):
    figures = tuple(staff_view(stored).figures for stored in waves)
    return WavesAttack(waves, figures, "item_1", **options).attack()


def test_a_second_grade_that_is_not_hidden_again_tells_everything(first):
    second = later(first, first.administration.published)
    assert second.decision.groups[LINCOLN].tolist() == [False, True, True, False]
    outcome = attacked(first, second)
    assert outcome.cells >= 9
    assert (outcome.recovered, outcome.narrowed) == (0, 0)
    # The twin, which is decided without the first wave: grade 8 is the smallest now.
    alone = later(first, published_survey("other"))
    assert alone.decision.groups[LINCOLN].tolist() == [False, True, False, True]
    outcome = attacked(first, alone)
    assert outcome.recovered >= 6
    # Whoever does not know that nobody changed an answer finds nothing.
    outcome = attacked(first, alone, knows_that_nobody_changed=False)
    assert (outcome.recovered, outcome.narrowed) == (0, 0)


@pytest.mark.sqlite
def test_pages_show_what_was_decided_of_both_waves(first):
    second = later(first, first.administration.published)
    assert differences(first) == differences(second) == 0


def four_schools(lincoln_seventh):
    """Return the answers of four schools that show no grades, but their sum."""
    schools = np.array(
        [
            [[2, 2, 0], lincoln_seventh],
            [[2, 2, 2], [14, 13, 13]],
            [[1, 2, 0], [12, 12, 11]],
            [[3, 2, 2], [18, 16, 16]],
        ]
    )

    def whole(table):
        table = np.concatenate([table.sum(axis=1, keepdims=True), table], axis=1)
        total = table.sum(axis=0, keepdims=True)
        return np.concatenate([total, total, table])

    answers = whole(schools)
    people = answers.sum(axis=2)
    return Hierarchy(
        PlaceTree(np.array([-1, 0, 1, 1, 1, 1])),
        GroupCounts(((1, 2),), people, people + 20),
        {"item_1": answers},
        10,
        came={"item_1": np.zeros_like(answers)},
    )


def test_a_school_that_becomes_small_is_not_subtracted_from_the_wave_before():
    survey = published_survey()
    first = store(four_schools([2, 2, 2]), survey, "first", closed=AN_HOUR_BEFORE)
    # One of the ten people of the first school has left, and the third one is hidden
    # with it.
    now = four_schools([2, 2, 1])
    second = store(now, survey, "second", before=first)
    assert first.decision.undivided[1].all()
    assert not first.decision.groups[1].any()
    assert second.decision.groups[2:, EVERYONE].tolist() == [True, False, True, False]
    assert second.decision.groups[1].tolist() == [False, True, True]
    outcome = attacked(first, second)
    assert outcome.cells >= 24
    assert (outcome.recovered, outcome.narrowed) == (0, 0)
    # The twin: the district's sum is of the two other schools, and less by these two.
    alone = store(now, published_survey("other"), "alone", before=first)
    assert not alone.decision.groups[1].any()
    outcome = attacked(first, alone)
    assert outcome.recovered > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_recovered_from_invented_waves(seed):
    generator = np.random.default_rng([4, seed])
    hierarchy = draw(generator, districts=2, schools=3, items=1)
    survey = published_survey()
    first = store(hierarchy, survey, "first", closed=AN_HOUR_BEFORE)
    second = store(next_wave(hierarchy, generator), survey, "second", before=first)
    outcome = attacked(first, second)
    assert outcome.recovered == 0
