"""Headers to the words of this house, by pyxform's own tables of spellings.

`pyxform` knows every older spelling of a header (`caption`, `bind:relevant`,
`jr:constraintMsg`, `Relevance`); its `process_header` is asked for each.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from openpyxl.utils import get_column_letter
from pyxform import aliases
from pyxform.parsing.sheet_headers import process_header
from pyxform.question import MultipleChoiceQuestion, Option
from pyxform.survey import Survey

from survey.xlsform.languages import Language, language_of
from survey.xlsform.names import RESERVED
from survey.xlsform.problems import Findings
from survey.xlsform.workbook import SurveySheet

SURVEY_COLUMNS: dict[tuple[str, ...], str] = {
    ("type",): "type",
    ("name",): "name",
    ("label",): "label",
    ("hint",): "hint",
    ("guidance_hint",): "guidance",
    ("bind", "required"): "required",
    ("bind", "jr:requiredmsg"): "required_message",
    ("bind", "relevant"): "relevant",
    ("bind", "constraint"): "constraint",
    ("bind", "jr:constraintmsg"): "constraint_message",
    ("bind", "calculate"): "calculation",
    ("bind", "readonly"): "read_only",
    ("choice_filter",): "choice_filter",
    ("control", "appearance"): "appearance",
    ("control", "jr:count"): "repeat_count",
    ("default",): "default",
    ("parameters",): "parameters",
    ("trigger",): "trigger",
    ("disabled",): "disabled",
    ("media",): "media",
}
CHOICES_COLUMNS: dict[tuple[str, ...], str] = {
    ("list name",): "list",
    ("name",): "name",
    ("label",): "label",
    ("media",): "media",
}
SETTINGS_COLUMNS: dict[tuple[str, ...], str] = {
    ("title",): "title",
    ("id_string",): "name",
    ("version",): "version",
    ("default_language",): "default_language",
    ("style",): "style",
}
# What process_header must know: the spellings of the column, and the names
# that need none.
SPELLINGS: dict[str, tuple[dict[str, Any], set[str], dict[tuple[str, ...], str]]] = {
    "survey": (
        aliases.survey_header,
        set(MultipleChoiceQuestion.get_slot_names()) | {"disabled"},
        SURVEY_COLUMNS,
    ),
    "choices": (aliases.list_header, set(Option.get_slot_names()), CHOICES_COLUMNS),
    "settings": (
        aliases.settings_header,
        set(Survey.get_slot_names()),
        SETTINGS_COLUMNS,
    ),
}
TRANSLATED = frozenset(
    [
        "label",
        "hint",
        "guidance",
        "required_message",
        "constraint_message",
        "title",
        "media",
    ]
)
ATTRIBUTE = re.compile(r"[^\W\d][\w.-]*")


@dataclass(frozen=True)
class Column:
    """`key` is this house's word; `language` is None where none was named."""

    header: str
    key: str
    language: Language | None = None
    medium: str = ""


@dataclass
class Columns:
    """The columns of one sheet by number; `free` are the columns of choices
    that a choice filter can read."""

    known: dict[int, Column] = field(default_factory=dict)
    free: dict[int, str] = field(default_factory=dict)

    def header(self, key: str) -> str:
        """What the author called it, for telling a problem."""
        for column in self.known.values():
            if column.key == key:
                return column.header
        return key

    def languages(self) -> list[Language]:
        named = [column.language for column in self.known.values() if column.language]
        return list({language.code: language for language in reversed(named)}.values())[
            ::-1
        ]


def read_columns(sheet: SurveySheet, findings: Findings) -> Columns:
    columns = Columns()
    seen: dict[tuple[str, str, str], int] = {}
    for number, header in sorted(sheet.headers.items()):
        column = _column(sheet.name, header, findings)
        if column:
            language = column.language.code if column.language else ""
            twin = seen.setdefault((column.key, language, column.medium), number)
            if twin != number:
                reason = f"means the same as column {get_column_letter(twin)}"
                findings.refuse(sheet.name, 1, header, reason)
            columns.known[number] = column
        elif sheet.name == "choices" and _is_attribute(header):
            if header in columns.free.values():
                findings.refuse(sheet.name, 1, header, "the column is there twice")
            columns.free[number] = header
        elif column is None and not _says_language(header):
            findings.warn(sheet.name, 1, header, "unknown column: ignored", header)
    _warn_of_columns_without_header(sheet, findings)
    return columns


