"""Read the texts of files that are compressed or cut into pieces inside.

Each function yields a text for each row, or for neighbouring lines of a page, in flat
memory but for PDF. SPSS, Stata and PDF are read as this product writes them; what
looks otherwise, or would take much more time or memory than its size, raises an
exception.
"""

from __future__ import annotations

import re
import struct
import warnings
import zlib
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import IO, Any

from survey.people.erasing.traces import text_of

ROWS = 2000
PART = 1 << 20
# Of a PDF file, and once more of all that is packed in it.
MOST_PDF = 256 << 20
# Of what is read at a time, because a file says so.
MOST_READ = 64 << 20


def texts_of_workbook(file: IO[bytes]) -> Iterator[str]:
    """Yield rows of an Excel file: its sheets name texts that are in another part."""
    from openpyxl import load_workbook

    file.seek(0)
    # Of what openpyxl leaves out, such as charts.
    with warnings.catch_warnings(action="ignore"):
        book = load_workbook(file, read_only=True, data_only=True)
        for sheet in book.worksheets:
            # A size that a sheet states may be wrong.
            sheet.reset_dimensions()
            for row in sheet.iter_rows(values_only=True):
                yield text_of(row)


def texts_of_xls(file: IO[bytes]) -> Iterator[str]:
    """Yield rows of a workbook of before Excel 2007."""
    import xlrd

    book: Any = xlrd.open_workbook(file_contents=file.read(), on_demand=True)
    for sheet in book.sheets():
        for row in range(sheet.nrows):
            # A number as it is typed: 10045, not 10045.0.
            yield text_of(
                f"{value:.15g}" if isinstance(value, float) else value
                for value in sheet.row_values(row)
            )


def texts_of_parquet(file: IO[bytes]) -> Iterator[str]:
    from pyarrow.parquet import ParquetFile

    for batch in ParquetFile(file).iter_batches(batch_size=ROWS):
        for row in batch.to_pylist():
            yield text_of(row.values())


# SPSS

LITTLE_ENDIAN, BYTECODES, ZLIB = 2, 1, 2
END, LITERAL, SPACES, MISSING = 252, 253, 254, 255
# A long text lies in segments of 256 bytes, of which 255 are used; each stands for 252.
SEGMENT, SEGMENT_USED, SEGMENT_DECLARED = 32, 255, 252
WIDEST, MOST_ELEMENTS, MOST_BLOCK = 32_767, 1_000_000, 16 << 20


def texts_of_sav(file: IO[bytes]) -> Iterator[str]:
    """Yield the labels, and rows, of a `.sav` or `.zsav` file."""
    header = _exactly(file, 176)
    layout, _size, compression = struct.unpack_from("<3i", header, 64)
    (bias,) = struct.unpack_from("<d", header, 84)
    if layout != LITTLE_ENDIAN or compression not in (BYTECODES, ZLIB):
        raise ValueError("another layout")
    columns = _sav_columns(file)
    rows_at = file.tell()
    file.seek(0)
    yield from _lines(_exactly(file, rows_at))
    elements = sum(size for size, _ in columns)
    if not 1 <= elements <= MOST_ELEMENTS:
        raise ValueError("too wide, or no columns")
    stream = _parts(file) if compression == BYTECODES else _zlib_blocks(file)
    row: list[bytes | float | None] = []
    for element in _elements(stream, bias):
        row.append(element)
        if len(row) == elements:
            yield text_of(_sav_cells(row, columns))
            row = []
    if row:
        raise EOFError("a row is cut off")


