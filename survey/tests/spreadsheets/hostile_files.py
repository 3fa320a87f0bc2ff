"""Hostile workbooks, made from a plain one; surveys and rosters refuse each."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable

from survey.instrument.spreadsheets.workbook_guard import MIB, MOST_PARTS
from survey.tests.workbooks import rezipped

SHEET = "xl/worksheets/sheet1.xml"
STYLES = "xl/styles.xml"
LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a0 "ha">'
    + b"".join(
        b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 6)
    )
    + b"]>"
)
EXTERNAL = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a5 SYSTEM "file:///etc/passwd">]>'
)


def with_part(content: bytes, part: str, change: Callable[[bytes], bytes]) -> bytes:
    """Copy a workbook with one part changed."""
    return rezipped(content, lambda name, data: change(data) if name == part else data)


def with_new_part(
    content: bytes, name: str, data: bytes = b"", compression: int = zipfile.ZIP_STORED
) -> bytes:
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(name, data, compression)
    return file.getvalue()


def zipped(parts: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


def padded(content: bytes, size: int, part: str = SHEET) -> bytes:
    return with_part(content, part, lambda data: data + b" " * size)


def lying(content: bytes, declared: int, part: str = SHEET) -> bytes:
    """Declare a wrong size in the directory and the part's own header."""
    changed = bytearray(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        header = archive.getinfo(part).header_offset
    struct.pack_into("<I", changed, header + 22, declared)
    entry = changed.rfind(part.encode()) - 46
    assert changed[entry : entry + 4] == b"PK\x01\x02"
    struct.pack_into("<I", changed, entry + 24, declared)
    return bytes(changed)


def encrypted(content: bytes) -> bytes:
    changed = bytearray(content)
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        changed[changed.find(signature) + offset] |= 1
    return bytes(changed)


def with_huge_directory(content: bytes) -> bytes:
    """Declare a directory of a hundred MB."""
    end = content.rfind(b"PK\x05\x06")
    changed = bytearray(content)
    struct.pack_into("<I", changed, end + 12, 100 * MIB)
    return bytes(changed)


def with_overlapping_parts(content: bytes) -> bytes:
    """Let the directory's entry of the sheet lead to another part."""
    changed = bytearray(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        offset = archive.getinfo(STYLES).header_offset
    struct.pack_into("<I", changed, changed.rfind(SHEET.encode()) - 4, offset)
    return bytes(changed)


def with_entities(content: bytes, prolog: bytes, part: str = SHEET) -> bytes:
    def change(data: bytes) -> bytes:
        start = data.index(b"<", data.find(b"?>") + 1)
        return prolog + data[start:].replace(b"</", b"&a5;</", 1)

    return with_part(content, part, change)


def in_utf_16(data: bytes) -> bytes:
    text = data.decode().partition("?>")[2] or data.decode()
    return f"<!DOCTYPE a [<!ENTITY a5 'x'>]>{text}".encode("utf-16")


def with_number_format(content: bytes, code: bytes) -> bytes:
    def change(data: bytes) -> bytes:
        number = b'<numFmts><numFmt numFmtId="200" formatCode="%b"/></numFmts>' % code
        data = data.replace(b'<numFmts count="0" />', b"")
        data = data.replace(b"<fonts", number + b"<fonts", 1)
        head, cells = data.split(b"<cellXfs")
        return head + b"<cellXfs" + cells.replace(b'numFmtId="0"', b'numFmtId="200"')

    return with_part(content, STYLES, change)


def with_elements(content: bytes, element: bytes, count: int) -> bytes:
    return with_part(
        content,
        STYLES,
        lambda data: data.replace(b"</cellXfs>", element * count + b"</cellXfs>"),
    )


Maker = Callable[[bytes], bytes]

# Name: how the file is made, and what the refusal says.
HOSTILE: dict[str, tuple[Maker, str]] = {
    "half of a file": (lambda plain: plain[: len(plain) // 2], "damaged"),
    "all but one byte": (lambda plain: plain[:-1], "damaged"),
    "a signature alone": (lambda plain: b"PK\x03\x04 and no more", "damaged"),
    "another ZIP": (
        lambda plain: zipped({"a.csv": b"b"}),
        "not an Excel workbook|none of the files of OneRoster",
    ),
    "OpenDocument": (
        lambda plain: zipped({"mimetype": b"application/vnd.oasis.opendocument"}),
        "OpenDocument",
    ),
    "binary workbook": (lambda plain: zipped({"xl/workbook.bin": b""}), ".xlsb"),
    "encrypted part": (encrypted, "encrypted"),
    "part in another compression": (
        lambda plain: with_new_part(plain, "a", b"b" * 99, zipfile.ZIP_LZMA),
        "never uses",
    ),
    "too many parts": (
        lambda plain: zipped({f"p{n}": b"" for n in range(MOST_PARTS + 1)}),
        "more than 2,000 parts",
    ),
    "huge directory": (with_huge_directory, "more than 2,000 parts"),
    "overlapping parts": (with_overlapping_parts, "damaged"),
    "path upwards": (lambda plain: with_new_part(plain, "../../x"), "forbidden name"),
    "absolute path": (lambda plain: with_new_part(plain, "/etc/x"), "forbidden name"),
    "path of Windows": (lambda plain: with_new_part(plain, "\\x"), "forbidden name"),
    "bomb in the sheet": (
        lambda plain: padded(plain, 80 * MIB),
        "larger than 32 MB|more than 200 times",
    ),
    "bomb of many parts": (
        lambda plain: zipped(
            {"[Content_Types].xml": b"", "xl/workbook.xml": b""}
            | {f"p{n}": b" " * (3 * MIB) for n in range(24)}
        ),
        "larger than 32 MB|more than 200 times",
    ),
    "bomb in the styles": (
        lambda plain: padded(plain, 33 * MIB, STYLES),
        "larger than 32 MB|larger than 8 MB",
    ),
    "bomb that lies": (lambda plain: lying(padded(plain, 50 * MIB), 700), "damaged"),
    "bomb in the styles that lies": (
        lambda plain: lying(padded(plain, 50 * MIB, STYLES), 700, STYLES),
        "damaged",
    ),
    "part that is smaller than it says": (
        lambda plain: lying(plain, 999_999),
        "declares 999999 bytes and contains",
    ),
    "exploding entities": (lambda plain: with_entities(plain, LAUGHS), "entities"),
    "external entity": (lambda plain: with_entities(plain, EXTERNAL), "entities"),
    "entities in the styles": (
        lambda plain: with_entities(plain, LAUGHS, STYLES),
        "document type",
    ),
    "entities in UTF-16": (
        lambda plain: with_part(plain, "xl/workbook.xml", in_utf_16),
        "document type",
    ),
    "format of brackets": (
        lambda plain: with_number_format(plain, b"[" * 100_000),
        "number format has more than 255",
    ),
    "countless styles": (
        lambda plain: with_elements(plain, b"<xf/>", 210_000),
        "more cells, texts or styles|too many styles",
    ),
    "row beyond every limit": (
        lambda plain: with_part(
            plain, SHEET, lambda data: data.replace(b'r="A2"', b'r="A99999999"')
            .replace(b'<row r="2"', b'<row r="99999999"')
        ),
        "beyond 10,000 rows|more than 1,048,576 rows",
    ),
    "column beyond every limit": (
        lambda plain: with_part(
            plain, SHEET, lambda data: data.replace(b'r="A2"', b'r="ZZZZZ2"')
        ),
        "damaged",
    ),
    "sheet that ends too early": (
        lambda plain: with_part(plain, SHEET, lambda data: data[: len(data) // 2]),
        "damaged",
    ),
}  # fmt: skip
