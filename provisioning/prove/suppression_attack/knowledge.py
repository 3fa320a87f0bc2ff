"""Turn what a reader gets into linear equations, and bound small sets of people by it.

People who count alike in each output are one *pattern*: the same school and groups in
each release or export, or out of it. Unknown is how many people of a pattern chose each
option. A figure is a sum over patterns; an export, in which the rows of one person can
be matched by the answers, bounds such sums from below and above.

The truth is used for two things only: to find the schools that a figure of a larger
place adds up, which an attacker would guess, and to count what was found out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from provisioning.prove.suppression_attack.bounds import (
    TOLERANCE,
    Constraint,
    IntegerProgram,
    in_span,
    shortest_combination,
)
from provisioning.prove.suppression_attack.outputs import (
    CHOSEN,
    EVERYONE,
    PEOPLE,
    REST,
    STATES,
    TABLES,
    ExportFile,
    ExportRow,
    Group,
    Outputs,
    Table,
    categories_of,
)
from provisioning.prove.suppression_attack.states import (
    CHOICES,
    MULTIPLE,
    NOT_REACHED,
    NUMBERS,
    Person,
    State,
)

CANDIDATES = 3
Indicator = NDArray[np.float64]
# Items with a category each.
Answers = frozenset[tuple[str, str]]
# Rows of an export, each with the person whose it may be.
MatchedRows = list[tuple[int, ExportRow]]
# Number of a person -> school and groups; people who would count if they answered.
Source = Mapping[int, Person]
Pattern = tuple[tuple[int, frozenset[tuple[str, str]]] | None, ...]


@dataclass
class Outcome:
    attacked: int = 0
    recovered: int = 0
    narrowed: int = 0
    # Figures that no set of schools explains.
    unexplained: int = 0
    # What was recovered, and by which combination of figures.
    leaks: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.attacked += outcome.attacked
        self.recovered += outcome.recovered
        self.narrowed += outcome.narrowed
        self.unexplained += outcome.unexplained
        self.leaks += outcome.leaks


@dataclass(frozen=True)
class Protected:
    """People who are too few to be shown, and in which words."""

    words: str
    indicator: Indicator
    # Bound by integer programs as well, and not by equations alone.
    is_group: bool = True


class World:
    """The people of a state, and who of them counts in each output."""

    def __init__(
        self, state: State, sources: Sequence[Source], *, is_of_waves: bool = False
    ) -> None:
        """People who came or left between two waves are not attacked as such."""
        self.state, self.sources, self.is_of_waves = state, sources, is_of_waves
        self.patterns: list[Pattern] = []
        number_of: dict[Pattern, int] = {}
        self.pattern_of: dict[int, int] = {}
        for number in range(len(state.people)):
            pattern = tuple(
                (source[number].school, frozenset(source[number].groups.items()))
                if number in source
                else None
                for source in sources
            )
            if any(pattern):
                new = number_of.setdefault(pattern, len(number_of))
                self.pattern_of[number] = new
        self.patterns = list(number_of)
        self.sizes = np.bincount(
            list(self.pattern_of.values()), minlength=len(self.patterns)
        ).astype(float)
        self._indicators: dict[tuple[int, frozenset[int], Group], Indicator] = {}

    def indicator(
        self, source: int, schools: frozenset[int], group: Group
    ) -> Indicator:
        """Return which patterns count in a group of schools."""
        key = (source, schools, group)
        if key not in self._indicators:
            self._indicators[key] = np.array(
                [
                    place is not None
                    and place[0] in schools
                    and (group == EVERYONE or group in place[1])
                    for place in (pattern[source] for pattern in self.patterns)
                ],
                dtype=float,
            )
        return self._indicators[key]

    @cached_property
    def truth(self) -> dict[str, dict[str, Indicator]]:
        """Return how many people of each pattern are in each category of an item."""
        truth: dict[str, dict[str, Indicator]] = {}
        for number, pattern in self.pattern_of.items():
            person = self.state.people[number]
            if person.answered:
                for item, category in categories_in(person.answers):
                    counts = truth.setdefault(item, {})
                    if category not in counts:
                        counts[category] = np.zeros(len(self.patterns))
                    counts[category][pattern] += 1
        return truth

    def count(self, item: str, categories: Collection[str]) -> Indicator:
        # Without categories, or of all items: whoever has answered anything.
        if item == PEOPLE or not categories:
            item, categories = "safe", categories_of("safe")
        truth = self.truth.get(item, {})
        nobody = np.zeros(len(self.patterns))
        return sum((truth.get(name, nobody) for name in categories), nobody)

    def protected_sets(self) -> Iterator[Protected]:
        """Yield groups at each place, how two overlap, and who came, left or moved."""
        schools = [frozenset([n]) for n in range(len(self.state.districts))]
        districts = {
            frozenset(self.state.schools_of(number)) for number in self.state.districts
        }
        places = [*schools, *districts, frozenset(range(len(schools)))]
        groups = self.state.groups
        for source in range(len(self.sources)):
            for place in dict.fromkeys(places):
                inside = {
                    group: self.indicator(source, place, group) for group in groups
                }
                for group, people in inside.items():
                    words = " ".join((f"schools {sorted(place)}", *group))
                    yield Protected(words, people)
                for group, crossing in combinations(groups[1:], 2):
                    if group[0] != crossing[0]:
                        both = inside[group] * inside[crossing]
                        words = f"schools {sorted(place)} {group}"
                        yield Protected(f"{words} in {crossing}", both, False)
                        yield Protected(
                            f"{words} outside {crossing}", inside[group] - both, False
                        )
        if self.is_of_waves:
            return
        for first, second in combinations(range(len(self.sources)), 2):
            for place in dict.fromkeys(places):
                for group in groups:
                    before = self.indicator(first, place, group)
                    after = self.indicator(second, place, group)
                    words = " ".join((f"schools {sorted(place)}", *group))
                    for left, right in ((before, after), (after, before)):
                        gone = np.clip(left - right, 0, None)
                        yield Protected(f"{words} in one output", gone)


def categories_in(answers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the category of a person in each item that is attacked."""
    for table in TABLES:
        item, _, option = table.partition(" ")
        value = answers.get(item, NOT_REACHED)
        if not option:
            yield table, value
            continue
        yield table, CHOSEN if option in value.split(" ") else REST


