"""A roster file as rows of text, whatever program wrote it.

Everything is bounded and streamed: a file of any size or malice gives rows
or a `RosterUnreadable` that says what is wrong, never another exception.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import BinaryIO

from survey.rosters.columns import REQUIRED, Columns, best_header
from survey.spreadsheets.safe_workbook import UnsafeWorkbook
from survey.spreadsheets.xlsx_rows import Row, Workbook

LARGEST_FILE = 2 * 2**30
MOST_COLUMNS = 300
# Excel's own number of rows, and room for a whole state in one CSV file.
MOST_ROWS = 5_000_000
# In characters; above csv's own limit for one field, which is 131,072.
LONGEST_LINE = 500_000
# The header may stand under a title and a few blank lines.
HEADER_WITHIN = 20


class RosterUnreadable(ValueError):
    """The file as a whole cannot be read; says why to a person."""


class NotATable(RosterUnreadable):
    pass


class NoHeader(RosterUnreadable):
    pass


class MissingColumns(RosterUnreadable):
    pass


class UnknownEncoding(RosterUnreadable):
    pass


class NulCharacters(RosterUnreadable):
    pass


class TooLarge(RosterUnreadable):
    pass


class UnclosedQuote(RosterUnreadable):
    pass


@dataclass
class Table:
    columns: Columns
    # Begins with the file anew.
    read: Callable[[], Iterator[Row]]
    # Such as "UTF-8, separated by semicolons"; for the report.
    description: str

    @property
    def rows(self) -> Iterator[Row]:
        """(number, cells) after the header; only one reading at a time.

        The number is the one that a spreadsheet shows beside the row. Blank
        rows are left out; cells are as many as the file has, at least the
        header's.
        """
        return self.read()


@contextmanager
def open_table(file: BinaryIO) -> Iterator[Table]:
    """Find out what the file is and where its header stands.

    The file must be seekable; it is not closed. Its name says nothing:
    exports called .csv are workbooks, and the other way round.
    """
    if file.seek(0, io.SEEK_END) > LARGEST_FILE:
        raise TooLarge("The file is larger than 2 GB.")
    file.seek(0)
    start = file.read(8)
    if start.startswith(b"PK\x03\x04"):
        yield _open_workbook(file)
    elif start.startswith(b"\xd0\xcf\x11\xe0"):
        raise NotATable(
            "This is an old Excel file or one with a password."
            " Save it as .xlsx without a password."
        )
    else:
        with _open_text(file) as table:
            yield table


# Text -----------------------------------------------------------------------


@contextmanager
def _open_text(file: BinaryIO) -> Iterator[Table]:
    encoding = _encoding_of(file)
    file.seek(0)
    text = io.TextIOWrapper(file, encoding, newline="")
    try:
        sample = text.read(65536)
        delimiter, columns = _header_of(sample)

        def read() -> Iterator[Row]:
            text.seek(0)
            rows = enumerate(_text_rows(text, delimiter), 1)
            return _people_rows(islice(rows, columns.row, None), columns)

        yield Table(
            columns,
            read,
            f"{_ENCODING_NAMES[encoding]}, separated by {_DELIMITERS[delimiter]}",
        )
    finally:
        text.detach()


_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_ENCODING_NAMES = {
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252",
}
# UTF-32's little-endian mark begins with UTF-16's, so it comes first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def _encoding_of(file: BinaryIO) -> str:
    """The encoding in which the whole file decodes; 0.1 s for 50 MB."""
    file.seek(0)
    start = file.read(4096)
    for encoding in _likely_encodings(start):
        if _decodes(file, encoding):
            return encoding
    raise UnknownEncoding(
        "The file's letters cannot be read: it is neither UTF-8, UTF-16 nor"
        " Windows-1252. Save it as 'CSV UTF-8'."
    )


def _likely_encodings(start: bytes) -> tuple[str, ...]:
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return (encoding,)
    # Latin letters in UTF-16 are every other byte a NUL.
    if start and start[1::2].count(0) > len(start) // 4:
        return ("utf-16-le",)
    if start and start[0::2].count(0) > len(start) // 4:
        return ("utf-16-be",)
    return ("utf-8-sig", "cp1252")


def _decodes(file: BinaryIO, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 1
    file.seek(0)
    try:
        while True:
            piece = file.read(2**17)
            text = decoder.decode(piece, final=not piece)
            if "\x00" in text:
                line = lines + text[: text.index("\x00")].count("\n")
                raise NulCharacters(
                    f"Line {line} holds a NUL character: this is no text file,"
                    " or a damaged one."
                )
            lines += text.count("\n")
            if not piece:
                return True
    except UnicodeError:
        return False


def _header_of(sample: str) -> tuple[str, Columns]:
    """The delimiter under which the first rows name the most columns."""
    found: dict[str, Columns] = {}
    for delimiter in _DELIMITERS:
        rows = _text_rows(io.StringIO(sample, newline=""), delimiter, is_sample=True)
        columns = best_header(islice(enumerate(rows, 1), HEADER_WITHIN))
        if columns:
            found[delimiter] = columns
    if not found:
        raise _no_header(sample.splitlines()[:1])
    best = max(found, key=lambda delimiter: len(found[delimiter].fields))
    _check_columns(found[best])
    return best, found[best]


def _text_rows(
    text: io.TextIOBase, delimiter: str, *, is_sample: bool = False
) -> Iterator[list[str]]:
    lines = _Lines(text, is_sample=is_sample)
    reader = csv.reader(lines, delimiter=delimiter)
    number = 0
    while True:
        lines.row, lines.taken = number + 1, 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise TooLarge(f"Row {number + 1} cannot be read: {error}.") from error
        number += 1
        if number > MOST_ROWS:
            raise TooLarge(f"The file has more than {MOST_ROWS:,} rows.")
        yield cells


class _Lines:
    """Hands csv.reader one line after the other, and never too much of one row."""

    def __init__(self, text: io.TextIOBase, *, is_sample: bool) -> None:
        self.text = text
        self.is_sample = is_sample
        self.row = 1
        self.taken = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self.text.readline(LONGEST_LINE)
        if line:
            self.taken += len(line)
            if self.taken >= LONGEST_LINE and not self.is_sample:
                raise TooLarge(f"Row {self.row} is longer than {LONGEST_LINE:,}.")
            return line
        # csv.reader asks in the middle of a row only within quotes. It would
        # take all that follows the quote for one cell, and lose those people.
        if self.taken and not self.is_sample:
            raise UnclosedQuote(f"A quotation mark in row {self.row} is never closed.")
        raise StopIteration


# Workbooks --------------------------------------------------------------------


def _open_workbook(file: BinaryIO) -> Table:
    try:
        workbook = Workbook(file)
        return _table_of(workbook)
    except UnsafeWorkbook as error:
        raise NotATable(str(error)) from error


def _table_of(workbook: Workbook) -> Table:
    """The first visible sheet that has a header."""
    first: list[str] = []
    for sheet in workbook.sheets:
        if sheet.startswith("_"):
            continue
        start = list(islice(workbook.rows(sheet, MOST_COLUMNS), HEADER_WITHIN))
        first = first or next((cells for _, cells in start), [])
        columns = best_header(start)
        if columns:
            _check_columns(columns)
            read = partial(_sheet_people, workbook, sheet, columns)
            return Table(columns, read, f"Excel, sheet {sheet}")
    raise _no_header(first)


def _sheet_people(workbook: Workbook, sheet: str, columns: Columns) -> Iterator[Row]:
    rows = (row for row in _sheet_rows(workbook, sheet) if row[0] > columns.row)
    return _people_rows(rows, columns)


def _sheet_rows(workbook: Workbook, sheet: str) -> Iterator[Row]:
    try:
        yield from workbook.rows(sheet, MOST_COLUMNS)
    except UnsafeWorkbook as error:
        raise NotATable(str(error)) from error


# Both ---------------------------------------------------------------------------


def _people_rows(rows: Iterable[Row], columns: Columns) -> Iterator[Row]:
    """Rows without blank ones, filled up to the header's width."""
    width = len(columns.header)
    for number, cells in rows:
        if not any(map(str.strip, cells)):
            continue
        if len(cells) < width:
            cells.extend([""] * (width - len(cells)))
        yield number, cells


def _check_columns(columns: Columns) -> None:
    if len(columns.header) > MOST_COLUMNS:
        raise TooLarge(f"The file has more than {MOST_COLUMNS} columns.")
    if columns.missing:
        found = ", ".join(text for text in columns.header if text)
        raise MissingColumns(
            f"No column for: {', '.join(columns.missing)}."
            f" Row {columns.row} holds: {found[:500]}."
        )


def _no_header(first: Sequence[str]) -> NoHeader:
    shown = ", ".join(" ".join(cell.split())[:40] for cell in first if cell.strip())
    wanted = ", ".join(REQUIRED.values())
    return NoHeader(
        f"None of the first {HEADER_WITHIN} rows names the columns ({wanted}, …)."
        f" The file begins: {shown[:200] or 'with nothing at all'}."
    )
