"""XLSX sheets as rows of text, in a stream.

openpyxl takes 29 s for 100,000 rows of 14 columns; this takes a quarter of
that. Only what a roster needs is read: the texts, numbers and dates of
cells, no formulas, no looks.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import time
from typing import Any, BinaryIO
from xml.parsers import expat

from openpyxl.styles.numbers import builtin_format_code, is_date_format
from openpyxl.utils.cell import column_index_from_string
from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel
from openpyxl.utils.escape import unescape

from survey.spreadsheets.safe_workbook import (
    LARGEST_PART,
    LARGEST_TEXTS,
    UnsafeWorkbook,
    check_workbook,
)

# Excel's own limits are 1,048,576 rows and 32,767 characters in a cell.
MOST_ROWS = 1_048_576
LONGEST_CELL = 131_072
CHUNK = 2**17
# Excel allows 65,490 cell formats, of up to three elements each; an element
# takes a quarter of a kilobyte.
MOST_ELEMENTS = 200_000
# A text lies five deep.
DEEPEST = 100
# Excel's own limit; openpyxl searches a code in quadratic time.
LONGEST_FORMAT = 255

Row = tuple[int, list[str]]
Attributes = dict[str, str]


class Workbook:
    """The visible sheets of a workbook, by name.

    Raises UnsafeWorkbook for everything that keeps it from being read, also
    while rows are read.
    """

    def __init__(self, file: BinaryIO) -> None:
        check_workbook(file)
        self._archive = zipfile.ZipFile(file)
        with _damage():
            self._read_outline()

    def _read_outline(self) -> None:
        targets: dict[str, str] = {}
        tables: set[str] = set()
        self._texts: list[str] = []
        formats = _Formats(WINDOWS_EPOCH)
        for _, name, attributes in _elements(
            self._archive, "xl/_rels/workbook.xml.rels"
        ):
            if name == "Relationship":
                part = posixpath.join("/xl", attributes["Target"])
                target = posixpath.normpath(part).lstrip("/")
                targets[attributes["Id"]] = target
                kind = attributes["Type"].rpartition("/")[2]
                if kind in tables:
                    raise UnsafeWorkbook(f"The workbook has two parts of {kind}.")
                if kind == "sharedStrings":
                    tables.add(kind)
                    self._texts = _texts(self._archive, target)
                elif kind == "styles":
                    tables.add(kind)
                    formats.read(_elements(self._archive, target))
        self._parts: dict[str, str] = {}
        parts: set[str] = set()
        for _, name, attributes in _elements(self._archive, "xl/workbook.xml"):
            if name == "workbookPr" and attributes.get("date1904") in ("1", "true"):
                formats.epoch = MAC_EPOCH
            if name == "sheet" and attributes.get("state", "visible") == "visible":
                id_ = next(v for k, v in attributes.items() if k.endswith(":id"))
                part = targets[id_]
                if part in parts:
                    raise UnsafeWorkbook("Two sheets of the workbook are one part.")
                parts.add(part)
                self._parts[attributes["name"]] = part
        self._formats = formats

    @property
    def sheets(self) -> list[str]:
        return list(self._parts)

    def rows(self, sheet: str, width: int) -> Iterator[Row]:
        """Rows that have cells, with their numbers; at most `width` cells."""
        reader = _SheetReader(self._texts, self._formats, width)
        parser = _parser(reader.start, reader.end, reader.characters)
        with _damage():
            part = self._archive.open(self._parts[sheet])
        with part:
            more = True
            while more:
                with _damage():
                    piece = part.read(CHUNK)
                    more = bool(piece)
                    parser.Parse(piece, not more)
                yield from reader.rows
                reader.rows.clear()


class _damage:
    """Turns what a damaged workbook raises into one error.

    zipfile, zlib, expat and the numbers in it raise a dozen kinds.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, UnsafeWorkbook):
            raise UnsafeWorkbook(
                f"The workbook is damaged ({type(error).__name__}). Open it in a"
                " spreadsheet program and save it again."
            ) from error


def _parser(
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None] | None = None,
    characters: Callable[[str], None] | None = None,
) -> expat.XMLParserType:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    # Entities, external ones too, can only be declared in a document type.
    parser.StartDoctypeDeclHandler = _refuse_document_type
    return parser


def _refuse_document_type(*_: object) -> None:
    raise UnsafeWorkbook("The workbook declares a document type, which none does.")


def _local(name: str) -> str:
    # Some programs write x:row for row.
    return name[name.find(":") + 1 :]


def _pieces(archive: zipfile.ZipFile, part: str, largest: int) -> Iterator[bytes]:
    """The bytes of a part that is kept in memory.

    Its name says nothing about its use: a relationship can name a sheet's
    part, which may be large, as the styles. In pieces, since `read()` without
    a size inflates all before it looks at the declared size.
    """
    too_large = f"A part of the workbook is too large when unpacked: {part}"
    if archive.getinfo(part).file_size > largest:
        raise UnsafeWorkbook(too_large)
    with archive.open(part) as file:
        while piece := file.read(CHUNK):
            largest -= len(piece)
            if largest < 0:
                raise UnsafeWorkbook(too_large)
            yield piece


def _elements(
    archive: zipfile.ZipFile, part: str
) -> Iterator[tuple[str, str, Attributes]]:
    """(parent's name, name, attributes) of every element of a small part."""
    found: list[tuple[str, str, Attributes]] = []
    path = [""]

    def start(name: str, attributes: Attributes) -> None:
        if len(found) >= MOST_ELEMENTS:
            raise UnsafeWorkbook(f"The workbook has too many styles or sheets: {part}")
        found.append((path[-1], _local(name), attributes))
        path.append(_local(name))

    def end(_: str) -> None:
        path.pop()

    parser = _parser(start, end)
    for piece in _pieces(archive, part, LARGEST_PART):
        parser.Parse(piece, False)
    parser.Parse(b"", True)
    return iter(found)


