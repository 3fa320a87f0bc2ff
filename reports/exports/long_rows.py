"""A row for each answer that is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from reports.exports.cells import Writer
from reports.exports.row_builder import (
    IDENTITY,
    QUARTER,
    Person,
    Plan,
    Reader,
    Rows,
    cell_of,
    keys,
)
from reports.exports.snapshot import NOT_APPLICABLE, SKIPPED

ANSWERED = "answered"
STATES = {SKIPPED: "skipped", NOT_APPLICABLE: "not applicable"}


class LongRows(Rows):
    HEADERS = ("research_id", "item", "value", "label", "state", "saved")

    def __init__(self, plan: Plan, writer: Writer) -> None:
        super().__init__(plan, writer)
        self._days = Days(self.moments)

    def _saved(self, saved: str) -> list[Any]:
        if self.plan.identities:
            return [self.moments(str(key)) for key in keys(saved)]
        days = self._days
        return [days[key // QUARTER] for key in keys(saved)]

    @classmethod
    def headers_of(cls, plan: Plan) -> list[str]:
        names = list(cls.HEADERS)
        if plan.identities:
            names[1:1] = IDENTITY
        return names

    def encoded(self, reader: Reader, answer: str) -> Any:
        name = reader.variable.name
        if answer in STATES:
            return self.piece(name, None, None, STATES[answer])
        value = reader.value(answer)
        label = self._label(reader, value)
        return self.piece(
            name, cell_of(reader.item["kind"], None, value), label, ANSWERED
        )

    def _label(self, reader: Reader, value: str) -> str | None:
        kind, language = reader.item["kind"], self.plan.language
        if kind == "select_multiple":
            return "; ".join(reader.label(one, language) for one in value.split(" "))
        return reader.label(value, language) if kind == "select_one" else None

    def rows_of(self, people: Sequence[Person]) -> list[tuple[Any, ...]]:
        of_person: list[list[tuple[Any, ...]]] = [[] for _ in people]
        heads = self._heads(people)
        for edition, items, indices, gathered in self.groups(people):
            columns = self.columns_of(edition, items, gathered)
            for index, pieces in zip(
                indices,
                zip(*(column for _, column in columns), strict=True),
                strict=False,
            ):
                # Rows are what is stored: what the rules added comes after it.
                saved = self._saved(people[index].saved)
                of_person[index] = list(
                    zip(repeat(heads[index]), pieces, saved, strict=False)
                )
        return [row for rows in of_person for row in rows]

    def _heads(self, people: Sequence[Person]) -> list[Any]:
        if not self.plan.identities:
            return [self.piece(person.research_id) for person in people]
        named = self.plan.identities([person.key for person in people])
        blank = ("",) * len(IDENTITY)
        return [
            self.piece(person.research_id, *named.get(person.key, blank))
            for person in people
        ]


class Days(dict[int, Any]):
    """Quarters of an hour since 1970 -> the piece that is their date."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        self.make = make

    def __missing__(self, quarter: int) -> Any:
        known = self[quarter] = self.make(str(quarter * QUARTER))
        return known
