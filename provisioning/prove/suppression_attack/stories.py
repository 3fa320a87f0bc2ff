"""Release the results of an invented state, once or twice, with changes in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import numpy as np
from django.db.models import F, Q

from accounts.models import School
from provisioning.prove.suppression_attack.database import (
    ANALYST,
    COORDINATOR,
    DISTRICT,
    STATE,
    Stored,
    administer,
    publish,
    release,
)
from provisioning.prove.suppression_attack.knowledge import (
    Attack,
    Outcome,
    Source,
    World,
)
from provisioning.prove.suppression_attack.means import attack_means
from provisioning.prove.suppression_attack.outputs import (
    EVERYONE,
    PUBLIC,
    Outputs,
    Reader,
)
from reports.models import GroupResults
from survey.models import Administration, CountedGroup, OptOut, Respondent, Response
from survey.people.merging.places import merge_schools
from survey.people.opt_outs.records import Request, opt_out

ROLES = (PUBLIC, COORDINATOR, ANALYST, DISTRICT, STATE)
# An administration that was released, and who counts in it if they have answered.
Release = tuple[Administration, Source]
Story = Callable[[Stored, np.random.Generator], Iterator[Release]]


def once(stored: Stored, generator: np.random.Generator) -> Iterator[Release]:
    people = dict(enumerate(stored.state.people))
    administration = administer(stored)
    release(administration)
    yield administration, people


def opted_out(stored: Stored, generator: np.random.Generator) -> Iterator[Release]:
    """Opt a few people of each school out between two releases."""
    [(administration, people)] = once(stored, generator)
    yield administration, people
    gone = _some(stored, generator, people)
    for number in gone:
        withdraw(stored, administration, number)
    release(administration)
    yield administration, {n: person for n, person in people.items() if n not in gone}


def erased(stored: Stored, generator: np.random.Generator) -> Iterator[Release]:
    """Delete a few people with their answers between two releases."""
    [(administration, people)] = once(stored, generator)
    yield administration, people
    gone = _some(stored, generator, people)
    erase(stored, administration, gone)
    release(administration)
    yield administration, {n: person for n, person in people.items() if n not in gone}


def joined_late(stored: Stored, generator: np.random.Generator) -> Iterator[Release]:
    """Count people in the second release alone, whom a roster added late."""
    everybody = dict(enumerate(stored.state.people))
    late = _some(stored, generator, everybody)
    people = {
        number: replace(person, is_late=number in late)
        for number, person in everybody.items()
    }
    administration = administer(stored, people=people)
    release(administration)
    yield (
        administration,
        {n: person for n, person in everybody.items() if n not in late},
    )
    CountedGroup.objects.filter(administration=administration).delete()
    release(administration)
    yield administration, everybody


def merged(stored: Stored, generator: np.random.Generator) -> Iterator[Release]:
    """Merge a school into another one of its district between two releases."""
    [(administration, people)] = once(stored, generator)
    yield administration, people
    school = stored.school
    other_schools = [n for n in stored.state.schools_of(stored.district) if n != school]
    duplicate = int(generator.choice(other_schools))
    merge_schools(
        *(
            School.objects.get(pk=stored.schools[number].pk)
            for number in (duplicate, school)
        )
    )
    release(administration)
    yield (
        administration,
        {
            number: replace(person, school=school)
            if person.school == duplicate
            else person
            for number, person in people.items()
        },
    )


def two_waves(stored: Stored, generator: np.random.Generator) -> Iterator[Release]:
    """Ask again a month later; a few people are others, and nobody has changed."""
    everybody = dict(enumerate(stored.state.people))
    gone, came = (_some(stored, generator, everybody) for _ in range(2))
    for absent, closed in (
        (came - gone, timedelta(days=30)),
        (gone, timedelta(hours=1)),
    ):
        people = {n: person for n, person in everybody.items() if n not in absent}
        administration = administer(stored, people=people, closed=closed)
        release(administration)
        yield administration, people


def two_owners(stored: Stored, generator: np.random.Generator) -> Iterator[Release]:
    """Let the state and a district ask the same people the same questions."""
    yield from once(stored, generator)
    owner = stored.districts[stored.district]
    schools = stored.state.schools_of(stored.district)
    people = {
        number: person
        for number, person in enumerate(stored.state.people)
        if person.school in schools
    }
    administration = administer(stored, people=people, owner=owner)
    release(administration)
    yield administration, people


STORIES: tuple[Story, ...] = (
    *(once, opted_out, two_waves, joined_late, two_owners, merged, erased),
)


def _some(
    stored: Stored, generator: np.random.Generator, people: Source
) -> frozenset[int]:
    """Choose up to four people of each of some schools."""
    chosen: list[int] = []
    for school in range(len(stored.schools)):
        inside = [
            n
            for n, person in people.items()
            if person.school == school and person.answered
        ]
        number = int(generator.integers(5))
        if generator.random() < 0.6 and len(inside) > number:
            chosen += generator.choice(inside, number, replace=False).tolist()
    return frozenset(chosen)


def withdraw(stored: Stored, administration: Administration, number: int) -> None:
    """Opt a person out, as the school is asked to."""
    person = stored.respondents[administration.pk][number]
    asked = Request(date.today(), OptOut.RequestedBy.PARENT)
    opt_out(person, asked, by=stored.users[DISTRICT])


def erase(
    stored: Stored, administration: Administration, numbers: Iterable[int]
) -> None:
    """Delete people with their answers."""
    keys = [stored.respondents[administration.pk][number].pk for number in numbers]
    Response.objects.filter(respondent_id__in=keys).delete()
    Respondent.objects.filter(pk__in=keys).delete()


def hide_only_small_groups(administration: Administration) -> None:
    """Undo what the product hides beyond groups with fewer people than the minimum."""
    rows = GroupResults.objects.filter(administration=administration)
    rows.update(
        hidden_items=[],
        published_people=None,
        published_finished=None,
        published_counts=None,
        is_hidden=False,
    )
    rows.filter(Q(people__lt=F("administration__minimum_group"))).update(is_hidden=True)


def seen_again(outputs: Outputs) -> Outputs:
    """Return what is shown of a first wave, and what the second shows as the first did.

    Few people may come to a group that both waves show, or leave it: to prevent that
    two waves tell how they answered, nearly everything would have to be hidden.
    """
    first = {table for table in outputs.tables if table.source == 0}
    known = {(table.schools, table.group, table.item) for table in first}
    tables = {
        table
        for table in outputs.tables
        if table.group == EVERYONE or (table.schools, table.group, table.item) in known
    }
    return Outputs(first | tables, [], {})


@dataclass
class Play:
    """A story, and what readers got of its releases."""

    story: Story
    world: World
    outputs: dict[str, Outputs]
    readers: dict[str, Reader]
    unprotected: Outputs = field(default_factory=lambda: Outputs(set(), [], {}))

    def attack(
        self, role: str, generator: np.random.Generator, *, thorough: bool, explain: int
    ) -> Outcome:
        roster = () if role == PUBLIC else self.readers[role].own_schools
        outputs = self.outputs[role]
        known = None
        if self.story is two_waves:
            known = Attack(self.world, seen_again(outputs), roster)
        attack = Attack(self.world, outputs, roster, known)
        outcome = attack.run(generator, thorough=thorough, explained=explain)
        of_means = attack_means(self.world, outputs.means)
        of_means.leaks = of_means.leaks[:explain]
        outcome.add(of_means)
        return outcome


def play(
    stored: Stored,
    story: Story,
    generator: np.random.Generator,
    *,
    with_unprotected: bool = False,
) -> Play:
    """Let everybody read each release, and export the last one's people.

    People who were added late are in exports although no release has them yet.
    """
    readers = {role: Reader(stored, role) for role in ROLES}
    outputs = {role: Outputs(set(), [], {}) for role in ROLES}
    sources: list[Source] = []
    administrations: list[Administration] = []
    groups = stored.state.groups
    for administration, people in story(stored, generator):
        sources.append(people)
        if administration not in administrations:
            publish(administration, stored.users[STATE])
        administrations.append(administration)
        source = len(sources) - 1
        public = readers[PUBLIC].read(administration, source, groups)
        for role, reader in readers.items():
            outputs[role].add(public)
            if role != PUBLIC:
                # An analyst reads groups on the same pages as the district's staff.
                of_role = [EVERYONE] if role == ANALYST else groups
                outputs[role].add(reader.read(administration, source, of_role))
    outputs[ANALYST].tables |= outputs[DISTRICT].tables
    files = readers[ANALYST].exports(administrations[-1], len(sources) - 1)
    outputs[ANALYST].files += files
    result = Play(
        story,
        World(stored.state, sources, is_of_waves=story is two_waves),
        outputs,
        readers,
    )
    if with_unprotected:
        hide_only_small_groups(administrations[-1])
        result.unprotected = readers[STATE].read(
            administrations[-1], len(sources) - 1, groups
        )
    return result
