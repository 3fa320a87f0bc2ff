"""Put together what is known before it is decided which scores of groups are shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.models import GroupResults, ResultsRollUp, ScoreRow
from reports.models.scores import FORMAT
from reports.rasch.responses import Floats, Integers
from reports.releases.levels import LEVELS
from reports.scores.groups import Grouping, Patterns, ScoredMeasure
from reports.scores.visible import decided
from reports.suppression.scores import MeasuredPeople, ScoreTables
from reports.suppression.tables import Mask
from survey.models import Administration


@dataclass(frozen=True)
class MeasuredGroups:
    """The people who have one measure, by group."""

    # By pattern, as `Patterns.measured`.
    people: Integers
    # How many differ from the most frequent measure: [school, column].
    differing: Integers

    @classmethod
    def of(
        cls, measures: Floats, groupings: Sequence[Grouping], patterns: Patterns
    ) -> MeasuredGroups:
        return cls(
            patterns.measured(measures),
            np.concatenate([each.differing(measures) for each in groupings], axis=1),
        )


def score_tables(
    administration: Administration,
    groupings: Sequence[Grouping],
    patterns: Patterns,
    measures: Sequence[ScoredMeasure],
    of_measures: Sequence[MeasuredGroups],
    counted: Mask,
    districts: Mapping[int, int],
) -> ScoreTables:
    """Return the tables. 3 statements.

    `counted` are the schools whose report shows a measure: [measure, school].
    """
    schools = groupings[0].schools
    keys, of_school = np.unique(
        [districts[key] for key in schools.tolist()], return_inverse=True
    )
    release = _Release(administration, groupings, measures)
    released = release.masks(
        {
            LEVELS.SCHOOL.value: schools.tolist(),
            LEVELS.DISTRICT.value: keys.tolist(),
            LEVELS.STATE.value: [0],
        }
    )
    summed, summed_in_state = release.summed(schools, districts)
    return ScoreTables(
        MeasuredPeople(
            patterns.attributes,
            patterns.starts,
            patterns.members,
            np.stack([each.people for each in of_measures], axis=1),
        ),
        np.stack([each.differing for each in of_measures], axis=2),
        released[LEVELS.SCHOOL.value],
        release.unseen(schools),
        counted.T,
        of_school,
        released[LEVELS.DISTRICT.value],
        released[LEVELS.STATE.value],
        summed,
        summed_in_state,
        administration.minimum_group,
    )


class _Release:
    """What is decided about the results of an administration."""

    def __init__(
        self,
        administration: Administration,
        groupings: Sequence[Grouping],
        measures: Sequence[ScoredMeasure],
    ) -> None:
        self.administration, self.measures = administration, measures
        groups = [
            (each.attribute, value) for each in groupings for value in each.values
        ]
        self.column = {group: number for number, group in enumerate(groups)}
        self.attributes = [each.attribute for each in groupings[1:]]
        self.measures_of: defaultdict[str, list[int]] = defaultdict(list)
        for number, measure in enumerate(measures):
            for item in measure.items:
                self.measures_of[item].append(number)

    def masks(self, places: Mapping[str, Sequence[int]]) -> dict[str, Mask]:
        """Return what is shown at each level: [place, column, measure]."""
        shape = len(self.column), len(self.measures)
        masks = {
            level: np.zeros((len(keys), *shape), dtype=bool)
            for level, keys in places.items()
        }
        place_of = {
            (level, key): number
            for level, keys in places.items()
            for number, key in enumerate(keys)
        }
        rows = decided(GroupResults.objects.filter(administration=self.administration))
        for level, key, attribute, value, hidden in rows.values_list(
            *("level", "place_id", "attribute", "value", "hidden_items")
        ).iterator():
            place, column = (
                place_of.get((level, key)),
                self.column.get((attribute, value)),
            )
            if place is None or column is None:
                continue
            shown = masks[level][place, column]
            shown[:] = True
            # Larger places hide an item where a school does: here, only those schools
            # are left out that hide the measure.
            for item in hidden if level == LEVELS.SCHOOL.value else ():
                shown[self.measures_of.get(item, [])] = False
        return masks

    def summed(
        self, schools: Integers, districts: Mapping[int, int]
    ) -> tuple[Mask, Mask]:
        """Return the schools in sums of undivided districts, and of the state.

        [school, attribute]
        """
        position = {key: number for number, key in enumerate(schools.tolist())}
        summed = np.zeros((len(schools), len(self.attributes)), dtype=bool)
        in_state = np.zeros_like(summed)
        stored = ResultsRollUp.objects.filter(pk=self.administration.pk).values_list(
            "undivided", "summed"
        )
        undivided, sums = next(iter(stored), (None, None))
        is_undivided = {tuple(cell) for cell in undivided or ()}
        for level, key, attribute, keys in sums or ():
            # Below an undivided state, districts show no groups.
            of_state = (LEVELS.STATE.value, 0, attribute) in is_undivided
            is_state = level == LEVELS.STATE.value
            if (level, key, attribute) not in is_undivided or of_state != is_state:
                continue
            if attribute not in self.attributes:
                continue
            number = self.attributes.index(attribute)
            mask = in_state if is_state else summed
            for school in keys:
                if school in position and (is_state or districts[school] == key):
                    mask[position[school], number] = True
        return summed, in_state

    def unseen(self, schools: Integers) -> Mask:
        """Return the cells of schools that earlier scores have hidden."""
        position = {key: number for number, key in enumerate(schools.tolist())}
        unseen = np.ones(
            (len(schools), len(self.column), len(self.measures)), dtype=bool
        )
        names = {
            measure.definition["name"]: number
            for number, measure in enumerate(self.measures)
        }
        rows = ScoreRow.objects.filter(
            administration=self.administration,
            administration__scoring__format=FORMAT,
            level=LEVELS.SCHOOL,
        ).exclude(attribute="")
        for key, attribute, value, stored in rows.values_list(
            "place_id", "attribute", "value", "measures"
        ).iterator():
            column = self.column.get((attribute, value))
            if key in position and column is not None:
                seen = [names[name] for name in stored if name in names]
                unseen[position[key], column, seen] = False
        return unseen
