"""Attack some states, play some histories, and print what was found as JSON.

Arguments: SEED FIRST STEP COUNT EXPLAIN SCHOOLS.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import django
import numpy as np

django.setup()

from django.conf import settings  # noqa: E402
from django.test.utils import override_settings, setup_test_environment  # noqa: E402

from provisioning.prove.suppression_attack import states  # noqa: E402
from provisioning.prove.suppression_attack.database import (  # noqa: E402
    STATE,
    administer,
    release,
    store,
)
from provisioning.prove.suppression_attack.histories import HISTORIES  # noqa: E402
from provisioning.prove.suppression_attack.knowledge import Attack  # noqa: E402
from provisioning.prove.suppression_attack.outputs import (  # noqa: E402
    EVERYONE,
    STATES,
    TABLES,
    Reader,
)
from provisioning.prove.suppression_attack.states import NOT_REACHED  # noqa: E402
from provisioning.prove.suppression_attack.stories import ROLES, STORIES, play  # noqa: E402

# Schools of a state in which a percentage is tiny.
SCHOOLS, DISTRICTS = 34, 4
PERCENTAGES = (3, 6, 12)
REPORTED = 30
HISTORY = 3
# Static files as they are in the source: nothing was collected.
PLAIN = {
    "COMPRESS_ENABLED": False,
    "COMPRESS_OFFLINE": False,
    "STORAGES": {
        **settings.STORAGES,
        "staticfiles": {
            "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        },
    },
}


def main(
    seed: int, first: int, step: int, count: int, explain: int, schools: int
) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    leaks: list[str] = []
    tasks: list[tuple[str, Any]] = [
        *(("state", number) for number in range(count)),
        *(("hiding", percentage) for percentage in PERCENTAGES),
        *(("history", name) for name in HISTORIES),
    ]
    for position in range(first, len(tasks), step):
        kind, which = tasks[position]
        generator = np.random.default_rng([seed, position])
        if kind == "state":
            attack_state(which, generator, counts, leaks, explain, schools)
        elif kind == "hiding":
            measure_lost(which, generator, counts)
        else:
            for name, protected in (("protected", True), ("unprotected", False)):
                # The same people each time: what is hidden depends on them.
                generator = np.random.default_rng(HISTORY)
                number = HISTORIES[which](generator, protected)
                counts[f"history {which}|{name}"] += number
    return {"found": counts, "leaks": leaks}


def attack_state(
    number: int,
    generator: np.random.Generator,
    counts: Counter[str],
    leaks: list[str],
    explain: int,
    schools: int = 5,
) -> None:
    """Attack what each role gets of an invented state."""
    story = STORIES[number % len(STORIES)]
    stored = store(states.draw(generator, schools))
    played = play(stored, story, generator, with_unprotected=number == 0)
    counts["states"] += 1
    for role in ROLES:
        outcome = played.attack(role, generator, thorough=True, explain=explain)
        counts[f"role {role}|recovered"] += outcome.recovered
        counts[f"role {role}|narrowed"] += outcome.narrowed
        counts[f"role {role}|group_scores"] += sum(
            mean.group != EVERYONE for mean in played.outputs[role].means
        )
        counts["attacked"] += outcome.attacked
        counts["unexplained"] += outcome.unexplained
        leaks += [f"{story.__name__}, {role}: {leak}" for leak in outcome.leaks]
    if number == 0:
        attack = Attack(
            played.world, played.unprotected, played.readers[STATE].own_schools
        )
        outcome = attack.run(generator, thorough=False)
        counts["recovered_unprotected"] += outcome.recovered


def measure_lost(
    percentage: int, generator: np.random.Generator, counts: Counter[str]
) -> None:
    """Count the figures that schools have, and those that they lose.

    Figures of few answers have to be hidden by any rule: the others are the optimum.
    """
    tiny = round(SCHOOLS * percentage / 100)
    state = states.draw(generator, SCHOOLS, DISTRICTS, tiny, (45, 75))
    stored = store(state)
    administration = administer(stored)
    release(administration)
    reader = Reader(stored, STATE)
    outputs = reader.read(administration, 0, [EVERYONE])
    shown = Counter(
        (table.schools, table.item)
        for table in outputs.tables
        if table.group == EVERYONE and any(len(names) == 1 for names, *_ in table.rows)
    )
    for school in range(SCHOOLS):
        answered = sum(
            person.answered for person in state.people if person.school == school
        )
        if answered < REPORTED:
            continue
        tables = [(frozenset([school]), item) for item in TABLES]
        counts[f"lost {percentage}|all"] += len(tables) + 1
        counts[f"lost {percentage}|lost"] += sum(table not in shown for table in tables)
        counts[f"lost {percentage}|needed"] += sum(
            0 < number < state.minimum for number in answers_of(state, school)
        )
        counts[f"lost {percentage}|lost"] += (school, "trust") not in outputs.scores


def answers_of(state: states.State, school: int) -> Iterator[int]:
    """Yield how many people of a school have answered each item."""
    people = [person for person in state.people if person.school == school]
    for table in TABLES:
        item = table.partition(" ")[0]
        yield sum(
            person.answered and person.answers.get(item, NOT_REACHED) not in STATES
            for person in people
        )


if __name__ == "__main__":
    setup_test_environment()
    with override_settings(**PLAIN):
        print(json.dumps(main(*map(int, sys.argv[1:]))))
