"""Read the people who count in results, and the groups in which they count.

As in exports, people count who have started, and neither opted out nor declined. As in
response rates, they count in their `CountedGroup`: a change of the roster never shows
in the results what one person has answered, also where it is no secret who has
finished.
So people who left the roster count no more, and people who joined it count, as soon
as enough others did the same. Of all these, `counting` keeps those who answered at
least one item, finished or not. People who were deleted, and trial links of a
survey, have no respondent and are nowhere.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from django.db import connections
from numpy.typing import NDArray

from reports.answers.binary_rows import BinaryRows
from survey.models import Administration
from survey.taking.storage import as_datetime

Ints = NDArray[np.int64]

PEOPLE = """
    SELECT r.id, {finished}, {at}, {group}
    FROM survey_respondent r
    LEFT JOIN survey_countedgroup c ON c.respondent_id = r.id
    WHERE r.administration_id = {administration}
      AND r.started_at IS NOT NULL AND r.opted_out_at IS NULL AND r.declined_at IS NULL
      AND (c.school_id IS NOT NULL
           OR c.respondent_id IS NULL AND r.withdrawn_at IS NULL)
"""
# The columns of a person's group as one text: making JSON of them takes PostgreSQL
# twice as long. School, attributes (which are JSON, and so without this character), the
# length of the grade, and then grade and language, which may have any character.
SEPARATOR = "\x1f"
FROM_ROSTER, AS_COUNTED = (
    f"{table}.school_id || chr(31) || {table}.attributes || chr(31)"
    f" || length({table}.grade) || chr(31) || {table}.grade || {table}.language"
    for table in "rc"
)
GROUP = f"CASE WHEN c.respondent_id IS NULL THEN {FROM_ROSTER} ELSE {AS_COUNTED} END"
COPY = "COPY ({people}) TO STDOUT (FORMAT binary)"
# A row of it before the text: the number of columns, and the length of each before it.
ROW = np.dtype(
    [
        ("columns", ">i2"),
        *(("bytes of id", ">i4"), ("id", ">i8")),
        *(("bytes of finished", ">i4"), ("finished", "?")),
        *(("bytes of at", ">i4"), ("at", ">i8")),
        ("bytes of group", ">i4"),
    ]
)


@dataclass(frozen=True, slots=True)
class Group:
    """What people have in common."""

    school: int
    grade: str
    language: str
    attributes: Mapping[str, Any]


@dataclass
class People:
    """People, sorted by their keys."""

    ids: Ints
    finished: NDArray[np.bool_]
    # Unix times of finishing, or else of starting: rules that read the clock use it.
    at: Ints
    # Positions in `groups`.
    group: Ints
    groups: list[Group]
    # A hash of each group.
    hashes: NDArray[np.uint64]
    # School -> its district.
    districts: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def schools(self) -> Ints:
        of_groups = [group.school for group in self.groups]
        return np.array(of_groups, dtype=np.int64)[self.group]

    def chosen(self, which: NDArray[np.bool_]) -> People:
        return People(
            self.ids[which],
            self.finished[which],
            self.at[which],
            self.group[which],
            self.groups,
            self.hashes,
            self.districts,
        )

    def in_schools(self, schools: Collection[int]) -> People:
        return self.chosen(np.isin(self.schools, list(schools)))

    def signatures(self) -> dict[int, int]:
        """Return a hash of each school's people that changes if any of them does."""
        hashes = self.ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= self.at.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        hashes += self.hashes[self.group] + self.finished
        for shift in (31, 29):
            hashes ^= hashes >> np.uint64(shift)
            hashes *= np.uint64(0xBF58476D1CE4E5B9)
        schools, places = np.unique(self.schools, return_inverse=True)
        sums = np.zeros(len(schools), dtype=np.uint64)
        np.add.at(sums, places, hashes)
        # Moving a school changes the figures of both districts.
        districts = [self.districts[school] for school in schools.tolist()]
        sums += np.array(districts, dtype=np.uint64) * np.uint64(0x94D049BB133111EB)
        return dict(zip(schools.tolist(), sums.view(np.int64).tolist(), strict=True))


def read_people(alias: str, administration: Administration) -> People:
    """Read everyone who may count; 2 statements, in the transaction that is open."""
    connection = connections[alias]
    rows = _Rows()
    with connection.cursor() as cursor:
        statement = partial(
            PEOPLE.format,
            administration=int(administration.pk),
            finished="r.completed_at IS NOT NULL",
        )
        if connection.vendor == "postgresql":
            at = "date_part('epoch', coalesce(r.completed_at, r.started_at))"
            people = statement(at=f"floor({at})::bigint", group=GROUP)
            cursor.copy_expert(COPY.format(people=people), rows)
        else:
            at = "coalesce(r.completed_at, r.started_at)"
            cursor.execute(statement(at=at, group=GROUP.replace("chr(31)", "char(31)")))
            for key, finished, moment, group in cursor.fetchall():
                seconds = int(as_datetime(moment).timestamp())
                rows.add_person(key, finished, seconds, group.encode())
        cursor.execute("SELECT id, district_id FROM accounts_school")
        districts = dict(cursor.fetchall())
    return rows.people(districts)


class _Rows(BinaryRows):
    """Collects people as bytes: as Python objects they would take a gigabyte."""

    def __init__(self) -> None:
        self.rows, self.group = bytearray(), array("i")
        self.known: dict[bytes, int] = {}

    def add(self, row: bytes) -> None:
        self.rows += row[: ROW.itemsize]
        self.group.append(self.known.setdefault(row[ROW.itemsize :], len(self.known)))

    def add_person(self, key: int, finished: bool, at: int, group: bytes) -> None:
        row = np.array((4, 8, key, 1, finished, 8, at, len(group)), dtype=ROW)
        self.add(row.tobytes() + group)

    def people(self, districts: Mapping[int, int]) -> People:
        rows = np.frombuffer(self.rows, dtype=ROW)
        ids = rows["id"].astype(np.int64)
        order = np.argsort(ids)
        hashes = [
            int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
            for text in self.known
        ]
        return People(
            ids[order],
            rows["finished"][order],
            rows["at"].astype(np.int64)[order],
            np.array(self.group, dtype=np.int64)[order],
            [_group(text.decode()) for text in self.known],
            np.array(hashes, dtype=np.uint64),
            districts,
        )


def _group(text: str) -> Group:
    school, attributes, length, texts = text.split(SEPARATOR, 3)
    grade, language = texts[: int(length)], texts[int(length) :]
    return Group(int(school), grade, language, json.loads(attributes))
