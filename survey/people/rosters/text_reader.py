"""Read text files as rows of cells: CSV in any encoding, with any separator.

Everything is streamed and bounded.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.people.rosters.unreadable import RosterUnreadable, TooLarge

# Excel's own number of rows, and room for a whole state in one CSV file.
MOST_ROWS = 5_000_000
# In characters; above csv's own limit for one field, which is 131,072.
LONGEST_LINE = 500_000
# The last character of a file that DOS programs write.
END_OF_DOS_FILE = "\x1a"
# Looking for the end of each quoted cell takes quadratic time.
LONGEST_REPAIRED = 10_000

DELIMITERS = {
    ",": gettext_noop("commas"),
    ";": gettext_noop("semicolons"),
    "\t": gettext_noop("tabs"),
    "|": gettext_noop("bars"),
}
ENCODING_NAMES = {
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252",
}
# UTF-32's little-endian mark begins with UTF-16's, so it comes first.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


SAVE_AS_UTF_8 = gettext_noop("Save it as 'CSV UTF-8'.")
DAMAGED_LETTERS = gettext_noop(
    "The file's letters cannot be read: it begins as UTF-16 or UTF-32, and is damaged"
    " later."
)
NOT_UTF_8 = gettext_noop(
    "Line %(line)s has letters that are not UTF-8, as those of the other lines are."
    " Correct the letters of this line, and save the file as 'CSV UTF-8'."
)
ONLY_UTF_8 = gettext_noop(
    "Line %(line)s has letters in UTF-8, and other lines have them in Windows-1252."
    " Correct the letters of this line, and save the file as 'CSV UTF-8'."
)
CONVERTED_TWICE = gettext_noop(
    "Line %(line)s has letters that were converted twice, such as Ã© instead of é."
    " Export the file again as 'CSV UTF-8'."
)
NEITHER = gettext_noop(
    "The letters of line %(line)s are neither UTF-8, UTF-16 nor Windows-1252; perhaps"
    " the file was saved as 'CSV (Macintosh)' or 'CSV (MS-DOS)'."
)


SPLIT_FILE = gettext_noop("Split it by district or school.")
NEVER_CLOSED = gettext_noop(
    "a quotation mark is never closed, so that rows after it would be read as part"
    " of this cell."
)
UNCLEAR_QUOTES = gettext_noop("its quotation marks leave unclear where a cell ends.")
DOUBLE_QUOTES = gettext_noop(
    "Delete the quotation mark, or write two for one within a quoted text, and upload"
    " the file again."
)


def encoding_of(file: BinaryIO) -> str:
    """Return the encoding in which the whole file decodes; 0.1 s for 50 MB."""
    file.seek(0)
    start = file.read(4096)
    marked = [name for mark, name in BYTE_ORDER_MARKS if start.startswith(mark)]
    # Latin letters in UTF-16 are every other byte a NUL.
    if not marked and start and start[1::2].count(0) > len(start) // 4:
        marked = ["utf-16-le"]
    elif not marked and start and start[0::2].count(0) > len(start) // 4:
        marked = ["utf-16-be"]
    encoding = marked[0] if marked else "utf-8-sig"
    if _decodes(file, encoding):
        return encoding
    if encoding != "utf-8-sig":
        damaged = _(DAMAGED_LETTERS)
        raise RosterUnreadable(f"{damaged} {_(SAVE_AS_UTF_8)}")
    file.seek(0)
    check_windows_1252(file, is_marked=bool(marked))
    return "cp1252"


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
                raise nul_character(line)
            # Three searches for a text are ten times as fast as one for a pattern.
            may_be_wrong = not text.isascii() and any(
                sign in text for sign in ("Ã", "Â", "â€")
            )
            if may_be_wrong and (wrong := _CONVERTED_TWICE.search(text)):
                line = lines + text[: wrong.start()].count("\n")
                raise RosterUnreadable(_(CONVERTED_TWICE) % {"line": line})
            lines += text.count("\n")
            if not piece:
                return True
    except UnicodeError:
        return False


# UTF-8 read as Windows-1252 and written as UTF-8: é became Ã©, and ’ became â€™.
_CONVERTED_TWICE = re.compile("[ÃÂ][\u00a0-\u00bf]|â€[\u0080-\u00bf\u2018-\u2122]")


def nul_character(line: int) -> RosterUnreadable:
    return RosterUnreadable(
        _(
            "Line %(line)s contains a NUL character: this is not a"
            " text file, or it is damaged. Save it again as CSV."
        )
        % {"line": line}
    )


_UTF_8 = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]"
    rb"|[\xe1-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
# A letter and signs after it in Windows-1252, as in JOSÉ’S, which are by chance
# letters of UTF-8 that hardly any name has.
_LETTER_AND_SIGN = re.compile(rb"[\xc4-\xef][\x85\x91-\x94\x96\x97\xa0\xab\xbb]+")
# Bytes without a meaning in Windows-1252, and signs of it within words: letters of
# an old Macintosh or of DOS, such as Jos\x8e and Mu\xa4oz.
_NOT_WINDOWS_1252 = re.compile(
    rb"[\x81\x8d\x8f\x90\x9d]|[A-Za-z]\x97[a-z]"
    rb"|[a-z](?:[\x80\x82-\x84\x86-\x89\x8b\x8e\x95\x98\xa1-\xa5\xa7]|\x96[a-z])"
)


def check_windows_1252(file: IO[bytes], *, is_marked: bool = False) -> None:
    """Refuse a file that is not UTF-8, unless all of it is Windows-1252.

    A wrong byte in a file of UTF-8 would garble every other name. `is_marked`: the
    file begins with UTF-8's mark.
    """
    lines = {"utf-8": 0, "single": 0, "neither": 0}
    first: dict[str, int] = {}
    pieces = iter(partial(file.readline, 2**17), b"")
    numbered = enumerate((line for piece in pieces for line in piece.splitlines()), 1)
    for number, line in numbered:
        if b"\x00" in line:
            raise nul_character(number)
        if line.isascii():
            continue
        rest = _UTF_8.sub(b"", line)
        kinds = {
            "utf-8": not all(map(_LETTER_AND_SIGN.fullmatch, _UTF_8.findall(line))),
            "single": not rest.isascii(),
            "neither": _NOT_WINDOWS_1252.search(line),
        }
        for kind in filter(kinds.get, kinds):
            lines[kind] += 1
            first.setdefault(kind, number)
    if is_marked or lines["utf-8"]:
        if is_marked or lines["single"] <= lines["utf-8"]:
            # Bytes beyond the last code point look like UTF-8.
            number = first.get("single", min(first.values(), default=1))
            reason = _(NOT_UTF_8)
        else:
            number, reason = first["utf-8"], _(ONLY_UTF_8)
        raise RosterUnreadable(reason % {"line": number})
    if "neither" in first:
        reason = _(NEITHER) % {"line": first["neither"]}
        raise RosterUnreadable(f"{reason} {_(SAVE_AS_UTF_8)}")


def text_rows(
    text: io.TextIOBase, delimiter: str, header: Sequence[str] = ()
) -> Iterator[list[str]]:
    """Yield the rows of a text; without its `header` as a sample, unchecked.

    Raises RosterUnreadable for a row whose quotation marks would hide other rows, or
    whose cells they leave unclear.
    """
    lines = _LineReader(text, is_sample=not header)
    is_escaped = False
    reader = csv.reader(lines, delimiter=delimiter, strict=bool(header))
    number = 1
    while True:
        lines.begin_row(number)
        try:
            cells = next(reader)
            is_hiding = (
                header and lines.more and hides_rows(cells, delimiter, len(header))
            )
            problem = NEVER_CLOSED if is_hiding else ""
        except StopIteration:
            return
        except csv.Error as error:
            problem = _reason_of(error, lines)
        if problem and not is_escaped and _has_escapes(lines.first, delimiter):
            # From here on, as databases write quotation marks.
            is_escaped = True
            lines.put_back()
            reader = csv.reader(
                lines, delimiter=delimiter, strict=True, escapechar="\\"
            )
            continue
        if problem:
            cells = _cells_with_plain_quotes(lines.of_row, delimiter)
            if len(cells) != len(header):
                raise _unclear_row(lines, delimiter, header, problem)
        if number > MOST_ROWS:
            raise TooLarge(
                _("The file has more than %(most_rows)s rows. %(advice)s")
                % {"most_rows": f"{MOST_ROWS:,}", "advice": _(SPLIT_FILE)}
            )
        yield cells
        number += 1


def _reason_of(error: csv.Error, lines: _LineReader) -> str:
    """Tell what is wrong with the quotes of a row. Raises TooLarge for other errors."""
    if lines.is_sample or "field limit" in str(error):
        raise TooLarge(
            _("Row %(row)s has a cell of more than %(longest)s characters. Shorten it.")
            % {"row": lines.row, "longest": f"{csv.field_size_limit():,}"}
        ) from error
    return reason_of_csv_error(error, is_long=bool(lines.more))


class _LineReader:
    """Give csv.reader one line at a time, and never too much of one row."""

    def __init__(self, text: io.TextIOBase, *, is_sample: bool) -> None:
        self.text = text
        self.is_sample = is_sample
        self.row = 1
        # How many of this row were read, its first line, and the lines after it.
        self.characters = 0
        self.first = ""
        self.more: list[str] = []
        # Lines to be read again, the next one last.
        self._put_back: list[str] = []

    def begin_row(self, number: int) -> None:
        self.row, self.characters = number, 0
        if self.more:
            self.more = []

    def put_back(self) -> None:
        self._put_back = self.of_row[::-1]

    def __iter__(self) -> _LineReader:
        return self

    def __next__(self) -> str:
        if self._put_back:
            line = self._put_back.pop()
        else:
            line = self.text.readline(LONGEST_LINE)
            if not line or line == END_OF_DOS_FILE:
                raise StopIteration
        if self.characters:
            self.more.append(line)
        else:
            self.first = line
        self.characters += len(line)
        if self.characters >= LONGEST_LINE and not self.is_sample:
            raise TooLarge(
                _(
                    "Row %(row)s is longer than %(longest_line)s characters. Is a"
                    " quotation mark never closed, or a line break missing?"
                )
                % {"row": self.row, "longest_line": f"{LONGEST_LINE:,}"}
            )
        return line

    @property
    def of_row(self) -> list[str]:
        return [self.first, *self.more]


def _has_escapes(line: str, delimiter: str) -> bool:
    """Tell whether a line is a row with backslashes before its quotation marks."""
    reader = csv.reader([line], delimiter=delimiter, strict=True, escapechar="\\")
    try:
        return '\\"' in line and bool(next(reader))
    except csv.Error:
        return False


def _cells_with_plain_quotes(lines: Sequence[str], delimiter: str) -> list[str]:
    """Split a line where a quotation mark closes a cell only before a separator."""
    if len(lines) > 1 or len(lines[0]) > LONGEST_REPAIRED:
        return []
    sign = re.escape(delimiter)
    pattern = re.compile(rf'(?:"(.*?)" *|((?!")[^{sign}]*)){sign}')
    cells, at, line = [], 0, lines[0].rstrip("\r\n") + delimiter
    while cell := pattern.match(line, at):
        quoted, plain = cell.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        at = cell.end()
    return cells


_LINE_BREAK = re.compile(r"\r\n?|\n")


def hides_rows(cells: Sequence[str], delimiter: str, columns: int) -> bool:
    """Tell whether a cell's lines look like the rest of a row and other rows.

    `columns` is the number of headers. An unpaired quotation mark makes one cell of
    everything up to the next one. In the lines of an address a comma is followed by
    a space.
    """
    separator = re.compile(rf"{re.escape(delimiter)}(?! )")
    for index, cell in enumerate(cells):
        if "\n" not in cell and "\r" not in cell:
            continue
        first, *middle, last = (
            len(separator.findall(line)) for line in _LINE_BREAK.split(cell)
        )
        # The cells that this row would have without the quotation mark.
        width = index + 1 + first
        is_row = width >= min(len(cells), columns)
        widths = {width if is_row else columns, len(cells)} - {1, 2}
        if any(count + 1 in widths for count in middle):
            return True
        if not middle and is_row and width > 2 and last + len(cells) - index == width:
            return True
    return False


def reason_of_csv_error(error: csv.Error, *, is_long: bool) -> str:
    """Tell what is wrong with the quotes of a row; `is_long`: of several lines."""
    is_open = is_long or "unexpected end" in str(error)
    return NEVER_CLOSED if is_open else UNCLEAR_QUOTES


def _unclear_row(
    lines: _LineReader, delimiter: str, header: Sequence[str], problem: str
) -> RosterUnreadable:
    """Say in which cell the quotation marks are unclear, and what to do."""
    cells = next(csv.reader(lines.of_row, delimiter=delimiter), [])
    indexes = [i for i, cell in enumerate(cells) if _LINE_BREAK.search(cell)]
    indexes += [i for i, cell in enumerate(cells) if '"' in cell]
    where = _("Row %(row)s") % {"row": lines.row}
    if indexes and indexes[0] < len(header):
        where += ", " + _("column '%(header)s'") % {"header": header[indexes[0]]}
    return RosterUnreadable(f"{where}: {_(problem)} {_(DOUBLE_QUOTES)}")
