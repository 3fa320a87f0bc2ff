"""Read all answers of an administration into one array of codes for each item.

Two million people with 60 items are 120 million rows, too many to fetch, and too many
different groups to count in the database: 14 people share a school, a grade and a
subgroup. So PostgreSQL makes one row for each person, in one pass: the code of an
answer takes four bits, and 15 items fit into a number. Items whose answers do not
fit, such as numbers and multiple choices, are fetched one answer at a time.
"""

from __future__ import annotations

import io
import json
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from django.db import connections
from django.db.backends.utils import CursorWrapper
from numpy.typing import NDArray

from reports.exports.columns import ExportVersion
from reports.results.people import People
from survey.models import Administration

# Codes of an item. From VALUE on they are places in `ItemCodes.values`.
NOT_REACHED, SKIPPED, NOT_APPLICABLE, ANSWERED, VALUE = range(5)
STATE_CODES = {"s": SKIPPED, "h": NOT_APPLICABLE}
Codes = NDArray[np.uint8] | NDArray[np.int32]

BITS, PER_WORD = 4, 15
MOST_PACKED_VALUES = 2**BITS - VALUE
# More words would make the pass slower than fetching the answers of these items.
MOST_WORDS = 20

# The hash table has an entry for each person. 2 million need 400 MB, and without them
# PostgreSQL would sort the responses on disk. Compiling its expressions is worth it
# here: 0.54 instead of 0.81 us of a processor for each response. Several processes
# would read two million people in 19 instead of 26 s, and on a machine that runs
# everything page saves would wait for seconds.
LIMITS = (
    "SET LOCAL work_mem = '512MB'; SET LOCAL jit = on;"
    " SET LOCAL max_parallel_workers_per_gather = 0"
)
PACKED = """
COPY (
    SELECT x.respondent_id, {words}
    FROM {responses}
    WHERE x.administration_id = {administration}
      AND x.item_id BETWEEN {first} AND {last}
    GROUP BY x.respondent_id
) TO STDOUT (FORMAT binary)
"""
WORD = """coalesce(bit_or(CASE WHEN x.item_id BETWEEN {first} AND {last}
        THEN {code} << ((x.item_id - {first}) * {bits})::int END), 0)"""
SINGLE = """
COPY (
    SELECT x.respondent_id, x.item_id, coalesce(to_json(x.value)::text, x.state)
    FROM {responses}
    WHERE x.administration_id = {administration} AND x.item_id IN ({items})
) TO STDOUT (FORMAT csv, DELIMITER E'\\t', QUOTE E'\\x01')
"""
SINGLE_SQLITE = """
SELECT x.respondent_id, x.item_id, x.state, x.value FROM survey_response x
WHERE x.administration_id = %s
"""
# Bytes before the first row of a binary COPY: a signature, flags and a length of 0.
BINARY_HEADER = 19


@dataclass(slots=True)
class ItemCodes:
    """The answers of all people to one item, in the order of `People`."""

    codes: Codes
    values: list[str] = field(default_factory=list)


def read_answers(
    alias: str,
    administration: Administration,
    version: ExportVersion,
    people: People,
    *,
    needed: Collection[str],
    everyone: bool = True,
) -> dict[str, ItemCodes]:
    """Return the stored answers by item, before any rule is applied.

    Without a value where `needed` does not name the item. Unless `everyone` is asked
    for, PostgreSQL looks up the rows of these people. At most 3 statements, or 1 on
    SQLite, in the transaction that is open.
    """
    stored = {
        int(version.items[name]["id"]): name
        for name in version.exported()
        if not version.is_computed(name)
    }
    if connections[alias].vendor != "postgresql":
        return _read_sqlite(alias, administration, stored, needed, people)
    packed = PackedItems.choose(version, stored, needed)
    responses = "survey_response x"
    if not everyone:
        keys = ",".join(map(str, people.ids.tolist()))
        responses = (
            f"unnest('{{{keys}}}'::bigint[]) AS r (id)"
            " JOIN survey_response x ON x.respondent_id = r.id"
        )
    with connections[alias].cursor() as cursor:
        cursor.execute(LIMITS)
        found = {}
        if packed.items:
            buffer = io.BytesIO()
            cursor.copy_expert(packed.statement(administration, responses), buffer)
            found = packed.decode(buffer, people)
            del buffer
        singles = {key: name for key, name in stored.items() if name not in found}
        if singles:
            rows = SingleAnswers(singles, needed)
            statement = SINGLE.format(
                responses=responses,
                administration=int(administration.pk),
                items=", ".join(map(str, singles)),
            )
            cursor.copy_expert(statement, rows)
            found |= rows.codes(people)
    return found


