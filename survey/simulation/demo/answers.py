"""Answers that a made-up person could have given.

Drawn, not recorded: the same person answers alike on every machine, since
each draw is seeded by who answers what. Answers on a scale lean the same way
within one person, and a little within one school, as real ones do.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from survey.definitions.schema import RangeScale, SurveyDefinition

Wire = str | list[str] | None

COMMENTS = Path(__file__).with_name("comments.csv")

# Ordered from least to most; the other option sets have no order.
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
}
# Where the usual answer lies on a scale or a range: 0 is its least, 1 its most.
USUAL = 0.62
USUAL_OF = {"prep_hours": 0.3}
# How likely an option of a select_multiple is marked.
MARKED = 0.3
SKIPPED = 0.04
COMMENTED = 0.55


@dataclass(frozen=True, slots=True)
class Person:
    """What of a respondent colours the answers."""

    key: str
    school: str
    role: str
    grade: int | None
    language: str


def answers_of(
    person: Person, names: Sequence[str], definition: SurveyDefinition
) -> dict[str, Wire]:
    """A wire value for each of the items, as though every one were relevant."""
    return {name: _answer(person, name, definition) for name in names}


def dice(*about: str) -> random.Random:
    return random.Random("/".join(about))  # noqa: S311


def _answer(person: Person, name: str, definition: SurveyDefinition) -> Wire:
    item = definition["items"][name]
    draw = dice(person.key, name)
    if item["kind"] == "text":
        return _comment(person, name, draw)
    if draw.random() < SKIPPED and not item.get("required"):
        return None
    if name == "grade":
        return str(person.grade) if person.grade else None
    if name == "home_languages":
        return _languages(person, draw)
    if name == "years_here":
        return str(draw.randint(1, _most_years(person)))
    if item["kind"] == "acknowledge":
        return "OK"
    if item["kind"] == "range":
        return _in_range(person, name, item["range"], draw)
    options = [one["value"] for one in definition["option_sets"][item["option_set"]]]
    if item["kind"] == "select_multiple":
        # "0" stands for none of the others, and goes with no other.
        marked = [one for one in options if one != "0" and draw.random() < MARKED]
        return marked or (["0"] if "0" in options else None)
    return _choose(person, name, item["option_set"], options, draw)


def _choose(
    person: Person, name: str, option_set: str, options: list[str], draw: random.Random
) -> str:
    if option_set in SCALES:
        place = USUAL + _leaning(person, name) + draw.gauss(0, 0.17)
        return options[_between(0, int(place * len(options)), len(options) - 1)]
    weights = WEIGHTS.get(name) or WEIGHTS.get(option_set) or {}
    return draw.choices(options, [weights.get(one, 1) for one in options])[0]


def _leaning(person: Person, name: str) -> float:
    """How far this person's answer to this item lies from the usual."""
    return (
        dice("school", person.school, person.role).gauss(0, 0.05)
        + dice("person", person.key).gauss(0, 0.14)
        + dice("item", name).gauss(0, 0.08)
    )


def _in_range(
    person: Person, name: str, bounds: RangeScale, draw: random.Random
) -> str:
    start, end, step = map(int, (bounds["start"], bounds["end"], bounds["step"]))
    usual = USUAL_OF.get(name, USUAL)
    place = usual + _leaning(person, name) + draw.gauss(0, 0.12)
    steps = (end - start) // step
    return str(start + step * _between(0, round(place * steps), steps))


def _most_years(person: Person) -> int:
    """Schools here begin with kindergarten, grade 6 and grade 9."""
    if person.grade is None:
        return 20
    first = max(one for one in (0, 6, 9) if one <= person.grade)
    return person.grade - first + 1


def _languages(person: Person, draw: random.Random) -> list[str]:
    if person.language == "es":
        return ["1", "2"] if draw.random() < 0.6 else ["2"]
    return ["1", draw.choice("34567")] if draw.random() < 0.2 else ["1"]


def _comment(person: Person, name: str, draw: random.Random) -> str | None:
    comments = _comments().get((name, person.language), [])
    # Whoever ticked "other" says which; a comment is written by about half.
    likely = 0.95 if name.endswith("_other") else COMMENTED
    return draw.choice(comments) if comments and draw.random() < likely else None


@cache
def _comments() -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    with COMMENTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["item"], row["language"]), []).append(row["text"])
    return found


def _between(least: int, number: int, most: int) -> int:
    return max(least, min(number, most))
