"""Coarsen the cells about respondents until enough people share them.

In a file without names, the cells that could be looked up elsewhere (place,
grade, language, subgroups and dates) are the same for at least as many people
as the administration's minimum group. A group that is too small gives up its
most exact cells, in the order of STEPS from the last one to the first, and is
counted again together with the other people who had to give them up. If these
are still too few, the smallest group that shares the remaining cells joins
them.

The answers themselves stay as they are: whoever knows some of a person's
answers can find the row, and match the rows of two exports.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, tzinfo
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from django.utils.translation import gettext

from reports.exports.local_days import LocalDays
from reports.exports.selection import NEVER_COUNTED
from reports.exports.snapshot import About, GroupCount
from survey.models import Administration

# From the coarsest to the most exact.
STEPS = ("district", "school", "grade", "language", "subgroups", "week", "day")
# The only cells about people in a file with a row for each answer.
LONG_STEPS = STEPS[-2:]
COARSENED = "*"

# What somebody's cells would show for each step. It is shorter where the exact
# cells are not the same in all rows of that person.
GroupPath = tuple[str, ...]


class MinimumGroups:
    """The groups of one administration in one file.

    Keeps a number for each group, so at most one for every `minimum` people.
    """

    def __init__(self, minimum: int, steps: Sequence[str] = STEPS) -> None:
        self.minimum = minimum
        self.steps = steps
        # Steps that are shown -> number of people.
        self.people: Counter[int] = Counter()
        # The district of each school.
        self.districts: dict[int, int] = {}
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
        for step, inside in groupby(counts, key=lambda one: one[0][depth : depth + 1]):
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
            found = self._shown.get(hash(path[:depth]), depth - 1)
            if found == depth:
                break
            depth = found
        return depth

    def summary(self) -> Iterator[tuple[Sequence[str], int]]:
        """Return the steps that are left out, and for how many people."""
        for depth, people in sorted(self.people.items(), reverse=True):
            if people and depth < len(self.steps):
                yield self.steps[depth:], people


def divide_respondents(
    administration: Administration, counts: Iterable[GroupCount]
) -> MinimumGroups:
    """Divide the people of a wide file.

    `counts` are sorted by district, cohort and school: one school at a time is
    kept in memory.
    """
    groups = MinimumGroups(administration.minimum_group)

    def paths() -> Iterator[tuple[GroupPath, int]]:
        for (district, cohort, school), rows in groupby(
            counts, key=itemgetter(0, 1, 2)
        ):
            groups.districts[school] = district
            people: Counter[GroupPath] = Counter()
            for _, _, _, grade, language, attributes, days, version, count in rows:
                about = (grade, language, attributes, cohort)
                path = respondent_path(
                    administration, district, school, about, days, version
                )
                people[path] += count
            yield from sorted(people.items())

    groups.divide(paths())
    return groups


def respondent_path(
    administration: Administration,
    district: int,
    school: int,
    about: About,
    days: Sequence[str],
    version: int,
) -> GroupPath:
    """Return the path of a respondent in a wide file.

    `days` are when the respondent started, finished and was withdrawn. `version`
    follows from the moment of the start, so it is shown and left out with the week.
    """
    grade, language, attributes, cohort = about
    # Files made before and after can be matched by the answers. So people whose
    # cells changed together are a group without the others, and people whose
    # cells are new have none.
    if cohort == NEVER_COUNTED:
        return ()
    subgroups = [attributes.get(name) for name in administration.subgroups]
    return (
        f"{district} {cohort}",
        str(school),
        grade,
        language,
        json.dumps(subgroups),
        " ".join([*map(week_of, days), str(version)]),
        " ".join(days),
    )


class SavedDays:
    """Counts people by the days of their first and last answer, for long files."""

    def __init__(self, zone: tzinfo) -> None:
        self._days = LocalDays(zone)
        self._people: dict[int, Counter[GroupPath]] = defaultdict(Counter)

    def add(self, line: bytes) -> None:
        # "{1700000000,…}", or blank without answers.
        saved = line[:-1].rpartition(b"\t")[2][1:-1]
        if saved:
            times = [int(seconds) for seconds in saved.split(b",")]
            first, last = self._days.at(min(times)), self._days.at(max(times))
            administration = int(line.split(b"\t", 1)[0])
            self._people[administration][saved_path(first, last)] += 1

    def divide(self, administration: Administration) -> MinimumGroups:
        groups = MinimumGroups(administration.minimum_group, LONG_STEPS)
        groups.divide(sorted(self._people[administration.pk].items()))
        return groups


@lru_cache(maxsize=1000)
def week_of(day: str) -> str:
    """Return the ISO week of an ISO date, such as "2027-W09"."""
    if not day:
        return ""
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year}-W{week:02}"


def saved_path(first: str, last: str) -> GroupPath:
    """Return the path in a long file, from the days of the first and last save."""
    week = week_of(first)
    if first == last:
        return week, first
    return (week,) if week == week_of(last) else ()


def is_too_few(administration: Administration, people: int) -> bool:
    return 0 < people < administration.minimum_group


def too_few_people(administration: Administration) -> str:
    return gettext(
        "This export would have fewer than %(minimum_group)s people"
        " of %(title)s. Even without names, their answers could be"
        " traced to them. Choose more schools, or wait until more"
        " people have answered."
    ) % {"minimum_group": administration.minimum_group, "title": administration.title}
