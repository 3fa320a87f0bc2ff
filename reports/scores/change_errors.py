"""Calculate and store the standard errors by school of changes of larger places.

They are made of what is stored of two rounds: the people and means of the schools that
are in the means of a place, and show these themselves. What a place has of a round is
used only if its schools add up to its people, as they do unless the round was released
again. With the latest round before, errors have a part in common where the same people
answered both (`returning_people`); it is stored of schools as well. In earlier rounds
people count as others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.answers.people import Ints
from reports.models import GroupResults, ScoreRow
from reports.rasch.responses import Floats
from reports.releases.levels import LEVELS, STATE, Place
from reports.releases.summed_schools import summed_schools
from reports.scores.clusters import (
    Clusters,
    ErrorParts,
    difference_variance,
    with_essentials,
)
from reports.scores.comparisons import random_effects
from reports.scores.returning_people import ReturningPeople, correlation_of
from reports.scores.scale import FEWEST_SCHOOLS, POINTS, SMALLEST_SCHOOL, Scale
from reports.scores.shrinkage import Shrinkage
from reports.scores.visible import (
    MeasureScale,
    decided,
    earlier_waves,
    measures_in,
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
    scales: Mapping[str, Scale]

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
        of_measures = {name: each.scale for name, each in scales.items()}
        return cls(districts, schools, people, of_measures)

    def sums(self, name: str, schools: Sequence[int]) -> tuple[Floats, Floats]:
        """Return the people and their points: [school, 1], 0 without people."""
        of_measure = self.schools.get(name, {})
        figures = np.array([of_measure.get(key, (0, 0.0)) for key in schools], float)
        people, means = figures.reshape(-1, 2, 1).swapaxes(0, 1)
        return people, people * means

    def distances(self, name: str, schools: Ints, logits: Floats) -> Floats:
        """Return how far people are from their schools' means, in points.

        NaN of people without a measure, and of schools that do not show it.
        """
        keys, school = np.unique(schools, return_inverse=True)
        of_measure = self.schools.get(name, {})
        unknown = (0, math.nan)
        means = np.array([of_measure.get(key, unknown)[1] for key in keys.tolist()])
        scale = self.scales[name]
        points = scale.points_beyond(0.0) + POINTS * logits / scale.deviation
        return np.asarray(points - means[school])


@dataclass(frozen=True)
class SharedErrors:
    """How far the errors of two rounds go together at each place, as correlations."""

    # Place -> measure or essential.
    of_places: Mapping[Place, Mapping[str, float]]

    @classmethod
    def of(
        cls,
        returning: ReturningPeople,
        measured: Mapping[str, Floats],
        before: RoundMeans,
        now: RoundMeans,
        content: Measures,
    ) -> SharedErrors:
        """Calculate them; `measured` are the measures of the sample in this round.

        Of the schools and larger places that show a measure in both rounds.
        """
        correlations = _correlations(returning, measured, before, now, content)
        in_both: defaultdict[str, defaultdict[Place, float]]
        in_both = defaultdict(lambda: defaultdict(float))
        of_places: defaultdict[Place, dict[str, float]] = defaultdict(dict)
        for name in measured:
            earlier, later = before.schools.get(name, {}), now.schools.get(name, {})
            people = [dict(each.people.get(name, {})) for each in (before, now)]
            for school in earlier.keys() & later.keys():
                place = (LEVELS.SCHOOL.value, school)
                counts = earlier[school][0], later[school][0]
                for of_round, count in zip(people, counts, strict=True):
                    of_round[place] = count
                both = returning.in_both(school, *counts)
                in_both[name][place] = both
                in_both[name][STATE] += both
                if before.districts[school] == now.districts[school]:
                    district = (LEVELS.DISTRICT.value, now.districts[school])
                    in_both[name][district] += both
            for place, both in in_both[name].items():
                sizes = [of_round.get(place, 0) for of_round in people]
                if all(sizes):
                    of_places[place][name] = min(both / math.sqrt(math.prod(sizes)), 1)
        for essential in content["essentials"]:
            parts = [each["name"] for each in measures_in(content, essential["name"])]
            for shares in of_places.values():
                if parts and shares.keys() >= set(parts):
                    shares[essential["name"]] = min(shares[part] for part in parts)
        return cls(
            {
                place: {
                    name: share * correlations.get(name, 0.0)
                    for name, share in shares.items()
                }
                for place, shares in of_places.items()
            }
        )

    def at(self, places: Sequence[Place], name: str) -> Floats:
        """Return those of one measure: [place, 1]."""
        known = [self.of_places.get(place, {}).get(name, 0.0) for place in places]
        return np.array(known, float)[:, None]

    def items(self) -> Iterator[tuple[Place, str, float]]:
        for place, by_name in self.of_places.items():
            for name, shared in by_name.items():
                if rounded := round(shared, 3):
                    yield place, name, rounded


INDEPENDENT = SharedErrors({})


def _correlations(
    returning: ReturningPeople,
    measured: Mapping[str, Floats],
    before: RoundMeans,
    now: RoundMeans,
    content: Measures,
) -> dict[str, float]:
    """Return how far people's distances from their schools go together."""
    distances = {
        name: tuple(
            each.distances(name, returning.schools, logits)
            for each, logits in (
                (before, returning.measures[name]),
                (now, measured[name]),
            )
        )
        for name in measured.keys() & returning.measures.keys()
    }
    for essential in content["essentials"]:
        parts = [
            (each["name"], 1 if each["direction"] == "positive" else -1)
            for each in measures_in(content, essential["name"])
        ]
        if parts and all(name in distances for name, _sign in parts):
            distances[essential["name"]] = tuple(
                np.sum([sign * distances[name][round_] for name, sign in parts], axis=0)
                for round_ in (0, 1)
            )
    return {name: correlation_of(*pair) for name, pair in distances.items()}


