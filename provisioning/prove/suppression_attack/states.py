"""Invent states: districts, schools, and people with groups and answers.

People have attributes as student information systems deliver them: race beside
ethnicity, lunch beside the flag that follows from it. They overlap and depend on each
other, so that sums and differences of large groups can be a small one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

# Attribute -> values and their shares.
ATTRIBUTES: Mapping[str, Mapping[str, float]] = {
    "race": {"white": 0.55, "black": 0.2, "asian": 0.12, "native": 0.03, "two": 0.1},
    "ethnicity": {"hispanic": 0.25, "other": 0.75},
    "gender": {"f": 0.49, "m": 0.49, "x": 0.02},
    "lunch": {"free": 0.35, "reduced": 0.1, "paid": 0.55},
    "disadvantaged": {"yes": 0.45, "no": 0.55},
    "english_learner": {"yes": 0.12, "no": 0.88},
    "disability": {"yes": 0.13, "no": 0.87},
}
GRADE = "grade"
LEVELS = ("1", "2", "3", "4")
# Item -> options.
CHOICES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("safe", "kind", "fair"), LEVELS),
    "bullied": ("yes", "no"),
    # Asked of people who were bullied.
    "who": ("pupil", "adult", "both"),
}
MULTIPLE: Mapping[str, Sequence[str]] = {"clubs": ("sports", "music", "chess")}
NUMBERS = {"hours": range(6)}
MEASURED = ("safe", "kind", "fair")
TEXT = "comment"
FIRST_PAGE = ("safe", "kind", "fair", "bullied", "who")
ITEMS = (*FIRST_PAGE, "clubs", "hours", TEXT)
SKIPPED, NOT_APPLICABLE, NOT_REACHED = "skipped", "not applicable", "not reached"
MINIMUM = 10


@dataclass(frozen=True)
class Person:
    """Somebody on the roster. Who has not started has no answers."""

    school: int
    # Attribute -> value, and the grade.
    groups: Mapping[str, str]
    # Item -> value, SKIPPED or NOT_APPLICABLE; others were not reached.
    answers: Mapping[str, str] = field(default_factory=dict)
    finished: bool = False
    # Joined after the opening, and counts in no result yet.
    is_late: bool = False

    @property
    def answered(self) -> bool:
        return bool(self.answers)


@dataclass(frozen=True)
class State:
    # District of each school.
    districts: Sequence[int]
    people: Sequence[Person]
    # Declared subgroups.
    attributes: Sequence[str]
    minimum: int = MINIMUM

    @property
    def groups(self) -> list[tuple[str, str]]:
        """Return everyone and all groups of the roster."""
        values = {
            (name, person.groups[name])
            for person in self.people
            for name in (GRADE, *self.attributes)
        }
        return [("", ""), *sorted(values)]

    def schools_of(self, district: int) -> list[int]:
        return [
            n for n, district_of in enumerate(self.districts) if district_of == district
        ]


def draw(
    generator: np.random.Generator,
    schools: int = 6,
    districts: int = 2,
    tiny: int = 1,
    people: tuple[int, int] = (20, 60),
) -> State:
    """Invent a state in which some schools have fewer people than the minimum."""
    district_of = [number % districts for number in range(schools)]
    which = set(generator.choice(schools, tiny, replace=False).tolist())
    names = list(ATTRIBUTES)
    if schools < 10:
        # An attribute beside the one that overlaps it, and another one.
        pair = [("race", "ethnicity"), ("lunch", "disadvantaged")][
            int(generator.integers(2))
        ]
        rest = [name for name in names if name not in pair]
        names = [*pair, str(generator.choice(rest))][: 2 + (schools > 4)]
    everyone: list[Person] = []
    for school in range(schools):
        invited = int(generator.integers(*people))
        answering = float(generator.uniform(0.65, 0.95))
        if school in which:
            invited = int(generator.integers(4, MINIMUM))
        elif schools < 10 and generator.random() < 0.15:
            # Without a report.
            answering = 0.4
        chances = {
            item: generator.dirichlet([0.8] * len(options))
            for item, options in CHOICES.items()
        }
        chances["bullied"] = np.array([0.25, 0.75])
        grades = ["06", "07", "08"][: int(generator.integers(2, 4))]
        for _ in range(invited):
            person = Person(school, draw_groups(generator, grades, names))
            if generator.random() < answering:
                person = draw_answers(generator, person, chances)
            everyone.append(person)
    return State(district_of, everyone, names)


def draw_groups(
    generator: np.random.Generator, grades: Sequence[str], names: Sequence[str]
) -> dict[str, str]:
    groups = {GRADE: str(generator.choice(grades))}
    for name, shares in ATTRIBUTES.items():
        groups[name] = str(generator.choice(list(shares), p=list(shares.values())))
    # The flag follows from lunch, but for errors of keyboards.
    if generator.random() < 0.98:
        groups["disadvantaged"] = "no" if groups["lunch"] == "paid" else "yes"
    return {name: groups[name] for name in (GRADE, *names)}


def draw_answers(
    generator: np.random.Generator,
    person: Person,
    chances: Mapping[str, np.ndarray] | None = None,
) -> Person:
    """Let somebody take part: some skip items or stop after the first page."""
    chances = chances or {}
    answers: dict[str, str] = {}
    for item, options in CHOICES.items():
        answers[item] = str(generator.choice(options, p=chances.get(item)))
    for item, options in MULTIPLE.items():
        answers[item] = " ".join(
            option for option in options if generator.random() < 0.4
        )
    answers["hours"] = str(generator.integers(6))
    answers[TEXT] = f"Comment {generator.integers(10**9)}"
    for item in ITEMS[1:]:
        if generator.random() < 0.04 or not answers[item]:
            answers[item] = SKIPPED
    if answers["bullied"] != "yes":
        answers["who"] = NOT_APPLICABLE
    finished = generator.random() < 0.93
    if not finished:
        answers = {item: answers[item] for item in FIRST_PAGE}
    return replace(person, answers=answers, finished=finished)
