"""Read and write single fields of a draft, each with an address of its own.

An address is `sheet:key:field:language`, such as `survey:k3:label:es`; the language
is empty for a cell that has none. Most fields are a cell; others are a part of one,
such as the shuffling of options in the cell of parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from survey.console.surveys.editor.new_places import grid_around
from survey.instrument.drafts.commands import (
    CommandRefused,
    languages_of,
    set_kind,
    set_setting,
    set_text,
    set_value,
)
from survey.instrument.drafts.groups import wrap_in_grid
from survey.instrument.drafts.limits import (
    LARGEST,
    SMALLEST,
    read_limit,
    write_limit,
)
from survey.instrument.drafts.measures import set_measure_of
from survey.instrument.drafts.renames import rename
from survey.instrument.drafts.workbook import DraftBook, Row, cleaned
from survey.instrument.xlsform.columns import TRANSLATED
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.measures import REVERSED
from survey.instrument.xlsform.rules import LOOKS, yes_or_no
from survey.instrument.xlsform.types import parse_type

# In addresses, instead of the key of the only row of the settings sheet.
SETTINGS = "-"
LONG_TEXT = "long_text"
# A type to choose, though a grid is a group: the question becomes its statement.
GRID_KIND = "grid"
VALUES = frozenset(
    (
        *("type", "relevant", "required", "constraint", "choice_filter"),
        *("calculation", "default", "appearance", "parameters", "version", "name"),
    )
)
PARAMETER = r"(?<!\S){name}\s*=\s*(\S*)"


@dataclass(frozen=True, slots=True)
class Address:
    sheet: str
    key: str
    field: str
    language: str = ""

    def __str__(self) -> str:
        return f"{self.sheet}:{self.key}:{self.field}:{self.language}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises CommandRefused for an address that no field has."""
        parts = text.split(":")
        if len(parts) != 4 or parts[0] not in ("survey", "choices", "settings"):
            raise CommandRefused(_("This field can’t be saved."))
        address = cls(*parts)
        # A survey keeps its name: under it, its versions belong together.
        is_name = address.sheet == "settings" and address.field == "name"
        known = not is_name and (
            address.field in TRANSLATED - {"media"}
            if address.language
            else address.field in FIELDS or address.field in VALUES
        )
        if not known:
            raise CommandRefused(_("This field can’t be saved."))
        return address


class Fields:
    """The fields of a draft's rows."""

    def __init__(self, book: DraftBook) -> None:
        self.book = book

    @cached_property
    def languages(self) -> list[Language]:
        return languages_of(self.book)

    def row(self, address: Address) -> Row | None:
        """Return the row of an address. Raises ChangeConflict if it is gone."""
        sheet = self.book.sheet(address.sheet)
        if address.key == SETTINGS:
            return sheet.rows[0] if sheet.rows else None
        return sheet.row(address.key)

    def read(self, address: Address) -> str:
        row = self.row(address)
        if row is None:
            return ""
        if address.language:
            return self.text(address, row)
        if special := self.special(address):
            return special.read(self.book, row)
        return self.book.sheet(address.sheet).value(row, address.field)

    def text(self, address: Address, row: Row) -> str:
        sheet = self.book.sheet(address.sheet)
        language = self.language(address.language)
        number = sheet.column_or_none(address.field, language)
        if number is None and language.code == self.languages[0].code:
            number = sheet.column_or_none(address.field)
        return "" if number is None else row.cells.get(number, "")

    def is_stale(self, address: Address) -> bool:
        """Return whether a translation is older than its original."""
        row = self.row(address)
        if row is None or not address.language or not row.stale:
            return False
        sheet, language = (
            self.book.sheet(address.sheet),
            self.language(address.language),
        )
        return sheet.column_or_none(address.field, language) in row.stale

    def language(self, code: str) -> Language:
        for language in self.languages:
            if language.code == code:
                return language
        raise CommandRefused(_("The survey no longer has this language."))

    def write(self, address: Address, text: str) -> None:
        """Raises ChangeConflict, CommandRefused and LimitReached."""
        row = self.row(address)
        if address.sheet == "settings":
            language = self.language(address.language) if address.language else None
            set_setting(self.book, field=address.field, text=text, language=language)
        elif address.language:
            set_text(
                self.book,
                address.sheet,
                address.key,
                field=address.field,
                language=self.language(address.language),
                text=text,
            )
        elif row is not None and (special := self.special(address)):
            special.write(self.book, row, text)
        else:
            set_value(
                self.book, address.sheet, address.key, field=address.field, text=text
            )

    def special(self, address: Address) -> Special | None:
        # The name of an option is only the value of its cell.
        return FIELDS.get(address.field) if address.sheet == "survey" else None


@dataclass(frozen=True, slots=True)
class Special:
    """A field that is more, or less, than one cell."""

    read: Callable[[DraftBook, Row], str]
    write: Callable[[DraftBook, Row, str], None]


def value_of(book: DraftBook, row: Row, field: str) -> str:
    return book.sheet("survey").value(row, field)


def _put(book: DraftBook, row: Row, field: str, text: str) -> None:
    set_value(book, "survey", row.key, field=field, text=text)


# The kind, with long texts as one of their own


def read_kind(book: DraftBook, row: Row) -> str:
    kind = parse_type(value_of(book, row, "type")).kind
    is_long = kind == "text" and "multiline" in looks_of(book, row)
    is_long |= kind == "text" and bool(parameter(book, row, "rows"))
    return LONG_TEXT if is_long else kind


