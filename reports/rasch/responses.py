"""Tables of answers in which people with the same answers share a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = -1

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ResponseTable:
    """Different answers of people to the items, and how many people gave them.

    `categories` has a row for each combination of answers and a column for each
    item; `people` has the number of people for each row.
    """

    categories: Integers
    people: Integers

    @classmethod
    def of_people(cls, categories: Integers) -> tuple[ResponseTable, Integers]:
        """Return the table, and for each person the number of their row."""
        rows, row_of_person, people = np.unique(
            categories.astype(np.int8), axis=0, return_inverse=True, return_counts=True
        )
        return cls(rows, people), row_of_person.reshape(-1)

    @property
    def items(self) -> int:
        return int(self.categories.shape[1])

    @cached_property
    def answered(self) -> NDArray[np.bool_]:
        return np.asarray(self.categories != MISSING)

    @cached_property
    def scores(self) -> Integers:
        return np.asarray(np.where(self.answered, self.categories, 0).sum(axis=1))

    @cached_property
    def patterns(self) -> NDArray[np.bool_]:
        """The different sets of answered items, a row each."""
        return self._patterns[0]

    @cached_property
    def pattern_of_row(self) -> Integers:
        return self._patterns[1]

    @cached_property
    def _patterns(self) -> tuple[NDArray[np.bool_], Integers]:
        patterns, pattern_of_row = np.unique(self.answered, axis=0, return_inverse=True)
        return patterns, pattern_of_row.reshape(-1)

    def rows(self, chosen: NDArray[np.bool_]) -> ResponseTable:
        return ResponseTable(self.categories[chosen], self.people[chosen])

    def select(self, items: list[int]) -> ResponseTable:
        """Return the table of these items only."""
        rows, row = np.unique(self.categories[:, items], axis=0, return_inverse=True)
        people = np.bincount(row.reshape(-1), weights=self.people, minlength=len(rows))
        return ResponseTable(rows, people.astype(np.int64))

    def without_unused_categories(self) -> tuple[ResponseTable, list[Integers]]:
        """Number the used categories of each item from 0, without gaps.

        Return the used categories too, by their old numbers.
        """
        renumbered = self.categories.copy()
        used: list[Integers] = []
        for item in range(self.items):
            categories = np.flatnonzero(self.category_counts(item))
            chosen = self.answered[:, item]
            renumbered[chosen, item] = np.searchsorted(
                categories, self.categories[chosen, item]
            )
            used.append(categories)
        return ResponseTable(renumbered, self.people), used

    def category_counts(self, item: int, categories: int = 0) -> Integers:
        """Return how many people chose each category of an item, and of so many."""
        chosen = self.answered[:, item]
        return np.bincount(
            self.categories[chosen, item].astype(np.intp),
            weights=self.people[chosen],
            minlength=categories,
        ).astype(np.int64)
