"""Hide small groups in results, and what they could be calculated from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reports.suppression import attributes, candidates, places, results
from reports.suppression.tables import (
    UNKNOWN,
    EarlierSuppression,
    GroupCounts,
    HiddenCells,
    PlaceTree,
    ReleasedTables,
)

DISTRICT, LINCOLN, ROOSEVELT, ADAMS, JEFFERSON = 1, 2, 3, 4, 5
EVERYONE, FOURTH, FIFTH, SIXTH = range(4)


def tables(schools, items=()):
    """Return a district's tables of schools, each a row of people by grade.

    The state has this district only. An item is a list of schools with a list of
    counts for each grade.
    """
    tree = PlaceTree(np.array([-1, 0, *[1] * len(schools)]))
    people = np.array(schools)
    people = np.column_stack([people.sum(axis=1), people])
    people = np.vstack([people.sum(axis=0), people.sum(axis=0), people])
    grades = tuple(range(1, people.shape[1]))
    groups = GroupCounts((grades,), people, np.full(people.shape, UNKNOWN))
    counts = {}
    for number, item in enumerate(items):
        table = np.array(item)
        table = np.concatenate([table.sum(axis=1, keepdims=True), table], axis=1)
        total = table.sum(axis=0, keepdims=True)
        counts[f"item_{number}"] = np.concatenate([total, total, table])
    return tree, groups, counts


def decide(tree, groups, items, minimum=10, earlier=None, answered=None):
    earlier = earlier or EarlierSuppression.none(groups)
    released = ReleasedTables(tree, groups, minimum, earlier)
    return results.decide(released, items, answered)


def even(schools, categories=4):
    """Return an item of which all categories were chosen about as often."""
    return [
        [[(n + c) // categories for c in range(categories)] for n in school]
        for school in schools
    ]


def hidden_cells(mask):
    return {tuple(cell) for cell in np.argwhere(mask).tolist()}


def test_a_small_grade_hides_the_next_smallest_one():
    schools = [[4, 30, 40], [125, 135, 145], [150, 160, 170]]
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    assert hidden_cells(decision.groups) == {(LINCOLN, FOURTH), (LINCOLN, FIFTH)}
    assert (decision.items["item_0"] == decision.groups).all()


def test_a_grade_without_a_response_rate_is_hidden_and_another_one():
    schools = [[14, 30, 40], [125, 135, 145], [150, 160, 170]]
    tree, groups, items = tables(schools, [even(schools)])
    assert not decide(tree, groups, items).groups.any()
    without_rate = np.zeros(groups.people.shape, dtype=bool)
    without_rate[LINCOLN, FOURTH] = True
    groups = replace(groups, without_rate=without_rate)
    decision = decide(tree, groups, items)
    assert hidden_cells(decision.groups) == {(LINCOLN, FOURTH), (LINCOLN, FIFTH)}


def test_grades_of_the_district_leave_out_schools_that_hide_one():
    schools = [[4, 30, 40], [125, 135, 145], [150, 160, 170]]
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    published = decision.published(tree, groups, groups.people)
    assert published[DISTRICT].tolist() == [959, 275, 295, 315]
    of_item = decision.published(tree, groups, items["item_0"], "item_0")
    assert of_item[DISTRICT].sum(axis=1).tolist() == [959, 275, 295, 315]
    # With everybody in it, the district less the other schools is the hidden grade.
    assert groups.people[DISTRICT, FOURTH] - 125 - 150 == 4


def test_schools_show_no_grades_if_too_many_people_would_be_left_out():
    schools = [[4, 30, 40], [4, 35, 45], [50, 60, 70]]
    tree, groups, _ = tables(schools)
    decision = decide(tree, groups, {})
    assert decision.undivided[DISTRICT].all()
    assert decision.groups[LINCOLN:, FOURTH:].all()
    assert not decision.groups[: DISTRICT + 1].any()
    assert (decision.published(tree, groups, groups.people) == groups.people).all()


@pytest.mark.parametrize(("small", "shows_grades"), [(4, True), (2, False)])
def test_a_district_of_undivided_schools_shows_all_grades_or_none(small, shows_grades):
    # Twelve or six people of the district are in the fourth grade.
    schools = [[small, 30, 40], [small, 35, 45], [small, 60, 70]]
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    assert decision.undivided[DISTRICT].all()
    assert decision.groups[LINCOLN:, FOURTH:].all()
    grades = decision.groups[DISTRICT, FOURTH:]
    assert grades.tolist() == [not shows_grades] * 3
    assert (decision.items["item_0"][DISTRICT, FOURTH:] == grades).all()


def earlier_of(decision, groups, people):
    """Return what an earlier decision hid, about so many people of each group."""
    hidden = HiddenCells(decision.groups, decision.items)
    are_same = np.abs(groups.people - people) < 10
    forced = hidden.intersection(hidden, are_same)
    undivided = decision.undivided
    return EarlierSuppression(hidden, forced, undivided, ~undivided, decision.summed)


def test_a_grade_that_has_grown_a_little_stays_hidden_with_the_same_other_one():
    before = [[9, 30, 40], [125, 135, 145], [150, 160, 170]]
    now = [[11, 31, 29], [125, 135, 145], [150, 160, 170]]
    tree, groups, items = tables(before, [even(before)])
    first = decide(tree, groups, items)
    people = groups.people
    assert hidden_cells(first.groups) == {(LINCOLN, FOURTH), (LINCOLN, FIFTH)}
    tree, groups, items = tables(now, [even(now)])
    earlier = earlier_of(first, groups, people)
    decision = decide(tree, groups, items, earlier=earlier)
    assert hidden_cells(decision.groups) == {(LINCOLN, FOURTH), (LINCOLN, FIFTH)}
    assert (decision.items["item_0"] == decision.groups).all()
    # The twin: the eleven of now tell what the nine of before have answered.
    assert not decide(tree, groups, items).groups.any()


def test_the_smallest_other_grade_is_hidden_only_if_none_was_before():
    now = [[4, 60, 29], [125, 135, 145], [150, 160, 170]]
    tree, groups, _ = tables(now)
    assert decide(tree, groups, {}).groups[LINCOLN].tolist() == [
        *(False, True, False, True)
    ]
    hidden = np.zeros(groups.people.shape, dtype=bool)
    hidden[LINCOLN, FIFTH] = True
    earlier = replace(EarlierSuppression.none(groups), preferred=HiddenCells(hidden))
    assert decide(tree, groups, {}, earlier=earlier).groups[LINCOLN].tolist() == [
        *(False, True, True, False)
    ]


def test_schools_of_a_district_show_grades_if_they_did_before():
    few = [[4, 30, 40], [125, 135, 145], [150, 160, 170]]
    many = [[4, 30, 40], [4, 35, 45], [50, 60, 70]]
    for before, now, is_undivided in ((few, many, False), (many, few, True)):
        tree, groups, _ = tables(before)
        first, people = decide(tree, groups, {}), groups.people
        tree, groups, _ = tables(now)
        earlier = earlier_of(first, groups, people)
        decision = decide(tree, groups, {}, earlier=earlier)
        assert decision.undivided[DISTRICT].tolist() == [is_undivided]
        # The twin: otherwise other schools would be in the district's figures.
        assert decide(tree, groups, {}).undivided[DISTRICT].tolist() == [
            not is_undivided
        ]


def test_a_sum_of_other_schools_than_before_is_not_shown():
    before = [[4, 6], [6, 40], [3, 35], [7, 50]]
    # One person has left Lincoln, which is hidden now and left out.
    now = [[4, 5], [6, 40], [3, 35], [7, 50]]
    tree, groups, _ = tables(before)
    first = decide(tree, groups, {})
    assert first.undivided[DISTRICT].all()
    assert not first.groups[DISTRICT].any()
    [summed] = first.summed.values()
    assert summed == {LINCOLN, ROOSEVELT, ADAMS, JEFFERSON}
    shown = first.published(tree, groups, groups.people)[DISTRICT, FOURTH]
    people = groups.people
    tree, groups, _ = tables(now)
    earlier = earlier_of(first, groups, people)
    decision = decide(tree, groups, {}, earlier=earlier)
    assert decision.groups[DISTRICT].tolist() == [False, True, True]
    # It is not shown in the wave after either.
    assert decision.summed == first.summed
    # The twin: subtracted, two sums tell how many are in grade 4 of a small school.
    alone = decide(tree, groups, {}, earlier=replace(earlier, summed={}))
    assert not alone.groups[DISTRICT].any()
    less = shown - alone.published(tree, groups, groups.people)[DISTRICT, FOURTH]
    assert less == 4


def test_a_sum_of_one_school_is_not_shown(monkeypatch):
    # Lincoln and Roosevelt are hidden, so that only Adams is left.
    schools = [[4, 3, 0], [5, 4, 0], [60, 15, 30]]
    tree, groups, _ = tables(schools)
    without_rate = np.zeros(groups.people.shape, dtype=bool)
    without_rate[ADAMS, FIFTH] = True
    groups = replace(groups, without_rate=without_rate)
    decision = decide(tree, groups, {})
    assert decision.undivided[DISTRICT].all()
    assert decision.groups[DISTRICT].tolist() == [False, True, True, True]
    # The twin: the sum is the number that Adams hides.
    monkeypatch.setattr("reports.suppression.attributes.tells_groups", lambda *_: False)
    decision = decide(tree, groups, {})
    assert not decision.groups[DISTRICT].any()
    assert decision.groups[ADAMS, FIFTH]
    assert decision.published(tree, groups, groups.people)[DISTRICT, FIFTH] == 15


def test_an_item_is_not_summed_over_other_schools_than_its_people(monkeypatch):
    # Few people of Adams have answered, so it hides this item.
    schools = [[6, 20], [6, 40], [6, 50], [8, 60]]
    tree, groups, items = tables(schools, [even(schools, 2)])
    answered = groups.people.copy()
    answered[ADAMS] = [7, 3, 4]
    counts = items["item_0"]
    # Skipped by the others of Adams.
    counts = np.concatenate([counts, np.zeros_like(counts[:, :, :1])], axis=2)
    counts[ADAMS] = [[4, 3, 49], [2, 1, 3], [2, 2, 46]]
    for place in (DISTRICT, 0):
        answered[place] = answered[LINCOLN:].sum(axis=0)
        counts[place] = counts[LINCOLN:].sum(axis=0)
    items, answers = {"item_0": counts}, {"item_0": answered}
    decision = decide(tree, groups, items, answered=answers)
    assert decision.undivided[DISTRICT].all()
    assert not decision.groups[DISTRICT].any()
    assert decision.items["item_0"][ADAMS, EVERYONE]
    assert decision.items["item_0"][DISTRICT].tolist() == [False, True, True]
    assert decision.items["item_0"][0].tolist() == [False, True, True]
    # The twin: how many answered the item tells who is in grade 4 of Adams.
    monkeypatch.setattr("reports.suppression.attributes.tells_items", lambda *_: False)
    decision = decide(tree, groups, items, answered=answers)
    assert not decision.items["item_0"][DISTRICT].any()
    people = decision.published(tree, groups, groups.people)[DISTRICT, FOURTH]
    answered = decision.published(tree, groups, items["item_0"], "item_0")
    assert people - answered[DISTRICT, FOURTH].sum() == 6


def test_large_groups_are_all_shown():
    schools = [[24, 30, 40], [25, 35, 45]]
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    assert not decision.groups.any()
    assert not decision.items["item_0"].any()
    assert decision.counted.all()


def test_a_higher_minimum_hides_more():
    schools = [[24, 30, 40], [125, 135, 145], [150, 160, 170]]
    tree, groups, _ = tables(schools)
    assert not decide(tree, groups, {}).groups.any()
    assert decide(tree, groups, {}, minimum=25).groups[LINCOLN, FOURTH]


def test_hidden_groups_together_are_no_small_group():
    schools = [[4, 3, 40], [150, 160, 170]]
    tree, groups, _ = tables(schools)
    hidden = decide(tree, groups, {}).groups
    assert hidden[LINCOLN].tolist() == [False, True, True, True]


def test_a_small_school_is_left_out_of_its_district(monkeypatch):
    schools = [[4, 3, 0], [25, 35, 45], [500, 600, 700]]
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    assert decision.groups[LINCOLN].all()
    assert not decision.groups[[ROOSEVELT, ADAMS]].any()
    published = decision.published(tree, groups, groups.people)
    assert published[DISTRICT].tolist() == [1905, 525, 635, 745]
    assert published[0].tolist() == [1905, 525, 635, 745]
    of_item = decision.published(tree, groups, items["item_0"], "item_0")
    schools_of_item = items["item_0"][[ROOSEVELT, ADAMS], EVERYONE].sum(axis=0)
    assert (of_item[DISTRICT, EVERYONE] == schools_of_item).all()
    # The twin: with its people in it, the district less the others is Lincoln.
    monkeypatch.setattr(
        "reports.suppression.tables.Decision.published", lambda *it: it[3]
    )
    complete = decision.published(tree, groups, items["item_0"], "item_0")
    difference = complete[DISTRICT, EVERYONE] - schools_of_item
    assert (difference == items["item_0"][LINCOLN, EVERYONE]).all()


def test_small_schools_together_are_a_part_of_their_district():
    schools = [[4, 3, 0], [2, 3, 2], [500, 600, 700]]
    tree, groups, items = tables(schools, [even(schools, 2)])
    decision = decide(tree, groups, items)
    assert decision.groups[[LINCOLN, ROOSEVELT]].all()
    published = decision.published(tree, groups, groups.people)
    assert published[DISTRICT, EVERYONE] == 1814
    of_item = decision.published(tree, groups, items["item_0"], "item_0")
    assert of_item[DISTRICT, EVERYONE].sum() == 1814


def test_small_schools_are_not_a_part_that_was_another_one_before():
    schools = [[4, 3, 0], [2, 3, 2], [500, 600, 700]]
    tree, groups, items = tables(schools, [even(schools)])
    hidden = np.zeros(groups.people.shape, dtype=bool)
    hidden[LINCOLN] = True
    preferred = HiddenCells(hidden)
    earlier = replace(
        EarlierSuppression.none(groups), preferred=preferred, is_known=True
    )
    decision = decide(tree, groups, items, earlier=earlier)
    published = decision.published(tree, groups, groups.people)
    # Roosevelt was shown before, so both together would tell of Lincoln alone.
    assert published[DISTRICT, EVERYONE] == 1800


@pytest.mark.parametrize("level", ["school", "grade"])
def test_an_item_that_few_have_answered_is_hidden(level, monkeypatch):
    schools = [[40, 50, 60], [125, 135, 145], [150, 160, 170]]
    tree, groups, items = tables(schools, [even(schools)])
    answered = groups.people // 5
    answered[LINCOLN] = [8, 2, 3, 3] if level == "school" else [42, 8, 14, 20]
    for place in (DISTRICT, 0):
        answered[place] = answered[LINCOLN:].sum(axis=0)
    decision = decide(tree, groups, items, answered={"item_0": answered})
    assert not decision.groups.any()
    hidden = decision.items["item_0"]
    assert not hidden[[0, DISTRICT, ROOSEVELT, ADAMS]].any()
    if level == "school":
        assert hidden[LINCOLN].all()
    else:
        # One more grade: everyone less the others would be the eight.
        assert hidden[LINCOLN].tolist() == [False, True, True, False]
    # Nobody of Lincoln is in the district's figures that would tell it.
    of_item = decision.published(tree, groups, answered, "item_0")
    other_schools = answered[ROOSEVELT:].sum(axis=0)
    assert of_item[DISTRICT, FOURTH:].tolist() == other_schools[FOURTH:].tolist()
    if level == "school":
        assert of_item[DISTRICT, EVERYONE] == other_schools[EVERYONE]
    # The twin: as if everybody had answered.
    for module in (attributes, candidates, places):
        monkeypatch.setattr(
            *(module, "few_answers", lambda counts, _: np.zeros(counts.shape, bool))
        )
    decision = decide(tree, groups, items, answered={"item_0": answered})
    assert not decision.items["item_0"].any()


def test_an_item_that_few_have_answered_in_two_schools_is_shown_of_the_district():
    schools = [[40, 50, 60], [125, 135, 145], [150, 160, 170]]
    tree, groups, items = tables(schools, [even(schools)])
    answered = groups.people // 5
    answered[LINCOLN] = answered[ROOSEVELT] = [8, 2, 3, 3]
    answered[[DISTRICT, 0]] = answered[LINCOLN:].sum(axis=0)
    decision = decide(tree, groups, items, answered={"item_0": answered})
    assert decision.items["item_0"][[LINCOLN, ROOSEVELT]].all()
    assert not decision.items["item_0"][[DISTRICT, ADAMS], EVERYONE].any()
    of_item = decision.published(tree, groups, answered, "item_0")
    assert of_item[DISTRICT, EVERYONE] == answered[DISTRICT, EVERYONE]


def test_an_item_is_hidden_in_one_more_grade_if_only_that_one_chose_a_category():
    schools = [[4, 30, 40], [125, 135, 145], [150, 160, 170]]
    rare = [
        # Nobody in grades 4 and 5 of the first school, so the total would tell.
        [[4, 0], [30, 0], [37, 3]],
        [[120, 5], [125, 10], [135, 10]],
        [[145, 5], [150, 10], [160, 10]],
    ]
    tree, groups, items = tables(schools, [rare, even(schools, 2)])
    decision = decide(tree, groups, items)
    assert not decision.groups[LINCOLN, SIXTH]
    assert decision.items["item_0"][LINCOLN, SIXTH]
    assert not decision.items["item_1"][LINCOLN, SIXTH]


def test_an_item_of_small_schools_is_left_out_if_the_others_would_tell_it():
    schools = [[4, 3, 0], [4, 3, 2], [25, 35, 45], [500, 600, 700]]
    rare = [
        [[4, 0], [3, 0], [0, 0]],
        [[4, 0], [3, 0], [2, 0]],
        [[25, 0], [35, 0], [45, 0]],
        [[495, 5], [595, 5], [695, 5]],
    ]
    tree, groups, items = tables(schools, [rare, even(schools)])
    decision = decide(tree, groups, items)
    assert not decision.groups[ADAMS:].any()
    # Nobody in the small schools chose the second answer.
    assert not decision.items["item_0"][ADAMS:].any()
    of_item = decision.published(tree, groups, items["item_0"], "item_0")
    assert of_item[DISTRICT, EVERYONE].tolist() == [1890, 15]
    of_other_item = decision.published(tree, groups, items["item_1"], "item_1")
    assert of_other_item[DISTRICT, EVERYONE].sum() == 1921


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
    is_small = (groups.people > 0) & (groups.people < 10)
    assert (decision.groups | ~is_small)[tree.leaves].all()


def test_one_place_without_others_gets_a_decision():
    tree = PlaceTree(np.array([-1]))
    people = np.array([[34, 4, 30]])
    groups = GroupCounts(((1, 2),), people, np.full(people.shape, UNKNOWN))
    assert decide(tree, groups, {}).groups.tolist() == [[False, True, True]]


def test_a_state_of_small_schools_shows_most_of_its_schools():
    generator = np.random.default_rng(5)
    schools = generator.poisson(generator.uniform(2, 30, (100, 1)), (100, 4)).tolist()
    tree, groups, items = tables(schools, [even(schools)])
    decision = decide(tree, groups, items)
    large = groups.people[:, EVERYONE] >= 10
    assert decision.groups[large, EVERYONE].mean() < 0.02
    assert not decision.items["item_0"][:DISTRICT, EVERYONE].any()
