"""Write Stata files of release 118 (Stata 14 and newer), row by row.

The format is that of `help dta_118` in Stata's documentation. Reasons for missing
answers are Stata's extended missing values, from .a, which no answer can be.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import IO

import numpy as np
from django.utils.translation import gettext as _

from reports.exports.cells import Cell, Date
from reports.exports.release_mask import COARSENED
from reports.exports.typed.columns import Column, Described, Storage, seconds_of
from reports.exports.typed.names import STATA, cut_bytes, unique_names
from reports.exports.typed.typed_file import Encoder, TypedFile
from survey.work.jobs import JobRefused

MOST_COLUMNS = 32_767
# Characters and bytes.
LONGEST_LABEL, LABEL_BYTES, NAME_BYTES, FORMAT_BYTES = 80, 321, 129, 57
# Longer texts lie behind the rows, each in its own length.
LONGEST_IN_ROW = 255
LONG_TEXT = 32_768
ZERO = date(1960, 1, 1)
MILLISECONDS, SECONDS_OF_A_DAY = 1000, 86_400
FORMATS = {
    Storage.DAY: "%td",
    Storage.TIME: "%tcHH:MM:SS",
    Storage.MOMENT: "%tc",
    Storage.NUMBER: "%12.0g",
}
# Code, type in a row, lowest and highest value; then come the missing values.
WHOLE_NUMBERS = (
    (65530, "<i1", -127, 100),
    (65529, "<i2", -32_767, 32_740),
    (65528, "<i4", -2_147_483_647, 2_147_483_620),
)
DOUBLE, DOUBLE_TYPE = 65526, "<f8"
# The double that is "."; .a is one step of the second number further.
FIRST_MISSING, MISSING_STEP = 0x7FE0 << 48, 1 << 40
FIRST_MISSING_LONG = 2_147_483_621
# By the last digit of the code: .a not applicable, .b skipped, .c not reached, .d left
# out.
LETTERS = {-7: 1, -8: 2, -9: 3, -6: 4}


class DtaFile(TypedFile):
    """Raises JobRefused above Stata's number of columns."""

    def __init__(
        self, path: Path, columns: Sequence[Described], *, title: str, scratch: Path
    ) -> None:
        if len(columns) > MOST_COLUMNS:
            raise JobRefused(too_many_columns(len(columns)))
        super().__init__(path, columns, title=title, scratch=scratch)
        self._long_texts = scratch / "long_texts"

    def names(self, headers: Sequence[str]) -> Sequence[str]:
        return unique_names(headers, STATA)

    def write_file(self, file: IO[bytes]) -> None:
        variables = [
            Variable(column, number)
            for number, column in enumerate(self.columns, start=1)
        ]
        offsets: list[int] = []

        @contextmanager
        def section(name: str) -> Iterator[None]:
            offsets.append(file.tell())
            file.write(f"<{name}>".encode())
            yield
            file.write(f"</{name}>".encode())

        file.write(b"<stata_dta>")
        file.write(self._header())
        with section("map"):
            place = file.tell()
            file.write(bytes(14 * 8))
        with section("variable_types"):
            file.write(_shorts([variable.code for variable in variables]))
        with section("varnames"):
            file.write(_texts(NAME_BYTES, (each.column.name for each in variables)))
        with section("sortlist"):
            file.write(bytes(2 * (len(variables) + 1)))
        with section("formats"):
            file.write(_texts(FORMAT_BYTES, (each.format for each in variables)))
        with section("value_label_names"):
            file.write(_texts(NAME_BYTES, (each.labels_name for each in variables)))
        with section("variable_labels"):
            labels = (each.column.about.label[:LONGEST_LABEL] for each in variables)
            file.write(_texts(LABEL_BYTES, labels))
        with section("characteristics"):
            pass
        with self._long_texts.open("w+b") as long_texts:
            with section("data"):
                self._write_rows(file, variables, long_texts)
            with section("strls"):
                long_texts.seek(0)
                shutil.copyfileobj(long_texts, file)
        self._long_texts.unlink()
        with section("value_labels"):
            for variable in variables:
                if variable.labels:
                    file.write(_labels(variable.labels_name, variable.labels))
        offsets.append(file.tell())
        file.write(b"</stata_dta>")
        end = file.tell()
        file.seek(place)
        file.write(struct.pack("<14Q", 0, *offsets, end))
        file.seek(end)

    def _header(self) -> bytes:
        title = self.title[:LONGEST_LABEL].encode()
        # A fixed date, so that the same answers make the same file.
        made_at = b"01 Jan 2000 00:00"
        return b"".join(
            (
                b"<header><release>118</release><byteorder>LSF</byteorder>",
                b"<K>" + struct.pack("<H", len(self.columns)) + b"</K>",
                b"<N>" + struct.pack("<Q", self.rows) + b"</N>",
                b"<label>" + struct.pack("<H", len(title)) + title + b"</label>",
                b"<timestamp>" + bytes([len(made_at)]) + made_at + b"</timestamp>",
                b"</header>",
            )
        )

    def _write_rows(
        self, file: IO[bytes], variables: Sequence[Variable], long_texts: IO[bytes]
    ) -> None:
        kind = np.dtype([(f"f{each.number}", each.type) for each in variables])
        encoders = [Encoder(variable.encoder()) for variable in variables]
        row = 1
        for rows, columns in self.batches():
            table = np.zeros(rows, kind)
            for variable, encoder, cells in zip(
                variables, encoders, columns, strict=True
            ):
                if not variable.is_long_text:
                    table[f"f{variable.number}"] = list(map(encoder.__getitem__, cells))
            # By row, and in it by column, as the texts have to be.
            long_columns = [
                (variable, cells)
                for variable, cells in zip(variables, columns, strict=True)
                if variable.is_long_text
            ]
            for index in range(rows if long_columns else 0):
                for variable, cells in long_columns:
                    if text := cells[index]:
                        key = (variable.number, row + index)
                        long_texts.write(_long_text(*key, text))
                        # Two bytes for the column, and six for the row.
                        table[f"f{variable.number}"][index] = key[0] | key[1] << 16
            file.write(table.tobytes())
            row += rows


