"""Count the roster by its groups, to compare the people who answered with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connections

from reports.rasch.responses import Floats
from reports.releases.counting import GRADE
from reports.technical.diagnostics import LANGUAGE, GroupedPeople
from reports.technical.estimates import Codes, Raked, rake
from survey.database.replica.reports import reports_database
from survey.models import Administration, Denominator

# As in response rates: people count in their `CountedGroup`.
ROSTER = """
SELECT CASE WHEN c.respondent_id IS NULL THEN r.grade ELSE c.grade END,
       CASE WHEN c.respondent_id IS NULL THEN r.language ELSE c.language END,
       CASE WHEN c.respondent_id IS NULL THEN r.attributes ELSE c.attributes END,
       count(*), count(r.started_at),
       count(CASE WHEN r.declined_at IS NULL THEN r.completed_at END)
FROM survey_respondent r
LEFT JOIN survey_countedgroup c ON c.respondent_id = r.id
WHERE r.administration_id = %s AND r.open_code_id IS NULL
  AND (c.school_id IS NOT NULL
       OR c.respondent_id IS NULL AND r.withdrawn_at IS NULL)
GROUP BY 1, 2, 3
"""
# Weights from fewer people on the roster than these would be chance.
SMALLEST_MARGIN = 30


@dataclass(frozen=True)
class RosterGroup:
    """How many people of a group are on the roster, have started and have finished."""

    attribute: str
    value: str
    eligible: int
    started: int
    finished: int


def roster_groups(
    administration: Administration, attributes: Sequence[str]
) -> list[RosterGroup]:
    """Return the roster by each attribute, "" for everyone. 1 statement.

    Nothing where people come by an open code, or are only counted.
    """
    if administration.denominator == Denominator.COUNT:
        return []
    with connections[reports_database()].cursor() as cursor:
        cursor.execute(ROSTER, [administration.pk])
        rows = cursor.fetchall()
    counts: Counter[tuple[str, str, int]] = Counter()
    for grade, language, stored, *numbers in rows:
        values = json.loads(stored) if isinstance(stored, str) else stored or {}
        values |= {"": "", GRADE: grade, LANGUAGE: language}
        for attribute in attributes:
            for place, number in enumerate(numbers):
                counts[attribute, str(values.get(attribute, "")), place] += number
    groups = sorted(
        {key[:2] for key in counts}, key=lambda key: (attributes.index(key[0]), key[1])
    )
    return [
        RosterGroup(*key, counts[*key, 0], counts[*key, 1], counts[*key, 2])
        for key in groups
    ]


def roster_weights(
    roster: Sequence[RosterGroup], grouped: Sequence[GroupedPeople]
) -> tuple[Raked, list[str]] | None:
    """Weight the people who answered to the roster; return the attributes used too.

    None if there is no attribute with two groups of some size in which people have
    answered. Smaller groups are one.
    """
    margins: list[tuple[Codes, Floats]] = []
    names = []
    for people in grouped:
        eligible = {
            group.value: group.eligible
            for group in roster
            if group.attribute == people.attribute
        }
        counts = np.bincount(people.of_person, minlength=len(people.values))
        large = [
            place
            for place, value in enumerate(people.values)
            if value and min(eligible.get(value, 0), counts[place]) >= SMALLEST_MARGIN
        ]
        if len(large) < 2:
            continue
        # The last code is that of the small groups together.
        codes = np.full(len(people.values), len(large))
        codes[large] = range(len(large))
        shares = np.array([eligible[people.values[place]] for place in large], float)
        rest = sum(eligible.values()) - shares.sum()
        margins.append((codes[people.of_person], np.append(shares, max(rest, 1e-9))))
        names.append(people.attribute)
    return (rake(margins), names) if margins else None
