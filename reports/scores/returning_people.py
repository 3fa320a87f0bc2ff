"""Find people who answered the previous round, and the correlation of their measures.

The errors of two rounds have a part in common where the same people answered both: the
variance of a change is a² + b² - 2 κ a b for the errors a and b of both means. With the
correlation r of people's measures within schools, and m of n and n' people in both, κ
is r m / √(n n').

A reader can calculate κ from an error, so it must tell nothing of the people. r is that
of all schools that show the measure in both rounds, of at least `FEWEST` people, and
rounded down. How many of a school's people were in both is known in quarters, rounded
down, and not below the minimum group; who has no measure is taken from it as if all of
these had been in both. So errors are too large rather than too small.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone
from numpy.typing import NDArray

from accounts.permissions import Places
from reports.answers.answer_mask import AnswerMask
from reports.answers.item_codes import read_answers
from reports.answers.people import Ints, People
from reports.answers.rules import apply_rules
from reports.answers.selection import Selection
from reports.answers.snapshot import snapshot
from reports.answers.versions import versions_of
from reports.models import Calibration
from reports.rasch import measure_people
from reports.rasch.responses import Floats
from reports.releases.frozen_people import counts_erased_people, released_people
from reports.releases.rollup import keeps_earlier_answers
from reports.scores.joining import categories_of, enough_answers, table_of
from reports.scores.visible import earlier_waves
from survey.models import Administration, Denominator, Identity

# Fewer people tell too little of how far their measures go together; more than `SAMPLE`
# of them are not read.
FEWEST, SAMPLE = 100, 5_000
# Shares are rounded down to quarters, up to three of them, and correlations to 0.05.
QUARTERS, MOST_QUARTERS = 4, 3
PARTS = 20


@dataclass(frozen=True)
class ReturningPeople:
    """Hold the people who were at the same school in the previous round."""

    before: Administration
    # School -> people in the round before, now, and in both as far as readers may know.
    people: Mapping[int, tuple[int, int, float]]
    # Of a sample of them: the rows in this round's people, the school, and the measures
    # of the round before.
    rows: Ints
    schools: Ints
    measures: Mapping[str, Floats]

    def in_both(self, school: int, before: float, now: float) -> float:
        """Return how many people have a measure in both rounds, at least.

        `before` and `now` are how many have it.
        """
        everyone, everyone_now, both = self.people.get(school, (0, 0, 0.0))
        # A release may be newer than the scores, and count fewer people than these.
        without = max(everyone - before, 0) + max(everyone_now - now, 0)
        return max(both - without, 0.0)


def returning_people(
    administration: Administration, people: People
) -> ReturningPeople | None:
    """Find people of a release who are in the release of the previous round, too.

    None if people have no IDs, or were promised that nobody joins their answers; and
    while answers differ from those that the release counts.
    """
    *_others, before = [None, *earlier_waves(administration)]
    if before is None or not all(map(_may_join, (before, administration))):
        return None
    earlier = released_people(before)
    if earlier is None or keeps_earlier_answers(before):
        return None
    minimum = max(before.minimum_group, administration.minimum_group)
    first, second = _same_people(before, earlier, administration, people)
    schools = people.schools
    at_same_school = earlier.schools[first] == schools[second]
    first, second = first[at_same_school], second[at_same_school]
    of_school = {
        school: (count, now, known_share(both, count, now, minimum))
        for school, (count, now, both) in _counts(
            earlier.schools, schools, schools[second]
        ).items()
    }
    step = max(-(-len(first) // SAMPLE), 1)
    first, second = first[::step], second[::step]
    if len(first) < FEWEST:
        return None
    chosen = np.zeros(len(earlier), dtype=np.bool_)
    chosen[first] = True
    measures = _measures(before, earlier.chosen(chosen))
    order = np.searchsorted(np.flatnonzero(chosen), first)
    return ReturningPeople(
        before,
        of_school,
        second,
        schools[second],
        {name: measured[order] for name, measured in measures.items()},
    )


def known_share(both: int, before: int, now: int, minimum: int) -> float:
    """Return how many of a school's people are in both rounds, rounded down."""
    size = math.sqrt(before * now)
    if both < minimum or not size:
        return 0.0
    quarters = min(int(QUARTERS * both / size), MOST_QUARTERS)
    return quarters / QUARTERS * size


