"""Shares near 0 and 100 % are coded: the bounds are true, and nothing undoes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random

import pytest

from reports.suppression import end_coding
from reports.suppression.end_coding import CodedShare, coded_cells, coded_shares

Table = tuple[int, ...]


def printed(table, threshold=5, *, are_exclusive=True, answered=None):
    """Return a cell for each answer as in a file, or None for a hidden item."""
    answered = sum(table) if answered is None else answered
    shares = coded_shares(table, answered, threshold, are_exclusive=are_exclusive)
    if shares is None:
        return None
    return tuple(
        coded_cells(share, answered)[1] if share else str(people)
        for people, share in zip(table, shares, strict=True)
    )


def tables(people: int, answers: int) -> Iterator[Table]:
    """Yield every way in which so many people can answer an item."""
    if answers == 1:
        yield (people,)
        return
    for first in range(people + 1):
        for rest in tables(people - first, answers - 1):
            yield (first, *rest)


@pytest.mark.parametrize(
    ("table", "cells"),
    [
        # What the state's threshold says.
        ((0, 4, 38, 58), ("<5", "<5", "38", "58")),
        ((100, 0, 0, 0), (">95", "<5", "<5", "<5")),
        ((97, 3, 0, 0), (">95", "<5", "<5", "<5")),
        ((95, 5), ("95", "5")),
        ((10, 20, 30, 40), ("10", "20", "30", "40")),
        # Three people of 20 are 15 %.
        ((2, 1, 1, 8, 8), ("<15", "<15", "<15", "8", "8")),
        ((10, 0), (">70", "<30")),
        # A district can show 3 %, but not that nobody gave an answer.
        ((30, 470, 500), ("30", "470", "500")),
        ((4, 6, 490, 500), ("<1", "<1", "490", "500")),
        # The only coded answer would be what the others leave.
        ((4, 8, 38, 50), ("<10", "<10", "38", "50")),
        # So would two that nobody gave, and two that are the largest they can be.
        ((0, 0, 30, 70), ("<40", "<40", "<40", ">60")),
        ((2, 2, 7, 9), ("<20", "<20", "7", "9")),
        # Nothing between 49 and 51 % is coded: the zeros would be what is left.
        ((50, 50, 0, 0), None),
        # With fewer than seven people, two is no small share any more.
        ((5, 1), None),
        ((0, 0), ("0", "0")),
    ],
)
def test_examples(table, cells):
    assert printed(table) == cells


def test_the_threshold_is_the_states():
    assert printed((8, 12, 80), 10) == ("<20", "<20", "80")
    assert printed((8, 12, 80), 5) == ("8", "12", "80")
    # In large groups it is 1 %.
    assert printed((80, 120, 800), 10) == ("80", "120", "800")


def test_answers_of_a_multiple_choice_are_coded_one_by_one():
    def cells(*table):
        return printed(table, are_exclusive=False, answered=100)

    assert cells(0, 4, 50, 96, 100) == ("<5", "<5", "50", ">95", ">95")
    assert cells(0, 50) == ("<5", "50")


def test_bounds_in_people():
    assert coded_cells(CodedShare(15), 20) == ("<3", "<15")
    assert coded_cells(CodedShare(5), 101) == ("<6", "<5")
    assert coded_cells(CodedShare(95, is_over=True), 101) == (">95", ">95")
    assert (CodedShare(15).least(20), CodedShare(15).most(20)) == (0, 2)
    over = CodedShare(85, is_over=True)
    assert (over.least(20), over.most(20)) == (18, 20)


def all_tables(threshold: int) -> Iterator[tuple[Table, list[CodedShare | None]]]:
    for people in range(1, 15):
        for answers in (2, 3, 4):
            for table in tables(people, answers):
                shares = coded_shares(table, people, threshold, are_exclusive=True)
                if shares is not None:
                    yield table, shares


@pytest.mark.parametrize("threshold", [1, 5, 20])
def test_every_bound_is_true_and_leaves_three_numbers_to_somebody_who_subtracts(
    threshold,
):
    for table, shares in all_tables(threshold):
        answered = sum(table)
        coded = [
            (share.least(answered), n, share.most(answered), share)
            for n, share in zip(table, shares, strict=True)
            if share
        ]
        together = sum(n for _least, n, _most, _share in coded)
        for least, people, most, share in coded:
            percent = 100 * people / answered
            assert percent > share.percent if share.is_over else percent < share.percent
            assert least <= people <= most
            others_least = sum(one[0] for one in coded) - least
            others_most = sum(one[2] for one in coded) - most
            lowest = max(least, together - others_most)
            assert min(most, together - others_least) - lowest >= 2


@pytest.mark.parametrize("threshold", [1, 5, 20])
def test_somebody_who_knows_the_rule_does_not_learn_that_nobody_or_everybody_answered(
    threshold,
):
    """Every table of up to 14 people, and every other one that looks the same."""
    alike = defaultdict(list)
    for people in range(7, 15):
        for answers in (2, 3, 4):
            for table in tables(people, answers):
                alike[people, answers, printed(table, threshold)].append(table)
    for (people, answers, _cells), same in alike.items():
        for end in (0, people):
            for at in range(answers):
                assert not all(table[at] == end for table in same)


def test_without_raised_bounds_the_zeros_would_be_what_is_left(monkeypatch):
    monkeypatch.setattr(end_coding, "_is_protected", lambda *_args: True)
    cells = printed((0, 0, 30, 70))
    assert cells == ("<5", "<5", "30", "70")
    assert 100 - int(cells[2]) - int(cells[3]) == 0


def test_larger_tables_keep_the_promise():
    random = Random(36)
    for _ in range(3000):
        people, answers = random.randint(15, 2000), random.randint(2, 6)
        table = [0] * answers
        weights = [random.random() ** 4 for _ in table]
        for at in random.choices(range(answers), weights, k=people):
            table[at] += 1
        shares = coded_shares(table, people, 5, are_exclusive=True)
        if shares is None:
            continue
        coded = [(n, share) for n, share in zip(table, shares, strict=True) if share]
        # Whoever is not shown exactly is in a group of three at least.
        assert sum(n for n, _share in coded) >= 3 or not coded
        for n, share in zip(table, shares, strict=True):
            assert share or 3 <= n <= people - 3
