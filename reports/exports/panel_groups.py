"""Keep minimum groups in a file where waves are joined.

Each wave for itself may be safe although the combination is not: many people are in
school A in spring and many in school B in fall, but few have moved from A to B. So a
person's path (see `minimum_group`) has the cells of all waves together. Its first step
says in which administrations the person is: whoever cannot show even that gets a new
ID in each row, and the rows are not joined.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from reports.exports.minimum_group import (
    DATE_STEPS,
    STEPS,
    GroupPath,
    MinimumGroups,
)
from reports.exports.release_mask import COARSENED
from reports.exports.released_rows import ReleasedRows

PANEL_STEPS = ("joined waves", *STEPS)
# Different paths that are kept in memory: about 20 MB.
MOST_PATHS = 50_000


class PathCounts:
    """Counts people by their paths; sorts on the disk if these become too many."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._counts: Counter[str] = Counter()
        self._runs: list[Path] = []

    def add(self, path: str) -> None:
        self._counts[path] += 1
        if len(self._counts) > MOST_PATHS:
            self._move_to_disk()

    def _move_to_disk(self) -> None:
        run = self._folder / f"{len(self._runs)}.paths"
        with run.open("w") as file:
            file.writelines(f"{path}\t{count}\n" for path, count in self._sorted())
        self._runs.append(run)
        self._counts.clear()

    def _sorted(self) -> list[tuple[str, int]]:
        return sorted(self._counts.items())

    def __iter__(self) -> Iterator[tuple[GroupPath, int]]:
        """Return each path once. Paths that begin alike follow each other."""
        with ExitStack() as stack:
            files = [stack.enter_context(run.open()) for run in self._runs]
            merged = heapq.merge(self._sorted(), *(map(_parse, file) for file in files))
            for path, counts in groupby(merged, key=itemgetter(0)):
                yield tuple(json.loads(path)), sum(count for _, count in counts)


def _parse(line: str) -> tuple[str, int]:
    path, _, count = line.partition("\t")
    return path, int(count)


class PanelGroups(MinimumGroups):
    """The groups of a whole file. `people` counts persons, and not rows."""

    def __init__(self, minimum: int) -> None:
        super().__init__(minimum, PANEL_STEPS)

    def divide_people(self, counts: Iterable[tuple[GroupPath, int]]) -> None:
        """Make the groups; `counts` is read up to three times."""
        self.divide(counts)
        self._hide_lone_rows(counts)

    def _hide_lone_rows(self, counts: Iterable[tuple[GroupPath, int]]) -> None:
        """Let small groups join the rows without a link of each administration.

        Otherwise the only person who came after the first wave would be the only row
        of the second one that is not joined.
        """
        lone: Counter[str] = Counter()
        for path, count in counts:
            if not self.shown(path):
                lone.update(dict.fromkeys(path[0].split(), count))
        lacking = {key for key, count in lone.items() if count < self.minimum}
        if not lacking:
            return
        # The smallest group with rows in each of them.
        smallest: dict[str, tuple[int, GroupPath]] = {}
        for sized_group in self._sizes(counts):
            for administration in lacking.intersection(sized_group[1][0].split()):
                smallest[administration] = min(
                    sized_group, smallest.get(administration, sized_group)
                )
        # Each group has at least the minimum of rows in each of its administrations,
        # so none is needed twice.
        for administration in sorted(lacking & smallest.keys()):
            if lone[administration] >= self.minimum:
                continue
            size, group = smallest[administration]
            self._shown[hash(group)] = 0
            self.people[len(group)] -= size
            self.people[0] += size
            lone.update(dict.fromkeys(group[0].split(), size))

    def _sizes(
        self, counts: Iterable[tuple[GroupPath, int]]
    ) -> Iterator[tuple[int, GroupPath]]:
        """Return each group and its size. Memory does not grow with their number."""
        # A path begins with its group, and paths that begin alike follow each other.
        sizes: dict[GroupPath, int] = {}
        for path, count in counts:
            for group in [prefix for prefix in sizes if path[: len(prefix)] != prefix]:
                yield sizes.pop(group), group
            if depth := self.shown(path):
                sizes[path[:depth]] = sizes.get(path[:depth], 0) + count
        for group, size in sizes.items():
            yield size, group


class PanelPaths:
    """Makes the path of a person from lines of a file (see `released_rows`)."""

    def __init__(
        self, releases: Mapping[int, ReleasedRows], places: Mapping[str, Sequence[str]]
    ) -> None:
        self._releases = releases
        # Place -> code and name of its district, code and name of the school.
        self._places = places

    def path_of(self, lines: Sequence[bytes]) -> GroupPath:
        """Return the path of the person with these lines, each after its ID."""
        rows = sorted(
            (int(fields[1]), fields)
            for fields in (line.split(b"\t", 8) for line in lines)
        )
        pattern = " ".join(str(key) for key, _ in rows)
        steps = zip(
            *(self._path_of_row(key, fields) for key, fields in rows), strict=True
        )
        return pattern, *map(json.dumps, steps)

    def _path_of_row(self, key: int, fields: Sequence[bytes]) -> Sequence[object]:
        """Return what the release shows of each of STEPS."""
        release = self._releases[key]
        place, started, completed = map(bytes.decode, fields[3:6])
        grade, (_, finished_in), subgroups, language, group = json.loads(fields[7])
        path = release.date_path(started, completed, finished_in)
        dates = release.dates_shown(group, started, completed, finished_in)
        shown = [*path[:dates], *[COARSENED] * (len(DATE_STEPS) - dates)]
        district = self._places[place][:2]
        return district, place, grade, [language, shown[0]], subgroups, *shown[1:]
