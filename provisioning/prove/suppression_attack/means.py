"""Find the groups whose mean follows from all scores that are shown.

A score is a mean, so scores times numbers of people add up and subtract. Scores are
rounded to whole points, which this ignores: it takes them as exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import product

import numpy as np

from provisioning.prove.suppression_attack.bounds import in_span
from provisioning.prove.suppression_attack.knowledge import (
    Indicator,
    Outcome,
    World,
)
from provisioning.prove.suppression_attack.outputs import EVERYONE, Mean
from provisioning.prove.suppression_attack.states import CHOICES, MEASURED, Person

# As `GROUNDSWELL_FEWEST_ANSWERS`.
FEWEST_ANSWERS = 2


def has_measure(person: Person) -> bool:
    answered = [person.answers.get(item) in CHOICES[item] for item in MEASURED]
    return sum(answered) >= FEWEST_ANSWERS


def attack_means(world: World, means: Collection[Mean]) -> Outcome:
    """Count the groups below the minimum whose mean follows from the shown ones.

    Of two waves, what follows from the groups that both show is no leak, as in
    `stories.seen_again`.
    """
    outcome = Outcome()
    measured = np.zeros(len(world.patterns))
    for number, pattern in world.pattern_of.items():
        measured[pattern] += has_measure(world.state.people[number])
    has_people = measured > 0
    known = dict(_added_up(world, means, measured, outcome))
    first = {(mean.schools, mean.group) for mean in known if mean.source == 0}
    seen_again = [
        people[has_people]
        for mean, people in known.items()
        if mean.source == 0
        or mean.group == EVERYONE
        or (mean.schools, mean.group) in first
    ]
    shown = [people[has_people] for people in known.values()]
    wanted, words = [], []
    for protected in world.protected_sets():
        size = protected.indicator @ measured
        if 0 < size < world.state.minimum:
            wanted.append(protected.indicator[has_people])
            words.append(protected.words)
    if not wanted:
        return outcome
    outcome.attacked = len(wanted)
    is_known = in_span(shown, np.array(wanted))
    if world.is_of_waves:
        is_known &= ~in_span(seen_again, np.array(wanted))
    outcome.recovered = int(is_known.sum())
    outcome.leaks = [
        f"mean of {words[number]}" for number in np.flatnonzero(is_known).tolist()
    ]
    return outcome


def _added_up(
    world: World, means: Collection[Mean], measured: Indicator, outcome: Outcome
) -> Iterator[tuple[Mean, Indicator]]:
    """Yield each mean with the people whose mean it is.

    Of larger places, by the schools whose numbers of people are those that are shown;
    of several such sets, the largest.
    """
    by_place: defaultdict[tuple[int, frozenset[int], str], list[Mean]]
    by_place = defaultdict(list)
    for mean in means:
        by_place[mean.source, mean.schools, mean.group[0]].append(mean)
    for (source, schools, _attribute), of_place in by_place.items():
        # A school shows figures of an earlier output, or none.
        choices = range(-1, source + 1)
        best: tuple[int, Sequence[Indicator]] | None = None
        for chosen in product(choices, repeat=len(schools)):
            sums = [
                sum(
                    (
                        world.indicator(of, frozenset([school]), mean.group)
                        for school, of in zip(sorted(schools), chosen, strict=True)
                        if of >= 0
                    ),
                    np.zeros(len(world.patterns)),
                )
                for mean in of_place
            ]
            used = sum(of >= 0 for of in chosen) * (source + 2) + sum(chosen)
            if all(
                mean.people is None or people @ measured == mean.people
                for mean, people in zip(of_place, sums, strict=True)
            ) and (best is None or used > best[0]):
                best = used, sums
        if best is None:
            outcome.unexplained += len(of_place)
            continue
        yield from zip(of_place, best[1], strict=True)
