"""Recognise files that hold no table, and say what they are and what to do."""

from __future__ import annotations

import codecs
import io
import re
from typing import BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.spreadsheets.old_excel import ENCRYPTED_PACKAGE, LARGEST_XLS, is_old_excel

EXPORT = gettext_noop("Export the roster from your system as CSV or Excel.")
UNPACK = gettext_noop("Unpack it, and upload the CSV or Excel file that it contains.")
PROTECTED = gettext_noop(
    "This Excel file is protected by a password. Open it in Excel, save it"
    " without a password, and upload it again."
)
OF_NUMBERS = gettext_noop(
    "This is a document of Numbers or Pages. Open it in Numbers, choose File,"
    " then Export To, then CSV or Excel."
)
WEB_PAGE = gettext_noop(
    "This is a web page, perhaps that of an error or a login. If it has the"
    " roster, open it in a spreadsheet program and save it as .xlsx."
)
XML = gettext_noop("This is an XML file. Open it in Excel and save it as .xlsx.")
# A photo names its format in bytes 4 to 12.
_BY_BEGINNING = (
    (rb"%PDF", (gettext_noop("This is a PDF."), EXPORT)),
    (
        rb"\x89PNG|\xff\xd8\xff|GIF8|II\*\x00|MM\x00\*|RIFF....WEBP"
        rb"|....ftyp(?:heic|heix|mif1|avif)",
        (gettext_noop("This is an image."), EXPORT),
    ),
    (rb"\{\\rtf", (gettext_noop("This is a Word document."), EXPORT)),
    (
        rb"\x1f\x8b|7z\xbc\xaf|Rar!",
        (gettext_noop("This is a compressed file."), UNPACK),
    ),
    (
        rb"SQLite format 3|\x00\x01\x00\x00Standard (?:Jet|ACE)",
        (gettext_noop("This is a database."), EXPORT),
    ),
)
_BY_PATTERN = [(re.compile(some, re.DOTALL), texts) for some, texts in _BY_BEGINNING]
# The end of a ZIP file lists the names of its parts.
_END_OF_ZIP = 2**17
_BY_PART = (
    (rb"Index/[\w-]+\.iwa", (OF_NUMBERS,)),
    (rb"word/document\.xml", (gettext_noop("This is a Word document."), EXPORT)),
    (
        rb"ppt/presentation\.xml",
        (gettext_noop("This is a PowerPoint presentation."), EXPORT),
    ),
)
_WORKBOOK_PART = b"xl/workbook."
# Names in the directory of a file of Office 97-2003.
_OF_EXCEL = [f"{name}\0".encode("utf-16-le") for name in ("Workbook", "Book")]
_OF_WORD = "WordDocument".encode("utf-16-le")
_WEB_PAGE = re.compile(rb"<(?:!doctype html|html|head|body|table|meta)\b", re.I)
# [id],[name] is a header of SQL Server, and no JSON.
_JSON = re.compile(rb"""\{\s*["}]|\[\s*[\[{"\]]""")


def reason_not_a_table(file: BinaryIO) -> str:
    """Return what a file is and what to do, or "" if it may hold a table.

    Reads its beginning and end; a file of Office 97-2003 is read whole.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    start = file.read(512)
    if start.startswith(b"PK"):
        file.seek(max(size - _END_OF_ZIP, 0))
        return _reason_of_zip(file.read(_END_OF_ZIP))
    if is_old_excel(start):
        file.seek(0)
        return _reason_of_old_office(file.read() if size <= LARGEST_XLS else start)
    for pattern, texts in _BY_PATTERN:
        if pattern.match(start):
            return _sentences(*texts)
    return _reason_of_text(start)


def _sentences(*texts: str) -> str:
    return " ".join(map(_, texts))


def _reason_of_zip(end: bytes) -> str:
    # A workbook may contain a document.
    if _WORKBOOK_PART in end:
        return ""
    texts = next((texts for part, texts in _BY_PART if re.search(part, end)), ())
    return _sentences(*texts)


def _reason_of_old_office(content: bytes) -> str:
    if ENCRYPTED_PACKAGE in content:
        return _(PROTECTED)
    if _OF_WORD in content and not any(name in content for name in _OF_EXCEL):
        return _sentences("This is a Word document.", EXPORT)
    return ""


def _reason_of_text(start: bytes) -> str:
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if _JSON.match(text):
        return _sentences(gettext_noop("This is a JSON file."), EXPORT)
    if text.startswith(b"<") and _WEB_PAGE.search(text):
        return _(WEB_PAGE)
    return _(XML) if text.startswith(b"<?xml") else ""
