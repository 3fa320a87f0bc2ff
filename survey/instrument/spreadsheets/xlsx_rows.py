"""Read the sheets of an .xlsx file as rows of text, in a stream.

Only what a roster needs is read: the texts, numbers and dates of cells. Memory
stays flat whatever the number of rows; docs/decisions/0014-reading-workbooks.md
compares it with openpyxl and calamine.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, time
from string import ascii_letters
from typing import BinaryIO

from django.utils.translation import gettext as _
from openpyxl.styles.numbers import builtin_format_code, is_date_format
from openpyxl.utils.cell import column_index_from_string, get_column_letter
from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel
from openpyxl.utils.escape import unescape

from survey.instrument.spreadsheets.number_formats import number_format
from survey.instrument.spreadsheets.workbook_guard import (
    ROSTER,
    UnsafeWorkbook,
    WorkbookArchive,
    check_number_format,
    create_parser,
    report_damage,
)

# Excel's own limits are 1,048,576 rows and 32,767 characters in a cell.
MOST_ROWS = 1_048_576
LONGEST_CELL = 131_072
# Excel allows 65,490 cell formats, of up to three elements each; an element
# takes a quarter of a kilobyte.
MOST_ELEMENTS = 200_000
# A text lies five deep.
DEEPEST = 100
# Digits of a number that is shown in its format.
LONGEST_SHOWN = 15
# Of merged cells, which a note names.
MOST_PLACES = 10
LONGEST_PLACE = 21

# The number of the row, and its cells.
SheetRow = tuple[int, list[str]]
Attributes = dict[str, str]
# The name of the parent, the name and the attributes of an XML element.
Element = tuple[str, str, Attributes]


@dataclass
class SheetRemarks:
    """What a person should know of the rows of a sheet that were read."""

    # The row of the headers: nothing is said about the rows above it.
    header: int = 0
    # Rows with cells that a filter or a person has hidden.
    hidden_rows: int = 0
    # Formulas whose value is not in the file, and the first of these cells.
    formulas: int = 0
    first_formula: str = ""
    # The first places of merged cells, such as G2:G3.
    merged: list[str] = field(default_factory=list)


class XlsxWorkbook:
    """The visible sheets of a workbook, by name.

    Raises UnsafeWorkbook for everything that keeps it from being read, also
    while rows are read.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._archive = WorkbookArchive(file, ROSTER)
        self._texts: list[str] = []
        self._formats = _NumberFormats()
        # The parts of the visible sheets by their names.
        self._parts: dict[str, str] = {}
        self.hidden: list[str] = []
        with report_damage():
            self._read_sheets(self._read_relationships())

    def _read_relationships(self) -> dict[str, str]:
        """Read texts and number formats; return the names of parts by their ids."""
        targets: dict[str, str] = {}
        tables: set[str] = set()
        for _kind, name, attributes in self._elements("xl/_rels/workbook.xml.rels"):
            if name != "Relationship":
                continue
            path = posixpath.join("/xl", attributes["Target"])
            target = posixpath.normpath(path).lstrip("/")
            targets[attributes["Id"]] = target
            kind = attributes["Type"].rpartition("/")[2]
            if kind in tables:
                raise UnsafeWorkbook(
                    _("The workbook has two parts of %(kind)s.") % {"kind": kind}
                )
            if kind == "sharedStrings":
                tables.add(kind)
                self._texts = self._read_texts(target)
            elif kind == "styles":
                tables.add(kind)
                self._formats.read(self._elements(target))
        return targets

    def _read_sheets(self, targets: dict[str, str]) -> None:
        for _kind, name, attributes in self._elements("xl/workbook.xml"):
            if name == "workbookPr" and attributes.get("date1904") in ("1", "true"):
                self._formats.epoch = MAC_EPOCH
            if name == "sheet" and attributes.get("state", "visible") != "visible":
                self.hidden.append(attributes["name"])
            elif name == "sheet":
                id_ = next(v for k, v in attributes.items() if k.endswith(":id"))
                # The same rows again and again would be a bomb of another kind.
                if targets[id_] in self._parts.values():
                    raise UnsafeWorkbook(_("Two sheets of the workbook are one part."))
                self._parts[attributes["name"]] = targets[id_]

    def _elements(self, part: str) -> Iterator[Element]:
        """Return every element of a small part, which is kept in memory."""
        elements: list[Element] = []
        path = [""]

        def start(name: str, attributes: Attributes) -> None:
            if len(elements) >= MOST_ELEMENTS:
                raise UnsafeWorkbook(
                    _("The workbook has too many styles or sheets (%(part)s).")
                    % {"part": part}
                )
            elements.append((path[-1], _local(name), attributes))
            path.append(_local(name))

        def end(name: str) -> None:
            path.pop()

        parser = create_parser(part, start, end)
        for piece in self._archive.read(part, ROSTER.part):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
        return iter(elements)

    def _read_texts(self, part: str) -> list[str]:
        """Read the table of texts, without the reading aids (rPh) in it."""
        texts: list[str] = []
        pieces: list[str] = []
        path: list[str] = []
        size = 0

        def start(name: str, attributes: Attributes) -> None:
            path.append(_local(name))
            # Each text searches its whole path.
            if len(path) > DEEPEST:
                raise UnsafeWorkbook(
                    _("The texts of the workbook are nested too deeply.")
                )
            if path[-1] == "si":
                nonlocal size
                size = 0
                pieces.clear()

        def end(name: str) -> None:
            if path.pop() == "si":
                texts.append(_unescaped("".join(pieces)))

        def characters(text: str) -> None:
            if path[-1] == "t" and "rPh" not in path:
                nonlocal size
                size += len(text)
                if size > LONGEST_CELL:
                    raise UnsafeWorkbook(
                        _("Text %(texts)s is far too long.") % {"texts": len(texts) + 1}
                    )
                pieces.append(text)

        parser = create_parser(part, start, end, characters)
        for piece in self._archive.read(part, ROSTER.texts):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
        return texts

    @property
    def sheets(self) -> list[str]:
        return list(self._parts)

    def rows(
        self, sheet: str, width: int, remarks: SheetRemarks | None = None
    ) -> Iterator[SheetRow]:
        """Read the rows that have cells, and add to the remarks.

        Of the cells after the first `width` ones only the last is kept, as one more:
        the row is too long.
        """
        remarks = remarks or SheetRemarks()
        reader = _SheetReader(self._texts, self._formats, width, remarks)
        part = self._parts[sheet]
        parser = create_parser(part, reader.start, reader.end, reader.characters)
        for piece in self._archive.read(part, ROSTER.sheets):
            with report_damage():
                parser.Parse(piece, False)
            yield from reader.rows
            reader.rows.clear()
        with report_damage():
            parser.Parse(b"", True)
        yield from reader.rows


