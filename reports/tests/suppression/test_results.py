"""Hide small groups in results, and what they could be calculated from."""

from __future__ import annotations

import numpy as np
import pytest

from reports.suppression.results import decide, hidden_groups, primary_groups
from reports.suppression.tables import UNKNOWN, GroupCounts, PlaceTree

LINCOLN, ROOSEVELT, ADAMS = 2, 3, 4
EVERYONE, FOURTH, FIFTH, SIXTH = range(4)


def tables(schools, items=(), without_report=()):
    """Return a district's tables of schools, each a row of people by grade.

    The state has this district only. An item is a list of schools with a list of
    counts for each grade.
    """
    tree = PlaceTree(np.array([-1, 0, *[1] * len(schools)]))
    people = np.array(schools)
    people = np.column_stack([people.sum(axis=1), people])
    people = np.vstack([people.sum(axis=0), people.sum(axis=0), people])
    none = np.zeros(len(tree), dtype=bool)
    none[list(without_report)] = True
    grades = tuple(range(1, people.shape[1]))
    groups = GroupCounts((grades,), people, np.full(people.shape, UNKNOWN), none)
    counts = {}
    for number, item in enumerate(items):
        table = np.array(item)
        table = np.concatenate([table.sum(axis=1, keepdims=True), table], axis=1)
        total = table.sum(axis=0, keepdims=True)
        counts[f"item_{number}"] = np.concatenate([total, total, table])
    return tree, groups, counts


def even(schools, categories=4):
    """Return an item of which all categories were chosen about as often."""
    return [
        [[(n + c) // categories for c in range(categories)] for n in school]
        for school in schools
    ]


def test_a_small_grade_cannot_be_calculated():
    schools = [[4, 30, 40], [25, 35, 45], [50, 60, 70]]
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    hidden = {tuple(cell) for cell in np.argwhere(decision.groups).tolist()}
    # The next smallest grade of the school, and both of them in the smallest school:
    # the district shows the sums of grades, and each school that of its own.
    assert hidden == {
        (LINCOLN, FOURTH),
        (LINCOLN, FIFTH),
        (ROOSEVELT, FOURTH),
        (ROOSEVELT, FIFTH),
    }
    assert (decision.items["item_0"] == decision.groups).all()


def test_large_groups_are_all_shown():
    schools = [[24, 30, 40], [25, 35, 45]]
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    assert not decision.groups.any()
    assert not decision.items["item_0"].any()


def test_a_higher_minimum_hides_more():
    schools = [[24, 30, 40], [25, 35, 45], [50, 60, 70]]
    tree, groups, _ = tables(schools)
    assert not hidden_groups(tree, groups).any()
    assert hidden_groups(tree, groups, minimum=25)[LINCOLN, FOURTH]


def test_hidden_groups_together_are_no_small_group():
    schools = [[4, 3, 40], [4, 3, 45], [50, 60, 70]]
    tree, groups, _ = tables(schools)
    hidden = hidden_groups(tree, groups)
    assert hidden[LINCOLN].tolist() == [False, True, True, True]
    # With the minimum only: the district less Adams is both schools' 4th graders.
    people = groups.people
    for grade in (FOURTH, FIFTH):
        rows = hidden[:, grade]
        assert people[rows, grade].sum() >= 10


def test_a_school_without_report_shows_no_grade_and_hides_another_school():
    schools = [[24, 30, 40], [25, 35, 45], [50, 60, 70]]
    tree, groups, items = tables(schools, [even(schools)], without_report=[ADAMS])
    decision = decide(tree, groups, items)
    assert decision.groups[ADAMS].all()
    assert decision.groups[LINCOLN, EVERYONE]
    assert not decision.groups[ROOSEVELT].any()


def test_a_school_in_which_nobody_answered_is_hidden_like_a_small_one():
    schools = [[0, 0, 0], [25, 35, 45], [50, 60, 70]]
    tree, groups, _ = tables(schools)
    assert hidden_groups(tree, groups)[LINCOLN].all()


def test_an_item_is_hidden_in_one_more_grade_if_only_that_one_chose_a_category():
    schools = [[4, 30, 40], [4, 35, 45], [50, 60, 70]]
    rare = [
        # Nobody in grades 4 and 5 of the small schools, so the total would tell.
        [[4, 0], [30, 0], [37, 3]],
        [[4, 0], [35, 0], [42, 3]],
        [[45, 5], [50, 10], [60, 10]],
    ]
    tree, groups, items = tables(schools, [rare, even(schools, 2)])
    decision = decide(tree, groups, items)
    assert not decision.groups[LINCOLN, SIXTH]
    assert decision.items["item_0"][LINCOLN, SIXTH]
    assert not decision.items["item_1"][LINCOLN, SIXTH]


def test_items_are_hidden_with_their_groups():
    schools = [[4, 30, 40], [25, 35, 45], [50, 60, 70]]
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    assert decision.items["item_0"][decision.groups].all()


@pytest.mark.parametrize(
    "schools",
    [
        pytest.param([[3, 0, 0]], id="one small school"),
        pytest.param([[0, 0, 0]], id="nobody"),
        pytest.param([[3, 2, 1], [1, 0, 0]], id="small schools only"),
        pytest.param([[5, 100, 0]], id="one school"),
        pytest.param([[30, 0, 0], [0, 4, 0], [0, 0, 50]], id="a grade each"),
    ],
)
def test_unusual_trees_get_a_decision(schools):
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    small = primary_groups(groups, 10)
    assert decision.groups[small].all()


def test_one_place_without_others_gets_a_decision():
    tree = PlaceTree(np.array([-1]))
    people = np.array([[34, 4, 30]])
    groups = GroupCounts(
        ((1, 2),), people, np.full(people.shape, UNKNOWN), np.zeros(1, dtype=bool)
    )
    assert hidden_groups(tree, groups).tolist() == [[False, True, True]]
