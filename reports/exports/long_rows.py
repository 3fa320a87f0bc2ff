"""Build one row for each stored answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

from reports.exports.cells import Piece, Row, Writer
from reports.exports.row_builder import (
    IDENTITY,
    QUARTER,
    ExportPlan,
    ItemEncoder,
    RespondentLine,
    RowBuilder,
    parse_array,
    value_cell,
)
from reports.exports.snapshot import NOT_APPLICABLE, SKIPPED

ANSWERED = "answered"
STATES = {SKIPPED: "skipped", NOT_APPLICABLE: "not applicable"}


class LongRowBuilder(RowBuilder):
    HEADERS = ("research_id", "item", "value", "label", "state", "saved")

    def __init__(self, plan: ExportPlan, writer: Writer) -> None:
        super().__init__(plan, writer)
        self._dates = DateCells(self.dates)

    @classmethod
    def headers_of(cls, plan: ExportPlan) -> list[str]:
        names = list(cls.HEADERS)
        if plan.identities:
            names[1:1] = IDENTITY
        return names

    def encode(self, encoder: ItemEncoder, answer: str) -> Piece:
        name, kind = encoder.variable.name, encoder.item["kind"]
        if answer in STATES:
            return self.piece(name, None, None, STATES[answer])
        value, language = encoder.value(answer), self.plan.language
        label = None
        if kind == "select_one":
            label = encoder.label(value, language)
        elif kind == "select_multiple":
            labels = (encoder.label(option, language) for option in value.split(" "))
            label = "; ".join(labels)
        return self.piece(name, value_cell(kind, value), label, ANSWERED)

    def rows_of(self, people: Sequence[RespondentLine]) -> list[Row]:
        rows_by_person: list[list[Row]] = [[] for _ in people]
        identities = self.identity_pieces(people)
        for group in self.groups(people):
            columns = [column for _, column in group.encoded_columns()]
            for position, pieces in zip(
                group.positions, zip(*columns, strict=True), strict=False
            ):
                # Stored answers come first, and only they have a time: what
                # the rules of the survey added gets no row.
                saved = self._saved(people[position].saved)
                rows_by_person[position] = list(
                    zip(repeat(identities[position]), pieces, saved, strict=False)
                )
        return [row for rows in rows_by_person for row in rows]

    def _saved(self, times: str) -> list[Piece]:
        if self.plan.identities:
            return [self.dates(str(seconds)) for seconds in parse_array(times)]
        dates = self._dates
        return [dates[seconds // QUARTER] for seconds in parse_array(times)]


class DateCells(dict[int, Piece]):
    """Dates by the number of quarter hours since 1970, made when first needed."""

    def __init__(self, make: Callable[[str], Piece]) -> None:
        self.make = make

    def __missing__(self, quarter: int) -> Piece:
        date = self[quarter] = self.make(str(quarter * QUARTER))
        return date
