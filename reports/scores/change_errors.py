"""Calculate and store the standard errors by school of changes of larger places.

They are made of what is stored of two rounds: the people and means of the schools that
are in the means of a place, and show these themselves. Who was in both rounds is not
known, so people count as others. What a place has of a round is used only if its
schools add up to its people, as they do unless the round was released again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.models import GroupResults, ScoreRow
from reports.rasch.responses import Floats
from reports.releases.levels import LEVELS, STATE, Place
from reports.releases.summed_schools import summed_schools
from reports.scores.clusters import Clusters, ErrorParts, with_essentials
from reports.scores.comparisons import random_effects
from reports.scores.scale import FEWEST_SCHOOLS, SMALLEST_SCHOOL
from reports.scores.shrinkage import Shrinkage
from reports.scores.visible import (
    MeasureScale,
    decided,
    earlier_waves,
    measures_in_survey,
    scales_of,
)
from reports.suppression.tables import Mask
from survey.instrument.definitions.schema import Measures
from survey.models import Administration


@dataclass(frozen=True, slots=True)
class RoundMeans:
    """The means of an administration of which those of larger places are made."""

    # District by school.
    districts: Mapping[int, int]
    # Measure -> school -> people, and the mean in points.
    schools: Mapping[str, Mapping[int, tuple[int, float]]]
    # Measure -> larger place -> people.
    people: Mapping[str, Mapping[Place, int]]

    @classmethod
    def of(
        cls, administration: Administration, scales: Mapping[str, MeasureScale]
    ) -> RoundMeans:
        """Read the measures with a scale. 4 statements."""
        items = {
            measure["name"]: {item["name"] for item in measure["items"]}
            for measure in measures_in_survey(administration)["measures"]
        }
        places = GroupResults.objects.filter(
            administration=administration, level=LEVELS.SCHOOL, attribute=""
        )
        hidden = dict(decided(places).values_list("place_id", "hidden_items"))
        districts = summed_schools(administration)
        schools: defaultdict[str, dict[int, tuple[int, float]]] = defaultdict(dict)
        people: defaultdict[str, dict[Place, int]] = defaultdict(dict)
        rows = ScoreRow.objects.filter(administration=administration, attribute="")
        for level, key, measures in rows.values_list("level", "place_id", "measures"):
            for name, (count, mean, _error, _score) in measures.items():
                if name not in scales or mean is None:
                    continue
                if level != LEVELS.SCHOOL:
                    people[name][level, key] = count
                elif (
                    key in districts
                    and key in hidden
                    and items[name].isdisjoint(hidden[key])
                    and count >= administration.minimum_group
                ):
                    points = scales[name].scale.points_beyond(mean)
                    schools[name][key] = count, points
        return cls(districts, schools, people)

    def sums(self, name: str, schools: Sequence[int]) -> tuple[Floats, Floats]:
        """Return the people and their points: [school, 1], 0 without people."""
        of_measure = self.schools.get(name, {})
        figures = np.array([of_measure.get(key, (0, 0.0)) for key in schools], float)
        people, means = figures.reshape(-1, 2, 1).swapaxes(0, 1)
        return people, people * means


def store_change_errors(administration: Administration) -> None:
    """Add the errors of changes since all earlier rounds on the same scale.

    To be called when the scores have been stored. 10 statements, and 5 for each
    earlier round.
    """
    waves = earlier_waves(administration)
    if not waves:
        return
    scales = scales_of([*waves, administration])
    mine = scales[administration.pk]
    now = RoundMeans.of(administration, mine)
    content = measures_in_survey(administration)
    by_place: defaultdict[Place, defaultdict[str, dict[str, float]]]
    by_place = defaultdict(lambda: defaultdict(dict))
    for wave in waves:
        theirs = scales[wave.pk]
        pairs = {
            name: (theirs[name].shrinkage, mine[name].shrinkage)
            for name in mine.keys() & theirs.keys()
            if theirs[name].benchmark == mine[name].benchmark
        }
        before = RoundMeans.of(wave, theirs)
        for place, name, error in errors_of_changes(before, now, pairs, content):
            by_place[place][name][str(wave.pk)] = round(error, 3)
    larger = ScoreRow.objects.filter(administration=administration, attribute="")
    rows = [
        row
        for row in larger.exclude(level=LEVELS.SCHOOL)
        if (row.level, row.place_id) in by_place
    ]
    for row in rows:
        row.school_errors = row.school_errors or {}
        for name, by_round in by_place[row.level, row.place_id].items():
            error, *_others = row.school_errors.get(name, [None])
            row.school_errors[name] = [error, by_round]
    ScoreRow.objects.bulk_update(rows, ["school_errors"], batch_size=100)


def errors_of_changes(
    before: RoundMeans,
    now: RoundMeans,
    pairs: Mapping[str, tuple[Shrinkage | None, Shrinkage | None]],
    content: Measures,
) -> Iterator[tuple[Place, str, float]]:
    """Yield place, measure or essential, and the standard error in points.

    `pairs` are how schools differ in both rounds, of the measures on one scale.
    """
    districts = {**before.districts, **now.districts}
    schools = sorted(
        {
            key
            for name in pairs
            for each in (before, now)
            for key in each.schools.get(name, ())
        }
    )
    keys, district = np.unique([districts[key] for key in schools], return_inverse=True)
    levels = [
        (np.zeros(len(schools), int), [STATE]),
        (district, [(LEVELS.DISTRICT.value, int(key)) for key in keys]),
    ]
    for place_of_school, places in levels:
        clusters = Clusters(place_of_school, len(places))
        by_measure = {}
        for name, shrinkages in pairs.items():
            parts = _parts(clusters, before, now, name, schools, shrinkages)
            if parts is not None:
                known = _adds_up(clusters, before, name, schools, places)
                known &= _adds_up(clusters, now, name, schools, places)
                by_measure[name] = parts.where(known)
        for name, parts in with_essentials(by_measure, content).items():
            errors = clusters.errors(parts)[:, 0].tolist()
            for place, error in zip(places, errors, strict=True):
                if math.isfinite(error):
                    yield place, name, error


def _parts(
    clusters: Clusters,
    before: RoundMeans,
    now: RoundMeans,
    name: str,
    schools: Sequence[int],
    shrinkages: tuple[Shrinkage | None, Shrinkage | None],
) -> ErrorParts | None:
    """Return the parts of changes of a measure; None without what schools differ by."""
    first, second = shrinkages
    if first is None or second is None:
        return None
    sums = before.sums(name, schools), now.sums(name, schools)
    of_changes = true_changes(*sums, first.within, second.within)
    # Of a school that was in one round only: its true means differ by as much at least.
    between = max(first.between, second.between, (of_changes or 0.0) / math.sqrt(2))
    return clusters.change_parts(
        clusters.parts(*sums[0], 1.0, first.within),
        clusters.parts(*sums[1], 1.0, second.within),
        between,
        of_changes,
    )


def true_changes(
    before: tuple[Floats, Floats],
    now: tuple[Floats, Floats],
    within_before: float,
    within_now: float,
) -> float | None:
    """Return the standard deviation of the true changes of schools, in points.

    None if too few were in both rounds to tell.
    """
    large = (before[0] >= SMALLEST_SCHOOL) & (now[0] >= SMALLEST_SCHOOL)
    if large.sum() < FEWEST_SCHOOLS or not within_before or not within_now:
        return None
    (people, points), (people_now, points_now) = (
        (each[0][large], each[1][large]) for each in (before, now)
    )
    changes = points_now / people_now - points / people
    variances = within_before**2 / people + within_now**2 / people_now
    return math.sqrt(random_effects(changes, variances).between)


def _adds_up(
    clusters: Clusters,
    means: RoundMeans,
    name: str,
    schools: Sequence[int],
    places: Collection[Place],
) -> Mask:
    """Return the places of which the people are those of their schools: [place, 1]."""
    people, _points = means.sums(name, schools)
    stored = np.array([means.people.get(name, {}).get(place, 0) for place in places])
    return clusters.add_up(people) == stored[:, None]
