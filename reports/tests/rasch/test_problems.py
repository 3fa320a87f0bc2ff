import numpy as np

from reports.rasch import MISSING, Problem, ResponseTable, examine


def problems(rows):
    table, _ = ResponseTable.of_people(np.array(rows))
    return examine(table)


def test_answers_without_problems_have_none():
    assert problems([[0, 1], [1, 0], [1, 2], [0, 2]]) == []


def test_items_without_answers_or_with_equal_answers_are_excluded():
    excluded = problems([[0, MISSING, 2, 1], [1, MISSING, 2, 0]])
    assert excluded == [Problem("unanswered", 1), Problem("one_category", 2)]
    assert all(problem.excludes for problem in excluded)


def test_a_category_that_nobody_chose_is_reported_but_excludes_nothing():
    rows = [[0, 0], [3, 1], [1, 1], [1, 0]]
    assert problems(rows) == [Problem("unused_category", 0, 2)]
    assert not problems(rows)[0].excludes


def test_items_that_nobody_links_to_the_others_are_excluded():
    apart = [
        [0, 1, 1, MISSING, MISSING],
        [1, 0, 0, MISSING, MISSING],
        [MISSING, MISSING, MISSING, 0, 1],
        [MISSING, MISSING, MISSING, 1, 0],
    ]
    assert problems(apart) == [Problem("disconnected", 3), Problem("disconnected", 4)]
    linked = [*apart, [MISSING, 0, MISSING, 1, MISSING]]
    assert problems(linked) == []


def test_a_highest_score_links_nothing():
    rows = [
        [0, 1, MISSING, MISSING],
        [1, 0, MISSING, MISSING],
        [MISSING, MISSING, 0, 1],
        [MISSING, MISSING, 1, 0],
        [1, 1, 1, 1],
    ]
    assert {problem.kind for problem in problems(rows)} == {"disconnected"}


def test_used_categories_are_numbered_without_gaps():
    table, _ = ResponseTable.of_people(np.array([[0, 1], [3, MISSING], [1, 2]]))
    renumbered, used = table.without_unused_categories()
    assert [list(categories) for categories in used] == [[0, 1, 3], [1, 2]]
    assert sorted(map(list, renumbered.categories)) == [[0, 0], [1, 1], [2, MISSING]]