@dataclass(frozen=True)
class PackedItems:
    """The items that are read in one pass, and the codes of their values."""

    # By primary key.
    items: Mapping[int, str]
    values: Sequence[str]
    needed: Collection[str]

    @classmethod
    def choose(
        cls, version: ExportVersion, stored: Mapping[int, str], needed: Collection[str]
    ) -> PackedItems:
        """Take choices that share a few values, and items without a value."""
        values: dict[str, None] = {}
        chosen = {}
        for key, name in stored.items():
            item = version.items[name]
            if name in needed:
                options = {option["value"]: None for option in version.options(item)}
                is_single = options and item["kind"] != "select_multiple"
                if not is_single or len(values | options) > MOST_PACKED_VALUES:
                    continue
                values |= options
            chosen[key] = name
        # The keys of a survey are usually next to each other.
        if chosen and max(chosen) - min(chosen) >= MOST_WORDS * PER_WORD:
            chosen = {}
        return cls(chosen, list(values), needed)

    def statement(self, administration: Administration, responses: str) -> str:
        texts = " ".join(
            f"WHEN {_quoted(value)} THEN {code}"
            for code, value in enumerate(self.values, start=VALUE)
        )
        value = f"CASE x.value {texts} ELSE {ANSWERED} END" if texts else f"{ANSWERED}"
        code = (
            f"(CASE x.state WHEN 's' THEN {SKIPPED} WHEN 'h' THEN {NOT_APPLICABLE}"
            f" ELSE {value} END)::bigint"
        )
        words = [
            WORD.format(first=first, last=first + PER_WORD - 1, code=code, bits=BITS)
            for first in self._words()
        ]
        return PACKED.format(
            words=", ".join(words),
            responses=responses,
            administration=int(administration.pk),
            first=min(self.items),
            last=max(self.items),
        )

    def _words(self) -> range:
        return range(min(self.items), max(self.items) + 1, PER_WORD)

    def decode(self, buffer: io.BytesIO, people: People) -> dict[str, ItemCodes]:
        words = self._words()
        numbers = [("respondent", ">i8")]
        numbers += [(str(first), ">i8") for first in words]
        fields = [("fields", ">i2")]
        for name, kind in numbers:
            fields += [(f"bytes {name}", ">i4"), (name, kind)]
        row = np.dtype(fields)
        data = buffer.getbuffer()[BINARY_HEADER:-2]
        rows = np.frombuffer(data, dtype=row)
        places, known = _places(rows["respondent"].astype(np.int64), people)
        found = {}
        for first in words:
            word = np.zeros(len(people), dtype=np.int64)
            word[places] = rows[str(first)][known]
            for key in range(first, first + PER_WORD):
                if key not in self.items:
                    continue
                name = self.items[key]
                codes = ((word >> ((key - first) * BITS)) & (2**BITS - 1)).astype(
                    np.uint8
                )
                if name not in self.needed:
                    np.minimum(codes, ANSWERED, out=codes)
                values = list(self.values) if name in self.needed else []
                found[name] = ItemCodes(codes, values)
        return found


class SingleAnswers:
    """Collects answers one at a time, and numbers the different ones of each item."""

    def __init__(self, items: Mapping[int, str], needed: Collection[str]) -> None:
        self.items = items
        self.needed = needed
        # By primary key of the item.
        self.known: dict[int, dict[bytes | str, int]] = {key: {} for key in items}
        self.people = {key: array("q") for key in items}
        self.found = {key: array("i") for key in items}
        self.values: dict[int, list[str]] = {key: [] for key in items}

    def write(self, line: bytes) -> None:
        person, item, answer = line.split(b"\t", 2)
        key = int(item)
        code = self.known[key].get(answer)
        if code is None:
            text = answer.rstrip(b"\n").decode()
            is_value = text.startswith('"')
            code = self.add(key, json.loads(text) if is_value else None, text)
            self.known[key][answer] = code
        self.people[key].append(int(person))
        self.found[key].append(code)

    def add(self, key: int, value: str | None, state: str) -> int:
        """Return the code of an answer that comes for the first time."""
        if value is None:
            return STATE_CODES[state]
        if self.items[key] not in self.needed:
            return ANSWERED
        self.values[key].append(value)
        return VALUE + len(self.values[key]) - 1

    def codes(self, people: People) -> dict[str, ItemCodes]:
        found = {}
        for key, name in self.items.items():
            respondents = np.array(self.people[key], dtype=np.int64)
            places, known = _places(respondents, people)
            codes = np.zeros(len(people), dtype=np.int32)
            codes[places] = np.array(self.found[key], dtype=np.int32)[known]
            found[name] = ItemCodes(codes, self.values[key])
        return found


def _read_sqlite(
    alias: str,
    administration: Administration,
    stored: Mapping[int, str],
    needed: Collection[str],
    people: People,
) -> dict[str, ItemCodes]:
    answers = SingleAnswers(stored, needed)
    with connections[alias].cursor() as cursor:
        cursor.execute(SINGLE_SQLITE, [administration.pk])
        for person, key, state, value in _rows(cursor):
            if key not in stored:
                continue
            known = answers.known[key]
            answer = state if value is None else f"={value}"
            if answer not in known:
                known[answer] = answers.add(key, value, state)
            answers.people[key].append(person)
            answers.found[key].append(known[answer])
    return answers.codes(people)


def _rows(cursor: CursorWrapper) -> Iterator[tuple[int, int, str, str | None]]:
    return chain.from_iterable(iter(lambda: cursor.fetchmany(1000), []))


def _places(
    respondents: NDArray[np.int64], people: People
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the places of the respondents who count, and who of them do."""
    if not len(people):
        return np.zeros(0, dtype=np.int64), np.zeros(len(respondents), dtype=np.bool_)
    places = np.searchsorted(people.ids, respondents)
    places[places == len(people)] = 0
    known = people.ids[places] == respondents
    return places[known], known


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