@dataclass(frozen=True)
class ExportedRows:
    """People with rows in exports, and the patterns that these leave for each."""

    # [person, pattern]
    possible: NDArray[np.float64]
    # Item -> category, of the items that a row of the person shows.
    categories: Sequence[Mapping[str, str]]
    # How many people of each pattern have no row.
    without_row: Indicator

    def bounds(
        self, item: str, category: str, indicators: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how many of each set surely and perhaps are in a category."""
        outside = self.possible @ (1 - indicators.T)
        inside = self.possible @ indicators.T
        is_chosen = np.array([shown.get(item) == category for shown in self.categories])
        may_be = is_chosen | [item not in shown for shown in self.categories]
        least = is_chosen @ (outside == 0).astype(float)
        most = may_be @ (inside > 0).astype(float)
        return least, np.where(indicators @ self.without_row > 0, np.inf, most)


class Attack:
    """What a reader can calculate from all outputs together."""

    def __init__(
        self,
        world: World,
        outputs: Outputs,
        roster_schools: Collection[int],
        unavoidable: Attack | None = None,
    ) -> None:
        """`roster_schools` are the schools whose groups of people the reader knows.

        What is calculated from `unavoidable` outputs alone is no leak.
        """
        self.world, self.unavoidable = world, unavoidable
        self.outcome = Outcome()
        self.rows: defaultdict[str, list[Constraint]] = defaultdict(list)
        # The people of each shown figure, whatever the item.
        self.totals: list[Indicator] = []
        self.exported: ExportedRows | None = None
        self._programs: dict[str, IntegerProgram] = {}
        self._read_tables(outputs.tables)
        self._read_files(outputs.files)
        school_of = [
            next(place[0] for place in pattern if place) for pattern in world.patterns
        ]
        enrolled = np.bincount(school_of, weights=world.sizes)
        # The school, and the outputs in which people of a pattern count.
        self.parts = [
            (school, *(place is not None for place in pattern))
            for school, pattern in zip(school_of, world.patterns, strict=True)
        ]
        self.caps = np.array(
            [
                size if school in roster_schools else enrolled[school]
                for school, size in zip(school_of, world.sizes, strict=True)
            ]
        )
        # Everybody knows how many are enrolled.
        for school in set(school_of) - set(roster_schools):
            people = (np.array(school_of) == school).astype(float)
            self.rows[PEOPLE].append(
                Constraint(people, (), 0, enrolled[school], "enrolled")
            )

    # What is known ----------------------------------------------------------------

    def _read_tables(self, tables: Collection[Table]) -> None:
        by_place: defaultdict[tuple[int, frozenset[int], Group, bool], list[Table]]
        by_place = defaultdict(list)
        self.shown_by_school = {
            (next(iter(table.schools)), table.group, table.item)
            for table in tables
            if len(table.schools) == 1
        }
        for table in tables:
            key = (table.source, table.schools, table.group, table.item == PEOPLE)
            by_place[key].append(table)
        for of_place in by_place.values():
            for table, people in self._added_up(of_place):
                for names, low, high in table.rows:
                    categories = () if table.item == PEOPLE else tuple(names)
                    self.rows[table.item].append(
                        Constraint(people, categories, low, high, table.label)
                    )
                self.totals.append(people)

    def _added_up(self, tables: Sequence[Table]) -> Iterator[tuple[Table, Indicator]]:
        """Yield tables of a place with the people whose figures they are.

        All of the place, or of some schools; or a school shows figures of an earlier
        output, as its page says.
        """
        for some in (tables, *([table] for table in tables)):
            for earlier in (False, True):
                people = self._guess(some, earlier=earlier)
                if people is not None:
                    yield from ((table, people) for table in some)
                    if some is tables:
                        return
                    break
            else:
                self.outcome.unexplained += some is not tables

    def _guess(self, tables: Sequence[Table], *, earlier: bool) -> Indicator | None:
        """Return people whose true figures add up to these."""
        first, world = tables[0], self.world
        sources = range(first.source + 1) if earlier else [first.source]
        parts = [
            world.indicator(source, frozenset([school]), first.group)
            for school in sorted(first.schools)
            for source in sources
        ]
        rows = [(table.item, *row) for table in tables for row in table.rows]
        counts = np.array(
            [
                [part @ world.count(item, names) for part in parts]
                for item, names, *_ in rows
            ]
        )
        low = np.array([row[2] for row in rows]) - TOLERANCE
        high = np.array([row[3] for row in rows]) + TOLERANCE
        sums = counts.sum(axis=1)
        if not earlier and ((low <= sums) & (sums <= high)).all():
            return sum(parts, np.zeros(len(world.patterns)))
        # The figures of several sets of schools can happen to be these. A reader takes
        # the one with the most schools that show them, and the fewest others.
        shows = [
            sum(
                (school, first.group, table.item) in self.shown_by_school
                for table in tables
            )
            for school in sorted(first.schools)
            for _source in sources
        ]
        # A school counts once at most.
        once = np.repeat(np.eye(len(first.schools)), len(sources), axis=1)
        result = milp(
            np.where(shows, -len(parts) * np.array(shows), 1),
            constraints=[
                LinearConstraint(counts, low, high),
                LinearConstraint(once, 0, 1),
            ],
            bounds=Bounds(0, 1),
            integrality=np.ones(len(parts)),
        )
        if result.x is None:
            return None
        return sum(
            (
                part
                for part, chosen in zip(parts, result.x, strict=True)
                if chosen > 0.5
            ),
            np.zeros(len(world.patterns)),
        )

    def _read_files(self, files: Sequence[ExportFile]) -> None:
        """Match the rows of all files by their answers, and bound sums of patterns."""
        if not files:
            return
        world, source = self.world, files[0].source
        rows_of: defaultdict[int, list[Answers]] = defaultdict(list)
        matched = [(file, self._matched(file, rows_of)) for file in files]
        possible = self._possible_patterns(source, matched)
        shown: defaultdict[int, set[str]] = defaultdict(set)
        for _, rows in matched:
            for person, row in rows:
                shown[person].update(item for item, _ in row.answers)
        self.exported = ExportedRows(
            np.array(list(possible.values())),
            [
                {
                    item: category
                    for item, category in categories_in(
                        world.state.people[number].answers
                    )
                    if item.partition(" ")[0] in shown[number]
                }
                for number in possible
            ],
            self._without_row(source, possible),
        )
        sets = {left.tobytes(): left for left in possible.values()}
        for school in range(len(world.state.districts)):
            left = world.indicator(source, frozenset([school]), EVERYONE)
            sets[left.tobytes()] = left
        for file in files:
            left = world.indicator(source, file.schools, EVERYONE)
            sets[left.tobytes()] = left
        indicators = np.array([left for left in sets.values() if left.any()])
        for item in world.truth:
            for category in categories_of(item):
                ends = self.exported.bounds(item, category, indicators)
                for people, low, high in zip(indicators, *ends, strict=True):
                    schools = sorted(
                        {place[0] for place in self._of_source(source, people) if place}
                    )
                    words = f"export rows of schools {schools}, {int(people.sum())}"
                    words += f" of {len(people)} patterns: {item}"
                    self.rows[item].append(
                        Constraint(people, (category,), low, high, words)
                    )

    def _possible_patterns(
        self, source: int, matched: Sequence[tuple[ExportFile, MatchedRows]]
    ) -> dict[int, Indicator]:
        """Return the patterns that the rows of each person leave."""
        world = self.world
        everywhere = frozenset(range(len(world.state.districts)))
        possible: dict[int, Indicator] = {}
        for file, rows in matched:
            inside = world.indicator(source, file.schools, EVERYONE)
            for person, row in rows:
                left = possible.setdefault(person, np.ones(len(world.patterns)))
                left *= inside
                for attribute, value in row.about:
                    if attribute == "school_code":
                        of_school = frozenset([int(value.rpartition("s")[2])])
                        left *= world.indicator(source, of_school, EVERYONE)
                    else:
                        left *= world.indicator(source, everywhere, (attribute, value))
        for file, rows in matched:
            inside = world.indicator(source, file.schools, EVERYONE)
            everybody = {
                number
                for number, pattern in world.pattern_of.items()
                if inside[pattern] and world.state.people[number].answered
            }
            people = {person for person, _ in rows}
            if people == everybody:
                # Whoever is not in the file is not in its schools.
                for person in possible.keys() - people:
                    possible[person] *= 1 - inside
        return possible

    def _without_row(self, source: int, with_row: Collection[int]) -> Indicator:
        """Return how many people of each pattern have no row in any file."""
        world = self.world
        # People out of the files' reach have no row either.
        without_row = np.zeros(len(world.patterns))
        for number, pattern in world.pattern_of.items():
            if world.state.people[number].answered and number not in with_row:
                without_row[pattern] += 1
        # Nobody knows who of a school left the file together with somebody.
        incomplete = {
            place[0] for place in self._of_source(source, without_row) if place
        }
        for position, pattern_places in enumerate(world.patterns):
            place = pattern_places[source]
            if place is not None and place[0] in incomplete:
                without_row[position] = max(without_row[position], 1)
        return without_row

    def _of_source(self, source: int, people: Indicator) -> Iterator[Any]:
        for number in np.flatnonzero(people):
            yield self.world.patterns[number][source]

    def _matched(
        self, file: ExportFile, rows_of: defaultdict[int, list[Answers]]
    ) -> MatchedRows:
        """Return each row with a person who fits it.

        That is somebody whose row in an earlier file is most like it: a person's rows
        are made in the same way in every file.
        """
        inside = self.world.indicator(file.source, file.schools, EVERYONE)
        # By the items that a row shows: people by their answers to these.
        waiting: dict[
            frozenset[str], defaultdict[frozenset[tuple[str, str]], list[int]]
        ] = {}
        for items in {frozenset(item for item, _ in row.answers) for row in file.rows}:
            waiting[items] = defaultdict(list)
            for number, pattern in self.world.pattern_of.items():
                person = self.world.state.people[number]
                if inside[pattern] and person.answered:
                    answers = full_answers(person.answers)
                    shown = frozenset(
                        answer for answer in answers if answer[0] in items
                    )
                    waiting[items][shown].append(number)
        rows = []
        taken: set[int] = set()
        # The most exact first; files are shuffled.
        for row in sorted(
            file.rows,
            key=lambda row: (
                -len(row.about),
                -len(row.answers),
                sorted(row.about),
                sorted(row.answers),
            ),
        ):
            items = frozenset(item for item, _ in row.answers)
            candidates = sorted(
                waiting[items][row.answers],
                key=lambda number: min(
                    (len(row.answers ^ answers) for answers in rows_of[number]),
                    default=0,
                ),
            )
            for number in candidates:
                if number in taken:
                    continue
                person = self.world.sources[file.source][number]
                if all(
                    value.endswith(f"s{person.school}")
                    if name == "school_code"
                    else person.groups.get(name) == value
                    for name, value in row.about
                ):
                    taken.add(number)
                    rows_of[number].append(row.answers)
                    rows.append((number, row))
                    break
            else:
                self.outcome.unexplained += 1
        return rows

    # What follows -----------------------------------------------------------------

    def run(
        self,
        generator: np.random.Generator,
        *,
        thorough: bool = True,
        items: Collection[str] = (),
        explained: int = 0,
    ) -> Outcome:
        """Count options of protected people that are known, or nearly so.

        Only by equations unless `thorough`. Explains the first leaks in words.
        """
        world = self.world
        protected: dict[bytes, Protected] = {}
        for people in world.protected_sets():
            if people.indicator.any():
                protected.setdefault(people.indicator.tobytes(), people)
        sets = list(protected.values())
        indicators = np.array([people.indicator for people in sets])
        for item in items or world.truth:
            categories = categories_of(item)
            answered = indicators @ world.count(
                item, [name for name in categories if name not in STATES]
            )
            small = (answered > 0) & (answered < world.state.minimum)
            if not small.any():
                continue
            chosen = [sets[number] for number in np.flatnonzero(small).tolist()]
            self._attack_item(item, chosen, generator, thorough, explained)
        return self.outcome

    def _attack_item(
        self,
        item: str,
        sets: Sequence[Protected],
        generator: np.random.Generator,
        thorough: bool,
        explained: int,
    ) -> None:
        outcome = self.outcome
        indicators = np.array([people.indicator for people in sets])
        for option in categories_of(item):
            if option in STATES or option == REST:
                continue
            low, high = self._single_total(item, option, indicators)
            candidates = high - low + 1
            wanted = candidates > 1
            outcome.attacked += int(wanted.sum())
            known = wanted & self._known(item, option, indicators)
            if self.unavoidable:
                known &= ~self.unavoidable._known(item, option, indicators)
            outcome.recovered += int(known.sum())
            for number in np.flatnonzero(known).tolist():
                if len(outcome.leaks) < explained:
                    shown = [
                        (constraint.words, constraint.people)
                        for constraint in self._shown(item, option)
                    ]
                    words = shortest_combination(shown, indicators[number])
                    outcome.leaks.append(
                        f"{item}={option} of {sets[number].words}: {words}"
                    )
            if not thorough:
                continue
            is_open = wanted & ~known & np.array([people.is_group for people in sets])
            numbers = np.flatnonzero(is_open)
            enough = np.minimum(candidates, CANDIDATES)
            least, most, is_narrow = self._bounds(
                item, option, indicators[numbers], enough[numbers], generator
            )
            ends = dict(
                zip(numbers.tolist(), zip(least, most, strict=True), strict=True)
            )
            numbers = numbers[is_narrow]
            if self.unavoidable:
                *_, is_inevitable = self.unavoidable._bounds(
                    item, option, indicators[numbers], enough[numbers], generator
                )
                numbers = numbers[~is_inevitable]
            for number in numbers.tolist():
                low_end, high_end = ends[number]
                outcome.recovered += int(low_end == high_end)
                outcome.narrowed += int(candidates[number] >= CANDIDATES)
                if len(outcome.leaks) < explained:
                    words = self._program(item).reasons(option, indicators[number])
                    outcome.leaks.append(
                        f"{item}={option} of {sets[number].words}: {low_end:.0f} to"
                        f" {high_end:.0f}, by {words}"
                    )

    def _shown(self, item: str, option: str) -> list[Constraint]:
        return [
            constraint
            for constraint in self.rows[item]
            if constraint.categories == (option,) and constraint.low == constraint.high
        ]

    def _known(
        self, item: str, option: str, indicators: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Test which sums follow from figures by linear equations."""
        shown = [constraint.people for constraint in self._shown(item, option)]
        known = in_span(shown, indicators)
        if self.exported:
            low, high = self.exported.bounds(item, option, indicators)
            known |= low == high
        return known

    def _bounds(
        self,
        item: str,
        option: str,
        indicators: NDArray[np.float64],
        enough: NDArray[np.float64],
        generator: np.random.Generator,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return the least and largest numbers of sets, and which are narrowed."""
        if not len(indicators):
            return enough, enough, enough < 0
        least, most = self._program(item).bounds(option, indicators, enough, generator)
        return least, most, most - least + 1 < enough

    def _program(self, item: str) -> IntegerProgram:
        if item not in self._programs:
            categories = categories_of(item)
            self._programs[item] = IntegerProgram(
                [self.world.count(item, [name]) for name in categories],
                categories,
                self.rows[item] + self.rows[PEOPLE],
                self.caps,
            )
        return self._programs[item]

    def _single_total(
        self, item: str, option: str, indicators: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what shown totals say, each by itself, about an option of each set.

        About a set, and about its parts in each school and in each group there: if
        nobody of a grade chose the option, nobody of a smaller group in it did. As if
        it were known how many people of the set have answered, as response rates tell
        of some.

        Also by totals that are coded, and of items that no bound protects: that figures
        of other places give these back is a limit of coding
        (docs/decisions/0151-coded-ends.md), and no leak of a hidden group.
        """
        people = self.world.count(item, categories_of(item))
        totals, least, most = self._totals(item, option)
        low, high = np.zeros(len(indicators)), indicators @ people
        for parts in self.partitions:
            ends = np.zeros((2, len(indicators)))
            for part in parts:
                members = indicators * part
                inside = members @ people
                is_around = members @ (1 - totals.T) == 0
                at_least = np.where(is_around, least - totals @ people, -np.inf)
                at_most = np.where(is_around, most, np.inf)
                ends[0] += np.maximum(at_least.max(axis=1, initial=-np.inf) + inside, 0)
                ends[1] += np.minimum(at_most.min(axis=1, initial=np.inf), inside)
            low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
        return low, high

    def _totals(
        self, item: str, option: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the people of shown totals, and how many of them chose an option.

        [total, pattern], and at least and at most. Of a file, these are the rows that
        may be of a pattern, and the people of a page who have no row, if there are
        enough.
        """
        world, minimum = self.world, self.world.state.minimum
        answered = world.count(
            item, [name for name in categories_of(item) if name not in STATES]
        )
        chosen = world.count(item, [option])
        shown = self.shown[self.shown @ answered >= minimum]
        totals, least, most = [shown], [shown @ chosen], [shown @ chosen]
        if self.exported:
            in_file, _ = self.exported.bounds(item, option, shown)
            shows_item = np.array([item in row for row in self.exported.categories])
            rows = shows_item @ (self.exported.possible @ (1 - shown.T) == 0)
            is_enough = shown @ answered - rows >= minimum
            without_row = (shown * (self.exported.without_row > 0))[is_enough]
            totals.append(without_row)
            least.append(np.zeros(len(without_row)))
            most.append((shown @ chosen - in_file)[is_enough])
            each = np.unique(self.exported.possible, axis=0)
            _, in_rows = self.exported.bounds(item, option, each)
            rows = (self.exported.possible @ each.T > 0).sum(axis=0)
            totals.append(each[rows >= minimum])
            least.append(np.zeros(len(totals[-1])))
            most.append(in_rows[rows >= minimum])
        return np.concatenate(totals), np.concatenate(least), np.concatenate(most)

    @cached_property
    def shown(self) -> NDArray[np.float64]:
        """The people of shown figures, whatever the item: [figure, pattern]."""
        nothing = np.zeros((0, len(self.world.patterns)))
        return np.unique(np.array(self.totals), axis=0) if self.totals else nothing

    @cached_property
    def partitions(self) -> list[list[Indicator]]:
        """Ways to divide people: not, by school and outputs, and by group as well."""
        world = self.world
        schools = frozenset(range(len(world.state.districts)))
        keys: list[list[Any]] = [[0] * len(world.patterns), self.parts]
        for source in range(len(world.sources)):
            for attribute in {name for name, _ in world.state.groups if name}:
                values = [
                    world.indicator(source, schools, group)
                    for group in world.state.groups
                    if group[0] == attribute
                ]
                columns = np.array(values).T.tolist()
                keys.append(
                    [
                        (*part, *row)
                        for part, row in zip(self.parts, columns, strict=True)
                    ]
                )
        return [
            [np.array([each == key for each in of_way], float) for key in set(of_way)]
            for of_way in keys
        ]


def full_answers(answers: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the answers as an export has them, without open text."""
    items = (*CHOICES, *NUMBERS, *MULTIPLE)
    return frozenset((item, answers.get(item, NOT_REACHED)) for item in items)
