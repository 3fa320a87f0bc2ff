"""Join the options that hardly anybody chose, and put people into response tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from reports.answers.item_codes import VALUE, ItemCodes
from reports.rasch import MISSING, ResponseTable
from reports.rasch.categories import joined_categories
from reports.rasch.responses import Integers
from reports.scores.problems import Kind, Problem


class Anchor(NamedTuple):
    """An item of the benchmark.

    Its category of each option, the thresholds between them, and the covariances of
    its place with those of all items, by name; empty in older calibrations.
    """

    categories: tuple[int, ...]
    thresholds: tuple[float, ...]
    covariances: Mapping[str, float]


def join_options(
    table: ResponseTable,
    names: Sequence[str],
    options: Mapping[str, Sequence[str]],
    anchors: Mapping[str, Anchor],
    fixed: Collection[str],
) -> tuple[dict[str, tuple[int, ...]], ResponseTable]:
    """Return the category of each option of each item, and the table of these.

    Those of the benchmark's items are the benchmark's, so that both can be compared;
    but in a released item, each needs people of its own.
    """
    joined, categories = {}, table.categories.copy()
    for item, name in enumerate(names):
        counts = table.category_counts(item, len(options[name]))
        anchor = anchors.get(name)
        is_compared = anchor and (
            name in fixed or np.bincount(anchor.categories, weights=counts).all()
        )
        joined[name] = (
            anchor.categories
            if anchor and is_compared
            else joined_categories(counts.tolist())
        )
        answered = table.answered[:, item]
        lookup = np.array(joined[name], dtype=categories.dtype)
        categories[answered, item] = lookup[table.categories[answered, item]]
    return joined, ResponseTable(categories, table.people)


def joined_problems(
    options: Mapping[str, Sequence[str]],
    joined: Mapping[str, Sequence[int]],
    usable: Sequence[str],
) -> list[Problem]:
    """Name the items with joined options, and which these are."""
    item_problems = []
    for name in usable:
        of_category: dict[int, list[str]] = {}
        for value, category in zip(options[name], joined[name], strict=True):
            of_category.setdefault(category, []).append(value)
        several = [values for values in of_category.values() if len(values) > 1]
        if several:
            words = "; ".join(", ".join(values) for values in several)
            item_problems.append(Problem(Kind.JOINED, item=name, value=words))
    return item_problems


def table_of(columns: Sequence[Integers]) -> tuple[ResponseTable, Integers]:
    """Return the table of people's categories, and the row of each person.

    Much faster than `ResponseTable.of_people` for millions of people.
    """
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    size = 1
    for column in columns:
        base = int(column.max(initial=MISSING)) - MISSING + 1
        # Numbers that would not fit are replaced by their places.
        if size * base >= 2**62:
            _, combined = np.unique(combined, return_inverse=True)
            size = int(combined.max(initial=0)) + 1
        combined = combined * base + (column - MISSING)
        size *= base
    _, firsts, row, people = np.unique(
        combined, return_index=True, return_inverse=True, return_counts=True
    )
    categories = np.column_stack([column[firsts] for column in columns])
    return ResponseTable(categories, people), row


def categories_of(item: Mapping[str, Any], answers: ItemCodes) -> Integers:
    """Return each person's category, numbered as the thresholds, or MISSING.

    `item` is as in `reports.scores.calibration.ItemResult`.
    """
    number = dict(zip(item["options"], item["option_categories"], strict=True))
    lookup = np.full(VALUE + len(answers.values), MISSING, dtype=np.int8)
    for place, value in enumerate(answers.values):
        lookup[VALUE + place] = number.get(value, MISSING)
    return np.asarray(lookup[answers.codes])


def enough_answers(table: ResponseTable, fewest: int = 1) -> NDArray[np.bool_]:
    """Test which people have the answers that a measure needs, and `fewest` or more."""
    fewest = max(fewest, settings.FEWEST_ANSWERS_OF_A_MEASURE)
    return np.asarray(table.answered.sum(axis=1) >= fewest)