def _is_attribute(header: str) -> bool:
    return ATTRIBUTE.fullmatch(header) is not None and header not in RESERVED


def _says_language(header: str) -> bool:
    """A known column in a language that cannot be told: refused already."""
    return "::" in header and header.split("::")[0].strip().lower() in TRANSLATED


def _column(sheet: str, header: str, findings: Findings) -> Column | None:
    spellings, names, keys = SPELLINGS[sheet]
    try:
        # A single colon also divides where another header has a double one:
        # pyxform would drop `bind:relevant` there, and with it a rule.
        _, tokens = process_header(re.sub(r"\s+", " ", header), False, spellings, names)
    # `jr:` alone makes pyxform look past the end of its own list.
    except IndexError:
        return None
    tokens = tuple(str(token) for token in tokens)
    known = _longest_known(tokens, keys)
    if known is None:
        return None
    key, rest = keys[known], tokens[len(known) :]
    medium = rest[0] if key == "media" and rest else ""
    rest = rest[1:] if medium else rest
    if not rest:
        return Column(header, key, None, medium)
    if key not in TRANSLATED or len(rest) > 1:
        return None
    language = language_of(rest[0])
    if language is None:
        findings.refuse(
            sheet,
            1,
            header,
            "no such language is known: write its code in parentheses, as in"
            " 'label::Hmong (hmn)'",
            rest[0],
        )
        return None
    return Column(header, key, language, medium)


def _longest_known(
    tokens: tuple[str, ...], keys: Mapping[tuple[str, ...], str]
) -> tuple[str, ...] | None:
    for length in (2, 1):
        candidate = tuple(token.lower() for token in tokens[:length])
        if len(candidate) == length and candidate in keys:
            return candidate
    return None


def _warn_of_columns_without_header(sheet: SurveySheet, findings: Findings) -> None:
    told: Collection[int] = set(sheet.headers)
    orphans: dict[int, int] = {}
    for number, cells in sheet.rows.items():
        for column in cells.keys() - told:
            orphans.setdefault(column, number)
    for column, number in sorted(orphans.items()):
        letter = get_column_letter(column)
        findings.warn(sheet.name, number, letter, "a column without a header: ignored")


@dataclass
class Row:
    """One row by the words of this house. `texts` by language code."""

    sheet: str
    number: int
    columns: Columns
    values: dict[str, str] = field(default_factory=dict)
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    free: dict[str, str] = field(default_factory=dict)
    media: str = ""

    def get(self, key: str) -> str:
        return self.values.get(key, "")

    def text(self, key: str) -> dict[str, str]:
        return dict(self.texts.get(key, {}))

    def refuse(
        self, findings: Findings, key: str, reason: str, text: str | None = None
    ) -> None:
        """A problem of this row, in the column that has this meaning."""
        offending = self.get(key) if text is None else text
        findings.refuse(
            self.sheet, self.number, self.columns.header(key), reason, offending
        )

    def warn(
        self, findings: Findings, key: str, reason: str, text: str | None = None
    ) -> None:
        offending = self.get(key) if text is None else text
        findings.warn(
            self.sheet, self.number, self.columns.header(key), reason, offending
        )


def read_rows(sheet: SurveySheet, columns: Columns, default: Language) -> list[Row]:
    """Texts without a language are in the default one; a text that names it
    wins over one that does not, as in pyxform."""
    rows = []
    for number, cells in sorted(sheet.rows.items()):
        row = Row(sheet.name, number, columns)
        for position, text in sorted(cells.items()):
            column = columns.known.get(position)
            if column is None:
                if position in columns.free:
                    row.free[columns.free[position]] = text
            elif column.key == "media":
                row.media = row.media or column.header
                row.values.setdefault("media", text)
            elif column.key in TRANSLATED:
                _take_text(row, column, text, default)
            else:
                row.values[column.key] = text
        rows.append(row)
    return rows


def _take_text(row: Row, column: Column, text: str, default: Language) -> None:
    texts = row.texts.setdefault(column.key, {})
    if column.language:
        texts[column.language.code] = text
    else:
        texts.setdefault(default.code, text)
