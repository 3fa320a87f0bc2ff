"""Find the schools whose results may have changed, and read their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

import numpy as np
from django.db import connections
from django.utils import timezone

from accounts.permissions import Places
from reports.answers.answer_mask import AnswerMask
from reports.answers.item_codes import ItemCodes, read_answers
from reports.answers.people import People, read_people
from reports.answers.rules import apply_rules
from reports.answers.selection import Selection
from reports.answers.snapshot import snapshot
from reports.answers.versions import SurveyVersion
from reports.models import CountedSchool, ResultsRollUp
from reports.rates.rollup import AFTER_CLOSING
from reports.releases.counting import who_answered
from reports.releases.frozen_people import SavedAt, released_people
from reports.releases.layout import CountedItem, DistinctNumbers, Layout
from survey.models import Administration
from survey.taking.storage import as_datetime

# An answer is committed some time after its `saved_at`.
LONGEST_SAVE = timedelta(minutes=5)
# From this share of the people on, all are counted in one pass.
LARGE_PART = 0.2


@dataclass
class LastRollUp:
    """What is stored of the roll-up before."""

    as_of: datetime
    written_at: datetime
    layout: Layout
    signatures: Mapping[int, int]
    districts: Mapping[int, int]
    numbers: Mapping[int, Mapping[str, DistinctNumbers]]
    software: str = ""
    # The `as_of` of the first release; None before it.
    released_at: datetime | None = None

    @classmethod
    def find(cls, administration: Administration) -> LastRollUp | None:
        """2 statements, or 1 before the first roll-up."""
        roll_up = ResultsRollUp.objects.filter(pk=administration.pk).first()
        if roll_up is None:
            return None
        rows = CountedSchool.objects.filter(administration=administration)
        names = ("school_id", "signature", "district_id", "numbers")
        schools = list(rows.values_list(*names))
        return cls(
            roll_up.as_of,
            roll_up.written_at,
            Layout.from_json(roll_up.layout),
            {school: signature for school, signature, _, _ in schools},
            {school: district for school, _, district, _ in schools},
            {
                school: {
                    name: DistinctNumbers.of(values, are_many=are_many)
                    for name, (values, are_many) in numbers.items()
                }
                for school, _, _, numbers in schools
            },
            roll_up.software,
            roll_up.released_at,
        )


@dataclass
class Recount:
    """What was read in one snapshot: the schools to count, and their answers."""

    as_of: datetime
    signatures: Mapping[int, int]
    districts: Mapping[int, int]
    # Schools that are counted, and those that are gone.
    schools: set[int]
    is_full: bool
    people: People
    answers: Mapping[str, ItemCodes]
    # When people have last saved who did so since the first release.
    saved: SavedAt = field(default_factory=dict)
    # Schools that keep the figures of an earlier release.
    kept_schools: set[int] = field(default_factory=set)

    def keep(self, schools: set[int]) -> None:
        """Leave the figures of these schools as they are."""
        if not schools:
            return
        self.kept_schools = schools
        self.is_full = False
        self.schools = self.schools - schools
        counted = ~np.isin(self.people.schools, list(schools))
        self.people = self.people.chosen(counted)
        self.answers = {
            name: ItemCodes(item.codes[counted], item.values)
            for name, item in self.answers.items()
        }


def read_changes(
    administration: Administration,
    version: SurveyVersion,
    items: Sequence[CountedItem],
    last: LastRollUp | None,
    *,
    of_release: bool = False,
) -> Recount:
    """Read the schools that may have changed since `last`, or all without it.

    After a release, all are read, to be compared with it. With `of_release`, the people
    are those of the release, if there is one.
    """
    released_at = last.released_at if last else None
    if last is not None and list(last.layout.items) != list(items):
        # The administration was given another survey before anybody answered.
        last = None
    mask = AnswerMask(version, timezone.get_default_timezone())
    needed = {item.name for item in items if item.measured != "text"}
    needed.update(mask.inputs.values())
    selection = Selection([administration], Places(state=True))
    with snapshot(selection) as database:
        as_of = _read_as_of(database.alias)
        people = released_people(administration) if of_release else None
        people = people or read_people(database.alias, administration)
        signatures, districts = people.signatures(), people.districts
        schools = set(signatures)
        is_full = True
        saved: SavedAt = {}
        if last is not None:
            schools |= last.signatures.keys()
            if released_at is None:
                changed = _changed_schools(
                    database.alias, administration, last, people, signatures
                )
                some = people.in_schools(changed)
                is_full = len(some) > LARGE_PART * len(people)
                if not is_full:
                    schools, people = changed, some
            elif released_at < administration.closes_at + AFTER_CLOSING:
                saved = saved_since(database.alias, administration, released_at)
        answers = read_answers(
            database.alias,
            administration,
            version,
            people,
            needed=needed,
            everyone=is_full,
        )
    answered = who_answered(answers, people)
    people = people.chosen(answered)
    for item in answers.values():
        item.codes = item.codes[answered]
    answers = apply_rules(version, mask, answers, people)
    return Recount(
        as_of, signatures, districts, schools, is_full, people, answers, saved
    )


def _changed_schools(
    alias: str,
    administration: Administration,
    last: LastRollUp,
    people: People,
    signatures: Mapping[int, int],
) -> set[int]:
    """Return the schools whose people, or their answers, have changed since `last`."""
    schools = {
        school
        for school in signatures.keys() | last.signatures.keys()
        if signatures.get(school) != last.signatures.get(school)
    }
    if last.as_of < administration.closes_at + AFTER_CLOSING + LONGEST_SAVE:
        savers = saved_since(alias, administration, last.as_of - LONGEST_SAVE)
        has_saved = np.isin(people.ids, list(savers))
        schools |= set(people.schools[has_saved].tolist())
    return schools


def _read_as_of(alias: str) -> datetime:
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        # The snapshot may be newer than this, and never older.
        cursor.execute(
            "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_xact_replay_timestamp()"
            " ELSE clock_timestamp() END"
        )
        return cast("datetime", cursor.fetchone()[0])


def saved_since(
    alias: str, administration: Administration, since: datetime
) -> dict[int, datetime]:
    """Return the last save of each person who has saved since a moment."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT respondent_id, max(saved_at) FROM survey_response"
            " WHERE administration_id = %s AND saved_at >= %s GROUP BY respondent_id",
            [administration.pk, connection.ops.adapt_datetimefield_value(since)],
        )
        return {key: as_datetime(moment) for key, moment in cursor.fetchall()}
