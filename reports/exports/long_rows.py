"""Build one row for each stored answer that is not left out.

A row that says that an answer is left out would tell that the question was reached.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import compress, repeat

from reports.answers.snapshot import MASKED, NOT_APPLICABLE, SKIPPED
from reports.exports.cells import Piece, Row, Writer
from reports.exports.minimum_group import saved_path
from reports.exports.release_mask import COARSENED
from reports.exports.row_builder import (
    IDENTITY,
    ExportPlan,
    ItemEncoder,
    RespondentLine,
    RowBuilder,
    parse_array,
    value_cell,
)

ANSWERED = "answered"
# Those that are left out have no row in the end.
STATES = {SKIPPED: "skipped", NOT_APPLICABLE: "not applicable", MASKED: COARSENED}


class LongRowBuilder(RowBuilder):
    HEADERS = ("research_id", "item", "value", "label", "state", "saved")

    def __init__(self, plan: ExportPlan, writer: Writer) -> None:
        super().__init__(plan, writer)
        self._dates: dict[str, Piece] = {}

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
            encoded = group.encoded_columns()
            is_shown = [not group.masks(encoder) for encoder, _ in encoded]
            columns = [column for _, column in encoded]
            group.count_unanswered()
            for position, pieces in zip(
                group.positions, zip(*columns, strict=True), strict=False
            ):
                # Stored answers come first, and only they have a time: what
                # the rules of the survey added gets no row.
                saved = self._saved(people[position])
                rows = zip(repeat(identities[position]), pieces, saved, strict=False)
                rows_by_person[position] = list(compress(rows, is_shown))
        return [row for rows in rows_by_person for row in rows]

    def _saved(self, person: RespondentLine) -> list[Piece]:
        """Return when each answer was saved, as exactly as the group allows."""
        times = parse_array(person.saved)
        if self.plan.identities:
            return [self.piece(self.moment(str(seconds))) for seconds in times]
        days = [self.days.at(seconds) for seconds in times]
        groups = self.plan.releases[int(person.administration)].dates
        if groups and days:
            # One cell for all: the exact ones are not the same in the group.
            path = saved_path(min(days), max(days))
            shown = groups.steps_shown(json.loads(person.about)[-1], path)
            days = [path[shown - 1] if shown else COARSENED] * len(days)
        for day in days:
            if day not in self._dates:
                self._dates[day] = self.piece(day)
        return [self._dates[day] for day in days]
