"""Store the people of a release, and compare them with those of the next one.

Readers have seen the figures of every release. If only a few people of a group differ
between two of them, the difference of the figures is how these few answered.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from reports.answers.item_codes import ANSWERED, ItemCodes
from reports.answers.people import Group, Ints, People
from reports.models import CountedSchool, FormerPeople
from reports.releases.counting import value_of
from survey.models import Administration, ErasedRecord

# Last save of each person who saved after the first of some releases.
SavedAt = Mapping[int, datetime]


@dataclass(frozen=True)
class SchoolPeople:
    """The people of a school in a release, sorted by their keys."""

    ids: Ints
    # Unix times of finishing, or else of starting.
    at: Ints
    finished: NDArray[np.bool_]
    # Positions in `groups`.
    group: Ints
    groups: Sequence[Group]
    # Names of items, and who has answered them: a bit for each item.
    items: Sequence[str] = ()
    answered: NDArray[np.uint8] | None = None
    counted_at: datetime | None = None

    def rows_of(self, ids: Ints) -> Ints:
        """Return the rows of people, and -1 for others."""
        rows = np.searchsorted(self.ids, ids)
        rows[rows == len(self.ids)] = -1
        is_known = np.zeros(len(ids), dtype=np.bool_)
        if len(self.ids):
            is_known = self.ids[rows] == ids
        return np.where(is_known, rows, -1)

    @property
    def progress(self) -> Ints:
        """Return a number for each person that finishing changes, and a last one."""
        return np.append(2 * self.at + self.finished, -1)

    def values(self, attribute: str) -> list[str]:
        """Return the value of an attribute in each group."""
        return [value_of(attribute, group) for group in self.groups]

    def codes(self, attribute: str, values: Sequence[str]) -> Ints:
        """Return the position of each person's value, and -1 after the last person."""
        position = {value: code for code, value in enumerate(values)}
        of_groups = [position[value] for value in self.values(attribute)]
        codes = np.array([*of_groups, -1], dtype=np.int64)
        return codes[np.append(self.group, len(of_groups))]


NOTHING = np.zeros(0, dtype=np.int64)
NOBODY = SchoolPeople(NOTHING, NOTHING, NOTHING.astype(np.bool_), NOTHING, [])


def packed(people: SchoolPeople) -> bytes:
    groups = [
        [group.grade, group.language, group.attributes] for group in people.groups
    ]
    header = json.dumps(
        {"groups": groups, "items": list(people.items)}, separators=(",", ":")
    ).encode()
    arrays = (
        np.diff(people.ids, prepend=0).astype("<i8"),
        people.at.astype("<i8"),
        people.group.astype("<i4"),
        people.finished.astype("u1"),
    )
    numbers = b"".join(array.tobytes() for array in arrays)
    if people.answered is not None:
        numbers += people.answered.tobytes()
    return zlib.compress(header + b"\n" + numbers, 1)


