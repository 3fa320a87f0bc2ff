"""Build one row for each respondent, with a column for each item."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat

from reports.answers.snapshot import MASKED, NOT_APPLICABLE, SKIPPED
from reports.answers.versions import SurveyVersion
from reports.exports.cells import Cell, Date, Number, Piece, Row, Writer
from reports.exports.columns import Variable, value_type
from reports.exports.minimum_group import DATE_STEPS, STEPS, week_of
from reports.exports.release_mask import COARSENED
from reports.exports.row_builder import (
    ExportPlan,
    ItemEncoder,
    RespondentLine,
    RowBuilder,
    shows,
    value_cell,
)
from survey.instrument.definitions.schema import ItemDefinition


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

    def _blank(self, variable: Variable, version: SurveyVersion) -> Piece:
        item = variable.items.get(version.digest)
        # An item that the version does not have stays without a code.
        code = None if item is None else Number(self.plan.missing.not_reached)
        return self._code_piece(variable, version, item, code)

    def _code_piece(
        self,
        variable: Variable,
        version: SurveyVersion,
        item: ItemDefinition | None,
        code: Cell,
    ) -> Piece:
        """Return the code in every column of a variable that the version has."""
        if item and not self.plan.has_codes(value_type(item["kind"])):
            code = None
        if not variable.multiple or item is None:
            return self.piece(*[code] * variable.width)
        offered = {option["value"] for option in version.options(item)}
        return self.piece(
            *(code if option in offered else None for option in variable.options)
        )

    def _masked_piece(self, variable: Variable) -> Piece:
        return self.piece(*[COARSENED] * variable.width)

    def encode(self, encoder: ItemEncoder, answer: str) -> Piece:
        item, variable = encoder.item, encoder.variable
        if answer == MASKED:
            return self._masked_piece(variable)
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
            (identity, *self._about(person))
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
            for encoder, column in group.encoded_columns():
                slots[self._positions[id(encoder.variable)]] = column
            for encoder in group.count_unanswered():
                if group.masks(encoder):
                    position = self._positions[id(encoder.variable)]
                    slots[position] = repeat(self._masked_piece(encoder.variable))
            # As many rows as respondents, although `repeat` never ends.
            for position, cells in zip(
                group.positions, zip(*slots, strict=False), strict=False
            ):
                rows[position] = (*heads[position], *cells)
        return rows

    def _about(self, person: RespondentLine) -> Sequence[Piece]:
        times = (person.started, person.completed, person.withdrawn)
        version = self.offered(person).period_of(person.started)
        key = (person.administration, person.place, person.about, str(version))
        if self.plan.identities:
            # Hardly anyone shares exact times.
            about = self.shared_piece(
                "about",
                *key,
                make=lambda: self.piece(
                    *self._cells(person, version, len(STEPS), len(DATE_STEPS))
                ),
            )
            return about, self.piece(*map(self.moment, times))
        days = [self.day(time) for time in times[:2]]

        def make() -> Piece:
            steps = len(STEPS) if person.shown is None else person.shown
            rows = self.plan.releases[int(person.administration)]
            _, (_, finished_in), _, _, group = json.loads(person.about)
            dates = rows.dates_shown(
                group, person.started, person.completed, finished_in
            )
            return self.piece(
                *self._cells(person, version, steps, dates),
                *date_cells(days, steps, dates),
            )

        # In a panel it follows from other rows as well.
        steps = str(person.shown)
        return (self.shared_piece("about", *key, *days, steps, make=make),)

    def _cells(
        self, person: RespondentLine, version: int, steps: int, dates: int
    ) -> list[Cell]:
        """Return the cells from the administration to the attributes."""
        administration = self.plan.administrations[int(person.administration)]
        grade, (language, finished_in), attributes, *masked = json.loads(person.about)
        place = self.plan.places[person.place]
        offered = self.offered(person)
        # Of several versions, it tells when the person started.
        shows_version = offered.is_single or shows_date("week", steps, dates)
        shows_finished_in = shows("language", steps) and dates > 0
        cells: list[Cell] = [
            administration.name,
            *([str(administration.wave or "")] if self.plan.panel else ()),
            *coarsened([offered.names[version]], shows_version),
            *coarsened(place[:2], shows("district", steps)),
            *coarsened(place[2:], shows("school", steps)),
            administration.role,
            *coarsened([grade], shows("grade", steps)),
            *coarsened([masked[0] if masked else language], shows("language", steps)),
            *coarsened([finished_in], shows_finished_in),
        ]
        for name in self.plan.attributes:
            value = attributes.get(name)
            # Columns that only other administrations declare stay blank.
            if name not in administration.subgroups:
                cells.append(None)
            elif not shows("subgroups", steps):
                cells.append(COARSENED)
            else:
                cells.append(None if value is None else str(value))
        return cells


def coarsened(cells: Sequence[str], is_shown: bool) -> Sequence[str]:
    return cells if is_shown else [COARSENED] * len(cells)


def shows_date(step: str, steps: int, dates: int) -> bool:
    return shows(step, steps) and DATE_STEPS.index(step) < dates


def date_cells(days: Sequence[str], steps: int, dates: int) -> Sequence[str]:
    if shows_date("day", steps, dates):
        return [Date(day) for day in days]
    return coarsened([week_of(day) for day in days], shows_date("week", steps, dates))
