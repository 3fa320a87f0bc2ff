"""Play attacks that have once succeeded, with the product's protection and without.

Each is played over the outputs that its reader has. Protections are switched off from
outside: a function of the product is replaced in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np

from provisioning.prove.suppression_attack.database import (
    ANALYST,
    COORDINATOR,
    STATE,
    Stored,
    administer,
    calculate_scores,
    release,
    store,
)
from provisioning.prove.suppression_attack.knowledge import Attack, Source, World
from provisioning.prove.suppression_attack.means import attack_means
from provisioning.prove.suppression_attack.outputs import EVERYONE, Outputs, Reader
from provisioning.prove.suppression_attack.states import (
    GRADE,
    NOT_REACHED,
    Person,
    State,
    draw_answers,
)
from provisioning.prove.suppression_attack.stories import (
    erase,
    hide_only_small_groups,
    withdraw,
)
from reports.releases.frozen_people import SchoolPeople, unpacked
from reports.suppression.scores import PlaceScores, ScoreTables, ShownScores
from survey.models import Administration, Respondent

QUESTIONS = ("safe", "kind", "fair", "hours")
# Plays a history and returns how many figures were recovered.
History = Callable[[np.random.Generator, bool], int]


@contextmanager
def replaced(*functions: tuple[str, Callable[..., Any]]) -> Iterator[None]:
    """Replace functions of the product, of those that it has."""
    with ExitStack() as stack:
        for path, function in functions:
            module, _, name = path.rpartition(".")
            try:
                stack.enter_context(
                    mock.patch.object(import_module(module), name, function)
                )
            except (ImportError, AttributeError):
                continue
        yield


def invent(
    generator: np.random.Generator,
    sizes: tuple[int, ...],
    groups: Mapping[str, tuple[str, ...]] | None = None,
    bullied: int = 20,
) -> State:
    """Invent one district in which everybody answers; some of each school are bullied.

    `groups` has values of people in turn.
    """
    people = []
    for school, size in enumerate(sizes):
        for number in range(size):
            attributes = {
                name: values[number % len(values)]
                for name, values in (groups or {}).items()
            }
            person = draw_answers(
                generator, Person(school, {GRADE: "07", **attributes})
            )
            is_bullied = number < bullied
            answers = {**person.answers, "bullied": "yes" if is_bullied else "no"}
            answers["who"] = (
                ("adult", "pupil")[number % 2] if is_bullied else "not applicable"
            )
            people.append(replace(person, answers=answers))
    return State([0] * len(sizes), people, list(groups or {}))


def recovered(
    stored: Stored,
    sources: list[Source],
    outputs: Outputs,
    generator: np.random.Generator,
    *items: str,
) -> int:
    attack = Attack(World(stored.state, sources), outputs, range(len(stored.schools)))
    return attack.run(generator, thorough=False, items=items).recovered


def opt_out_between_files(generator: np.random.Generator, protected: bool) -> int:
    """Save the file of results, opt a pupil out, count again, subtract."""
    stored = store(invent(generator, (30, 30)))
    administration = administer(stored)
    people = dict(enumerate(stored.state.people))
    reader = Reader(stored, COORDINATOR)
    release(administration, scores=False)
    outputs = reader.read(administration, 0, [EVERYONE])
    left = min(n for n, person in people.items() if person.school == stored.school)
    withdraw(stored, administration, left)
    nothing: set[int] = set()
    off = ("reports.releases.rollup.schools_to_keep", lambda *_args, **_kwargs: nothing)
    with replaced(*() if protected else (off,)):
        release(administration, scores=False)
    outputs.add(reader.read(administration, 1, [EVERYONE]))
    after = {n: person for n, person in people.items() if n != left}
    return recovered(stored, [people, after], outputs, generator, *QUESTIONS)


def follow_up_of_few(generator: np.random.Generator, protected: bool) -> int:
    """Read a follow-up question that eight people of a school have answered."""
    stored = store(invent(generator, (40, 40), bullied=8))
    administration, people = _released(stored, protected)
    off = (
        "reports.results.distributions.coded_shares",
        lambda counts, *_args, **_options: [None] * len(counts),
    )
    with replaced(*() if protected else (off,)):
        outputs = Reader(stored, COORDINATOR).read(administration, 0, [EVERYONE])
    return recovered(stored, [people], outputs, generator, "who")


def dependent_groups(generator: np.random.Generator, protected: bool) -> int:
    """Subtract groups of one attribute and of another, which overlap."""
    race = ("white",) * 8 + ("black",) * 4 + ("asian",)
    # The same column as another file of the district has it.
    flag = ("no",) * 8 + ("yes",) * 4 + ("no",)
    groups = {"race": race, "ethnicity": flag}
    stored = store(invent(generator, (65, 130, 130, 130), groups), school=0)
    administration, people = _released(stored, protected)
    outputs = Reader(stored, COORDINATOR).read(administration, 0, stored.state.groups)
    return recovered(stored, [people], outputs, generator, *QUESTIONS)


def exports_by_school(generator: np.random.Generator, protected: bool) -> int:
    """Export the district, then each large school; the small one is what remains."""
    stored = store(invent(generator, (30, 30, 8)))
    administration, people = _released(stored, protected)
    with _exports(protected):
        files = list(Reader(stored, ANALYST).exports(administration, 0))
    return recovered(stored, [people], Outputs(set(), files, {}), generator, *QUESTIONS)


def export_and_page(generator: np.random.Generator, protected: bool) -> int:
    """Subtract a page from an export, which has somebody who came late."""
    state = invent(generator, (30, 30))
    everybody = dict(enumerate(state.people))
    people = {**everybody, 0: replace(everybody[0], is_late=True)}
    stored = store(state)
    administration = administer(stored, people=people)
    release(administration, scores=False)
    reader = Reader(stored, ANALYST)
    outputs = reader.read(administration, 0, [EVERYONE])
    off = ("reports.exports.release_mask.unpacked", with_late_people)
    with replaced(*() if protected else (off,)):
        outputs.files = list(reader.exports(administration, 1, []))
    counted = {n: person for n, person in everybody.items() if n}
    return recovered(stored, [counted, everybody], outputs, generator, *QUESTIONS)


def pages_and_one_export(generator: np.random.Generator, protected: bool) -> int:
    """Subtract the pages of large schools from one export of their district."""
    stored = store(invent(generator, (40, 40, 40, 40, 8)))
    administration, people = _released(stored, protected)
    reader = Reader(stored, ANALYST)
    outputs = reader.read(administration, 0, [EVERYONE])
    with _exports(protected):
        outputs.files = list(reader.exports(administration, 0, []))
    return recovered(stored, [people], outputs, generator, *QUESTIONS)


def menu_of_groups(generator: np.random.Generator, protected: bool) -> int:
    """Read from the list of groups whether the only pupil of one took part."""
    menus = []
    for takes_part in (True, False):
        state = invent(generator, (30, 30), {"race": ("white", "black")})
        people = list(state.people)
        only = replace(people[0], groups={**people[0].groups, "race": "native"})
        people[0] = only if takes_part else Person(0, only.groups)
        stored = store(replace(state, people=people), school=0)
        answered = {
            group
            for person in people
            if person.answered
            for group in person.groups.items()
        }

        def of_who_answered(*_args: Any, groups: Any = answered) -> Any:
            return sorted(groups)

        off = ("reports.releases.rollup.groups_of_roster", of_who_answered)
        with replaced(*() if protected else (off,)):
            administration, _people = _released(stored, True)
        menus.append(Reader(stored, COORDINATOR).menu(administration))
    return int(menus[0] != menus[1])


def school_that_joins_a_sum(generator: np.random.Generator, protected: bool) -> int:
    """Subtract the sum of a release from that of the next, with one more school.

    The school was below its threshold, until people who had not answered were erased.
    """
    everybody = invent(generator, (40, 40, 40, 40))
    people = [
        Person(0, person.groups) if person.school == 0 and number < 25 else person
        for number, person in enumerate(everybody.people)
    ]
    stored = store(replace(everybody, people=people), school=3)
    administration = administer(stored)
    reader = Reader(stored, COORDINATOR)
    release(administration, scores=False)
    outputs = reader.read(administration, 0, [EVERYONE])
    erase(stored, administration, range(25))
    off = ("reports.releases.rollup.staying_schools", lambda *_args: None)
    with replaced(*() if protected else (off,)):
        release(administration, scores=False)
    outputs.add(reader.read(administration, 1, [EVERYONE]))
    sums = [
        {
            table.item: {names: low for names, low, _high in table.rows}
            for table in outputs.tables
            if table.source == source and table.label.startswith("All schools")
        }
        for source in range(2)
    ]
    joined = people[25:40]
    return sum(
        all(
            number - sums[0].get(item, {}).get(names, 0)
            == sum(person.answers.get(item, NOT_REACHED) in names for person in joined)
            for names, number in sums[1][item].items()
        )
        for item in sums[1].keys() & {*QUESTIONS}
    )


def scores_of_groups(generator: np.random.Generator, protected: bool) -> int:
    """Subtract scores of groups from those of everyone, and of overlapping groups.

    A group of eleven people, one of whom has no flag that all others have.
    """
    race = ("white",) * 8 + ("black",) * 4 + ("asian",)
    flag = ("no",) * 8 + ("yes",) * 4 + ("no",)
    groups = {"race": race, "ethnicity": flag}
    stored = store(invent(generator, (65, 130, 130, 130), groups), school=0)
    administration = administer(stored)
    people = dict(enumerate(stored.state.people))
    release(administration, scores=False)
    hide_only_small_groups(administration)
    off = ("reports.scores.scoring.decide_scores", hides_only_few)
    with replaced(*() if protected else (off,)):
        calculate_scores(administration)
    reader = Reader(stored, STATE)
    means = reader.read(administration, 0, [EVERYONE]).means
    return attack_means(World(stored.state, [people]), means).recovered


def hides_only_few(tables: ScoreTables) -> ShownScores:
    """Show the scores of all groups with enough people in a school."""
    people = tables.people.people
    shown = (people >= tables.minimum) & tables.everyone[:, None]
    nowhere = PlaceScores(
        np.zeros_like(tables.everyone.T),
        np.zeros((people.shape[2], len(tables.released_districts)), dtype=bool),
    )
    in_state = replace(nowhere, shown=nowhere.shown[:, :1])
    attributes = tables.people.attributes
    return ShownScores(
        shown, [nowhere for _each in attributes], [in_state for _each in attributes]
    )


def _released(stored: Stored, protected: bool) -> tuple[Administration, Source]:
    administration = administer(stored)
    release(administration, scores=False)
    if not protected:
        hide_only_small_groups(administration)
    return administration, dict(enumerate(stored.state.people))


def _exports(protected: bool) -> Any:
    """Let rows of exports show every school and all items, without protection."""

    def own_places(sizes: Any, districts: Any, *_args: Any) -> Any:
        shown = import_module("reports.exports.release_mask").ShownPlace
        return {school: shown(districts[school], school) for school in sizes}

    def no_masks(groups: Any, *_args: Any) -> Any:
        return [frozenset()] * len(groups)

    off = (
        ("reports.exports.release_mask.shown_places", own_places),
        ("reports.exports.release_mask.masked_items", no_masks),
    )
    return replaced(*() if protected else off)


def with_late_people(stored: bytes, school: int, counted_at: Any) -> SchoolPeople:
    """Return the people of a release, and those of the school who came late."""
    frozen = unpacked(stored, school, counted_at)
    people = Respondent.objects.filter(school=school, started_at__isnull=False)
    late = [
        (person.pk, int((person.completed_at or person.started_at).timestamp()), 1)
        for person in people.exclude(pk__in=frozen.ids.tolist())
        if person.started_at and person.completed_at
    ]
    keys, times, finished = np.array(late, dtype=np.int64).reshape(-1, 3).T
    order = np.argsort(np.append(frozen.ids, keys))
    return replace(
        frozen,
        ids=np.append(frozen.ids, keys)[order],
        at=np.append(frozen.at, times)[order],
        finished=np.append(frozen.finished, finished.astype(bool))[order],
        group=np.append(frozen.group, np.zeros_like(keys))[order],
        # As if it was not stored who answered which item.
        items=(),
        answered=None,
    )


HISTORIES: Mapping[str, History] = {
    "1 opt-out between files": opt_out_between_files,
    "2 follow-up of few": follow_up_of_few,
    "3 dependent groups": dependent_groups,
    "4 exports by school": exports_by_school,
    "5 export and page": export_and_page,
    "6 pages and one export": pages_and_one_export,
    "7 menu of groups": menu_of_groups,
    "8 school that joins a sum": school_that_joins_a_sum,
    "9 scores of groups": scores_of_groups,
}