def unpacked(
    stored: bytes | memoryview, school: int, counted_at: datetime | None
) -> SchoolPeople:
    header, _, numbers = zlib.decompress(stored).partition(b"\n")
    about = json.loads(header)
    groups = [Group(school, *group) for group in about["groups"]]
    width = -(-len(about["items"]) // 8)
    size = len(numbers) // (21 + width)
    ids, at = np.frombuffer(numbers, "<i8", 2 * size).reshape(2, size)
    group = np.frombuffer(numbers, "<i4", size, 16 * size).astype(np.int64)
    finished = np.frombuffer(numbers, "u1", size, 20 * size).astype(np.bool_)
    answered = np.frombuffer(numbers, "u1", width * size, 21 * size)
    return SchoolPeople(
        *(np.cumsum(ids), at, finished, group, groups, about["items"]),
        answered.reshape(size, width),
        counted_at,
    )


def answered_bits(
    items: Sequence[str], answers: Mapping[str, ItemCodes], people: People
) -> NDArray[np.uint8]:
    """Return a bit for each person and item: whether it was answered."""
    bits = np.zeros((len(people), -(-len(items) // 8)), dtype=np.uint8)
    for number, name in enumerate(items):
        byte, bit = divmod(number, 8)
        bits[:, byte] |= (answers[name].codes >= ANSWERED).astype(np.uint8) << (7 - bit)
    return bits


def by_school(
    people: People,
    items: Sequence[str] = (),
    answered: NDArray[np.uint8] | None = None,
) -> dict[int, SchoolPeople]:
    """Divide people by their schools. `answered` is as from `answered_bits`."""
    if not len(people):
        return {}
    schools = people.schools
    order = np.argsort(schools, kind="stable")
    keys, starts = np.unique(schools[order], return_index=True)
    people_of = {}
    for key, rows in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
        used, group = np.unique(people.group[rows], return_inverse=True)
        people_of[key] = SchoolPeople(
            people.ids[rows],
            people.at[rows],
            people.finished[rows],
            group,
            [people.groups[position] for position in used.tolist()],
            items,
            None if answered is None else answered[rows],
        )
    return people_of


def released_people(administration: Administration) -> People | None:
    """Return the people of the release; None without one. 1 statement."""
    rows = CountedSchool.objects.filter(
        administration=administration,
        administration__results_roll_up__released_at__isnull=False,
    ).exclude(people=b"")
    schools, districts = [], {}
    for school, district, people in rows.values_list(
        "school_id", "district_id", "people"
    ).iterator():
        schools.append(unpacked(people, school, None))
        districts[school] = district
    if not schools:
        return None
    starts = np.cumsum([0, *(len(frozen.groups) for frozen in schools[:-1])])
    ids = np.concatenate([frozen.ids for frozen in schools])
    order = np.argsort(ids)
    groups = [group for frozen in schools for group in frozen.groups]
    group = [
        frozen.group + start for frozen, start in zip(schools, starts, strict=True)
    ]
    return People(
        ids[order],
        np.concatenate([frozen.finished for frozen in schools])[order],
        np.concatenate([frozen.at for frozen in schools])[order],
        np.concatenate(group)[order],
        groups,
        np.zeros(len(groups), dtype=np.uint64),
        districts,
    )


def counts_erased_people(administration: Administration) -> bool:
    """Test if the release has figures of people whose answers were erased since.

    So it is where all answers were destroyed. 1 statement; 1 more where people were
    erased.
    """
    if administration.answers_destroyed_at is not None:
        return True
    erased = ErasedRecord.objects.filter(
        administration=administration, erased_at__isnull=False
    )
    keys = np.sort(np.fromiter(erased.values_list("pk", flat=True), dtype=np.int64))
    if not len(keys):
        return False
    people = released_people(administration)
    return people is not None and bool(np.isin(keys, people.ids).any())


def schools_to_keep(
    administration: Administration,
    now: People,
    schools: Iterable[int],
    saved: SavedAt,
    attributes: Sequence[str],
) -> set[int]:
    """Return the schools in which a few people differ from an earlier release.

    Few are fewer than the minimum group, among everyone or in a group. A school that is
    new, gone or moved is a part of the figures of its district, so it stays out or in
    if it has so few people. `saved` is when people have last saved. 2 statements.
    """
    earlier: defaultdict[int, list[SchoolPeople]] = defaultdict(list)
    for model in (CountedSchool, FormerPeople):
        rows = model.objects.filter(administration=administration)
        for school, people, counted_at in rows.values_list(
            "school_id", "people", "counted_at"
        ).iterator():
            earlier[school].append(unpacked(people, school, counted_at))
    people_of = by_school(now)
    minimum = administration.minimum_group
    return {
        school
        for school in schools
        for before in earlier.get(school, [NOBODY])
        if differ_by_few(
            before, people_of.get(school, NOBODY), saved, attributes, minimum
        )
    }


def differ_by_few(
    before: SchoolPeople,
    now: SchoolPeople,
    saved: SavedAt,
    attributes: Sequence[str],
    minimum: int,
) -> bool:
    """Test if between one and `minimum` - 1 people of any group differ.

    A person differs who came, left, or has saved or finished since.
    """
    ids = np.union1d(before.ids, now.ids)
    # The row of each person; -1 for people who did not count.
    first, second = before.rows_of(ids), now.rows_of(ids)
    changed = before.progress[first] != now.progress[second]
    if saved:
        since = before.counted_at
        changed |= [
            key in saved and (since is None or saved[key] >= since)
            for key in ids.tolist()
        ]
    for attribute in attributes:
        values = sorted({*before.values(attribute), *now.values(attribute)})
        former = before.codes(attribute, values)[first]
        current = now.codes(attribute, values)[second]
        moved = former != current
        differing = np.bincount(
            np.concatenate([former[moved | changed], current[moved]]) + 1,
            minlength=len(values) + 1,
        )[1:]
        if ((differing > 0) & (differing < minimum)).any():
            return True
    return False