def correlation_of(before: Floats, now: Floats) -> float:
    """Return how far people's distances from their schools' means go together.

    One standard error less than it is, and rounded down; 0 of few people, of whom some
    may lack a measure.
    """
    known = np.isfinite(before) & np.isfinite(now)
    count = int(known.sum())
    before, now = before[known], now[known]
    squares = float((before**2).sum() * (now**2).sum())
    if count < FEWEST or squares <= 0:
        return 0.0
    estimate = float((before * now).sum()) / math.sqrt(squares)
    least = estimate - (1 - estimate**2) / math.sqrt(count)
    return max(math.floor(PARTS * least) / PARTS, 0.0)


def _may_join(administration: Administration) -> bool:
    return (
        administration.joins_waves
        and administration.denominator != Denominator.COUNT
        and not counts_erased_people(administration)
    )


def _same_people(
    before: Administration, earlier: People, now: Administration, people: People
) -> tuple[Ints, Ints]:
    """Return the positions of the people of both rounds. 2 statements.

    From the primary: the database role for reports cannot read identities. IDs that
    were joined by hand are not: these people count as others.
    """
    (ids, persons), (ids_now, persons_now) = map(_persons, (before, now))
    _both, first, second = np.intersect1d(persons, persons_now, return_indices=True)
    rows, is_counted = _rows(earlier.ids, ids[first])
    rows_now, is_counted_now = _rows(people.ids, ids_now[second])
    chosen = is_counted & is_counted_now
    order = np.argsort(rows_now[chosen])
    return rows[chosen][order], rows_now[chosen][order]


def _persons(administration: Administration) -> tuple[Ints, Ints]:
    """Return the respondents of an administration, and a hash of each one's ID."""
    rows = Identity.objects.using(DEFAULT_DB_ALIAS).filter(
        administration=administration
    )
    ids, persons = array("q"), array("q")
    for key, district, external_id in rows.values_list(
        "respondent", "district", "external_id"
    ).iterator():
        ids.append(key)
        persons.append(hash((district, external_id)))
    return np.array(ids, dtype=np.int64), np.array(persons, dtype=np.int64)


def _rows(ids: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return where each wanted person is, and whether they are there."""
    if not len(ids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    rows = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return rows, ids[rows] == wanted


def _counts(before: Ints, now: Ints, both: Ints) -> dict[int, tuple[int, int, int]]:
    """Count each school's people before, now, and in both rounds.

    Each argument has the school of each person.
    """
    schools = np.unique(np.concatenate([before, now]))
    size = len(schools)
    columns = [
        np.bincount(np.searchsorted(schools, each), minlength=size).tolist()
        for each in (before, now, both)
    ]
    return dict(zip(schools.tolist(), zip(*columns, strict=True), strict=True))


def _measures(administration: Administration, people: People) -> dict[str, Floats]:
    """Return the measures of some people of an earlier round, with its thresholds."""
    [version] = versions_of([administration]).values()
    calibrations = [
        calibration
        for calibration in Calibration.objects.filter(administration=administration)
        if calibration.items
    ]
    wanted = {item["name"] for each in calibrations for item in each.items}
    mask = AnswerMask(version, timezone.get_default_timezone())
    with snapshot(Selection([administration], Places(state=True))) as database:
        answers = read_answers(
            database.alias,
            administration,
            version,
            people,
            needed=wanted | set(mask.inputs.values()),
            everyone=False,
        )
    answers = apply_rules(version, mask, answers, people)
    measures = {}
    for calibration in calibrations:
        items = calibration.items
        table, row = table_of(
            [categories_of(item, answers[item["name"]]) for item in items]
        )
        thresholds = [np.array(item["thresholds"]) for item in items]
        measured = measure_people(table, thresholds).wle
        measures[calibration.measure] = np.where(
            enough_answers(table), measured, np.nan
        )[row]
    return measures