def _texts(archive: zipfile.ZipFile, part: str) -> list[str]:
    """The table that cells refer to. Reading aids in it, rPh, are left out."""
    texts: list[str] = []
    pieces: list[str] = []
    path: list[str] = []

    def start(name: str, _: Attributes) -> None:
        path.append(_local(name))
        # Each text looks through its whole path.
        if len(path) > DEEPEST:
            raise UnsafeWorkbook("The texts of the workbook are nested without end.")
        if path[-1] == "si":
            pieces.clear()

    def end(_: str) -> None:
        if path.pop() == "si":
            texts.append(_unescaped("".join(pieces)))

    def characters(text: str) -> None:
        if path[-1] == "t" and "rPh" not in path:
            pieces.append(text)

    parser = _parser(start, end, characters)
    for piece in _pieces(archive, part, LARGEST_TEXTS):
        parser.Parse(piece, False)
    parser.Parse(b"", True)
    return texts


def _unescaped(text: str) -> str:
    return unescape(text) if "_x" in text else text


class _Formats:
    """How the cells of each style show a number."""

    def __init__(self, epoch: Any) -> None:
        self.epoch = epoch
        self._codes: list[str] = []

    def read(self, elements: Iterator[tuple[str, str, Attributes]]) -> None:
        custom: dict[int, str] = {}
        for parent, name, attributes in elements:
            if name == "numFmt":
                code = attributes["formatCode"]
                if len(code) > LONGEST_FORMAT:
                    raise UnsafeWorkbook("A number format is far too long.")
                custom[int(attributes["numFmtId"])] = code
            elif name == "xf" and parent == "cellXfs":
                number = int(attributes.get("numFmtId", 0))
                code = custom.get(number) or builtin_format_code(number) or "General"
                self._codes.append(code)
        is_date = {code: is_date_format(code) for code in set(self._codes)}
        self._dates = [is_date[code] for code in self._codes]

    def text(self, number: str, style: int) -> str:
        known = 0 < style < len(self._codes)
        if known and self._dates[style]:
            return self._date(float(number))
        if not number.isdecimal():
            value = float(number)
            if not value.is_integer() or abs(value) >= 1e15:
                # As Excel shows it: 0.1 is stored as 0.10000000000000001.
                return f"{value:.15g}"
            number = str(int(value))
        # The format 000000 is how Excel's users keep an ID's leading zeros.
        if known and _ONLY_ZEROS.fullmatch(self._codes[style]):
            return number.zfill(len(self._codes[style]))
        return number

    def _date(self, number: float) -> str:
        try:
            moment = from_excel(number, self.epoch)
        except (OverflowError, ValueError):
            return "#NUM!"
        if isinstance(moment, time):
            return str(moment)
        return str(moment).removesuffix(" 00:00:00")


_ONLY_ZEROS = re.compile("0{2,32}")


class _SheetReader:
    """Collects the rows of what an XML parser sees of a sheet."""

    def __init__(self, texts: list[str], formats: _Formats, width: int) -> None:
        self.rows: list[Row] = []
        self._texts = texts
        self._formats = formats
        self._width = width
        self._columns: dict[str, int] = {}
        self._number = 0
        self._cells: list[str] = []
        self._column = 0
        self._kind = "n"
        self._style = 0
        self._pieces: list[str] = []
        self._size = 0
        self._is_value = False
        self._is_aid = False

    def start(self, name: str, attributes: Attributes) -> None:
        name = _local(name)
        if name == "c":
            reference = attributes.get("r")
            self._column = self._index(reference) if reference else self._column + 1
            self._kind = attributes.get("t", "n")
            self._style = int(attributes.get("s", 0))
            self._pieces.clear()
            self._size = 0
        elif name == "v" or name == "t":
            self._is_value = not self._is_aid
        elif name == "row":
            # Never a number twice, whatever the file says.
            self._number = max(int(attributes.get("r", 0)), self._number + 1)
            if self._number > MOST_ROWS:
                raise UnsafeWorkbook(f"The sheet has more than {MOST_ROWS:,} rows.")
            self._cells = []
            self._column = -1
        elif name == "rPh":
            self._is_aid = True

    def characters(self, text: str) -> None:
        if self._is_value:
            self._size += len(text)
            if self._size > LONGEST_CELL:
                raise UnsafeWorkbook(f"A cell in row {self._number} is far too long.")
            self._pieces.append(text)

    def end(self, name: str) -> None:
        name = _local(name)
        if name == "c":
            if self._pieces and self._column < self._width:
                self._put(self._text("".join(self._pieces)))
        elif name == "v" or name == "t":
            self._is_value = False
        elif name == "row":
            if self._cells:
                self.rows.append((self._number, self._cells))
        elif name == "rPh":
            self._is_aid = False

    def _put(self, text: str) -> None:
        missing = self._column - len(self._cells)
        if missing >= 0:
            self._cells.extend([""] * missing)
            self._cells.append(text)
        else:
            self._cells[self._column] = text

    def _text(self, value: str) -> str:
        if self._kind == "s":
            return self._texts[int(value)]
        if self._kind == "n":
            return self._formats.text(value, self._style)
        if self._kind == "b":
            return "FALSE" if value == "0" else "TRUE"
        return _unescaped(value)

    def _index(self, reference: str) -> int:
        letters = reference.rstrip("0123456789")
        index = self._columns.get(letters)
        if index is None:
            index = self._columns[letters] = column_index_from_string(letters) - 1
        return index
