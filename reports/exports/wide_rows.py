"""A row for each respondent, a column for each item."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from reports.exports.cells import Cell, Number, Writer
from reports.exports.columns import Variable, Version
from reports.exports.rows import (
    IDENTITY,
    Edition,
    Person,
    Plan,
    Reader,
    Rows,
    cell_of,
)
from reports.exports.snapshot import NOT_APPLICABLE, SKIPPED
from survey.definitions.schema import ItemDefinition


class WideRows(Rows):
    def __init__(self, plan: Plan, writer: Writer) -> None:
        super().__init__(plan, writer)
        missing = plan.missing
        self._codes = {
            SKIPPED: Number(missing.skipped),
            NOT_APPLICABLE: Number(missing.not_applicable),
        }
        # Of each version, what stands where nothing was reached.
        self._blanks = {
            digest: [
                self._blank(variable, edition) for variable in plan.columns.variables
            ]
            for digest, edition in self.editions.items()
        }
        self._places = {
            id(variable): place for place, variable in enumerate(plan.columns.variables)
        }

    @classmethod
    def headers_of(cls, plan: Plan) -> list[str]:
        return [*plan.respondent_columns(), *plan.columns.headers]

    def _blank(self, variable: Variable, edition: Edition) -> Any:
        item = variable.items.get(edition.version.digest)
        # What this version does not have, nobody was ever to answer.
        code = None if item is None else Number(self.plan.missing.not_reached)
        return self.piece(*self._side_by_side(variable, edition.version, item, code))

    def _side_by_side(
        self,
        variable: Variable,
        version: Version,
        item: ItemDefinition | None,
        code: Cell,
    ) -> list[Cell]:
        if not variable.multiple or item is None:
            return [code] * variable.width
        offered = {option["value"] for option in version.options(item)}
        return [code if one in offered else None for one in variable.options]

    def encoded(self, reader: Reader, answer: str) -> Any:
        code = self._codes.get(answer)
        if code is not None:
            return self.piece(
                *self._side_by_side(reader.variable, reader.version, reader.item, code)
            )
        value = reader.value(answer)
        if not reader.variable.multiple:
            return self.piece(self._cell(reader, value))
        chosen = set(value.split(" "))
        offered = {option["value"] for option in reader.version.options(reader.item)}
        return self.piece(
            *(
                Number(int(one in chosen)) if one in offered else None
                for one in reader.variable.options
            )
        )

    def _cell(self, reader: Reader, value: str) -> Cell:
        return cell_of(
            reader.item["kind"],
            reader.label(value, self.plan.language) if self.plan.labels else None,
            value,
        )

    def rows_of(self, people: Sequence[Person]) -> list[tuple[Any, ...]]:
        heads = self._heads(people)
        rows: list[tuple[Any, ...]] = [()] * len(people)
        for edition, items, indices, gathered in self.groups(people):
            slots: list[Any] = list(map(repeat, self._blanks[edition.version.digest]))
            seen = set()
            for reader, column in self.columns_of(edition, items, gathered):
                place = self._places[id(reader.variable)]
                slots[place] = column
                seen.add(place)
            self._count_not_reached(edition, seen, len(indices))
            # As many rows as people, also where nobody answered anything.
            for index, cells in zip(indices, zip(*slots, strict=False), strict=False):
                rows[index] = (*heads[index], *cells)
        return rows

    def _count_not_reached(self, edition: Edition, seen: set[int], count: int) -> None:
        for reader in edition.readers.values():
            if self._places[id(reader.variable)] not in seen:
                reader.tally.not_reached += count

    def _heads(self, people: Sequence[Person]) -> list[tuple[Any, ...]]:
        plan = self.plan
        named: Mapping[int, Sequence[str]] = {}
        if plan.identities:
            named = plan.identities([person.key for person in people])
        heads = []
        for person in people:
            about = self._about(person)
            moments = self.moments(person.started, person.completed, person.withdrawn)
            if plan.identities:
                cells = named.get(person.key, ("",) * len(IDENTITY))
                ids = self.piece(person.research_id, *cells)
            else:
                ids = self.piece(person.research_id)
            heads.append((ids, about, moments))
        return heads

    def _about(self, person: Person) -> Any:
        key = (person.administration, person.school, person.about)
        return self.kept("about", *key, make=lambda: self._about_piece(*key))

    def _about_piece(self, key: str, school: str, about: str) -> Any:
        administration = self.plan.administrations[int(key)]
        grade, language, attributes = json.loads(about)
        return self.piece(
            administration.name,
            self._of_administration[key].version.name,
            *self.plan.schools[int(school)],
            administration.role,
            grade,
            language,
            *(_text(attributes.get(name)) for name in self.plan.attributes),
        )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
