"""Say about a file what all of its documents need."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from accounts.csv_injection import escape_formula
from reports.consent_texts import ConsentText
from reports.exports import codebook
from reports.exports.descriptions import described_columns
from reports.exports.long_rows import LongRowBuilder
from reports.exports.row_builder import RowBuilder
from reports.exports.typed.columns import Column, Contents, Described, Storage
from reports.exports.typed.typed_file import TypedFile
from reports.models.exports import Export

LONG_COLUMNS = {
    "research_id": "Random ID of one person.",
    "item": "Name of the question.",
    "value": "Code of the answer, or its text; of several choices, joined by spaces.",
    "label": "Text of the answer.",
    "state": "answered, skipped or not applicable.",
    "saved": "When the answer was saved; * where it is left out.",
}


@dataclass(frozen=True)
class DescribedFile:
    export: Export
    rows: RowBuilder
    path: Path

    @property
    def name(self) -> str:
        """Return the name under which browsers save the file."""
        return self.export.stem + self.export.suffix

    @property
    def title(self) -> str:
        return codebook.title_of(self.rows.plan)

    @cached_property
    def consent_texts(self) -> Sequence[tuple[str, ConsentText]]:
        """Return what people agreed to: the name of the item, and a text."""
        return codebook.consent_texts(self.rows.plan)

    @property
    def is_long(self) -> bool:
        return self.export.format == Export.Format.LONG

    @cached_property
    def sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @cached_property
    def columns(self) -> Sequence[Column]:
        """Return the columns under the names that they have in the file.

        Cells of CSV and Excel files have no type: it is what the survey says, and
        "*" may be among them.
        """
        if isinstance(self.rows.writer, TypedFile):
            return self.rows.writer.columns
        plan = self.rows.plan
        described = described_columns(plan)
        if self.is_long:
            described = self._long_columns(described)
        return [
            Column(
                # As the cells of the header are.
                escape_formula(about.header),
                about,
                Storage.TEXT
                if plan.labels and about.values and not about.choice
                else about.storage or Storage.TEXT,
                Contents(()),
            )
            for about in described
        ]

    def _long_columns(self, described: Sequence[Described]) -> list[Described]:
        questions = {
            about.choice or about.header: about.question
            for about in described
            if about.question
        }
        meanings = {**codebook.RESPONDENT_COLUMNS, **LONG_COLUMNS}
        return [
            Described(
                header,
                meanings[header],
                Storage.TEXT,
                values=questions if header == "item" else {},
            )
            for header in LongRowBuilder.headers_of(self.rows.plan)
        ]