def store_change_errors(
    administration: Administration,
    returning: ReturningPeople | None = None,
    measured: Mapping[str, Floats] | None = None,
) -> None:
    """Add the errors of changes since all earlier rounds on the same scale.

    To be called when the scores have been stored. `measured` are the measures of the
    returning people, by name. 10 statements, and 5 for each earlier round.
    """
    waves = earlier_waves(administration)
    if not waves:
        return
    scales = scales_of([*waves, administration])
    mine = scales[administration.pk]
    now = RoundMeans.of(administration, mine)
    content = measures_in_survey(administration)
    errors: dict[tuple[Place, str], dict[str, float]] = defaultdict(dict)
    in_common: dict[tuple[Place, str], dict[str, float]] = defaultdict(dict)
    for wave in waves:
        theirs = scales[wave.pk]
        pairs = {
            name: (theirs[name].shrinkage, mine[name].shrinkage)
            for name in mine.keys() & theirs.keys()
            if theirs[name].benchmark == mine[name].benchmark
        }
        before = RoundMeans.of(wave, theirs)
        shared = INDEPENDENT
        if returning and measured and returning.before == wave:
            comparable = {n: each for n, each in measured.items() if n in pairs}
            shared = SharedErrors.of(returning, comparable, before, now, content)
        for place, name, error in errors_of_changes(
            before, now, pairs, content, shared
        ):
            errors[place, name][str(wave.pk)] = round(error, 3)
        for place, name, correlation in shared.items():
            in_common[place, name][str(wave.pk)] = correlation
    _store(administration, errors, in_common)


def _store(
    administration: Administration,
    errors: Mapping[tuple[Place, str], dict[str, float]],
    in_common: Mapping[tuple[Place, str], dict[str, float]],
) -> None:
    names: defaultdict[Place, set[str]] = defaultdict(set)
    for place, name in errors.keys() | in_common.keys():
        names[place].add(name)
    rows = []
    for row in ScoreRow.objects.filter(administration=administration, attribute=""):
        place = (row.level, row.place_id)
        if place not in names:
            continue
        row.school_errors = row.school_errors or {}
        for name in names[place]:
            error, *_others = row.school_errors.get(name, [None])
            row.school_errors[name] = [error, errors.get((place, name), {})]
            if shared := in_common.get((place, name)):
                row.school_errors[name].append(shared)
        rows.append(row)
    ScoreRow.objects.bulk_update(rows, ["school_errors"], batch_size=100)


def errors_of_changes(
    before: RoundMeans,
    now: RoundMeans,
    pairs: Mapping[str, tuple[Shrinkage | None, Shrinkage | None]],
    content: Measures,
    shared: SharedErrors,
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
            parts = _parts(
                *(clusters, before, now, name, schools, shrinkages),
                *(shared, shared.at(places, name)),
            )
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
    shared: SharedErrors,
    in_common: Floats,
) -> ErrorParts | None:
    """Return the parts of changes of a measure; None without what schools differ by.

    `in_common` is `shared` of the places.
    """
    first, second = shrinkages
    if first is None or second is None:
        return None
    sums = before.sums(name, schools), now.sums(name, schools)
    of_schools = shared.at([(LEVELS.SCHOOL.value, key) for key in schools], name)
    of_changes = true_changes(*sums, first.within, second.within, of_schools)
    # Of a school that was in one round only: its true means differ by as much at least.
    between = max(first.between, second.between, (of_changes or 0.0) / math.sqrt(2))
    return clusters.change_parts(
        clusters.parts(*sums[0], 1.0, first.within),
        clusters.parts(*sums[1], 1.0, second.within),
        between,
        of_changes,
        in_common,
    )


def true_changes(
    before: tuple[Floats, Floats],
    now: tuple[Floats, Floats],
    within_before: float,
    within_now: float,
    shared: Floats,
) -> float | None:
    """Return the standard deviation of the true changes of schools, in points.

    `shared` is how far the errors of both rounds go together: [school, 1]. None if too
    few were in both rounds to tell.
    """
    large = (before[0] >= SMALLEST_SCHOOL) & (now[0] >= SMALLEST_SCHOOL)
    if large.sum() < FEWEST_SCHOOLS or not within_before or not within_now:
        return None
    (people, points), (people_now, points_now) = (
        (each[0][large], each[1][large]) for each in (before, now)
    )
    changes = points_now / people_now - points / people
    errors = within_before / np.sqrt(people), within_now / np.sqrt(people_now)
    variances = difference_variance(*errors, shared[large])
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
