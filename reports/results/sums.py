"""Add up the answers of schools with a report, for their district and the state.

Such a sum tells nothing more than its parts. It is published, and readers who may not
see all schools of a place compare theirs with it. With other schools in it, the
answers of a school without a report could be calculated: all minus those with one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from django.core.cache import cache
from django.db.models import F

from reports.models import GroupResults
from reports.releases.counting import Counts, unpacked
from reports.releases.layout import Layout
from reports.releases.levels import LEVELS, STATE, Place
from reports.releases.summed_schools import summed_schools
from reports.results.distributions import items_of
from reports.results.visible import VisibleGroup, code_ends
from reports.suppression.tables import Integers, Mask
from survey.models import Administration

# Seconds. Sums of other figures have other keys.
KEPT = 5 * 60


@dataclass(frozen=True)
class SchoolSum:
    """The figures of schools together. Of an item, those of schools that show it.

    `people` and `schools` have a number for each item, and one for the whole place.
    """

    people: Integers
    schools: Integers
    # In the columns of the layout.
    counts: Integers
    finished: int
    # School -> whether it shows each item, and True.
    shown: Mapping[int, Mask]

    def group(
        self, administration: Administration, allowed: Mask | bool = True
    ) -> VisibleGroup:
        """Return what pages show; of the items those that are allowed."""
        roll_up = administration.results_roll_up
        people = int(self.people[-1])
        figures = np.concatenate([self.counts, self.people[:-1]])
        items = items_of(Layout.from_json(roll_up.layout), people, figures)
        is_shown = allowed & (self.schools > 0)
        hidden = [
            name for name, shown in zip(items, is_shown, strict=False) if not shown
        ]
        for name in hidden:
            del items[name]
        # The sum of all schools: theirs are coded on their own pages.
        hidden += code_ends(items, roll_up.coding_threshold)
        return VisibleGroup(
            roll_up.as_of,
            people,
            self.finished,
            items,
            hidden,
            is_sum_of_reports=True,
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "people": self.people.tolist(),
            "schools": self.schools.tolist(),
            "counts": self.counts.tolist(),
            "finished": self.finished,
            "hidden": [
                (school, np.flatnonzero(~shown).tolist())
                for school, shown in self.shown.items()
            ],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SchoolSum:
        people = np.array(stored["people"])
        shown = {school: np.ones(len(people), bool) for school, _ in stored["hidden"]}
        for school, hidden in stored["hidden"]:
            shown[school][hidden] = False
        schools, counts = np.array(stored["schools"]), np.array(stored["counts"])
        return cls(people, schools, counts, stored["finished"], shown)


@dataclass(frozen=True)
class SchoolAnswers:
    """The answers of everyone in schools. Those that are hidden are left out."""

    schools: Sequence[int]
    people: Integers
    finished: Integers
    # [school, column of the layout]
    counts: Counts
    # [school, item], and a last column of True for the whole school.
    shown: Mask
    # The item of each column.
    items: Sequence[int]

    @classmethod
    def of(
        cls, administration: Administration, schools: Collection[int]
    ) -> SchoolAnswers:
        """Read these schools. 1 statement, for all schools."""
        roll_up = administration.results_roll_up
        layout = Layout.from_json(roll_up.layout)
        rows = GroupResults.objects.filter(
            administration=administration,
            level=LEVELS.SCHOOL,
            attribute="",
            is_hidden=False,
            administration__results_roll_up__as_of=roll_up.as_of,
            administration__results_roll_up__hidden_as_of=F(
                "administration__results_roll_up__as_of"
            ),
        ).values_list("place_id", "people", "finished", "counts", "hidden_items")
        shown_rows = [row for row in rows if row[0] in schools]
        position = {item.name: number for number, item in enumerate(layout.items)}
        counts = np.zeros((len(shown_rows), len(layout.columns)), np.int32)
        shown = np.ones((len(shown_rows), len(position) + 1), bool)
        for number, (*_others, stored, hidden) in enumerate(shown_rows):
            of_school = unpacked(stored)
            counts[number, : len(of_school)] = of_school
            # An item of which an option is hidden is left out as a whole.
            for name in hidden:
                shown[number, position[name.partition(" ")[0]]] = False
        return cls(
            [row[0] for row in shown_rows],
            np.array([row[1] for row in shown_rows], np.int64),
            np.array([row[2] for row in shown_rows], np.int64),
            counts,
            shown,
            [position[column.item] for column in layout.columns],
        )

    def total(self, schools: Iterable[int]) -> SchoolSum:
        rows = [self._row_of[school] for school in schools if school in self._row_of]
        shown = self.shown[rows]
        return SchoolSum(
            self.people[rows] @ shown,
            shown.sum(axis=0),
            (self.counts[rows] * shown[:, self.items]).sum(axis=0),
            int(self.finished[rows].sum()),
            {self.schools[row]: self.shown[row] for row in rows},
        )

    @cached_property
    def _row_of(self) -> dict[int, int]:
        return {school: row for row, school in enumerate(self.schools)}


def sums_of_reports(
    administration: Administration, schools: Collection[int], districts: Collection[int]
) -> tuple[Mapping[int, int], Mapping[Place, SchoolSum]]:
    """Return the district of each school with a report, and the sums of these schools.

    The sums of the state, of `districts`, and of those around `schools`; districts
    without a report are left out. All are kept in the cache, each place for itself, so
    that a page reads a few of them. 2 statements if one of them is not there.
    """
    # With other answers, nothing that is kept is used; before a release, nor with
    # other response rates.
    times = [administration.results_roll_up.as_of]
    rates = getattr(administration, "roll_up", None)
    if rates and administration.results_roll_up.released_at is None:
        times.append(rates.as_of)
    version = ".".join(time.isoformat() for time in times)
    prefix = f"results.sums.{administration.pk}.{version}"
    if pairs := cache.get(f"{prefix}.districts"):
        around: Mapping[int, int] = dict(pairs)
        wanted = {around[school] for school in schools if school in around}
        wanted |= set(districts) & set(around.values())
        places = [STATE, *((LEVELS.DISTRICT.value, key) for key in wanted)]
        keys = {f"{prefix}.{level}.{key}": (level, key) for level, key in places}
        cached = cache.get_many(keys)
        if len(cached) == len(keys):
            return around, {
                keys[name]: SchoolSum.from_json(entry) for name, entry in cached.items()
            }
    around, sums = _add_up_reports(administration)
    # Without any, figures may be counted again meanwhile.
    if sums[STATE].people[-1]:
        entries: dict[str, object] = {
            f"{prefix}.{level}.{key}": school_sum.as_json()
            for (level, key), school_sum in sums.items()
        }
        # As pairs: the keys of a JSON object would be texts.
        entries[f"{prefix}.districts"] = list(around.items())
        cache.set_many(entries, KEPT)
    return around, sums


def _add_up_reports(
    administration: Administration,
) -> tuple[Mapping[int, int], Mapping[Place, SchoolSum]]:
    around = summed_schools(administration)
    answers = SchoolAnswers.of(administration, around)
    by_district: defaultdict[int, list[int]] = defaultdict(list)
    for school, district in around.items():
        by_district[district].append(school)
    sums = {
        (LEVELS.DISTRICT.value, district): answers.total(schools)
        for district, schools in by_district.items()
    }
    # Its schools are in their districts.
    sums[STATE] = replace(answers.total(around), shown={})
    return around, sums
