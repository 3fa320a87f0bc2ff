"""Read all answers of an administration into one array of codes for each item.

Two million people with 60 items are 120 million rows, too many to fetch, and too many
different groups to count in the database: 14 people share a school, a grade and a
subgroup. So PostgreSQL makes one number of each answer, in one pass: person, item and
code. It joins the numbers of some pages of the table, and meanwhile those before are
sorted into arrays here. Items whose answers do not fit, such as numbers and multiple
choices, are fetched one answer at a time.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from django.conf import settings
from django.db import connections
from numpy.typing import NDArray

from reports.answers.binary_rows import BinaryRows
from reports.answers.people import People
from reports.answers.versions import SurveyVersion
from survey.models import Administration

# Codes of an item. From VALUE on they are places in `ItemCodes.values`.
NOT_REACHED, SKIPPED, NOT_APPLICABLE, ANSWERED, VALUE = range(5)
STATE_CODES = {"s": SKIPPED, "h": NOT_APPLICABLE}
Codes = NDArray[np.uint8] | NDArray[np.int32]

CODE_BITS = 8
# Each costs a comparison for every answer; from about so many on, fetching is faster.
MOST_PACKED_VALUES = 40
# Between the first key of an item and the last.
MOST_KEYS = 2**12

# Compiling its expressions, functions included, is worth it here. Several processes
# would read two million people in two thirds of the time, and on a machine that runs
# everything page saves would wait for seconds. Memory is for reading by person.
LIMITS = (
    "SET LOCAL work_mem = '512MB'; SET LOCAL jit = on;"
    " SET LOCAL jit_inline_above_cost = 100000;"
    " SET LOCAL jit_optimize_above_cost = 100000;"
    " SET LOCAL max_parallel_workers_per_gather = 0"
)
# About 14,000 answers, or 110 KB: the socket has room for them, so that PostgreSQL goes
# on while they are sorted here.
PAGES_AT_ONCE = 128
ANSWERS_AT_ONCE = 8192
# Multiplied, since a key that does not fit would be another one after a shift.
PACKED = """string_agg(int8send(
        x.respondent_id * {size} + ((x.item_id - {first}) << {code_bits}) + {code}
    ), '')"""
PACKED_IN_PAGES = """
COPY (
    SELECT (
        SELECT {packed}
        FROM survey_response x
        WHERE x.administration_id = {administration}
          AND x.item_id BETWEEN {first} AND {last}
          AND x.ctid >= format('(%s,0)', page)::tid
          AND x.ctid < format('(%s,0)', page + {pages})::tid
    )
    FROM generate_series(0, (
        SELECT pg_relation_size(x.tableoid) / current_setting('block_size')::int
        FROM survey_response x WHERE x.administration_id = {administration} LIMIT 1
    ), {pages}) page
) TO STDOUT (FORMAT binary)
"""
PACKED_BY_PERSON = """
COPY (
    SELECT {packed}
    FROM {responses}
    WHERE x.administration_id = {administration}
      AND x.item_id BETWEEN {first} AND {last}
    GROUP BY x.respondent_id
) TO STDOUT (FORMAT binary)
"""
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
# Of a binary row of one column.
ROW_HEADER = 6


@dataclass(slots=True)
class ItemCodes:
    """The answers of all people to one item, in the order of `People`."""

    codes: Codes
    values: list[str] = field(default_factory=list)


def read_answers(
    alias: str,
    administration: Administration,
    version: SurveyVersion,
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
        answers: dict[str, ItemCodes] = {}
        if packed.items:
            # On a cluster, the pages of a table are on several machines.
            in_pages = everyone and not settings.IS_DISTRIBUTED
            reader = PackedAnswers(packed, people)
            cursor.copy_expert(
                packed.statement(
                    PACKED_IN_PAGES if in_pages else PACKED_BY_PERSON,
                    administration,
                    responses,
                ),
                reader,
            )
            answers = reader.answers()
        singles = {key: name for key, name in stored.items() if name not in answers}
        if singles:
            rows = SingleAnswers(singles, needed)
            statement = SINGLE.format(
                responses=responses,
                administration=int(administration.pk),
                items=", ".join(map(str, singles)),
            )
            cursor.copy_expert(statement, rows)
            answers |= rows.codes(people)
    return answers


@dataclass(frozen=True)
class PackedItems:
    """The items that are read in one pass, and the codes of their values."""

    # By primary key.
    items: Mapping[int, str]
    values: Sequence[str]
    needed: Collection[str]

    @classmethod
    def choose(
        cls, version: SurveyVersion, stored: Mapping[int, str], needed: Collection[str]
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
        if chosen and max(chosen) - min(chosen) >= MOST_KEYS:
            chosen = {}
        return cls(chosen, list(values), needed)

    def statement(
        self, statement: str, administration: Administration, responses: str
    ) -> str:
        texts = " ".join(
            f"WHEN {_quoted(value)} THEN {code}"
            for code, value in enumerate(self.values, start=VALUE)
        )
        code = (
            f"CASE x.state WHEN 's' THEN {SKIPPED} WHEN 'h' THEN {NOT_APPLICABLE}"
            f" ELSE {ANSWERED} END"
        )
        if texts:
            # Most answers are one of these, so that their state is not compared.
            code = f"CASE x.value {texts} ELSE {code} END"
        first = min(self.items)
        packed = PACKED.format(
            size=1 << self.key_bits + CODE_BITS,
            first=first,
            code_bits=CODE_BITS,
            code=code,
        )
        return statement.format(
            packed=packed,
            responses=responses,
            administration=int(administration.pk),
            first=first,
            last=max(self.items),
            pages=PAGES_AT_ONCE,
        )

    @property
    def key_bits(self) -> int:
        """Return how many bits the key of an item takes, less the first key."""
        return (max(self.items) - min(self.items)).bit_length()


class PackedAnswers(BinaryRows):
    """Sorts packed answers by item and person while they are read."""

    def __init__(self, packed: PackedItems, people: People) -> None:
        self.packed, self.people = packed, people
        first = min(packed.items)
        # [item, person]. Keys between those of the items are not wanted.
        self.codes = np.zeros((len(packed.items), len(people)), dtype=np.uint8)
        self.row_of = np.full(1 << packed.key_bits, -1)
        for row, key in enumerate(packed.items):
            self.row_of[key - first] = row
        self.buffer = b""

    def add(self, row: bytes) -> None:
        # Without responses, the value is null.
        self.buffer += row[ROW_HEADER:]
        if len(self.buffer) >= 8 * ANSWERS_AT_ONCE:
            self._sort()

    def _sort(self) -> None:
        numbers = np.frombuffer(self.buffer, dtype=">i8").astype(np.int64)
        self.buffer = b""
        respondents = numbers >> (self.packed.key_bits + CODE_BITS)
        keys = (numbers >> CODE_BITS) & ((1 << self.packed.key_bits) - 1)
        # A page's answers are usually next to each other: one search for them.
        starts = np.flatnonzero(np.diff(respondents, prepend=-1))
        places = np.full(len(starts), -1)
        places_of_known, is_known = _places(respondents[starts], self.people)
        places[is_known] = places_of_known
        columns = np.repeat(places, np.diff(starts, append=len(numbers)))
        rows = self.row_of[keys]
        wanted = (columns >= 0) & (rows >= 0)
        codes = numbers[wanted] & (2**CODE_BITS - 1)
        self.codes[rows[wanted], columns[wanted]] = codes

    def answers(self) -> dict[str, ItemCodes]:
        if self.buffer:
            self._sort()
        values, needed = list(self.packed.values), self.packed.needed
        answers = {}
        for name, codes in zip(self.packed.items.values(), self.codes, strict=True):
            if name not in needed:
                np.minimum(codes, ANSWERED, out=codes)
            answers[name] = ItemCodes(codes, values if name in needed else [])
        return answers


class SingleAnswers:
    """Collects answers one at a time, and numbers the different ones of each item."""

    def __init__(self, items: Mapping[int, str], needed: Collection[str]) -> None:
        self.items = items
        self.needed = needed
        # By primary key of the item.
        self.known: dict[int, dict[bytes | str, int]] = {key: {} for key in items}
        self.people = {key: array("q") for key in items}
        self.code_arrays = {key: array("i") for key in items}
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
        self.code_arrays[key].append(code)

    def add(self, key: int, value: str | None, state: str) -> int:
        """Return the code of an answer that comes for the first time."""
        if value is None:
            return STATE_CODES[state]
        if self.items[key] not in self.needed:
            return ANSWERED
        self.values[key].append(value)
        return VALUE + len(self.values[key]) - 1

    def codes(self, people: People) -> dict[str, ItemCodes]:
        codes_by_item = {}
        for key, name in self.items.items():
            respondents = np.array(self.people[key], dtype=np.int64)
            places, known = _places(respondents, people)
            codes = np.zeros(len(people), dtype=np.int32)
            codes[places] = np.array(self.code_arrays[key], dtype=np.int32)[known]
            codes_by_item[name] = ItemCodes(codes, self.values[key])
        return codes_by_item


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
        batches = iter(lambda: cursor.fetchmany(1000), [])
        for person, key, state, value in chain.from_iterable(batches):
            if key not in stored:
                continue
            known = answers.known[key]
            answer = state if value is None else f"={value}"
            if answer not in known:
                known[answer] = answers.add(key, value, state)
            answers.people[key].append(person)
            answers.code_arrays[key].append(known[answer])
    return answers.codes(people)


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