def _sav_columns(file: IO[bytes]) -> list[tuple[int, int]]:
    """Return how many elements each column has, and its width; 0 for a number."""
    widths: list[tuple[str, int]] = []
    long_widths: dict[str, int] = {}
    while (record := _number(file)) != 999:
        if record == 2:
            width, has_label, missing, *_ = struct.unpack("<5i", _exactly(file, 20))
            name = _exactly(file, 8).decode().rstrip()
            if has_label:
                _exactly(file, -(-_number(file) // 4) * 4)
            _exactly(file, 8 * abs(missing))
            if width >= 0:
                widths.append((name, width))
        elif record == 3:
            for _label in range(_number(file)):
                _exactly(file, 8)
                _exactly(file, -(-(_exactly(file, 1)[0] + 1) // 8) * 8 - 1)
        elif record == 4:
            _exactly(file, 4 * _number(file))
        elif record == 7:
            subtype, size, count = struct.unpack("<3i", _exactly(file, 12))
            content = _exactly(file, size * count)
            if subtype == 14:
                pairs = content.decode().replace("\0", "").split("\t")
                long_widths = {
                    name: int(width)
                    for name, _, width in (pair.partition("=") for pair in pairs)
                    if name
                }
        else:
            raise ValueError("an unknown record")
    _number(file)
    columns, skipped = [], 0
    for name, width in widths:
        if skipped:
            skipped -= 1
        elif declared := long_widths.get(name):
            skipped = -(-declared // SEGMENT_DECLARED) - 1
            last = declared - skipped * SEGMENT_DECLARED
            columns.append((SEGMENT * skipped + -(-last // 8), declared))
        else:
            columns.append((max(1, -(-width // 8)), width))
    if not all(0 <= width <= WIDEST for _, width in columns):
        raise ValueError("too wide a column")
    return columns


def _sav_cells(
    row: list[bytes | float | None], columns: list[tuple[int, int]]
) -> Iterator[object]:
    place = 0
    for size, width in columns:
        cells = row[place : place + size]
        place += size
        if width == 0:
            [cell] = cells
            if isinstance(cell, bytes):
                (cell,) = struct.unpack("<d", cell)
            yield cell if cell is None else f"{cell:.15g}"
            continue
        content = b"".join(cell for cell in cells if isinstance(cell, bytes))
        if width > SEGMENT_USED:
            starts = range(0, len(content), 8 * SEGMENT)
            content = b"".join(content[at : at + SEGMENT_USED] for at in starts)
        yield content.decode("utf-8", "replace").rstrip()


def _elements(parts: Iterator[bytes], bias: float) -> Iterator[bytes | float | None]:
    """Yield what a stream of opcodes stands for: 8 bytes, a number, or nothing."""
    waiting, place = b"", 0

    def next_word() -> bytes:
        nonlocal waiting, place
        while len(waiting) < place + 8:
            part = next(parts, b"")
            if not part:
                return b""
            waiting, place = waiting[place:] + part, 0
        place += 8
        return waiting[place - 8 : place]

    while codes := next_word():
        for code in codes:
            if code == LITERAL:
                if not (word := next_word()):
                    raise EOFError("an element is cut off")
                yield word
            elif code == SPACES:
                yield b" " * 8
            elif code == MISSING:
                yield None
            elif code == END:
                return
            elif code:
                yield code - bias


def _zlib_blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the blocks of a `.zsav` file, which a list at its end describes."""
    _start, trailer, _size = struct.unpack("<3q", _exactly(file, 24))
    first = file.tell()
    file.seek(trailer)
    *_, count = struct.unpack("<qqii", _exactly(file, 24))
    blocks = struct.iter_unpack("<qqii", _exactly(file, 24 * count))
    file.seek(first)
    for *_, plain, packed in blocks:
        if not 0 < plain <= MOST_BLOCK:
            raise ValueError("too large a block, or an empty one")
        block = _inflated(_exactly(file, packed), plain)
        if len(block) < plain:
            raise EOFError("a block is cut off")
        yield block
    if file.tell() != trailer:
        raise ValueError("blocks that are not in the list")


# Stata

LONG_TEXT = 32_768
# As `struct` names them; of a long text, where it lies.
NUMBERS = {65526: "d", 65527: "f", 65528: "i", 65529: "h", 65530: "b", LONG_TEXT: "8x"}


def texts_of_dta(file: IO[bytes]) -> Iterator[str]:
    """Yield the labels, rows, and long texts of a `.dta` file of release 118."""
    head = _exactly(file, 200)
    known = re.compile(
        rb"<stata_dta><header><release>118</release><byteorder>LSF</byteorder>"
        rb"<K>(..)</K><N>(.{8})</N><label>(..)",
        re.S,
    )
    if not (match := known.match(head)):
        raise ValueError("another release")
    columns, rows, label = (int.from_bytes(part, "little") for part in match.groups())
    file.seek(match.end() + label)
    after = file.read(128)
    file.seek(match.end() + label + after.index(b"<map>") + len(b"<map>"))
    sections = struct.unpack("<14Q", _exactly(file, 14 * 8))
    types_at, data_at, texts_at, labels_at = (sections[n] for n in (2, 9, 10, 11))
    file.seek(types_at + len(b"<variable_types>"))
    types = struct.unpack(f"<{columns}H", _exactly(file, 2 * columns))
    file.seek(0)
    yield from _lines(_exactly(file, data_at))
    _exactly(file, len(b"<data>"))
    layout = struct.Struct(
        "<" + "".join(NUMBERS.get(code, f"{code}s") for code in types)
    )
    if not layout.size:
        raise ValueError("no columns")
    for _row in range(rows):
        cells = layout.unpack(_exactly(file, layout.size))
        yield text_of(map(_dta_cell, cells))
    file.seek(texts_at + len(b"<strls>"))
    while file.tell() < labels_at and _exactly(file, 3) == b"GSO":
        *_, size = struct.unpack("<IQBI", _exactly(file, 17))
        yield _exactly(file, size).decode("utf-8", "replace")
    file.seek(labels_at)
    rest = file.read(MOST_READ)
    if not rest.endswith(b"</stata_dta>"):
        raise EOFError("the file is cut off")
    yield from _lines(rest)


def _dta_cell(cell: bytes | float) -> str:
    if isinstance(cell, bytes):
        return cell.partition(b"\0")[0].decode("utf-8", "replace")
    return f"{cell:.15g}"


# PDF

OBJECT = re.compile(rb"(?<!\d)(\d{1,10}) 0 obj\b")
STREAM = re.compile(rb">>\s*stream\r?\n")
FILTER = re.compile(rb"/Filter[\s\[]*/?(\w+)")
REFERENCE = re.compile(rb"/([^\s/<>\[\](){}]+)\s+(\d+) 0 R")
STRING = rb"\((?:[^\\()]++|\\.)*+\)|<[0-9A-Fa-f\s]*+>"
TOKEN = re.compile(
    STRING + rb"|/[^\s/<>\[\](){}]+|(?<![^\s\]>)])(?:BT|ET|Tf|Tj|TJ)(?!\S)", re.S
)
HEXADECIMAL = re.compile(rb"<[0-9A-Fa-f]*>")
ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
# Of images, fonts and profiles of colors; no text is in these.
NO_TEXT = (b"/Subtype /Image", b"/Length1", b"/Alternate", b"/Type /XRef")
# Of an object without its stream, and of a table of letters.
MOST_OBJECT = 4 << 20
MOST_FONTS, MOST_CODES, LONGEST_CODE, LONGEST_LETTER = 64, 1 << 16, 4, 64
Letters = dict[bytes, str]


def texts_of_pdf(file: IO[bytes]) -> Iterator[str]:
    """Yield neighbouring lines of a page, and strings such as titles and links.

    What is on pictures is not read.
    """
    content = file.read(MOST_PDF + 1)
    if len(content) > MOST_PDF:
        raise ValueError("too large")
    if not content.rstrip().endswith(b"%%EOF"):
        raise EOFError("the file is cut off")
    if b"/Encrypt" in content:
        raise ValueError("encrypted")
    if content.count(b"startxref") != 1:
        raise ValueError("saved in several steps")
    objects, streams = _pdf_objects(content)
    if not any(b"/Pages" in each for each in objects.values()):
        raise ValueError("no pages")
    if max(map(len, objects.values())) > MOST_OBJECT:
        raise ValueError("too large an object")
    for each in objects.values():
        yield "\n".join(_string(text) for text in re.findall(STRING, each, re.S))
    fonts = _fonts(objects, streams)
    for stream in streams.values():
        if not re.search(rb"\sTf\b", stream):
            # Such as what describes the document, in XML.
            yield from _lines(stream)
            continue
        for choice in range(max(map(len, fonts.values()), default=1)):
            lines = _shown_texts(stream, fonts, choice)
            # A name may be in two lines.
            for first, second in pairwise(chain([""], lines)):
                yield f"{first}\n{second}"
                # Letters lie from left to right, also of Arabic words.
                yield f"{first}\n{second}"[::-1]


def _fonts(
    objects: dict[int, bytes], streams: dict[int, bytes]
) -> dict[bytes, list[Letters]]:
    """Return the tables of each name that pages give to a font.

    Pages may give a name to different fonts: then all of them are tried.
    """
    tables = {
        number: int(match[1])
        for number, each in objects.items()
        if (match := re.search(rb"/ToUnicode\s+(\d+) 0 R", each))
    }
    if len(tables) > MOST_FONTS:
        raise ValueError("too many fonts")
    letters = {number: _letters(streams[table]) for number, table in tables.items()}
    # Each page may name all fonts once more.
    fonts: dict[bytes, dict[int, Letters]] = {}
    for each in objects.values():
        for name, digits in REFERENCE.findall(each):
            if (number := int(digits)) in letters:
                fonts.setdefault(name, {})[number] = letters[number]
    return {name: [*of_name.values()] for name, of_name in fonts.items()}


def _pdf_objects(content: bytes) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Return objects by their number, also those in streams; and streams of text."""
    objects: dict[int, bytes] = {}
    streams: dict[int, bytes] = {}
    left = MOST_PDF
    for number, each in _outer_objects(content):
        match, end = STREAM.search(each), each.rfind(b"endstream")
        if bool(match) != (end >= 0):
            raise ValueError("an unknown stream")
        objects[number] = head = each[: match.start()] if match else each
        if not match or any(sign in head for sign in NO_TEXT):
            continue
        stream = each[match.end() : end]
        packing = FILTER.search(head)
        if packing and packing[1] not in (b"FlateDecode", b"DCTDecode", b"JPXDecode"):
            raise ValueError("an unknown filter")
        if packing and packing[1] != b"FlateDecode":
            continue
        if packing:
            stream = _inflated(stream, left)
            left -= len(stream)
        if b"/ObjStm" in head:
            objects.update(_packed_objects(head, stream))
        else:
            streams[number] = stream
    return objects, streams


def _outer_objects(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield objects. Raises ValueError if there are others, such as of generation 1."""
    place = 0
    while match := OBJECT.search(content, place):
        end = content.find(b"endobj", match.end())
        if end < 0 or b"obj" in content[place : match.start()]:
            raise ValueError("an unknown object")
        yield int(match[1]), content[match.end() : end]
        place = end + len(b"endobj")
    if b"obj" in content[place:]:
        raise ValueError("an unknown object")


def _packed_objects(head: bytes, stream: bytes) -> Iterator[tuple[int, bytes]]:
    match = re.search(rb"/First\s+(\d+)", head)
    first = int(match[1]) if match else 0
    numbers = [int(number) for number in stream[:first].split()]
    places = [*numbers[1::2], len(stream)]
    if places != sorted(places):
        raise ValueError("objects that overlap")
    for number, (start, end) in zip(numbers[::2], pairwise(places), strict=True):
        yield number, stream[first + start : first + end]


def _letters(cmap: bytes) -> Letters:
    """Return the text of each code of a font, by its table for copying."""
    letters: Letters = {}
    left = MOST_CODES
    if len(cmap) > MOST_OBJECT:
        raise ValueError("too large a table")
    for after in cmap.split(b"beginbf")[1:]:
        part, end, _ = after.partition(b"endbf")
        if not end:
            raise EOFError("a table is cut off")
        words = [_bytes_of(word) for word in HEXADECIMAL.findall(part)]
        if part.startswith(b"char"):
            ranges = zip(words[::2], words[::2], words[1::2], strict=True)
        else:
            ranges = zip(words[::3], words[1::3], words[2::3], strict=True)
        for low, high, text in ranges:
            first, start = int.from_bytes(low), int.from_bytes(text)
            count = int.from_bytes(high) + 1 - first
            if not (
                0 < len(low) <= LONGEST_CODE
                and len(text) <= LONGEST_LETTER
                and 0 <= count <= left
            ):
                raise ValueError("too many codes, or too long ones")
            left -= count
            for code in range(first, first + count):
                letter = (start + code - first).to_bytes(len(text))
                letters[code.to_bytes(len(low))] = letter.decode("utf-16-be")
    return letters


def _shown_texts(
    stream: bytes, fonts: dict[bytes, list[Letters]], choice: int
) -> Iterator[str]:
    """Yield what each block of text of a page shows."""
    letters: Letters = {}
    name, shown = b"", ""
    strings = bytearray()
    for match in TOKEN.finditer(stream):
        token = match[0]
        if token[:1] in b"(<":
            strings += _bytes_of(token)
        elif token[:1] == b"/":
            name = token[1:]
        elif token == b"Tf":
            of_name = fonts.get(name, [{}])
            letters = of_name[min(choice, len(of_name) - 1)]
        elif token in (b"Tj", b"TJ"):
            shown += _decoded(bytes(strings), letters)
            strings.clear()
        elif token == b"ET" and shown:
            yield shown
            shown = ""
        if token in (b"BT", b"ET"):
            strings.clear()


def _decoded(content: bytes, letters: Letters) -> str:
    if not letters:
        # A font without a table has letters of one byte.
        return content.decode("latin-1")
    size = len(next(iter(letters)))
    codes = (content[at : at + size] for at in range(0, len(content), size))
    return "".join(letters.get(code, "\ufffd") for code in codes)


def _bytes_of(token: bytes) -> bytes:
    if token.startswith(b"<"):
        digits = b"".join(token[1:-1].split()).decode()
        return bytes.fromhex(digits + "0" * (len(digits) % 2))

    def plain(match: re.Match[bytes]) -> bytes:
        text = match[1]
        return bytes([int(text, 8)]) if text.isdigit() else ESCAPES.get(text, text)

    return re.sub(rb"\\([0-7]{3}|.)", plain, token[1:-1], flags=re.S)


def _string(token: bytes) -> str:
    content = _bytes_of(token)
    is_wide = content.startswith(b"\xfe\xff")
    return content.decode("utf-16" if is_wide else "utf-8", "replace")


# Shared


def _exactly(file: IO[bytes], size: int) -> bytes:
    if not 0 <= size <= MOST_READ:
        raise ValueError("too large a part")
    content = file.read(size)
    if len(content) < size:
        raise EOFError("the file is cut off")
    return content


def _number(file: IO[bytes]) -> int:
    return int.from_bytes(_exactly(file, 4), "little", signed=True)


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    while part := file.read(PART):
        yield part


def _lines(content: bytes) -> Iterator[str]:
    yield from content.decode("utf-8", "replace").splitlines()


def _inflated(content: bytes, most: int) -> bytes:
    """Unpack so many bytes at most. Raises ValueError if it has more, or is cut off."""
    unpacker = zlib.decompressobj()
    unpacked = unpacker.decompress(content, most + 1)
    if len(unpacked) > most or not unpacker.eof:
        raise ValueError("too large to unpack, or cut off")
    return unpacked
