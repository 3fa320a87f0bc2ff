"""Calculate what is stored of the errors of larger places and of gaps in them.

They are made of the means of schools that show these themselves, and tell nothing of
the people of a school.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reports.rasch.responses import Floats
from reports.scores.clusters import Clusters, ErrorParts, with_essentials
from reports.scores.scale import POINTS
from reports.suppression.tables import Mask
from survey.instrument.definitions.schema import Measures

if TYPE_CHECKING:
    from reports.scores.groups import GroupSums, ScoredMeasure

# Measure or essential -> standard error of a mean in points; of groups also that of its
# gap from the other groups together, and the number of groups. Of everyone,
# `change_errors` adds by the key of the earlier administration the errors of changes,
# and how far the errors of both rounds go together; also of schools, with null first.
StoredErrors = dict[str, list[float | None]]


def errors_of_everyone(
    clusters: Clusters,
    sums: GroupSums,
    counted: Mask,
    measures: Sequence[ScoredMeasure],
    content: Measures,
) -> list[StoredErrors]:
    """Return the errors of everyone at each place.

    `counted` are the schools in the places' means: [measure, school].
    """
    by_measure = _parts(clusters, sums.measures, counted, measures)
    stored: list[StoredErrors] = [{} for _place in range(clusters.places)]
    for name, parts in with_essentials(by_measure, content).items():
        for place, error in enumerate(clusters.errors(parts)[:, 0].tolist()):
            if math.isfinite(error):
                stored[place][name] = [round(error, 3)]
    return stored


def errors_of_groups(
    clusters: Clusters,
    sums: GroupSums,
    counted: Mask,
    shown: Mask,
    shown_places: Mask,
    measures: Sequence[ScoredMeasure],
    content: Measures,
) -> dict[tuple[int, int], StoredErrors]:
    """Return the errors of an attribute's groups, by place and number of the value.

    `shown` are the groups that schools show, [measure, school, value], and
    `shown_places` the measures of places, [measure, place]. A place in which a counted
    school hides a group has no errors: they would tell of it. Each group is compared
    with all others whose value is known, as `gaps.gaps_between` does.
    """
    people = np.where(counted[:, :, None], sums.measures[:, 0], 0.0)
    known = np.array([bool(value) for value in sums.grouping.values])
    hides = np.any((people > 0) & ~shown, axis=2, keepdims=True)
    is_open = np.array([clusters.add_up(each) == 0 for each in hides])
    with_people = np.array([clusters.add_up(each) > 0 for each in people])
    with_people &= is_open & shown_places[:, :, None]
    numbers = [measure.definition["name"] for measure in measures]
    compared = with_people & known
    parts = {
        name: each.where(with_people[numbers.index(name)])
        for name, each in _parts(clusters, sums.measures, counted, measures).items()
    }
    rest = _rest(sums.measures, known)
    gaps = {
        name: parts[name].minus(each).where(compared[numbers.index(name)])
        for name, each in _parts(clusters, rest, counted, measures).items()
    }
    of_means, of_gaps = with_essentials(parts, content), with_essentials(gaps, content)
    stored: dict[tuple[int, int], StoredErrors] = {}
    for name, mean in of_means.items():
        mine = [
            number
            for number, measure in enumerate(measures)
            if name in (measure.definition["name"], measure.definition["essential"])
        ]
        groups = compared[mine[0]].sum(axis=1)
        # Its measures are of the same groups.
        is_same = (compared[mine] == compared[mine[0]]).all(axis=(0, 2))
        errors, of_gap = clusters.errors(mean), clusters.errors(of_gaps[name])
        for place, value in np.argwhere(np.isfinite(errors)).tolist():
            gap = float(of_gap[place, value])
            has_gap = math.isfinite(gap) and bool(is_same[place])
            stored.setdefault((place, value), {})[name] = [
                round(float(errors[place, value]), 3),
                round(gap, 3) if has_gap else None,
                int(groups[place]),
            ]
    return stored


def _parts(
    clusters: Clusters,
    sums: Floats,
    counted: Mask,
    measures: Sequence[ScoredMeasure],
) -> Mapping[str, ErrorParts]:
    """Return the parts of measures with a scale; `sums` are as `GroupSums.measures`."""
    by_measure = {}
    for measure, (people, logits, _squares), schools in zip(
        measures, sums, counted, strict=True
    ):
        scale, shrinkage = measure.scale, measure.shrinkage
        if scale is None or shrinkage is None:
            continue
        counts = np.where(schools[:, None], people, 0.0)
        points = np.where(schools[:, None], logits, 0.0) * (POINTS / scale.deviation)
        by_measure[measure.definition["name"]] = clusters.parts(
            counts, points, shrinkage.between, shrinkage.within
        )
    return by_measure


def _rest(sums: Floats, known: Mask) -> Floats:
    """Return the sums of all other groups whose value is known, for each group."""
    of_known = np.where(known, sums, 0.0)
    return of_known.sum(axis=-1, keepdims=True) - of_known
