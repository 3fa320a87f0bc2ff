"""Recognise the columns of a sheet by pyxform's own tables of spellings.

pyxform knows every older spelling of a header (`caption`, `bind:relevant`,
`jr:constraintMsg`, `Relevance`); its `process_header` reads each header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from openpyxl.utils import get_column_letter
from pyxform import aliases
from pyxform.parsing.sheet_headers import process_header
from pyxform.question import MultipleChoiceQuestion, Option
from pyxform.survey import Survey

from survey.instrument.xlsform.languages import Language, language_of
from survey.instrument.xlsform.names import RESERVED
from survey.instrument.xlsform.number_formats import shown_number
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.workbook import SurveySheet

if TYPE_CHECKING:
    from survey.instrument.xlsform.fields import Fields

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
    # Code and version of the state's question that a row is; see `instrument.bank`.
    ("bank_question",): "bank_question",
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
    ("name",): "root",
    ("allow_choice_duplicates",): "allow_choice_duplicates",
}
MEASURES_COLUMNS: dict[tuple[str, ...], str] = {
    (name,): name
    for name in (
        *("type", "name", "label", "description"),
        *("essential", "direction", "items", "missing"),
    )
}
HeaderSpellings = dict[str, str | tuple[str, str]]


@dataclass(frozen=True)
class SheetSpellings:
    """The columns of a sheet, as process_header needs to know them."""

    aliases: HeaderSpellings
    # The names of columns that have no alias.
    names: set[str]
    keys: dict[tuple[str, ...], str]


SPELLINGS = {
    "survey": SheetSpellings(
        aliases.survey_header,
        set(MultipleChoiceQuestion.get_slot_names()) | {"disabled", "bank_question"},
        SURVEY_COLUMNS,
    ),
    "choices": SheetSpellings(
        aliases.list_header, set(Option.get_slot_names()), CHOICES_COLUMNS
    ),
    "settings": SheetSpellings(
        aliases.settings_header, set(Survey.get_slot_names()), SETTINGS_COLUMNS
    ),
    "measures": SheetSpellings(
        {}, {name for (name,) in MEASURES_COLUMNS}, MEASURES_COLUMNS
    ),
}
TRANSLATED = frozenset(
    [
        "label",
        "description",
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
class SheetColumn:
    """`key` is our word for the column; `language` is None if none was named."""

    header: str
    key: str
    language: Language | None = None
    medium: str = ""


@dataclass
class SheetColumns:
    """The columns of one sheet by number.

    `free` are the columns of choices that a choice filter can read.
    """

    known: dict[int, SheetColumn] = field(default_factory=dict)
    free: dict[int, str] = field(default_factory=dict)

    def header(self, key: str) -> str:
        """Return the author's own word for a column, to report a problem."""
        for column in self.known.values():
            if column.key == key:
                return column.header
        return key

    def languages(self) -> list[Language]:
        """List the named languages; the last spelling of a name counts."""
        named = [column.language for column in self.known.values() if column.language]
        return list({language.code: language for language in reversed(named)}.values())[
            ::-1
        ]


class UnknownLanguage(Exception):
    """A known column names a language that neither Django nor Babel knows."""

    def __init__(self, language: str, column: SheetColumn) -> None:
        super().__init__(language)
        self.column = column


def read_columns(sheet: SurveySheet, findings: Findings) -> SheetColumns:
    columns = SheetColumns()
    first: dict[tuple[str, str, str], int] = {}
    unknown: dict[int, UnknownLanguage] = {}
    for number, header in sorted(sheet.headers.items()):
        is_attribute = ATTRIBUTE.fullmatch(header) and header not in RESERVED
        try:
            column = recognise_column(sheet.name, header)
        except UnknownLanguage as error:
            unknown[number] = error
            continue
        if column:
            language = column.language.code if column.language else ""
            twin = first.setdefault((column.key, language, column.medium), number)
            if twin != number:
                reason = _("means the same as column %(twin)s") % {
                    "twin": get_column_letter(twin)
                }
                findings.refuse(sheet.name, 1, header, reason)
            columns.known[number] = column
        elif sheet.name == "choices" and is_attribute:
            if header in columns.free.values():
                findings.refuse(sheet.name, 1, header, _("the column is there twice"))
            columns.free[number] = header
        else:
            findings.warn(sheet.name, 1, header, _("unknown column: ignored"), header)
    # After all others: the column counts only if no other has its meaning.
    for number, problem in unknown.items():
        keys = {column.key for column in columns.known.values()}
        reason = _("the language is unknown, so the column is ignored")
        if problem.column.key not in keys:
            columns.known[number] = problem.column
            reason = _("the language is unknown: taken as the default language")
        reason += _("; write its code in parentheses, as in 'label::Hmong (hmn)'")
        findings.warn(sheet.name, 1, problem.column.header, reason, str(problem))
    for cell in sheet.unreadable:
        if cell.column in columns.known or cell.column in columns.free:
            header = sheet.headers[cell.column]
            findings.refuse(sheet.name, cell.row, header, cell.reason, cell.text)
        elif cell.column in sheet.headers and not cell.text:
            # The column is ignored, and yet kept with the draft.
            header = sheet.headers[cell.column]
            findings.warn(sheet.name, cell.row, header, cell.reason)
    # The first row with content, for each column without a header.
    headless: dict[int, int] = {}
    for row, cells in sheet.rows.items():
        for number in cells.keys() - sheet.headers.keys():
            headless.setdefault(number, row)
    for cell in sheet.unreadable:
        if cell.column not in sheet.headers:
            first_row = headless.get(cell.column, cell.row)
            headless[cell.column] = min(cell.row, first_row)
    for number, row in sorted(headless.items()):
        letter = get_column_letter(number)
        findings.warn(sheet.name, row, letter, _("a column without a header: ignored"))
    return columns