def write_kind(book: DraftBook, row: Row, kind: str) -> None:
    if kind == GRID_KIND:
        # Sent again after a lost reply, it is a statement already.
        if not grid_around(book.sheet("survey"), row.key):
            wrap_in_grid(book, row.key)
        return
    if kind not in KINDS:
        raise CommandRefused(_("Choose a type from the list."))
    before = parse_type(value_of(book, row, "type")).kind
    wanted = "text" if kind == LONG_TEXT else kind
    set_kind(book, row.key, wanted)
    if wanted != before:
        # What looks like another kind, such as a menu, means nothing for this one.
        write_looks(book, row, [])
    if wanted == "text":
        write_looks(book, row, ["multiline"] if kind == LONG_TEXT else [])
        write_parameter(book, row, "rows", "")
    if before == "range" and wanted != "range":
        for name in ("start", "end", "step"):
            write_parameter(book, row, name, "")


KINDS = (
    *("select_one", "select_multiple", "text", LONG_TEXT, "integer", "decimal"),
    *("date", "time", "datetime", "range", "acknowledge", "note"),
)


# Words in the cell of looks, beside those that place a row


def looks_of(book: DraftBook, row: Row) -> list[str]:
    words = value_of(book, row, "appearance").lower().split()
    bare = (re.sub(r"-\d+$", "", word) for word in words)
    return [LOOKS[word][0] for word in bare if word in LOOKS]


def write_looks(book: DraftBook, row: Row, looks: Sequence[str]) -> None:
    words = value_of(book, row, "appearance").split()
    rest = [word for word in words if re.sub(r"-\d+$", "", word.lower()) not in LOOKS]
    if set(looks_of(book, row)) != set(looks):
        _put(book, row, "appearance", " ".join([*rest, *looks]))


def read_layout(book: DraftBook, row: Row) -> str:
    return next(iter(looks_of(book, row)), "")


def write_layout(book: DraftBook, row: Row, look: str) -> None:
    write_looks(book, row, [look] if look in dict(LOOKS.values()) else [])


# Parameters: `randomize=true start=1`


def parameter(book: DraftBook, row: Row, name: str) -> str:
    text = value_of(book, row, "parameters").replace(",", " ").replace(";", " ")
    match = re.search(PARAMETER.format(name=name), text)
    return match[1] if match else ""


def write_parameter(book: DraftBook, row: Row, name: str, value: str) -> None:
    text = value_of(book, row, "parameters")
    if parameter(book, row, name) == value:
        return
    rest = re.sub(rf"(?<![^\s,;]){name}\s*=\s*[^\s,;]*", "", text)
    words = [*rest.split(), *([f"{name}={value}"] if value else [])]
    _put(book, row, "parameters", " ".join(words))


def parameter_field(name: str) -> Special:
    return Special(
        lambda book, row: parameter(book, row, name),
        lambda book, row, text: write_parameter(book, row, name, "".join(text.split())),
    )


def limit_field(sign: str) -> Special:
    return Special(
        lambda book, row: read_limit(book, row, sign),
        lambda book, row, text: write_limit(book, row, sign, text),
    )


def write_shuffle(book: DraftBook, row: Row, text: str) -> None:
    write_parameter(book, row, "randomize", "true" if text else "")
    if not text:
        write_parameter(book, row, "seed", "")


# Required: no, yes, or an expression


def read_required(book: DraftBook, row: Row) -> str:
    text = value_of(book, row, "required")
    answer = yes_or_no(text)
    return "if" if text and answer is None else "yes" if answer else ""


def read_required_if(book: DraftBook, row: Row) -> str:
    is_rule = read_required(book, row) == "if"
    return value_of(book, row, "required") if is_rule else ""


def write_required_if(book: DraftBook, row: Row, text: str) -> None:
    if text or read_required(book, row) == "if":
        _put(book, row, "required", text)


def write_required(book: DraftBook, row: Row, choice: str) -> None:
    # "if" writes nothing: the expression is a field of its own.
    if choice != "if" and choice != read_required(book, row):
        _put(book, row, "required", choice)


# Measures


def measure_of(book: DraftBook, row: Row) -> tuple[str, bool]:
    """Return the measure that a question counts for, and whether it is reversed."""
    name = value_of(book, row, "name")
    sheet = book.sheet("measures")
    for measure in sheet.rows:
        words = sheet.value(measure, "items").replace(",", " ").split()
        for word in words:
            if word.removeprefix(REVERSED) == name:
                return sheet.value(measure, "name"), word.startswith(REVERSED)
    return "", False


def write_measure(book: DraftBook, row: Row, measure: str) -> None:
    _before, is_reversed = measure_of(book, row)
    name = value_of(book, row, "name")
    set_measure_of(book, name, measure, is_reversed=is_reversed)


def write_reversed(book: DraftBook, row: Row, text: str) -> None:
    measure, _before = measure_of(book, row)
    name = value_of(book, row, "name")
    set_measure_of(book, name, measure, is_reversed=bool(text))


FIELDS = {
    "smallest": limit_field(SMALLEST),
    "largest": limit_field(LARGEST),
    "kind": Special(read_kind, write_kind),
    "name": Special(
        lambda book, row: value_of(book, row, "name"),
        lambda book, row, text: rename(book, row.key, cleaned(text)),
    ),
    "layout": Special(read_layout, write_layout),
    "shuffle": Special(
        lambda book, row: "yes" if parameter(book, row, "randomize") == "true" else "",
        write_shuffle,
    ),
    "start": parameter_field("start"),
    "end": parameter_field("end"),
    "step": parameter_field("step"),
    "required_choice": Special(read_required, write_required),
    "required_if": Special(read_required_if, write_required_if),
    "measure": Special(lambda book, row: measure_of(book, row)[0], write_measure),
    "reversed": Special(
        lambda book, row: "yes" if measure_of(book, row)[1] else "", write_reversed
    ),
}
