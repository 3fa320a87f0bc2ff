"""Build one row for each respondent, with a column for each item."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat

from reports.exports.cells import Cell, Number, Piece, Row, Writer
from reports.exports.columns import ExportVersion, Variable
from reports.exports.row_builder import (
    ExportPlan,
    ItemEncoder,
    RespondentLine,
    RowBuilder,
    value_cell,
)
from reports.exports.snapshot import NOT_APPLICABLE, SKIPPED
from survey.definitions.schema import ItemDefinition


class WideRowBuilder(RowBuilder):
    def __init__(self, plan: ExportPlan, writer: Writer) -> None:
        super().__init__(plan, writer)
        self._codes = {
            SKIPPED: Number(plan.missing.skipped),
            NOT_APPLICABLE: Number(plan.missing.not_applicable),
        }
        variables = plan.columns.variables
        # Digest of the version -> a row of which nothing was reached.
        self._blanks = {
            digest: [self._blank(variable, encoder.version) for variable in variables]
            for digest, encoder in self.versions.items()
        }
        self._positions = {
            id(variable): position for position, variable in enumerate(variables)
        }

    @classmethod
    def headers_of(cls, plan: ExportPlan) -> list[str]:
        return [*plan.respondent_columns(), *plan.columns.headers]

    def _blank(self, variable: Variable, version: ExportVersion) -> Piece:
        item = variable.items.get(version.digest)
        # An item that the version does not have stays without a code.
        code = None if item is None else Number(self.plan.missing.not_reached)
        return self._code_piece(variable, version, item, code)

    def _code_piece(
        self,
        variable: Variable,
        version: ExportVersion,
        item: ItemDefinition | None,
        code: Cell,
    ) -> Piece:
        """Return the code in every column of a variable that the version has."""
        if not variable.multiple or item is None:
            return self.piece(*[code] * variable.width)
        offered = {option["value"] for option in version.options(item)}
        return self.piece(
            *(code if option in offered else None for option in variable.options)
        )

    def encode(self, encoder: ItemEncoder, answer: str) -> Piece:
        item, variable = encoder.item, encoder.variable
        code = self._codes.get(answer)
        if code is not None:
            return self._code_piece(variable, encoder.version, item, code)
        value = encoder.value(answer)
        if variable.multiple:
            # An option that this version does not offer stays blank.
            chosen = set(value.split(" "))
            offered = {option["value"] for option in encoder.version.options(item)}
            return self.piece(
                *(
                    Number(int(option in chosen)) if option in offered else None
                    for option in variable.options
                )
            )
        if item["kind"] == "select_one" and self.plan.labels:
            return self.piece(encoder.label(value, self.plan.language))
        return self.piece(value_cell(item["kind"], value))

    def rows_of(self, people: Sequence[RespondentLine]) -> list[Row]:
        heads = [
            (
                identity,
                self._about(person),
                self.dates(person.started, person.completed, person.withdrawn),
            )
            for person, identity in zip(
                people, self.identity_pieces(people), strict=True
            )
        ]
        rows: list[Row] = [()] * len(people)
        for group in self.groups(people):
            # A column of answers, or a blank for each item without answers.
            slots: list[Sequence[Piece] | repeat[Piece]] = [
                repeat(blank) for blank in self._blanks[group.encoder.version.digest]
            ]
            answered = set()
            for encoder, column in group.encoded_columns():
                position = self._positions[id(encoder.variable)]
                slots[position] = column
                answered.add(position)
            for encoder in group.encoder.items.values():
                if self._positions[id(encoder.variable)] not in answered:
                    encoder.tally.not_reached += len(group.positions)
            # As many rows as respondents, although `repeat` never ends.
            for position, cells in zip(
                group.positions, zip(*slots, strict=False), strict=False
            ):
                rows[position] = (*heads[position], *cells)
        return rows

    def _about(self, person: RespondentLine) -> Piece:
        key = (person.administration, person.school, person.about)

        def make() -> Piece:
            administration = self.plan.administrations[int(person.administration)]
            grade, language, attributes = json.loads(person.about)
            found = [
                attributes.get(name) if name in administration.subgroups else None
                for name in self.plan.attributes
            ]
            return self.piece(
                administration.name,
                self._version_of[person.administration].version.name,
                *self.plan.schools[int(person.school)],
                administration.role,
                grade,
                language,
                *(None if value is None else str(value) for value in found),
            )

        return self.shared_piece("about", *key, make=make)