class Variable:
    """A column with its type in a row. `number` counts from 1."""

    def __init__(self, column: Column, number: int) -> None:
        self.column, self.number = column, number
        longest = max(column.contents.longest, 1)
        self.missing = {code: LETTERS[code % -10] for code in column.about.missing}
        self.is_long_text = column.is_text and longest > LONGEST_IN_ROW
        self.code, self.type = DOUBLE, DOUBLE_TYPE
        self.highest: int | None = None
        if self.is_long_text:
            self.code, self.type = LONG_TEXT, "<u8"
        elif column.is_text:
            self.code, self.type = longest, f"S{longest}"
        elif column.storage is Storage.DAY:
            # Every date with a year of four digits.
            self.code, self.type, _lowest, self.highest = WHOLE_NUMBERS[2]
        elif column.is_whole:
            for code, kind, lowest, highest in WHOLE_NUMBERS:
                contents = column.contents
                if lowest <= contents.lowest and contents.highest <= highest:
                    self.code, self.type, self.highest = code, kind, highest
                    break

    @property
    def format(self) -> str:
        if self.column.is_text:
            return f"%-{min(self.column.contents.longest or 1, 40)}s"
        return FORMATS[self.column.storage]

    @property
    def labels(self) -> Mapping[int, str]:
        """Return texts by number; only whole numbers and missing ones have some."""
        about = self.column.about
        if self.column.is_text:
            return {}
        labels = {
            FIRST_MISSING_LONG + place: about.missing[code]
            for code, place in self.missing.items()
        }
        if self.column.storage is Storage.NUMBER:
            for value, text in about.values.items():
                if value.lstrip("-").isdigit() and abs(int(value)) < FIRST_MISSING_LONG:
                    labels[int(value)] = text
        return labels

    @property
    def labels_name(self) -> str:
        return f"labels{self.number}" if self.labels else ""

    def missing_value(self, place: int) -> int | float:
        """Return the value in a row of "." (0), .a (1) and so on."""
        if self.highest is not None:
            return self.highest + 1 + place
        bits = struct.pack("<Q", FIRST_MISSING + place * MISSING_STEP)
        (number,) = struct.unpack("<d", bits)
        return float(number)

    def encoder(self) -> Callable[[Cell], bytes | int | float]:
        column = self.column
        if column.is_text:
            return lambda cell: (cell or "").encode()
        codes = {str(code): place for code, place in self.missing.items()}
        codes[COARSENED] = self.missing.get(column.about.masked, 0)
        number = float if self.highest is None else int
        storage = column.storage

        def encode(cell: Cell) -> int | float:
            if not cell:
                return self.missing_value(0)
            if cell in codes:
                return self.missing_value(codes[cell])
            if not isinstance(cell, Date):
                return number(cell)
            seconds = seconds_of(cell, storage, ZERO)
            if storage is Storage.DAY:
                return seconds // SECONDS_OF_A_DAY
            return seconds * MILLISECONDS

        return encode


def too_many_columns(count: int) -> str:
    return _(
        "A Stata file holds at most %(most_columns)s columns, and this export has"
        " %(count)s. Choose another file type, or fewer survey rounds."
    ) % {"most_columns": f"{MOST_COLUMNS:,}", "count": f"{count:,}"}


def _long_text(column: int, row: int, text: str) -> bytes:
    content = text.encode() + b"\0"
    return b"GSO" + struct.pack("<IQBI", column, row, 130, len(content)) + content


def _labels(name: str, labels: Mapping[int, str]) -> bytes:
    numbers = sorted(labels)
    texts = [cut_bytes(labels[number], 32_000).encode() + b"\0" for number in numbers]
    sizes = [len(text) for text in texts]
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    table = struct.pack("<2i", len(numbers), sum(sizes))
    table += struct.pack(f"<{len(starts)}i", *starts)
    table += struct.pack(f"<{len(numbers)}i", *numbers) + b"".join(texts)
    head = struct.pack("<i", len(table)) + _texts(NAME_BYTES, [name]) + bytes(3)
    return b"<lbl>" + head + table + b"</lbl>"


def _shorts(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}H", *numbers)


def _texts(size: int, texts: Iterator[str] | Sequence[str]) -> bytes:
    """Return texts of a fixed size, with at least one zero behind each."""
    return b"".join(
        cut_bytes(text, size - 1).encode().ljust(size, b"\0") for text in texts
    )
