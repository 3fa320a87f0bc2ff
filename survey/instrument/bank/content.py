"""The content of a question in the bank, read from a draft's row and compared with one.

It is what a locked question has in every survey, by the meaning of the columns::

    {"name": "safe", "type": "select_one", "cells": {"constraint": ""},
     "languages": [{"code": "en", "name": "English", "direction": "ltr"}],
     "texts": {"label": {"en": "I feel safe here."}, "hint": {}},
     "options": [{"value": "1", "label": {"en": "Disagree"}}],
     "stem": {"en": "How much do you agree?"},
     "measure": {"name": "safety", "label": {"en": "Safety"}, "description": {},
                 "direction": "", "missing": "", "reversed": false,
                 "theme": {"name": "climate", "label": {}, "description": {}}}}

`measure` and `theme` are empty where there is none. `stem` is there for a statement of
a grid. None of them is locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from survey.instrument.definitions.schema import ANSWERABLE, Texts
from survey.instrument.drafts.commands import (
    CommandRefused,
    groups_around,
    languages_of,
)
from survey.instrument.drafts.moves import is_grid
from survey.instrument.drafts.workbook import DraftBook, Row, Sheet, cleaned
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.measures import ESSENTIAL, REVERSED
from survey.instrument.xlsform.types import parse_type
from survey.models import BankQuestion

Content = dict[str, Any]
MARK = "bank_question"
LOCKED_TEXTS = ("label", "hint", "guidance", "constraint_message")
# How the answer is asked and limited. Whether the question is shown, and must be
# answered, is up to the survey.
LOCKED_CELLS = ("parameters", "constraint", "choice_filter", "default")


def is_locked_field(question: BankQuestion, field: str, language: str) -> bool:
    """Return whether a cell of a locked row can't change, by its meaning."""
    if field in LOCKED_TEXTS:
        return language in {row["code"] for row in question.content["languages"]}
    return field in ("name", "type", *LOCKED_CELLS)


@dataclass(frozen=True, slots=True)
class Difference:
    """A cell of a locked question that is not as in the bank."""

    # The row of the survey sheet, and the cell: of that row, or of an option's.
    question: str
    sheet: str
    key: str
    field: str
    language: str = ""


def texts_of(
    sheet: Sheet, row: Row, field: str, languages: Iterable[Language]
) -> Texts:
    texts = TextColumns(sheet, [*languages]).of(row, field)
    return {code: cleaned(text) for code, text in texts if text}


def type_without_list(cell: str) -> str:
    type_ = parse_type(cell)
    return f"{type_.kind} or_other" if type_.or_other else type_.kind


def options_by_list(book: DraftBook) -> dict[str, list[Row]]:
    choices = book.sheet("choices")
    lists: dict[str, list[Row]] = {}
    for row in choices.rows:
        lists.setdefault(choices.value(row, "list"), []).append(row)
    return lists


def content_of(book: DraftBook, row: Row) -> Content:
    """Read a question. Raises CommandRefused for one that depends on others."""
    survey, choices = book.sheet("survey"), book.sheet("choices")
    languages = languages_of(book)
    name = survey.value(row, "name")
    type_ = parse_type(survey.value(row, "type"))
    if type_.kind not in ANSWERABLE:
        raise CommandRefused(_("%(name)s is not a question.") % {"name": name})
    cells = {field: cleaned(survey.value(row, field)) for field in LOCKED_CELLS}
    content: Content = {
        "name": name,
        "type": type_without_list(survey.value(row, "type")),
        "cells": {field: text for field, text in cells.items() if text},
        "languages": [language.as_json() for language in languages],
        "texts": {
            field: texts_of(survey, row, field, languages) for field in LOCKED_TEXTS
        },
        "options": [
            {
                "value": choices.value(option, "name"),
                "label": texts_of(choices, option, "label", languages),
            }
            for option in options_by_list(book).get(type_.option_set, [])
            if type_.option_set
        ],
        "measure": _measure_of(book, name, languages),
    }
    around = groups_around(survey, row.key)
    if around and is_grid(survey, around[-1]):
        content["stem"] = texts_of(survey, around[-1], "label", languages)
    if any("${" in text for text in _all_texts(content)):
        raise CommandRefused(
            _(
                "%(name)s quotes another answer, so it can’t stand alone. Change it in"
                " the survey first."
            )
            % {"name": name}
        )
    if "choice_filter" in content["cells"]:
        raise CommandRefused(
            _("%(name)s filters its options, so it can’t stand alone.") % {"name": name}
        )
    if not content["texts"]["label"].get(languages[0].code):
        raise CommandRefused(_("%(name)s has no text yet.") % {"name": name})
    return content


def _all_texts(content: Content) -> Iterator[str]:
    yield from content["cells"].values()
    for texts in content["texts"].values():
        yield from texts.values()
    for option in content["options"]:
        yield from option["label"].values()


