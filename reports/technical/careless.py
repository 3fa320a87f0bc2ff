"""Flag people who seem not to have read the questions. Nobody is left out for it.

Two rules that need no opinion about what people think: the same answer to all
statements of a page although some are reversed, and answers faster than anybody
reads. The rest is too little to judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connections
from numpy.typing import NDArray

from accounts.permissions import Places
from reports.answers.item_codes import VALUE, ItemCodes
from reports.answers.people import People
from reports.answers.selection import Selection
from reports.answers.snapshot import snapshot
from reports.answers.versions import SurveyVersion
from reports.rasch import MISSING
from survey.instrument.definitions.schema import Measures
from survey.models import Administration

Mask = NDArray[np.bool_]

# Fewer statements may well have the same answer from somebody who means it.
FEWEST_STATEMENTS = 4
# Seconds for an answer (Huang and others 2012), and answers to judge them by.
LEAST_SECONDS = 2.0
FEWEST_ANSWERS = 10
# After a longer pause, the person did something else.
LONGEST_SECONDS = 600
# The time of a page is that between its save and the one before it. All answers of a
# page have the moment of its last save. The first page is left out: before it, people
# read what the survey is about.
PACE = """
SELECT respondent_id, sum(answers), sum(seconds)
FROM (
    SELECT respondent_id, answers, {seconds} AS seconds
    FROM (
        SELECT respondent_id, saved_at, count(*) AS answers
        FROM survey_response
        WHERE administration_id = %s AND state = 'a'
        GROUP BY respondent_id, saved_at
    ) saves
    WINDOW person AS (PARTITION BY respondent_id ORDER BY saved_at)
) pages
WHERE seconds <= {longest}
GROUP BY respondent_id
"""
SECONDS = {
    "postgresql": "extract(epoch FROM saved_at - lag(saved_at) OVER person)::float8",
    "sqlite": "86400 * (julianday(saved_at) - julianday(lag(saved_at) OVER person))",
}


@dataclass(frozen=True)
class Flags:
    """Of each person: whether a rule can judge them, and whether it flags them."""

    is_judged: Mask
    is_flagged: Mask

    @classmethod
    def nobody(cls, people: int) -> Flags:
        return cls(np.zeros(people, np.bool_), np.zeros(people, np.bool_))

    def __or__(self, other_rule: Flags) -> Flags:
        return Flags(
            self.is_judged | other_rule.is_judged,
            self.is_flagged | other_rule.is_flagged,
        )


@dataclass(frozen=True)
class Statements:
    """Items of measures on one page with the same answers, some of them reversed."""

    items: Sequence[str]
    is_reversed: Sequence[bool]
    # Without "don't know".
    options: Sequence[str]


def statements_of(version: SurveyVersion, content: Measures) -> list[Statements]:
    """Return the statements of each page that can show straight lines."""
    is_reversed = {
        item["name"]: item["reversed"]
        for measure in content["measures"]
        for item in measure["items"]
    }
    missing = {value for measure in content["measures"] for value in measure["missing"]}
    by_page: dict[tuple[int, str], list[str]] = {}
    for name in version.exported():
        item = version.items[name]
        if name in is_reversed:
            key = item["page"], item.get("option_set", "")
            by_page.setdefault(key, []).append(name)
    return [
        Statements(
            names,
            [is_reversed[name] for name in names],
            [
                option["value"]
                for option in version.options(version.items[names[0]])
                if option["value"] not in missing
            ],
        )
        for names in by_page.values()
        if len({is_reversed[name] for name in names}) == 2
    ]


def straight_lines(
    pages: Sequence[Statements], answers: Mapping[str, ItemCodes], people: int
) -> Flags:
    """Flag people with the same answer to all statements of every page.

    A page judges whoever answered four of its statements, and both a reversed one and
    another. The middle of an odd number of answers means the same either way.
    """
    is_judged = np.zeros(people, dtype=np.bool_)
    is_straight = np.ones(people, dtype=np.bool_)
    for page in pages:
        chosen = np.column_stack(
            [_places(answers[name], page.options) for name in page.items]
        )
        answered = chosen != MISSING
        reverse = np.array(page.is_reversed)
        judged = answered.sum(axis=1) >= FEWEST_STATEMENTS
        judged &= answered[:, reverse].any(axis=1) & answered[:, ~reverse].any(axis=1)
        highest = chosen.max(axis=1)
        lowest = np.where(answered, chosen, len(page.options)).min(axis=1)
        is_middle = 2 * highest == len(page.options) - 1
        is_judged |= judged
        is_straight &= ~judged | (highest == lowest) & ~is_middle
    return Flags(is_judged, is_judged & is_straight)


def _places(item: ItemCodes, options: Sequence[str]) -> NDArray[np.int8]:
    """Return the position of each person's answer in the options, or MISSING."""
    position = {value: place for place, value in enumerate(options)}
    lookup = np.full(VALUE + len(item.values), MISSING, dtype=np.int8)
    for place, value in enumerate(item.values):
        lookup[VALUE + place] = position.get(value, MISSING)
    return np.asarray(lookup[item.codes])


def fast_answers(administration: Administration, people: People) -> Flags:
    """Flag people who took less than two seconds for an answer. 1 statement."""
    flags = Flags.nobody(len(people))
    if not len(people):
        return flags
    with snapshot(Selection([administration], Places(state=True))) as database:
        connection = connections[database.alias]
        statement = PACE.format(
            seconds=SECONDS[connection.vendor], longest=LONGEST_SECONDS
        )
        with connection.cursor() as cursor:
            cursor.execute(statement, [administration.pk])
            paces = np.array(cursor.fetchall(), dtype=np.float64).reshape(-1, 3)
    ids, answers, seconds = paces.T
    place = np.searchsorted(people.ids, ids.astype(np.int64))
    place[place == len(people)] = 0
    is_known = people.ids[place] == ids
    is_judged = is_known & (answers >= FEWEST_ANSWERS)
    flags.is_judged[place[is_judged]] = True
    is_fast = is_judged & (seconds < LEAST_SECONDS * answers)
    flags.is_flagged[place[is_fast]] = True
    return flags
