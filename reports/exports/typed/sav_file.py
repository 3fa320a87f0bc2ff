"""Write SPSS system files, row by row: `.sav`, and `.zsav` compressed by zlib.

The format is that of "System File Format" in the developers' guide of GNU PSPP, which
also names the records below by their numbers. A row is a sequence of elements of 8
bytes: a double for a number, and as many as needed for a text.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import IO

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from reports.exports.cells import Cell, Date
from reports.exports.release_mask import COARSENED
from reports.exports.typed.columns import Column, Described, Storage, seconds_of
from reports.exports.typed.names import SPSS, cut_bytes, unique_names
from reports.exports.typed.typed_file import Cells, Encoder, TypedFile
from survey.work.jobs import JobRefused

LONGEST_LABEL, LONGEST_VALUE_LABEL, LONGEST_WIDTH = 255, 120, 32_767
# Bytes behind the longest text of more than one segment. Without them some readers,
# such as R's haven 2.5, lose its last byte, depending on its length.
ROOM = 8
LONGEST_TEXT = LONGEST_WIDTH - ROOM
ZERO = date(1582, 10, 14)
# A number that is missing for no reason: the lowest double.
SYSTEM_MISSING = -np.finfo(np.float64).max
BIAS = 100
# Opcodes of compressed elements.
PADDING, LITERAL, SPACES, MISSING = 0, 253, 254, 255
BLANK = np.frombuffer(b" " * 8, np.uint64)[0]
# Uncompressed bytes of a block in a .zsav file.
BLOCK_BYTES = 0x3FF000
# A text of more than 255 bytes lies in segments of 256, of which 255 are used.
SEGMENT, SEGMENT_USED, SEGMENT_DECLARED = 256, 255, 252
# Codes of print formats.
A, F, TIME, DATETIME, SDATE = 1, 5, 21, 22, 39
FORMATS = {
    Storage.DAY: (SDATE, 10, 0),
    Storage.TIME: (TIME, 8, 0),
    Storage.MOMENT: (DATETIME, 20, 0),
}
LEVELS = {"nominal": 1, "ordinal": 2, "scale": 3}
Words = NDArray[np.uint64]


class SavFile(TypedFile):
    """Raises JobRefused if a text is longer than SPSS can hold."""

    def __init__(
        self,
        path: Path,
        columns: Sequence[Described],
        *,
        title: str,
        scratch: Path,
        zlib_compressed: bool = False,
    ) -> None:
        super().__init__(path, columns, title=title, scratch=scratch)
        self.zlib_compressed = zlib_compressed

    def names(self, headers: Sequence[str]) -> Sequence[str]:
        return unique_names(headers, SPSS)

    def write_file(self, file: IO[bytes]) -> None:
        for column in self.columns:
            if column.is_text and column.contents.longest > LONGEST_TEXT:
                raise JobRefused(too_long(column))
        variables = [
            Variable(column, number) for number, column in enumerate(self.columns)
        ]
        file.write(self._header(variables))
        file.write(b"".join(dictionary(variables, self.rows)))
        stream = self._compressed_rows(variables)
        if self.zlib_compressed:
            write_blocks(file, stream)
        else:
            file.writelines(stream)

    def _header(self, variables: Sequence[Variable]) -> bytes:
        software = f"@(#) SPSS DATA FILE Groundswell {settings.VERSION}"
        return struct.pack(
            "<4s60s5id9s8s64s3x",
            b"$FL3" if self.zlib_compressed else b"$FL2",
            _padded(software, 60),
            2,
            sum(variable.elements for variable in variables),
            2 if self.zlib_compressed else 1,
            0,
            # More rows are only in record 7, subtype 16.
            min(self.rows, 2**31 - 1),
            BIAS,
            # A fixed date, so that the same answers make the same file.
            b"01 Jan 00",
            b"00:00:00",
            _padded(cut_bytes(self.title, 64), 64),
        )

    def _compressed_rows(self, variables: Sequence[Variable]) -> Iterator[bytes]:
        encoders = [Encoder(variable.encoder()) for variable in variables]
        is_number = np.concatenate(
            [
                np.full(variable.elements, not variable.column.is_text)
                for variable in variables
            ]
        )
        rest = np.empty(0, np.uint64)
        rest_is_number = np.empty(0, np.bool_)
        for rows, columns in self.batches():
            words = row_words(variables, encoders, columns, rows)
            words = np.concatenate([rest, words.reshape(-1)])
            numbers = np.concatenate([rest_is_number, np.tile(is_number, rows)])
            # Opcodes come in groups of eight.
            end = len(words) - len(words) % 8
            yield compressed(words[:end], numbers[:end])
            rest, rest_is_number = words[end:], numbers[end:]
        if len(rest):
            yield compressed(rest, rest_is_number)


class Variable:
    """A column, its short name, and its width."""

    def __init__(self, column: Column, number: int) -> None:
        self.column = column
        self.short = f"V{_base36(number, 4)}"
        self.width = max(column.contents.longest, 1) if column.is_text else 0
        if self.width > SEGMENT_USED:
            self.width += ROOM

    @property
    def segments(self) -> list[int]:
        """Return the width of each segment; 0 for a number."""
        if self.width <= SEGMENT_USED:
            return [self.width]
        count = -(-self.width // SEGMENT_DECLARED)
        last = self.width - (count - 1) * SEGMENT_DECLARED
        return [SEGMENT_USED] * (count - 1) + [last]

    @property
    def elements(self) -> int:
        return sum(map(_elements, self.segments))

    @property
    def format(self) -> tuple[int, int, int]:
        """Return the code, width and decimals of the print format."""
        contents = self.column.contents
        if self.column.storage is not Storage.NUMBER:
            return FORMATS[self.column.storage]
        decimals = min(contents.decimals, 16)
        digits = max(len(f"{edge:.0f}") for edge in (contents.lowest, contents.highest))
        return F, min(max(8, digits + decimals + 2), 40), decimals

    @property
    def missing(self) -> list[int]:
        """Return the codes of missing answers, as far as they can be declared."""
        codes = sorted(self.column.about.missing)
        if self.column.is_text:
            # What is left out is "*" in a text.
            codes = [code for code in codes if code != self.column.about.masked]
        return codes

    def encoder(self) -> Callable[[Cell], bytes | float]:
        if self.column.is_text:
            size = 8 * self.elements
            if self.width <= SEGMENT_USED:
                return lambda cell: (cell or "").encode().ljust(size)
            return lambda cell: _segmented((cell or "").encode()).ljust(size)
        masked, storage = float(self.column.about.masked), self.column.storage

        def number(cell: Cell) -> float:
            if not cell:
                return float(SYSTEM_MISSING)
            if cell == COARSENED:
                return masked
            if isinstance(cell, Date):
                return float(seconds_of(cell, storage, ZERO))
            return float(cell)

        return number


def too_long(column: Column) -> str:
    return _(
        "A text in SPSS holds at most %(most)s bytes, and one in the column %(column)s"
        " has %(bytes)s. Choose Parquet, Stata or CSV."
    ) % {
        "most": f"{LONGEST_TEXT:,}",
        "column": column.about.header,
        "bytes": f"{column.contents.longest:,}",
    }


def row_words(
    variables: Sequence[Variable],
    encoders: Sequence[Encoder[bytes | float]],
    columns: Sequence[Cells],
    rows: int,
) -> Words:
    """Return the elements [row, element] of some rows."""
    words = np.empty((rows, sum(variable.elements for variable in variables)), "<u8")
    place = 0
    for variable, encoder, cells in zip(variables, encoders, columns, strict=True):
        encoded = map(encoder.__getitem__, cells)
        after = place + variable.elements
        if variable.column.is_text:
            content = b"".join(encoded)  # type: ignore[arg-type]
            part = np.frombuffer(content, "<u8").reshape(rows, variable.elements)
            words[:, place:after] = part
        else:
            words[:, place] = np.fromiter(encoded, "<f8", rows).view("<u8")  # type: ignore[arg-type]
        place = after
    return words


def compressed(words: Words, is_number: NDArray[np.bool_]) -> bytes:
    """Return the elements as groups of eight opcodes, each before its literals."""
    numbers = words.view(np.float64)
    codes = np.full(-(-len(words) // 8) * 8, PADDING, np.uint8)
    small = is_number & (numbers >= 1 - BIAS) & (numbers <= 251 - BIAS)
    small &= numbers == np.floor(numbers)
    system_missing = is_number & (numbers == SYSTEM_MISSING)
    spaces = ~is_number & (words == BLANK)
    inside = codes[: len(words)]
    inside[:] = LITERAL
    inside[small] = (numbers[small] + BIAS).astype(np.uint8)
    inside[system_missing], inside[spaces] = MISSING, SPACES
    groups = codes.reshape(-1, 8)
    literals = np.flatnonzero(codes == LITERAL)
    counts = np.count_nonzero(groups == LITERAL, axis=1)
    before = np.cumsum(counts) - counts
    stream = np.empty(len(groups) + len(literals), "<u8")
    stream[np.arange(len(groups)) + before] = groups.view("<u8").reshape(-1)
    stream[literals // 8 + 1 + np.arange(len(literals))] = words[literals]
    return stream.tobytes()


def write_blocks(file: IO[bytes], stream: Iterator[bytes]) -> None:
    """Write a stream in blocks compressed by zlib, between a header and a list."""
    start = file.tell()
    file.write(bytes(24))
    blocks: list[tuple[int, int]] = []
    waiting = bytearray()

    def write_block() -> None:
        content = zlib.compress(bytes(waiting[:BLOCK_BYTES]))
        blocks.append((min(len(waiting), BLOCK_BYTES), len(content)))
        file.write(content)
        del waiting[:BLOCK_BYTES]

    for part in stream:
        waiting += part
        while len(waiting) >= BLOCK_BYTES:
            write_block()
    if waiting:
        write_block()
    trailer = file.tell()
    file.write(struct.pack("<qqii", -BIAS, 0, BLOCK_BYTES, len(blocks)))
    plain, packed = start, start + 24
    for plain_size, packed_size in blocks:
        file.write(struct.pack("<qqii", plain, packed, plain_size, packed_size))
        plain, packed = plain + plain_size, packed + packed_size
    file.seek(start)
    file.write(struct.pack("<qqq", start, trailer, 24 + 24 * len(blocks)))
    file.seek(0, 2)


def dictionary(variables: Sequence[Variable], rows: int) -> Iterator[bytes]:
    """Return the records between the header and the rows."""
    for variable in variables:
        yield from variable_records(variable)
    yield from value_labels(variables)
    yield _extension(3, 4, struct.pack("<8i", 1, 0, 0, -1, 1, 1, 2, 65001))
    largest = -SYSTEM_MISSING
    lowest = np.nextafter(SYSTEM_MISSING, 0)
    yield _extension(4, 8, struct.pack("<3d", SYSTEM_MISSING, largest, lowest))
    if sets := multiple_choices(variables):
        yield _extension(7, 1, sets.encode())
    display = b"".join(
        struct.pack("<3i", LEVELS[variable.column.about.level], 10, is_left)
        for variable in variables
        for is_left in [int(not variable.column.is_text)] * len(variable.segments)
    )
    yield _extension(11, 4, display)
    names = "\t".join(f"{each.short}={each.column.name}" for each in variables)
    yield _extension(13, 1, names.encode())
    long_texts = "".join(
        f"{variable.short}={variable.width:05}\0\t"
        for variable in variables
        if len(variable.segments) > 1
    )
    if long_texts:
        yield _extension(14, 1, long_texts.encode())
    yield _extension(16, 8, struct.pack("<qq", 1, rows))
    yield _extension(20, 1, b"UTF-8")
    if labels := b"".join(map(long_value_labels, variables)):
        yield _extension(21, 1, labels)
    if missing := b"".join(map(long_missing, variables)):
        yield _extension(22, 1, missing)
    yield struct.pack("<ii", 999, 0)


def variable_records(variable: Variable) -> Iterator[bytes]:
    """Return record 2 of a variable, and those of its further elements."""
    label = cut_bytes(variable.column.about.label, LONGEST_LABEL).encode()
    for segment, width in enumerate(variable.segments):
        code, shown, decimals = (A, width, 0) if width else variable.format
        print_format = code << 16 | shown << 8 | decimals
        missing = [] if width > 8 or segment else variable.missing
        has_range = len(missing) > 3
        if has_range:
            # A range can have more codes than three, and no answer is between them.
            missing = [missing[0], missing[-1]]
        suffix = _base36(segment, 2) if segment else ""
        yield struct.pack(
            "<6i8s",
            *(2, width, int(bool(label)), -2 if has_range else len(missing)),
            *(print_format, print_format, _padded(variable.short + suffix, 8)),
        )
        if label:
            yield struct.pack("<i", len(label)) + label.ljust(-(-len(label) // 4) * 4)
        for missing_code in missing:
            yield _value(str(missing_code), is_text=bool(width))
        more = struct.pack("<6i8s", 2, -1, 0, 0, 0, 0, b" " * 8)
        yield more * (_elements(width) - 1)


def value_labels(variables: Sequence[Variable]) -> Iterator[bytes]:
    """Return records 3 and 4, once for all variables with the same labels."""
    places: dict[tuple[bool, tuple[tuple[str, str], ...]], list[int]] = {}
    place = 1
    for variable in variables:
        labels = _labels_of(variable)
        if labels and variable.width <= 8:
            key = (variable.column.is_text, tuple(labels.items()))
            places.setdefault(key, []).append(place)
        place += variable.elements
    for (is_text, pairs), indexes in places.items():
        yield struct.pack("<2i", 3, len(pairs))
        for value, text in pairs:
            label = cut_bytes(text, LONGEST_VALUE_LABEL).encode()
            size = -(-(len(label) + 1) // 8) * 8 - 1
            yield _value(value, is_text) + bytes([len(label)]) + label.ljust(size)
        yield struct.pack(f"<2i{len(indexes)}i", 4, len(indexes), *indexes)


def _labels_of(variable: Variable) -> Mapping[str, str]:
    about = variable.column.about
    missing = {str(code): about.missing[code] for code in variable.missing}
    labels = missing
    if variable.column.is_text or variable.column.storage is Storage.NUMBER:
        labels = {**about.values, **missing}
    width = variable.width or 40
    return {
        value: text for value, text in labels.items() if len(value.encode()) <= width
    }


def long_value_labels(variable: Variable) -> bytes:
    """Return the part of record 7, subtype 21, of a text of more than 8 bytes."""
    labels = _labels_of(variable)
    if not labels or variable.width <= 8:
        return b""
    parts = [
        _counted(variable.column.name.encode()),
        struct.pack("<2i", variable.width, len(labels)),
    ]
    for value, text in labels.items():
        parts.append(_counted(value.encode().ljust(variable.width)))
        parts.append(_counted(cut_bytes(text, LONGEST_VALUE_LABEL).encode()))
    return b"".join(parts)


def long_missing(variable: Variable) -> bytes:
    """Return the part of record 7, subtype 22, of a text of more than 8 bytes."""
    codes = variable.missing
    if not codes or variable.width <= 8:
        return b""
    values = b"".join(_value(str(code), is_text=True) for code in codes)
    name = _counted(variable.column.name.encode())
    return name + struct.pack("<Bi", len(codes), 8) + values


def multiple_choices(variables: Sequence[Variable]) -> str:
    """Return record 7, subtype 7: sets of variables of which 1 is counted."""
    sets: dict[str, list[Variable]] = {}
    for variable in variables:
        if variable.column.about.choice:
            sets.setdefault(variable.column.about.choice, []).append(variable)
    names = unique_names(sets, SPSS)
    lines = []
    for name, members in zip(names, sets.values(), strict=True):
        question = members[0].column.about.question
        label = cut_bytes(question, LONGEST_LABEL)
        short = " ".join(member.short.lower() for member in members)
        size = len(label.encode())
        lines.append(f"${cut_bytes(name, 63)}=D1 1 {size} {label} {short}\n")
    return "".join(lines)


def _extension(subtype: int, size: int, content: bytes) -> bytes:
    return struct.pack("<4i", 7, subtype, size, len(content) // size) + content


def _counted(content: bytes) -> bytes:
    return struct.pack("<i", len(content)) + content


def _padded(text: str, size: int) -> bytes:
    return text.encode().ljust(size)


def _value(code: str, is_text: bool) -> bytes:
    return _padded(code, 8) if is_text else struct.pack("<d", float(code))


def _segmented(content: bytes) -> bytes:
    """Fill up each part of 255 bytes but the last one."""
    parts = [
        content[start : start + SEGMENT_USED]
        for start in range(0, len(content), SEGMENT_USED)
    ]
    return b"".join(part.ljust(SEGMENT) for part in parts[:-1]) + b"".join(parts[-1:])


def _elements(width: int) -> int:
    return max(1, -(-width // 8))


def _base36(number: int, digits: int) -> str:
    text = np.base_repr(number, 36)
    return text.rjust(digits, "0")
