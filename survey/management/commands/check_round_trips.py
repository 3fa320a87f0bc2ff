"""Measure that a workbook which is opened, changed in one text and exported stays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from survey.instrument.definitions.comparison import Comparison, compare
from survey.instrument.definitions.schema import RULES, SurveyDefinition
from survey.instrument.drafts.commands import default_language, kind_of, set_text
from survey.instrument.drafts.exporting import (
    book_of_definition,
    digest_of_content,
    workbook_of,
)
from survey.instrument.drafts.reading import DraftReading, read_book
from survey.instrument.drafts.store import book_of_workbook
from survey.instrument.drafts.workbook import DraftBook
from survey.instrument.xlsform.problems import FileRefused

TEXT = "Changed in one text"
Cells = dict[tuple[str, int, int], str]


class Command(BaseCommand):
    help = (
        "Open workbooks as drafts, change one text of each, export and open them"
        " again, and count what differs besides that text. Stores nothing. The last"
        " line is JSON; ends with 1 if anything differs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", type=Path, nargs="+", help="files or folders")

    def handle(self, *, paths: list[Path], **options: object) -> None:
        counts: Counter[str] = Counter()
        for file in workbooks(paths):
            try:
                book = book_of_workbook(file.read_bytes())
            except FileRefused as refusal:
                self.stdout.write(f"{file}: no workbook: {refusal}")
                counts["not_surveys"] += 1
                continue
            if "survey" not in book.sheets:
                counts["not_surveys"] += 1
                continue
            figures = Counter(round_trip(book, file.stem))
            counts["workbooks"] += 1
            counts.update(figures)
            wrong = {key: count for key, count in figures.items() if key in WRONG}
            if any(wrong.values()):
                self.stdout.write(f"{file}: {wrong}")
        totals = {key: counts[key] for key in (*COUNTED, *WRONG, "not_surveys")}
        self.stdout.write(json.dumps(totals))
        if any(counts[key] for key in WRONG):
            raise SystemExit(1)


COUNTED = ("workbooks", "without_problems", "changed", "cells", "rules", "written")
WRONG = (
    "changed_cells",
    "changed_columns",
    "changed_definitions",
    "rewritten_rules",
    "other_problems",
    "written_otherwise",
)


def workbooks(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in files if file.suffix in (".xlsx", ".xls"))


def round_trip(book: DraftBook, name: str) -> dict[str, int]:
    """Change one text, export and open again; count what stayed and what did not."""
    before = read_book(book, name=name)
    cells, columns = cells_of(book), columns_of(book)
    is_changed = change_one_text(book)
    copy = book_of_workbook(workbook_of(book))
    after = read_book(copy, name=name)
    now = cells_of(copy)
    differing = [
        place for place in {**cells, **now} if cells.get(place) != now.get(place)
    ]
    expected = [place for place in differing if now.get(place) == TEXT]
    comparison = compared(before, after)
    rules = rules_in(before.definition)
    counts = {
        "without_problems": int(not before.problems),
        "changed": int(is_changed),
        "cells": len(cells),
        "rules": len(rules),
        "changed_cells": len(differing) - int(is_changed and len(expected) == 1),
        "changed_columns": int(columns != columns_of(copy)),
        "changed_definitions": int(
            bool(comparison.differences)
            or any(text.now != TEXT for text in comparison.texts)
            or len({text.language for text in comparison.texts}) < len(comparison.texts)
        ),
        "rewritten_rules": sum(
            rules_in(after.definition).get(k) != v for k, v in rules.items()
        ),
        "other_problems": int(problems_of(before) != problems_of(after)),
    }
    if before.definition is not None and not before.problems and before.draft:
        written = book_of_definition(before.definition, before.draft.measures)
        copied = read_book(book_of_workbook(workbook_of(written)), name=name)
        counts["written"] = 1
        counts["written_otherwise"] = int(
            copied.definition is None
            or digest_of_content(copied.definition)
            != digest_of_content(before.definition)
        )
    return counts


def change_one_text(book: DraftBook) -> bool:
    """Change the label of the first question that has one."""
    sheet = book.sheet("survey")
    language = default_language(book)
    for row in sheet.rows:
        number = sheet.column_or_none("label", language) or sheet.column_or_none(
            "label"
        )
        is_question = kind_of(sheet, row) not in ("begin", "end", "metadata", "refused")
        if number and is_question and row.cells.get(number):
            code = sheet.known.known[number].language
            set_text(
                book,
                "survey",
                row.key,
                field="label",
                language=code or language,
                text=TEXT,
            )
            return True
    return False


def cells_of(book: DraftBook) -> Cells:
    return {
        (sheet.name, place, number): text
        for sheet in book.sheets.values()
        for place, row in enumerate(sheet.rows)
        for number, text in row.cells.items()
    }


def columns_of(book: DraftBook) -> dict[str, list[str]]:
    return {sheet.name: [*sheet.columns] for sheet in book.sheets.values()}


def rules_in(definition: SurveyDefinition | None) -> dict[tuple[str, str], object]:
    items = definition["items"] if definition else {}
    return {
        (name, rule): item[rule]
        for name, item in items.items()
        for rule in RULES
        if rule in item
    }


def compared(before: DraftReading, after: DraftReading) -> Comparison:
    if before.definition is None or after.definition is None:
        return Comparison()
    measures = [side.draft.measures if side.draft else None for side in (before, after)]
    return compare(before.definition, after.definition, (measures[0], measures[1]))


def problems_of(reading: DraftReading) -> list[str]:
    # Of the changed text nothing is quoted.
    return [f"{problem.place}: {problem.reason}" for problem in reading.problems]