def _measure_of(book: DraftBook, name: str, languages: list[Language]) -> Content:
    measures = book.sheet("measures")
    for row in measures.rows:
        words = measures.value(row, "items").replace(",", " ").split()
        for word in words:
            if word.removeprefix(REVERSED) == name:
                theme = measures.value(row, "essential")
                rows = [
                    entry
                    for entry in measures.rows
                    if measures.value(entry, "name") == theme
                    and measures.value(entry, "type").lower() == ESSENTIAL
                ]
                return {
                    **_named(measures, row, languages),
                    "direction": measures.value(row, "direction"),
                    "missing": measures.value(row, "missing"),
                    "reversed": word.startswith(REVERSED),
                    "theme": _named(measures, rows[0], languages) if rows else {},
                }
    return {}


def _named(measures: Sheet, row: Row, languages: list[Language]) -> Content:
    return {
        "name": measures.value(row, "name"),
        "label": texts_of(measures, row, "label", languages),
        "description": texts_of(measures, row, "description", languages),
    }


# Compare


def marks_in(book: DraftBook) -> dict[str, str]:
    """Return the marks of a draft's rows by key. 0 statements."""
    sheet = book.sheets.get("survey")
    number = sheet.column_or_none(MARK) if sheet else None
    if sheet is None or number is None:
        return {}
    return {
        row.key: " ".join(mark.split())
        for row in sheet.rows
        if (mark := row.cells.get(number, ""))
    }


def differences(book: DraftBook, locked: Mapping[str, Content]) -> list[Difference]:
    """Compare rows with the contents that they should have, by the rows' keys.

    A translation that is blank is no difference, nor is one into a language that the
    bank does not have.
    """
    if not locked:
        return []
    survey, choices = book.sheet("survey"), book.sheet("choices")
    languages, lists = languages_of(book), options_by_list(book)
    texts = TextColumns(survey, languages), TextColumns(choices, languages)
    fields = ("name", "type", *LOCKED_CELLS)
    # No cell has the number -1; 0 is that of `STALE`.
    numbers = {field: survey.column_or_none(field) or -1 for field in fields}
    valued = choices.column_or_none("name") or -1
    types: dict[str, tuple[str, list[Row]]] = {}
    different: list[Difference] = []
    for row in survey.rows:
        content = locked.get(row.key)
        if content is None:
            continue
        cells = {field: row.cells.get(n, "") for field, n in numbers.items()}
        if cells["type"] not in types:
            option_set = parse_type(cells["type"]).option_set
            rows = lists.get(option_set, []) if option_set else []
            types[cells["type"]] = type_without_list(cells["type"]), rows
        cells["type"], options = types[cells["type"]]
        values = [option.cells.get(valued, "") for option in options]
        if values != [option["value"] for option in content["options"]]:
            cells["type"], options = "", []
        expected = {"name": content["name"], "type": content["type"]}
        expected |= content["cells"]
        different += [
            Difference(row.key, "survey", row.key, field)
            for field, text in cells.items()
            if not is_same(text, expected.get(field, ""))
        ]
        known = {language["code"] for language in content["languages"]}
        compared = [
            *(
                (texts[0], row, field, content["texts"][field])
                for field in LOCKED_TEXTS
            ),
            *(
                (texts[1], option, "label", there["label"])
                for option, there in zip(options, content["options"], strict=False)
            ),
        ]
        for columns, entry, field, there in compared:
            for code, here in columns.of(entry, field):
                if code not in known or is_same(here, there.get(code, "")):
                    continue
                if here or code == languages[0].code:
                    different.append(
                        Difference(row.key, columns.sheet.name, entry.key, field, code)
                    )
    return different


def is_same(here: str, there: str) -> bool:
    return here == there or cleaned(here) == there


class TextColumns:
    """The columns of a sheet's texts by language, looked up once for all rows."""

    def __init__(self, sheet: Sheet, languages: list[Language]) -> None:
        self.sheet = sheet
        self.languages = languages
        self.numbers: dict[str, list[tuple[str, list[int]]]] = {}

    def of(self, row: Row, field: str) -> list[tuple[str, str]]:
        """Return the text of a row in each language, by its code."""
        if field not in self.numbers:
            self.numbers[field] = [
                (language.code, [n for n in self._numbers(field, language) if n])
                for language in self.languages
            ]
        cells = row.cells
        return [
            (code, next((text for n in numbers if (text := cells.get(n))), ""))
            for code, numbers in self.numbers[field]
        ]

    def _numbers(self, field: str, language: Language) -> list[int | None]:
        numbers = [self.sheet.column_or_none(field, language)]
        # A column that names no language is in the first one.
        if language is self.languages[0]:
            numbers.append(self.sheet.column_or_none(field))
        return numbers