def recognise_column(sheet: str, header: str) -> SheetColumn | None:
    spellings = SPELLINGS[sheet]
    try:
        # A single colon also divides where another header has a double one:
        # pyxform would drop `bind:relevant` there, and with it a rule.
        _, parts = process_header(
            re.sub(r"\s+", " ", header), False, spellings.aliases, spellings.names
        )
    # `jr:` alone makes pyxform look past the end of its own list.
    except IndexError:
        return None
    tokens = tuple(str(token) for token in parts)
    # The longest name first: what is left of `label::Español` is a language.
    for length in (2, 1):
        known = tuple(token.lower() for token in tokens[:length])
        if len(known) == length and known in spellings.keys:
            break
    else:
        return None
    key, rest = spellings.keys[known], tokens[length:]
    medium = rest[0] if key == "media" and rest else ""
    rest = rest[1:] if medium else rest
    if not rest:
        return SheetColumn(header, key, None, medium)
    if key not in TRANSLATED or len(rest) > 1:
        return None
    language = language_of(rest[0])
    if language is None:
        raise UnknownLanguage(rest[0], SheetColumn(header, key, None, medium))
    return SheetColumn(header, key, language, medium)


@dataclass
class SurveyRow:
    """One row by our words for its columns; `texts` by language code."""

    sheet: str
    number: int
    columns: SheetColumns
    values: dict[str, str] = field(default_factory=dict)
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    free: dict[str, str] = field(default_factory=dict)
    media: str = ""
    # The groups around a row of the survey sheet and its name there, which is
    # longer in `values` if other groups use the name, too.
    path: tuple[str, ...] = ()
    fields: Fields | None = None

    def get(self, key: str) -> str:
        return self.values.get(key, "")

    def text(self, key: str) -> dict[str, str]:
        return dict(self.texts.get(key, {}))

    def refuse(
        self, findings: Findings, key: str, reason: str, text: str | None = None
    ) -> None:
        """Report a problem of this row, in the column that has this meaning."""
        shown = self.get(key) if text is None else text
        header = self.columns.header(key)
        findings.refuse(self.sheet, self.number, header, reason, shown)

    def warn(
        self, findings: Findings, key: str, reason: str, text: str | None = None
    ) -> None:
        shown = self.get(key) if text is None else text
        header = self.columns.header(key)
        findings.warn(self.sheet, self.number, header, reason, shown)


def read_rows(
    sheet: SurveySheet, columns: SheetColumns, default: Language, findings: Findings
) -> list[SurveyRow]:
    """Read the rows below the header, texts as their cells show them.

    Texts without a language are in the default one; a text that names the
    default language wins over one that does not, as in pyxform.
    """
    rows = []
    for number, cells in sorted(sheet.rows.items()):
        row = SurveyRow(sheet.name, number, columns)
        for position, text in sorted(cells.items()):
            column = columns.known.get(position)
            if column and (code := sheet.formats.get((number, position))):
                text = formatted(row, column, text, code, findings)
            if column is None:
                if position in columns.free:
                    row.free[columns.free[position]] = text
            elif column.key == "media":
                row.media = row.media or column.header
                row.values.setdefault("media", text)
            elif column.key not in TRANSLATED:
                row.values[column.key] = text
            elif column.language:
                row.texts.setdefault(column.key, {})[column.language.code] = text
            else:
                row.texts.setdefault(column.key, {}).setdefault(default.code, text)
        rows.append(row)
    return rows


def formatted(
    row: SurveyRow, column: SheetColumn, text: str, code: str, findings: Findings
) -> str:
    """Return a text as its cell shows it, and other values as they are stored."""
    shown = shown_number(text, code)
    if shown == text or code.replace("\\", "").lower() == "yyyy-mm-dd":
        return text
    if column.key in TRANSLATED and shown is not None:
        return shown
    is_value = row.sheet == "choices" and column.key == "name"
    if not (column.key in TRANSLATED or is_value):
        return text
    reason = _(
        "read as %(text)s, while the cell shows a number or date in the format"
        " %(code)s: format the cell as text and type it again"
    ) % {"text": text, "code": code}
    findings.warn(row.sheet, row.number, column.header, reason, shown or "")
    return text
