"""Coarsen the cells about respondents until enough people share them.

What the rows of a release show of place, grade, language and subgroups is decided by
`release_mask`. Within that, the dates, and in a panel all cells of all waves together,
are the same for at least as many people as the administration's minimum group. A
group that is too small gives up its most exact cells, in the order of its steps from
the last one to the first, and is counted again together with the other people who
had to give them up. If these are still too few, the smallest group that shares the
remaining cells joins them.

The answers themselves stay as they are: whoever knows some of a person's
answers can find the row, and match the rows of two exports.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from survey.models import Administration

# From the coarsest to the most exact.
STEPS = ("district", "school", "grade", "language", "subgroups", "week", "day")
# Decided among people whose other cells are the same; in a file with a row for each
# answer, of the days of saving.
DATE_STEPS = ("response language", "week", "day")
SAVED_STEPS = ("week", "day")
# The code of a step that a path does not have.
MISSING = -1

# What somebody's cells would show for each step. It is shorter where the exact
# cells are not the same in all rows of that person. Texts, or numbers for them.
GroupPath = tuple[Any, ...]


class MinimumGroups:
    """The groups of people who show as much of their paths.

    Keeps a number for each group, so at most one for every `minimum` people.
    """

    def __init__(self, minimum: int, steps: Sequence[str]) -> None:
        self.minimum = minimum
        self.steps = steps
        # Steps that are shown -> number of people.
        self.people: Counter[int] = Counter()
        # Hash of a group's path -> how many of its steps are shown.
        self._shown: dict[int, int] = {}

    def divide(self, counts: Iterable[tuple[GroupPath, int]]) -> None:
        """Make the groups. Paths that begin alike must follow each other.

        If there are fewer people than the minimum, they show no step at all.
        """
        self._divide((), counts)

    def _divide(
        self, shared: GroupPath, counts: Iterable[tuple[GroupPath, int]]
    ) -> tuple[int, tuple[int, GroupPath] | None]:
        """Return the number of people without a group, and a small group."""
        depth = len(shared)
        rest, groups = 0, []
        for step, inside in groupby(
            counts, key=lambda pair: pair[0][depth : depth + 1]
        ):
            if step:
                left, group = self._divide(shared + step, inside)
            else:
                left, group = sum(count for _, count in inside), None
            rest += left
            if group:
                groups.append(group)
        groups.sort(reverse=True)
        if 0 < rest < self.minimum and groups:
            size, path = groups.pop()
            self._shown[hash(path)] = depth
            self.people[len(path)] -= size
            rest += size
        if rest >= self.minimum:
            self._shown[hash(shared)] = depth
            self.people[depth] += rest
            groups.append((rest, shared))
            rest = 0
        return rest, min(groups, default=None)

    def shown(self, path: GroupPath) -> int:
        """Return how many steps of this person's path are shown."""
        depth = len(path)
        while depth:
            known_depth = self._shown.get(hash(path[:depth]), depth - 1)
            if known_depth == depth:
                break
            depth = known_depth
        return depth

    def summary(self) -> Iterator[tuple[Sequence[str], int]]:
        """Return the steps that are left out, and for how many people."""
        for depth, people in sorted(self.people.items(), reverse=True):
            if people and depth < len(self.steps):
                yield self.steps[depth:], people


class DateGroups(MinimumGroups):
    """The response language, week and day of the people of a release.

    People of a class show the same cells but for these. Every class is divided for
    itself: within it, at least the minimum of people share what is shown. Keeps a few
    numbers for each person.
    """

    def __init__(self, minimum: int, steps: Sequence[str]) -> None:
        super().__init__(minimum, ("class", *steps))
        self._columns = [array("i") for _ in self.steps]
        self._is_in = array("b")
        self._codes: dict[str, int] = {}

    def add(self, group: int, path: GroupPath, *, is_in: bool) -> None:
        """Add a person of a class, whose row is in the file or not."""
        codes = [
            group,
            *(self._codes.setdefault(step, len(self._codes)) for step in path),
        ]
        codes += [MISSING] * (len(self.steps) - len(codes))
        for column, code in zip(self._columns, codes, strict=True):
            column.append(code)
        self._is_in.append(is_in)

    def divide_classes(self) -> None:
        """Make the groups of all people who were added."""
        rows = np.array(self._columns, dtype=np.int32)
        # Of groups of one size, the same one joins another in every file.
        names = sorted(self._codes)
        rank = np.empty(len(names) + 1, dtype=np.int32)
        rank[[self._codes[name] for name in names] + [MISSING]] = [
            *range(len(names)),
            MISSING,
        ]
        rows[1:] = rank[rows[1:]]
        self._codes = {name: code for code, name in enumerate(names)}
        if rows.size:
            self._divide_classes(rows, np.array(self._is_in, dtype=np.int64))
        self._columns, self._is_in = [], array("b")

    def _divide_classes(
        self, rows: NDArray[np.int32], is_in: NDArray[np.int64]
    ) -> None:
        # Paths that begin alike follow each other, the shorter ones first.
        order = np.lexsort(rows[::-1])
        rows, is_in = rows[:, order], is_in[order]
        is_new = np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0))
        starts = np.flatnonzero(is_new)
        paths = [
            tuple(code for code in codes if code != MISSING)
            for codes in rows[:, starts].T.tolist()
        ]
        counts = np.diff(np.append(starts, len(is_in))).tolist()
        for group, inside in groupby(
            zip(paths, counts, strict=True), key=lambda pair: pair[0][:1]
        ):
            self._divide(group, inside)
        self.people.clear()
        in_file = np.add.reduceat(is_in, starts).tolist()
        for path, people in zip(paths, in_file, strict=True):
            self.people[max(self.shown(path), 1)] += people

    def steps_shown(self, group: int, path: GroupPath) -> int:
        """Return how many steps of the path of somebody in a class are shown."""
        codes = (group, *(self._codes[step] for step in path))
        return max(self.shown(codes) - 1, 0)


@lru_cache(maxsize=1000)
def week_of(day: str) -> str:
    """Return the ISO week of an ISO date, such as "2027-W09"."""
    if not day:
        return ""
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year}-W{week:02}"


def start_path(language: str, days: Sequence[str], version: int) -> tuple[str, ...]:
    """Return the path in a wide file, from the days of the start and the finish.

    `version` follows from the moment of the start, so it is shown and left out with
    the week.
    """
    weeks = " ".join([*map(week_of, days), str(version)])
    return language, weeks, " ".join(days)


def saved_path(first: str, last: str) -> tuple[str, ...]:
    """Return the path in a long file, from the days of the first and last save."""
    week = week_of(first)
    if first == last:
        return week, first
    return (week,) if week == week_of(last) else ()


def too_few_people(administration: Administration) -> str:
    return gettext(
        "This export would have fewer than %(minimum_group)s people"
        " of %(title)s. Even without names, their answers could be"
        " traced to them. Choose more schools."
    ) % {"minimum_group": administration.minimum_group, "title": administration.title}
