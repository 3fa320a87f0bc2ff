"""The zip around a workbook, opened without trusting a word it says.

An .xlsx is a zip of XML. Every part is inflated here, under a bound, and
handed on in a fresh archive without compression, so that whatever reads it
next can only see bytes that were counted. Sizes are checked twice: as the
zip declares them, which costs nothing, and as they come out, because the
declaration can lie.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from xml.parsers import expat

MIB = 1024 * 1024
# A survey of 1,000 items in ten languages is 1 MiB on disk and 8 inflated.
MAX_FILE = 10 * MIB
MAX_INFLATED = 32 * MIB
MAX_PARTS = 500
# Spreadsheets with a million formatted but empty rows reach 1:100.
MAX_RATIO = 250
RATIO_MATTERS_FROM = 4 * MIB
# An element costs its reader 5 to 30 µs whatever its size: 32 MiB of the
# shortest ones took three minutes and 4 GB. Cells and their texts are many in
# an honest workbook (two elements each); styles and the rest are few.
MAX_ELEMENTS = {"xl/worksheets/": 400_000, "xl/sharedStrings.xml": 200_000, "": 50_000}
# Excel's own limit. openpyxl searches a format for brackets in quadratic time,
# and for each style anew: 100,000 of them in one code took six seconds.
MAX_FORMAT = 255


class FileRefused(Exception):
    """The file as a whole cannot be read; no cell of it was."""


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
LOCAL_HEADER = struct.Struct("<4s22xHH")


def safe_archive(content: bytes) -> bytes:
    """The same workbook, inflated within bounds and free of DTDs.

    Raises FileRefused with a reason that names the limit.
    """
    if len(content) > MAX_FILE:
        raise FileRefused(f"The file is larger than {MAX_FILE // MIB} MB.")
    _refuse_other_formats(content)
    parts = _listed_parts(content)
    _refuse_declared_sizes(parts)
    inflated = _inflate_all(content, parts)
    _refuse_what_is_no_workbook(inflated)
    left = dict(MAX_ELEMENTS)
    for name, data in inflated.items():
        kind = next(prefix for prefix in MAX_ELEMENTS if name.startswith(prefix))
        left[kind] -= _count_elements(name, data, left[kind])
    return _stored(inflated)


def declared_size(content: bytes) -> int:
    """What the workbook says it holds unpacked; 0 for what is no workbook."""
    try:
        _refuse_other_formats(content)
        return sum(part.file_size for part in _listed_parts(content))
    except FileRefused:
        return 0


def _refuse_other_formats(content: bytes) -> None:
    if not content:
        raise FileRefused("The file is empty.")
    if content.startswith(OLE):
        if ENCRYPTED_PACKAGE in content:
            raise FileRefused("The file is protected by a password: save it without.")
        raise FileRefused("This is an old .xls file: save it as .xlsx.")
    if not content.startswith(b"PK"):
        raise FileRefused(
            "This is not an .xlsx file (a CSV or text file, perhaps): save it as"
            " .xlsx from a spreadsheet program."
        )


def _listed_parts(content: bytes) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
    # Hostile directories make zipfile raise more than its own error.
    except (zipfile.BadZipFile, ValueError, OSError, struct.error, NotImplementedError):
        raise FileRefused("The file is damaged: it is not a whole zip.") from None
    if len(parts) > MAX_PARTS:
        raise FileRefused(f"The file has more than {MAX_PARTS} parts.")
    if len({part.filename for part in parts}) < len(parts):
        raise FileRefused("The file is damaged: it holds a part twice.")
    if any(part.flag_bits & 1 for part in parts):
        raise FileRefused("The file is encrypted: save it without a password.")
    return parts


def _refuse_declared_sizes(parts: list[zipfile.ZipInfo]) -> None:
    if sum(part.file_size for part in parts) > MAX_INFLATED:
        raise FileRefused(
            f"The file declares more than {MAX_INFLATED // MIB} MB of content."
        )
    for part in parts:
        if part.file_size > max(RATIO_MATTERS_FROM, MAX_RATIO * part.compress_size):
            raise FileRefused(
                f"{_shown(part)} declares more than {MAX_RATIO} times its size."
            )


def _inflate_all(content: bytes, parts: list[zipfile.ZipInfo]) -> dict[str, bytes]:
    inflated: dict[str, bytes] = {}
    left = MAX_INFLATED
    for part in parts:
        data = _inflate(content, part, left)
        left -= len(data)
        inflated[part.filename] = data
    return inflated


def _inflate(content: bytes, part: zipfile.ZipInfo, left: int) -> bytes:
    raw = _raw(content, part)
    if part.compress_type == zipfile.ZIP_STORED:
        data = raw
    elif part.compress_type == zipfile.ZIP_DEFLATED:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            # One byte over the bound is enough to know, and all that is made.
            data = inflater.decompress(raw, left + 1)
        except zlib.error:
            raise FileRefused(f"{_shown(part)} is damaged.") from None
    else:
        raise FileRefused(f"{_shown(part)} is packed in a way that .xlsx never is.")
    if len(data) > left:
        raise FileRefused(f"The file inflates to more than {MAX_INFLATED // MIB} MB.")
    if len(data) != part.file_size:
        raise FileRefused(
            f"{_shown(part)} declares {part.file_size} bytes and holds {len(data)}."
        )
    if zlib.crc32(data) != part.CRC:
        raise FileRefused(f"{_shown(part)} is damaged: its checksum is wrong.")
    return data


def _raw(content: bytes, part: zipfile.ZipInfo) -> bytes:
    start = part.header_offset
    try:
        signature, name, extra = LOCAL_HEADER.unpack_from(content, start)
    except struct.error:
        signature, name, extra = b"", 0, 0
    if signature != b"PK\x03\x04":
        raise FileRefused(f"{_shown(part)} is damaged: it is not where it should be.")
    start += LOCAL_HEADER.size + name + extra
    return content[start : start + part.compress_size]


def _shown(part: zipfile.ZipInfo) -> str:
    return f"The part {part.filename[:60]!a}"


def _refuse_what_is_no_workbook(parts: dict[str, bytes]) -> None:
    if parts.get("mimetype", b"").startswith(b"application/vnd.oasis"):
        raise FileRefused("This is an OpenDocument file: save it as .xlsx.")
    if "xl/workbook.bin" in parts:
        raise FileRefused("This is a binary .xlsb file: save it as .xlsx.")
    if "[Content_Types].xml" not in parts or "xl/workbook.xml" not in parts:
        raise FileRefused("This is a zip, but no .xlsx workbook.")


class _Refusal(Exception):
    pass


def _count_elements(name: str, data: bytes, allowed: int) -> int:
    """Count them, up to a bound, and refuse what declares entities.

    No part of a workbook has a DTD, which is what entities are declared in.
    Number formats that no spreadsheet program writes are refused as well.
    """
    count = 0

    def refuse_doctype(*declared: object) -> None:
        raise _Refusal("declares a document type or entities, which no workbook does")

    def count_element(_: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > allowed:
            raise _Refusal("has more cells, texts or styles than a survey ever needs")
        if len(attributes.get("formatCode", "")) > MAX_FORMAT:
            raise _Refusal(f"has a number format of more than {MAX_FORMAT} characters")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.StartElementHandler = count_element
    try:
        parser.Parse(data, True)
    except _Refusal as refusal:
        raise FileRefused(f"The part {name[:60]!a} {refusal}.") from None
    except (expat.ExpatError, ValueError, LookupError):
        # Broken XML, and pictures, are left to the reader of the workbook.
        return count
    return count


def _stored(parts: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return whole.getvalue()
