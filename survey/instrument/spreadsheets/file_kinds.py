"""Recognise files that hold no table, and say what they are and what to do.

Each advice can be followed: only what a spreadsheet program opens is to be saved as
.xlsx in one.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.instrument.spreadsheets.old_excel import (
    ENCRYPTED_PACKAGE,
    LARGEST_XLS,
    is_old_excel,
)
from survey.instrument.spreadsheets.workbook_guard import OPEN_DOCUMENT

EXPORT = gettext_noop("Export the roster from your system as CSV or Excel.")
UNPACK = gettext_noop("Unpack it, and upload the CSV or Excel file that it contains.")
PROTECTED = gettext_noop(
    "This Excel file is protected by a password. Open it in Excel, save it"
    " without a password, and upload it again."
)
OF_NUMBERS = gettext_noop(
    "This is a document of Numbers or Pages. Open it in Numbers, choose File,"
    " then Export To, then Excel."
)
WEB_PAGE = gettext_noop(
    "This is a web page, perhaps that of an error or a login. If it shows the"
    " table, open it in a spreadsheet program and save it as .xlsx."
)
OLD_XML = gettext_noop(
    "This is a workbook in the XML format of 2003. Open it in Excel and save it as"
    " .xlsx."
)
OF_GOOGLE = gettext_noop(
    "This is a link to a Google Sheet, and not the sheet itself. Open it in Google"
    " Sheets, choose File, then Download, then Microsoft Excel (.xlsx)."
)
SHORTCUT = gettext_noop(
    "This is a shortcut to another file or page. Upload the file that it leads to."
)
BINARY_WORKBOOK = gettext_noop(
    "This is a binary .xlsb workbook. Open it in Excel and save it as .xlsx."
)
IMAGE = gettext_noop("This is an image.")
PDF = gettext_noop("This is a PDF.")
WORD = gettext_noop("This is a Word document.")
PRESENTATION = gettext_noop("This is a PowerPoint presentation.")
DATABASE = gettext_noop("This is a database.")
E_MAIL = gettext_noop(
    "This is an e-mail. Save the file that is attached to it, and upload that file."
)
STATISTICS = gettext_noop("This is a data file of a statistics program.")
JSON = gettext_noop("This is a JSON file.")
XML = gettext_noop("This is an XML file.")
COMPRESSED = gettext_noop("This is a compressed file.")
# What a file is, by its first bytes. After those of `_COMPLETE`, the caller says what
# to do. A photo names its format in bytes 4 to 12.
_BY_BEGINNING = (
    (rb"%PDF", PDF),
    (
        rb"\x89PNG|\xff\xd8\xff|GIF8|II\*\x00|MM\x00\*|RIFF....WEBP"
        rb"|....ftyp(?:heic|heix|mif1|avif)",
        IMAGE,
    ),
    (rb"\{\\rtf", WORD),
    (rb"\x1f\x8b|7z\xbc\xaf|Rar!", COMPRESSED),
    (rb"SQLite format 3|\x00\x01\x00\x00Standard (?:Jet|ACE)", DATABASE),
    (rb"\$FL[23]@|<stata_dta>|PAR1|SAS", STATISTICS),
    (rb"\[InternetShortcut\]|L\x00\x00\x00\x01\x14\x02", SHORTCUT),
)
_COMPLETE = frozenset(
    [PROTECTED, OF_NUMBERS, WEB_PAGE, OLD_XML, OF_GOOGLE, SHORTCUT]
    + [OPEN_DOCUMENT, BINARY_WORKBOOK, E_MAIL]
)
_BY_PATTERN = [(re.compile(some, re.DOTALL), kind) for some, kind in _BY_BEGINNING]
# The end of a ZIP file lists the names of its parts.
_END_OF_ZIP = 2**17
_BY_PART = (
    (rb"Index/[\w-]+\.iwa", OF_NUMBERS),
    (rb"word/document\.xml", WORD),
    (rb"ppt/presentation\.xml", PRESENTATION),
    (rb"xl/workbook\.bin", BINARY_WORKBOOK),
)
_WORKBOOK_PART = b"xl/workbook.xml"
# An OpenDocument file begins with its type.
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument."
# Names in the directory of a file of Office 97-2003.
_OF_EXCEL = [f"{name}\0".encode("utf-16-le") for name in ("Workbook", "Book")]
_OF_OFFICE = (
    ("WordDocument", WORD),
    ("PowerPoint Document", PRESENTATION),
    ("__substg1.0_", E_MAIL),
)
_WEB_PAGE = re.compile(rb"<(?:!doctype html|html|head|body|table|meta)\b", re.I)
_OLD_XML = re.compile(rb"office:spreadsheet|Excel\.Sheet|<(?:ss:)?Workbook\b")
# [id],[name] is a header of SQL Server, and no JSON.
_JSON = re.compile(rb"""\{\s*["}]|\[\s*[\[{"\]]""")
_GOOGLE = re.compile(rb"docs\.google\.com|\"doc_id\"")


def reason_not_a_table(file: BinaryIO, export: str = EXPORT) -> str:
    """Return what a file is and what to do, or "" if it may hold a table.

    `export` is the advice where the file holds none that could be converted. Reads
    its beginning and end; a file of Office 97-2003 is read whole.
    """
    kind = _kind_of(file)
    if not kind:
        return ""
    advice = "" if kind in _COMPLETE else UNPACK if kind == COMPRESSED else export
    return " ".join(filter(None, [_(kind), advice and _(advice)]))


def _kind_of(file: BinaryIO) -> str:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    start = file.read(512)
    if start.startswith(b"PK"):
        file.seek(max(size - _END_OF_ZIP, 0))
        return _kind_of_zip(start, file.read(_END_OF_ZIP))
    if is_old_excel(start):
        file.seek(0)
        return _kind_of_old_office(file.read() if size <= LARGEST_XLS else start)
    for pattern, kind in _BY_PATTERN:
        if pattern.match(start):
            return kind
    return _kind_of_text(start)


def _kind_of_zip(start: bytes, end: bytes) -> str:
    # A workbook may contain a document.
    if _WORKBOOK_PART in end:
        return ""
    _before, is_open_document, kind = start.partition(_OPEN_DOCUMENT)
    if is_open_document:
        if kind.startswith(b"spreadsheet"):
            return OPEN_DOCUMENT
        return PRESENTATION if kind.startswith(b"presentation") else WORD
    return next((kind for part, kind in _BY_PART if re.search(part, end)), "")


def _kind_of_old_office(content: bytes) -> str:
    if ENCRYPTED_PACKAGE in content:
        return PROTECTED
    if any(name in content for name in _OF_EXCEL):
        return ""
    names = ((name.encode("utf-16-le"), kind) for name, kind in _OF_OFFICE)
    return next((kind for name, kind in names if name in content), "")


def _kind_of_text(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        start = start.decode("utf-16", "ignore").encode()
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if _JSON.match(text):
        return OF_GOOGLE if _GOOGLE.search(text) else JSON
    if not text.startswith(b"<"):
        return ""
    if _OLD_XML.search(text):
        return OLD_XML
    if _WEB_PAGE.search(text):
        return WEB_PAGE
    return XML if text.startswith(b"<?xml") else ""