def _local(name: str) -> str:
    # Some programs write x:row for row.
    return name[name.find(":") + 1 :]


def _unescaped(text: str) -> str:
    return unescape(text) if "_x" in text else text


class _NumberFormats:
    """How the cells of each style show a number."""

    def __init__(self) -> None:
        self.epoch: datetime = WINDOWS_EPOCH
        self._are_dates: list[bool] = []
        self._show: list[Callable[[int], str] | None] = []

    def read(self, styles: Iterator[Element]) -> None:
        custom: dict[int, str] = {}
        codes: list[str] = []
        for parent, name, attributes in styles:
            if name == "numFmt":
                check_number_format(attributes["formatCode"])
                custom[int(attributes["numFmtId"])] = attributes["formatCode"]
            elif name == "xf" and parent == "cellXfs":
                number = int(attributes.get("numFmtId", 0))
                code = custom.get(number) or builtin_format_code(number) or "General"
                codes.append(code)
        # Each code is searched once, however many styles have it.
        is_date = {code: is_date_format(code) for code in set(codes)}
        show = {code: number_format(code) for code in is_date if not is_date[code]}
        self._are_dates = [is_date[code] for code in codes]
        self._show = [show.get(code) for code in codes]

    def text(self, number: str, style: int) -> str:
        """Return a number as a cell of this style shows it."""
        known = 0 <= style < len(self._are_dates)
        if known and self._are_dates[style]:
            days = float(number)
            try:
                moment = from_excel(days, self.epoch)
            except (OverflowError, ValueError):
                return "#NUM!"
            if isinstance(moment, time):
                return str(moment)
            return str(moment).removesuffix(" 00:00:00")
        if not number.isdecimal():
            value = float(number)
            if not value.is_integer() or abs(value) >= 1e15:
                # As Excel shows it: 0.1 is stored as 0.10000000000000001.
                return f"{value:.15g}"
            number = str(int(value))
        # The format 000000 is how Excel's users keep an ID's leading zeros.
        show = self._show[style] if known else None
        return show(int(number)) if show and len(number) <= LONGEST_SHOWN else number


