"""From lines of the stream to rows of pieces, some thousand people at a time.

Respondents who answered the same items go together, and are worked on column
by column: each different answer to an item is encoded once and counted at the
same time, so that nearly all of the work is done inside of the interpreter.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from reports.exports.cells import NUMERIC_CODE, Cell, Writer, number_or_text
from reports.exports.columns import (
    CHOICES,
    NUMBERS,
    Columns,
    Tally,
    Variable,
    Version,
)
from reports.exports.masking import Rules
from reports.exports.missing import Missing
from reports.exports.snapshot import FIELDS, NOT_APPLICABLE, SKIPPED
from survey.definitions.schema import ItemDefinition
from survey.models import Administration

# Encoded answers that an item remembers, of those that come again.
MOST_KEPT = 5_000
# So many seconds have one date everywhere: no zone begins its day in between.
QUARTER = 900

IDENTITY = ("external_id", "given_name", "family_name", "email", "birth_date")
PLACE = ("district_code", "district_name", "school_code", "school_name")


class StrangeLine(Exception):
    """A line is not what the reader was to make of it."""


@dataclass(frozen=True)
class Plan:
    """What is to be made of the answers, the same for every format."""

    columns: Columns
    administrations: Mapping[int, Administration]
    # School -> district's code and name, school's code and name.
    schools: Mapping[int, tuple[str, str, str, str]]
    # Names of the roster's further columns.
    attributes: Sequence[str]
    missing: Missing
    language: str
    labels: bool
    zone: tzinfo
    # Respondents -> their IDENTITY cells; None without names.
    identities: Callable[[Sequence[int]], Mapping[int, Sequence[str]]] | None = None

    def respondent_columns(self) -> list[str]:
        return self.columns.beside(self.plain_respondent_columns())

    def plain_respondent_columns(self) -> list[str]:
        """As they are called where no item has the same name."""
        return [
            "research_id",
            *(IDENTITY if self.identities else ()),
            "administration",
            "survey_version",
            *PLACE,
            "role",
            "grade",
            "language",
            *self.attributes,
            "started",
            "finished",
            "withdrawn",
        ]


@dataclass(slots=True)
class Person:
    """A line of the stream, taken apart."""

    research_id: str
    administration: str
    key: int
    school: str
    started: str
    completed: str
    withdrawn: str
    about: str
    items: str
    answers: list[str]
    saved: str

    @classmethod
    def of(cls, line: bytes) -> Person:
        fields = line[:-1].decode().split("\t")
        if len(fields) != FIELDS + 1:
            raise StrangeLine(f"{len(fields)} fields")
        return cls(
            research_id=fields[0],
            administration=fields[1],
            key=int(fields[2]),
            school=fields[3],
            started=fields[4],
            completed=fields[5],
            withdrawn=fields[6],
            about=fields[7],
            items=fields[8],
            answers=fields[9].split("\x1f")[1:],
            saved=fields[10],
        )


@dataclass
class Reader:
    """One item in one version: encodes its answers, and counts them."""

    item: ItemDefinition
    version: Version
    variable: Variable
    tally: Tally
    encode: Callable[[Reader, str], Any]
    is_json: bool = False
    # Answers that come again and again, and what they are in the file.
    _kept: dict[str, Any] = field(default_factory=dict)

    def encoded(self, answers: Sequence[str]) -> list[Any]:
        counted = Counter(answers)
        kept = self._kept
        if self.is_json or len(kept) > MOST_KEPT:
            kept = {}
        for answer in counted.keys() - kept.keys():
            kept[answer] = self.encode(self, answer)
        self._count(counted, len(answers))
        return [kept[answer] for answer in answers]

    def _count(self, counted: Counter[str], total: int) -> None:
        skipped, hidden = counted[SKIPPED], counted[NOT_APPLICABLE]
        self.tally.skipped += skipped
        self.tally.not_applicable += hidden
        self.tally.answered += total - skipped - hidden
        if self.item["kind"] in CHOICES:
            self.tally.values.update(counted)

    def value(self, answer: str) -> str:
        if self.is_json:
            text: str = json.loads(answer)
            return text
        return answer

    def label(self, value: str, language: str) -> str:
        for option in self.version.options(self.item):
            if option["value"] == value:
                return self.version.in_language(option["label"], language) or value
        return value


@dataclass
class Edition:
    """One version of the survey, as its answers go into the file."""

    version: Version
    rules: Rules
    readers: Mapping[int, Reader]
    patterns: dict[str, list[Reader]] = field(default_factory=dict)

    def pattern(self, items: str) -> list[Reader]:
        """The readers of "{12,13,…}"."""
        known = self.patterns.get(items)
        if known is None:
            if len(self.patterns) >= MOST_KEPT:
                self.patterns.clear()
            known = self.patterns[items] = [self.readers[key] for key in keys(items)]
        return known


def keys(items: str) -> list[int]:
    inside = items[1:-1]
    return [int(key) for key in inside.split(",")] if inside else []


class Rows(ABC):
    """The base of both shapes: who was asked what, and what it is in the file."""

    def __init__(self, plan: Plan, writer: Writer) -> None:
        self.plan = plan
        self.writer = writer
        # What was handed on, to be compared with what the database counts.
        self.respondents = 0
        self.responses = 0
        self.rows = 0
        self.editions = {
            version.digest: self._edition(version)
            for version in plan.columns.versions.values()
        }
        self._of_administration = {
            str(key): self.editions[one.published_id]
            for key, one in plan.administrations.items()
        }
        self._pieces: dict[tuple[str, ...], Any] = {}

    def _edition(self, version: Version) -> Edition:
        variables = self.plan.columns.of(version.digest)
        readers = {
            int(version.items[name]["id"]): Reader(
                item=version.items[name],
                version=version,
                variable=variables[name],
                tally=Tally(),
                encode=self.encoded,
                is_json=version.comes_as_json(version.items[name]),
            )
            for name in version.exported()
        }
        return Edition(version, Rules(version, self.plan.zone), readers)

    @classmethod
    @abstractmethod
    def headers_of(cls, plan: Plan) -> list[str]:
        """One for each cell of a row."""

    @abstractmethod
    def encoded(self, reader: Reader, answer: str) -> Any:
        """The piece that an answer is in the file."""

    def write(self, lines: Sequence[bytes]) -> None:
        people = [Person.of(line) for line in lines]
        rows = self.rows_of(people)
        self.writer.write(rows)
        self.respondents += len(people)
        self.rows += len(rows)

    @abstractmethod
    def rows_of(self, people: Sequence[Person]) -> list[tuple[Any, ...]]:
        """In the order of the people; each of pieces, as the writer made them."""

    def groups(
        self, people: Sequence[Person]
    ) -> Iterator[tuple[Edition, str, list[int], list[list[str]]]]:
        """Edition, items, whose (by index), and their answers, person by person."""
        groups: dict[tuple[str, str], tuple[list[int], list[list[str]]]] = defaultdict(
            lambda: ([], [])
        )
        for index, person in enumerate(people):
            edition = self._of_administration[person.administration]
            items, answers = person.items, person.answers
            self.responses += len(answers)
            if edition.rules.concerned:
                items, answers = self._ruled(edition, person)
            indices, gathered = groups[person.administration, items]
            indices.append(index)
            gathered.append(answers)
        for (administration, items), (indices, gathered) in groups.items():
            yield self._of_administration[administration], items, indices, gathered

    def _ruled(self, edition: Edition, person: Person) -> tuple[str, list[str]]:
        items, answers = edition.rules.applied(
            keys(person.items),
            person.answers,
            finished=bool(person.completed),
            at=int(person.completed or person.started),
            language=json.loads(person.about)[1]
            or edition.version.definition["languages"][0]["code"],
        )
        return f"{{{','.join(map(str, items))}}}", answers

    def columns_of(
        self, edition: Edition, items: str, gathered: list[list[str]]
    ) -> list[tuple[Reader, list[Any]]]:
        """For each item its encoded answers, person by person."""
        readers = edition.pattern(items)
        if not readers:
            return []
        columns = list(zip(*gathered, strict=True))
        return [
            (reader, reader.encoded(answers))
            for reader, answers in zip(readers, columns, strict=True)
        ]

    def piece(self, *cells: Cell) -> Any:
        return self.writer.piece(cells)

    def day(self, seconds: str) -> str:
        """A date; with names, to the second.

        To the second it would tie the rows of two exports together.
        """
        if not seconds:
            return ""
        moment = datetime.fromtimestamp(int(seconds), self.plan.zone)
        if self.plan.identities:
            return moment.isoformat(sep=" ")[:19]
        return moment.date().isoformat()

    def kept(self, kind: str, *key: str, make: Callable[[], Any]) -> Any:
        """A piece that many respondents share."""
        known = self._pieces.get((kind, *key))
        if known is None:
            if len(self._pieces) > 20 * MOST_KEPT:
                self._pieces.clear()
            known = self._pieces[kind, *key] = make()
        return known

    def moments(self, *seconds: str) -> Any:
        if self.plan.identities:
            return self.piece(*map(self.day, seconds))
        rough = [one and str(int(one) // QUARTER * QUARTER) for one in seconds]
        return self.kept(
            "moments", *rough, make=lambda: self.piece(*map(self.day, rough))
        )


def cell_of(kind: str, label: str | None, value: str) -> Cell:
    """`label` is None where codes are asked for."""
    if kind == "select_one" and label is not None:
        return label
    if kind in CHOICES:
        return number_or_text(value, NUMERIC_CODE)
    if kind in NUMBERS or kind in ("calculate", "hidden"):
        return number_or_text(value)
    return value
