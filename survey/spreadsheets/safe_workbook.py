"""What has to hold before a stranger's XLSX is handed to its reader."""

from __future__ import annotations

import zipfile
from typing import BinaryIO

# Read once into memory as a whole: a megabyte of these becomes tens.
LARGEST_PART = 8 * 2**20
# The table of texts; each of its bytes takes about three in memory.
LARGEST_TEXTS = 64 * 2**20
# Sheets are streamed, so their size costs time only.
LARGEST_SHEETS = 1024 * 2**20
MOST_PARTS = 2_000
# The densest sheets of people shrink to a thirtieth, a bomb to a thousandth;
# what unpacks to little is harmless, however dense.
DENSEST = 200
HARMLESS = 64 * 2**20


class UnsafeWorkbook(ValueError):
    """Says to a person what is wrong with the file."""


def check_workbook(file: BinaryIO, *, largest_sheets: int = LARGEST_SHEETS) -> None:
    """Refuse what is no XLSX or would swell beyond all measure.

    The sizes are those that the archive declares. They cannot be lies:
    `zipfile` never reads a part beyond its declared size. What a part is used
    for, whatever its name, and document types, which entities come from, are
    for the reader to check.
    """
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnsafeWorkbook("The file is damaged: it cannot be unpacked.") from error
    finally:
        file.seek(0)
    _check_parts(parts, largest_sheets)


def _check_parts(parts: list[zipfile.ZipInfo], largest_sheets: int) -> None:
    names = {part.filename for part in parts}
    if "[Content_Types].xml" not in names or "xl/workbook.xml" not in names:
        raise UnsafeWorkbook("The file is a ZIP archive, but not an Excel workbook.")
    if len(parts) > MOST_PARTS or len(names) < len(parts):
        raise UnsafeWorkbook("The workbook has too many parts, or one of them twice.")
    if any(part.flag_bits & 1 for part in parts):
        raise UnsafeWorkbook("The workbook is protected by a password.")
    if any(".." in name or name[:1] in "/\\" for name in names):
        raise UnsafeWorkbook("A part of the workbook has a name that no part may have.")
    if sum(part.file_size for part in parts if _is_sheet(part)) > largest_sheets:
        raise UnsafeWorkbook("The workbook is too large when unpacked.")
    for part in parts:
        if not _is_sheet(part) and part.file_size > _limit(part):
            raise UnsafeWorkbook(
                f"A part of the workbook is too large when unpacked: {part.filename}"
            )
    unpacked = sum(part.file_size for part in parts)
    packed = sum(part.compress_size for part in parts)
    if unpacked > max(HARMLESS, DENSEST * packed):
        raise UnsafeWorkbook(
            f"The workbook would swell to more than {DENSEST} times its size, as"
            " nothing does that people write."
        )


def _is_sheet(part: zipfile.ZipInfo) -> bool:
    return part.filename.startswith("xl/worksheets/sheet")


def _limit(part: zipfile.ZipInfo) -> int:
    name = part.filename.casefold()
    if name.endswith("sharedstrings.xml"):
        return LARGEST_TEXTS
    # Pictures and the like are never read.
    return LARGEST_PART if name.endswith((".xml", ".rels")) else LARGEST_SHEETS
