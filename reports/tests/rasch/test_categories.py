from __future__ import annotations

import pytest

from reports.rasch.categories import joined_categories


@pytest.mark.parametrize(
    ("people", "categories"),
    [
        ([10, 10, 10, 10], (0, 1, 2, 3)),
        # The rarest is joined with the rarer of its neighbours.
        ([50, 3, 20, 90], (0, 1, 1, 2)),
        ([1, 200, 300, 0], (0, 0, 1, 1)),
        ([0, 4, 5, 300], (0, 0, 0, 1)),
        # Nobody chose the one in the middle.
        ([40, 0, 50, 60], (0, 0, 1, 2)),
        # Two stay, however few people.
        ([1, 2, 1], (0, 0, 1)),
        ([1, 0], (0, 1)),
        ([], ()),
    ],
)
def test_rare_answers_are_joined(people, categories):
    assert joined_categories(people) == categories
