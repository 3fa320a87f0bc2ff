"""A workbook that is opened, changed in one text and exported stays what it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings

from survey.instrument.definitions.comparison import Comparison, compare
from survey.instrument.definitions.schema import RULES, SurveyDefinition
from survey.instrument.drafts import exporting
from survey.instrument.drafts.commands import default_language, kind_of, set_text
from survey.instrument.drafts.reading import DraftReading, read_book
from survey.instrument.drafts.store import book_of_workbook
from survey.instrument.drafts.workbook import DraftBook

BASE = Path(settings.BASE_DIR)
WORKBOOKS = [
    *sorted((BASE / "survey/simulation/demo").rglob("*.xlsx")),
    BASE / "survey/tests/spreadsheets/sample_files/climate.xls",
]
STUDENTS = BASE / "survey/simulation/demo/students.xlsx"
TEXT = "Changed in one text"
Cells = dict[tuple[str, int, int], str]
WRONG = (
    "changed_cells",
    "changed_columns",
    "changed_definitions",
    "rewritten_rules",
    "other_problems",
    "written_otherwise",
)


def test_nothing_differs_but_the_changed_text() -> None:
    counts: Counter[str] = Counter()
    for file in WORKBOOKS:
        counts.update(round_trip(book_of_workbook(file.read_bytes()), file.stem))
    assert counts["changed"] == counts["written"] == len(WORKBOOKS) == 5
    assert counts["rules"] > 10
    assert not any(counts[key] for key in WRONG)


def test_a_lost_rule_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    write = exporting.workbook_of

    def forgetful(book: DraftBook) -> bytes:
        sheet = book.sheet("survey")
        number = sheet.column("relevant")
        for row in sheet.rows:
            row.cells.pop(number, None)
        return write(book)

    monkeypatch.setattr(exporting, "workbook_of", forgetful)
    counts = round_trip(book_of_workbook(STUDENTS.read_bytes()), "x")
    assert counts["changed_cells"] and counts["rewritten_rules"]


def round_trip(book: DraftBook, name: str) -> dict[str, int]:
    """Change one text, export and open again; count what stayed and what did not."""
    before = read_book(book, name=name)
    cells, columns = cells_of(book), columns_of(book)
    is_changed = change_one_text(book)
    copy = book_of_workbook(exporting.workbook_of(book))
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
        written = exporting.book_of_definition(before.definition, before.draft.measures)
        copied = read_book(book_of_workbook(exporting.workbook_of(written)), name=name)
        counts["written"] = 1
        counts["written_otherwise"] = int(
            copied.definition is None
            or exporting.digest_of_content(copied.definition)
            != exporting.digest_of_content(before.definition)
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