class _SheetReader:
    """Collect the rows of a sheet from the events of an XML parser."""

    def __init__(
        self,
        texts: list[str],
        formats: _NumberFormats,
        width: int,
        remarks: SheetRemarks,
    ) -> None:
        self.rows: list[SheetRow] = []
        self._remarks = remarks
        self._is_hidden = False
        # The row and column of the last formula.
        self._formula: tuple[int, int] | None = None
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
        if ":" in name:
            name = _local(name)
        if name == "c":
            letters = attributes.get("r", "").rstrip("0123456789")
            if not letters:
                self._column += 1
            elif letters in self._columns:
                self._column = self._columns[letters]
            else:
                self._column = column_index_from_string(letters) - 1
                self._columns[letters] = self._column
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
                raise UnsafeWorkbook(
                    _("The sheet has more than %(most_rows)s rows.")
                    % {"most_rows": f"{MOST_ROWS:,}"}
                )
            self._cells = []
            self._column = -1
            self._is_hidden = attributes.get("hidden") in ("1", "true")
        elif name == "f":
            self._formula = self._number, self._column
        elif name == "rPh":
            self._is_aid = True
        elif name == "mergeCell":
            self._remark_merged(attributes["ref"][:LONGEST_PLACE])

    def characters(self, text: str) -> None:
        if self._is_value:
            self._size += len(text)
            if self._size > LONGEST_CELL:
                raise UnsafeWorkbook(
                    _("A cell in row %(number)s is far too long.")
                    % {"number": self._number}
                )
            self._pieces.append(text)

    def end(self, name: str) -> None:
        if ":" in name:
            name = _local(name)
        if name == "c":
            if self._pieces:
                column = self._column
                if column > self._width:
                    column = self._width
                missing = column - len(self._cells)
                if missing >= 0:
                    self._cells.extend([""] * (missing + 1))
                self._cells[column] = self._text("".join(self._pieces))
            # The value of ="" is an empty text.
            elif self._formula == (self._number, self._column) and self._kind != "str":
                self._remark_formula()
        elif name == "v" or name == "t":
            self._is_value = False
        elif name == "row":
            if self._cells:
                self.rows.append((self._number, self._cells))
                if self._is_hidden and self._number > self._remarks.header:
                    self._remarks.hidden_rows += 1
        elif name == "rPh":
            self._is_aid = False

    def _remark_merged(self, place: str) -> None:
        last_row = int(place.partition(":")[2].lstrip(ascii_letters))
        places = self._remarks.merged
        # A title above the header may be merged.
        if last_row >= self._remarks.header and len(places) <= MOST_PLACES:
            places.append(place)

    def _remark_formula(self) -> None:
        if self._number <= self._remarks.header:
            return
        if not self._remarks.formulas:
            column = get_column_letter(self._column + 1)
            self._remarks.first_formula = f"{column}{self._number}"
        self._remarks.formulas += 1

    def _text(self, value: str) -> str:
        if self._kind == "s":
            return self._texts[int(value)]
        if self._kind == "n":
            return self._formats.text(value, self._style)
        if self._kind == "b":
            return "FALSE" if value == "0" else "TRUE"
        return _unescaped(value)
