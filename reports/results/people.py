"""Read the people who count in results, and the groups in which they count.

As in exports, people count who have started and have not opted out. As in response
rates, they count in their `CountedGroup`: a change of the roster never shows in the
results what one person has answered, also where it is no secret who has finished.
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
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connections
from numpy.typing import NDArray

from survey.models import Administration
from survey.taking.storage import as_datetime

Ints = NDArray[np.int64]

PEOPLE = """
    SELECT r.id, {finished}, {at}, {about}
    FROM survey_respondent r
    LEFT JOIN survey_countedgroup c ON c.respondent_id = r.id
    WHERE r.administration_id = {administration}
      AND r.started_at IS NOT NULL AND r.opted_out_at IS NULL
      AND (c.school_id IS NOT NULL
           OR c.respondent_id IS NULL AND r.withdrawn_at IS NULL)
"""
GROUPS = ("school_id", "grade", "language", "attributes")
GROUP = ", ".join(
    f"CASE WHEN c.respondent_id IS NULL THEN r.{name} ELSE c.{name} END"
    for name in GROUPS
)
# Control characters are escaped in JSON, so a line is a person.
COPY = "COPY ({people}) TO STDOUT (FORMAT csv, DELIMITER E'\\t', QUOTE E'\\x01')"


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
        if connection.vendor == "postgresql":
            statement = PEOPLE.format(
                administration=int(administration.pk),
                finished="(r.completed_at IS NOT NULL)::int",
                at="floor(extract(epoch FROM"
                " coalesce(r.completed_at, r.started_at)))::bigint",
                about=f"json_build_array({GROUP})",
            )
            cursor.copy_expert(COPY.format(people=statement), rows)
        else:
            statement = PEOPLE.format(
                administration=int(administration.pk),
                finished="r.completed_at IS NOT NULL",
                at="coalesce(r.completed_at, r.started_at)",
                about=GROUP,
            )
            cursor.execute(statement)
            for key, finished, at, *about in cursor.fetchall():
                rows.add(key, finished, _seconds(at), _json(about))
        cursor.execute("SELECT id, district_id FROM accounts_school")
        districts = dict(cursor.fetchall())
    return rows.people(districts)


class _Rows:
    """Collects people as arrays: as Python objects they would take a gigabyte."""

    def __init__(self) -> None:
        self.ids, self.at = array("q"), array("q")
        self.finished, self.group = array("b"), array("i")
        self.known: dict[bytes, int] = {}

    def write(self, line: bytes) -> None:
        key, finished, at, about = line.split(b"\t", 3)
        self.add(int(key), int(finished), int(at), about)

    def add(self, key: int, finished: int, at: int, about: bytes) -> None:
        self.ids.append(key)
        self.finished.append(finished)
        self.at.append(at)
        self.group.append(self.known.setdefault(about, len(self.known)))

    def people(self, districts: Mapping[int, int]) -> People:
        ids = np.array(self.ids, dtype=np.int64)
        order = np.argsort(ids)
        return People(
            ids[order],
            np.array(self.finished, dtype=np.bool_)[order],
            np.array(self.at, dtype=np.int64)[order],
            np.array(self.group, dtype=np.int64)[order],
            [Group(*json.loads(about)) for about in self.known],
            np.array([_hash(about) for about in self.known], dtype=np.uint64),
            districts,
        )


def _hash(about: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(about, digest_size=8).digest())


def _json(about: list[Any]) -> bytes:
    school, grade, language, attributes = about
    return json.dumps([school, grade, language, json.loads(attributes)]).encode()


def _seconds(moment: datetime | str) -> int:
    return int(as_datetime(moment).timestamp())
