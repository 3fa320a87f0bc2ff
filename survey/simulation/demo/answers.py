"""Make up plausible answers to the surveys of the demo.

Answers are random, but the same on every machine: draws are seeded by the person and
the wave. Answers on a scale lean the same way within one
person, more so within one measure, and a little within one school, which
changes from wave to wave, as real ones do.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from statistics import NormalDist

from survey.instrument.definitions.schema import Measures, SurveyDefinition
from survey.models import Role

Wire = str | list[str] | None

# Of its administrations: with the usual one, schools of 40 people would show little.
MINIMUM_GROUP = 5
COMMENTS = Path(__file__).with_name("comments.csv")

# These option sets are ordered from least to most; the others have no order.
SCALES = frozenset(("agree", "often", "mood", "rating", "days", "adults", "stay"))
# Option sets and items in which some answers are far likelier than others.
WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "travel": {"1": 5, "2": 2, "3": 7, "4": 2, "5": 6, "other": 1},
    "position": {"1": 6, "2": 9, "3": 3, "4": 2, "5": 1, "other": 0},
    "told": {"1": 5, "2": 6, "3": 4, "4": 1, "0": 4},
    "unkind": {"1": 1, "0": 4},
    "unkind_over": {"1": 3, "0": 2},
    "friend_come": {"1": 3, "0": 1},
    "asked_help": {"1": 3, "0": 2},
    "training": {"1": 5, "0": 1},
    "interpreter": {"1": 1, "0": 4},
    "interpreter_came": {"1": 3, "0": 1},
    "worried": {"1": 1, "0": 3},
}
# The usual answer on a scale or range, between its least (0) and most (1).
USUAL = 0.56
USUAL_OF = {"prep_hours": 0.3}
# How likely an option of a select_multiple is marked.
MARKED = 0.3
SKIPPED = 0.04
COMMENTED = 0.55
# Standard deviations on a scale from 0 to 1. Half of the differences between
# people's means on a measure of five items are differences between people in
# general, so that measures correlate with about 0.6. With less noise, so few people
# use the ends of a scale that some measures can't be scaled and have no scores.
# Schools differ more than real ones do: they are so small that chance could explain
# ordinary differences, and then they have no bands.
SCHOOL, SCHOOL_ON_MEASURE, SCHOOL_IN_WAVE = 0.05, 0.09, 0.03
PERSON, PERSON_ON_MEASURE, PERSON_IN_WAVE = 0.11, 0.09, 0.05
# Of measures that only a few older students of a school are asked for.
SCHOOL_ON = {"a_way_ahead": 0.14}
ITEM, NOISE = 0.05, 0.24
# Older students see their school more critically.
PER_GRADE = -0.008


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """The attributes of a respondent that influence the answers."""

    key: str
    school: str
    role: str
    grade: int | None
    language: str
    wave: str


@dataclass(frozen=True, slots=True)
class Scale:
    """What an item measures; the low end of a reversed item is the good one."""

    measure: str
    is_reversed: bool


def scales_of(measures: Measures | None) -> dict[str, Scale]:
    """Return the scale of each item that belongs to a measure."""
    return {
        item["name"]: Scale(measure["name"], item["reversed"])
        for measure in (measures["measures"] if measures else [])
        for item in measure["items"]
    }


def seeded_random(*parts: str) -> random.Random:
    return random.Random("/".join(parts))  # noqa: S311


def answer_item(
    person: DemoPerson,
    name: str,
    draw: random.Random,
    definition: SurveyDefinition,
    scales: Mapping[str, Scale],
) -> Wire:
    """Make up an answer as though the item were relevant."""
    item = definition["items"][name]
    # An item of no measure stands for itself.
    scale_of_item = scales.get(name) or Scale(name, False)
    if item["kind"] == "text":
        comments = read_comments().get((name, person.language), [])
        # People who tick "other" nearly always explain it.
        likely = 0.95 if name.endswith("_other") else COMMENTED
        return draw.choice(comments) if comments and draw.random() < likely else None
    if draw.random() < SKIPPED and not item.get("required"):
        return None
    if name in ("grade", "child_grade"):
        return str(person.grade) if person.grade else None
    if name == "home_languages":
        if person.language == "es":
            return ["1", "2"] if draw.random() < 0.6 else ["2"]
        return ["1", draw.choice("34567")] if draw.random() < 0.2 else ["1"]
    if name == "years_here":
        most_years = 20
        if person.grade is not None:
            # Schools here begin with kindergarten, grade 6 and grade 9.
            first = max(grade for grade in (0, 6, 9) if grade <= person.grade)
            most_years = person.grade - first + 1
        return str(draw.randint(1, most_years))
    if name == "children_here":
        return draw.choice("111223")
    if item["kind"] == "acknowledge":
        return "OK"
    if item["kind"] == "range":
        scale = item["range"]
        start, end, step = map(int, (scale["start"], scale["end"], scale["step"]))
        steps = (end - start) // step
        place = leaning(person, name, scale_of_item) + draw.gauss(0, NOISE)
        return str(start + step * between(0, round(place * steps), steps))
    option_set = item["option_set"]
    options = [option["value"] for option in definition["option_sets"][option_set]]
    if item["kind"] == "select_multiple":
        # "0" means none of the others, and cannot be combined.
        marked = [value for value in options if value != "0" and draw.random() < MARKED]
        return marked or (["0"] if "0" in options else None)
    if option_set in SCALES:
        place = leaning(person, name, scale_of_item) + draw.gauss(0, NOISE)
        if scale_of_item.is_reversed:
            place = 1 - place
        return options[between(0, int(place * len(options)), len(options) - 1)]
    weights = WEIGHTS.get(name) or WEIGHTS.get(option_set) or {}
    return draw.choices(options, [weights.get(value, 1) for value in options])[0]


def leaning(person: DemoPerson, name: str, scale: Scale) -> float:
    """Return where this person stands, between the least (0) and the most (1)."""
    of_item = USUAL_OF.get(name, USUAL) + ITEM * deviation("item", name)
    return of_item + leaning_on_measure(person, scale.measure)


# Large enough for all measures of a person, who answers them one after another.
@lru_cache(100)
def leaning_on_measure(person: DemoPerson, measure: str) -> float:
    school = (person.school, person.role)
    spreads = {
        ("school", *school): SCHOOL,
        ("school", *school, measure): SCHOOL_ON.get(measure, SCHOOL_ON_MEASURE),
        ("school", *school, measure, person.wave): SCHOOL_IN_WAVE,
        ("person", person.key): PERSON,
        ("person", person.key, measure): PERSON_ON_MEASURE,
        ("person", person.key, measure, person.wave): PERSON_IN_WAVE,
    }
    is_graded = person.role == Role.STUDENT
    return (PER_GRADE * ((person.grade or 0) - 8) if is_graded else 0) + sum(
        sd * deviation(*parts) for parts, sd in spreads.items()
    )


@lru_cache(2000)
def deviation(*parts: str) -> float:
    """Return a draw from the standard normal distribution, the same each time.

    Made of a hash: seeding a generator takes several times as long.
    """
    digest = blake2b("/".join(parts).encode(), digest_size=8).digest()
    return NormalDist().inv_cdf(((int.from_bytes(digest) >> 12) + 0.5) / 2**52)


@cache
def read_comments() -> dict[tuple[str, str], list[str]]:
    comments: dict[tuple[str, str], list[str]] = {}
    with COMMENTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            comments.setdefault((row["item"], row["language"]), []).append(row["text"])
    return comments


def between(least: int, number: int, most: int) -> int:
    return max(least, min(number, most))
