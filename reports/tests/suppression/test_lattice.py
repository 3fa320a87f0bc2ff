"""Find sums of groups that isolate a few people."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from reports.suppression import lattice
from reports.suppression.lattice import (
    group_to_hide,
    isolates,
    light_sums,
    may_isolate,
    scalar_products,
)


def school(free, reduced, paid):
    """Return the groups everyone, disadvantaged, free lunch; and a pattern each."""
    members = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0]], dtype=bool)
    return members, np.array([free, reduced, paid])


def test_disadvantaged_people_less_those_with_free_lunch_are_a_few():
    members, people = school(free=40, reduced=6, paid=54)
    assert light_sums(members, people, 10)[0].tolist() in ([0, 1, -1], [0, -1, 1])


def test_enough_people_are_isolated_from_nobody():
    assert not isolates(*school(free=40, reduced=10, paid=50), 10)


def test_everyone_less_three_shown_groups_is_the_hidden_one():
    # White, Black, Hispanic and four hidden people.
    members = np.column_stack([np.ones(4), np.eye(4)[:, :3]]).astype(bool)
    pattern, *_multiples = light_sums(members, np.array([60, 30, 20, 4]), 10)
    assert np.abs(pattern).tolist() == [1, 1, 1, 1]


def test_sums_that_use_a_group_twice_are_found():
    # Twice the first group, less the others: 2 for the first pattern, 0 for all others.
    members = np.array([[1, 0, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1]]) > 0
    people = np.array([3, 50, 50, 50])
    [pattern] = light_sums(members, people, 10)
    assert (np.abs(members @ pattern) == [2, 0, 0, 0]).all()


@pytest.mark.parametrize("seed", range(20))
def test_the_same_sums_are_found_by_trying_all(seed):
    random = np.random.default_rng(seed)
    members = random.random((8, 5)) < 0.5
    people = random.integers(1, 30, 8)
    tried = set()
    for coefficients in product(range(-2, 3), repeat=5):
        weights = members.astype(int) @ coefficients
        size = people[weights != 0].sum()
        if 0 < size < 10 and np.abs(weights).max() <= 2:
            tried.add(tuple(weights * np.sign(weights[np.flatnonzero(weights)[0]])))
    light = {
        tuple(weights * np.sign(weights[np.flatnonzero(weights)[0]]))
        for weights in light_sums(members, people, 10) @ members.T.astype(int)
        if np.abs(weights).max() <= 2
    }
    assert tried <= light


@pytest.mark.parametrize("seed", range(200))
def test_schools_without_sums_of_few_are_told_by_their_ranks(seed, monkeypatch):
    random = np.random.default_rng(seed)
    members = random.random((10, 5)) < 0.5
    people = random.integers(0, 40, 10)
    is_possible = may_isolate(members, people, 10)
    # As if it were always possible.
    monkeypatch.setattr(lattice, "may_isolate", lambda *_: True)
    assert is_possible or not len(light_sums(members, people, 10))


def test_ranks_tell_that_sums_of_few_are_possible():
    assert may_isolate(*school(free=40, reduced=6, paid=54), 10)
    assert not may_isolate(*school(free=40, reduced=10, paid=50), 10)
    # Nobody has this pattern.
    assert not may_isolate(*school(free=40, reduced=0, paid=50), 10)


def next_hidden(members, people, sums, shown, first=()):
    is_first = np.isin(range(members.shape[1]), list(first))
    gram = scalar_products(members.astype(float), people)
    return group_to_hide(
        gram, np.array(sums), np.array(shown), people @ members, is_first
    )


def test_the_smaller_of_two_groups_that_tell_of_a_few_is_hidden():
    members, people = school(free=40, reduced=6, paid=54)
    sums = light_sums(members, people, 10)
    assert next_hidden(members, people, sums, [0, 1, 2]) == 2
    # The one that was hidden before, if there is one: with both in two waves, each
    # wave would tell what the other hides.
    assert next_hidden(members, people, sums, [0, 1, 2], first=[1]) == 1
    assert next_hidden(members, people, sums, [0, 1]) is None


def test_a_hidden_group_that_others_add_up_to_is_known():
    # Four grades; the last one is hidden for itself.
    members = np.column_stack([np.ones(4), np.eye(4)]).astype(bool)
    people = np.array([60, 30, 20, 4])
    assert next_hidden(members, people, [[0, 0, 0, 0, 1]], [0, 1, 2, 3]) == 3
    assert next_hidden(members, people, [[0, 0, 0, 0, 1]], [0, 1, 2]) is None
