"""Make up plausible answers to the surveys of the demo.

Answers are random, but the same on every machine: each draw is seeded by the
person and the item. Answers on a scale lean the same way within one person,
and a little within one school, as real ones do.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from survey.definitions.schema import SurveyDefinition

Wire = str | list[str] | None

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
USUAL = 0.62
USUAL_OF = {"prep_hours": 0.3}
# How likely an option of a select_multiple is marked.
MARKED = 0.3
SKIPPED = 0.04
COMMENTED = 0.55


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """The attributes of a respondent that influence the answers."""

    key: str
    school: str
    role: str
    grade: int | None
    language: str


def seeded_random(*parts: str) -> random.Random:
    return random.Random("/".join(parts))  # noqa: S311


def answer_item(person: DemoPerson, name: str, definition: SurveyDefinition) -> Wire:
    """Make up an answer as though the item were relevant."""
    item = definition["items"][name]
    draw = seeded_random(person.key, name)
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
        usual = USUAL_OF.get(name, USUAL)
        place = usual + leaning(person, name) + draw.gauss(0, 0.12)
        return str(start + step * between(0, round(place * steps), steps))
    option_set = item["option_set"]
    options = [option["value"] for option in definition["option_sets"][option_set]]
    if item["kind"] == "select_multiple":
        # "0" means none of the others, and cannot be combined.
        marked = [value for value in options if value != "0" and draw.random() < MARKED]
        return marked or (["0"] if "0" in options else None)
    if option_set in SCALES:
        place = USUAL + leaning(person, name) + draw.gauss(0, 0.17)
        return options[between(0, int(place * len(options)), len(options) - 1)]
    weights = WEIGHTS.get(name) or WEIGHTS.get(option_set) or {}
    return draw.choices(options, [weights.get(value, 1) for value in options])[0]


def leaning(person: DemoPerson, name: str) -> float:
    """Return how far this person's answer is from the usual one."""
    return (
        seeded_random("school", person.school, person.role).gauss(0, 0.05)
        + seeded_random("person", person.key).gauss(0, 0.14)
        + seeded_random("item", name).gauss(0, 0.08)
    )


@cache
def read_comments() -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    with COMMENTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["item"], row["language"]), []).append(row["text"])
    return found


def between(least: int, number: int, most: int) -> int:
    return max(least, min(number, most))
