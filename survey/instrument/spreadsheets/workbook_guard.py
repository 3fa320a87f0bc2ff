"""Check a workbook and unpack it within limits, whatever sizes it declares.

An .xlsx file is a ZIP archive of XML files, its parts. Surveys and rosters
come from strangers, so each part is checked before it is unpacked, counted
while it is unpacked, and parsed without document types.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO
from xml.parsers import expat

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

MIB = 2**20
CHUNK = 2**17
XLSX_SIGNATURE = b"PK"
# The beginning of a text in any encoding but UTF-16; a PDF may look like one.
TEXT = re.compile(rb"(?!%PDF|\{\\rtf)[^\x00-\x08\x0e-\x1f]*")
# The container of .xls files, and of every Excel file with a password.
OLE_SIGNATURE = b"\xd0\xcf\x11\xe0"

MOST_PARTS = 2_000
# An entry of the archive's directory has 46 bytes and three short texts.
LARGEST_DIRECTORY = MOST_PARTS * 512
# Dense sheets shrink to a thirtieth, a million formatted but empty rows to a
# hundredth, a bomb to a thousandth.
HIGHEST_RATIO = 200
# Excel's own limit. openpyxl searches a format for brackets in quadratic time,
# and for each style again: 100,000 brackets in one format took six seconds.
LONGEST_FORMAT = 255


OPEN_DOCUMENT = gettext_noop(
    "This is an OpenDocument spreadsheet. Open it in a spreadsheet program and save"
    " it as .xlsx."
)


class UnsafeWorkbook(ValueError):
    """Tell a person why a workbook is not read."""


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes; all but `file` are those of unpacked parts."""

    file: int
    # All sheets together.
    sheets: int
    # The table of texts, which cells refer to.
    texts: int
    # Each other XML part, such as the styles.
    part: int
    # Below this size an archive may be as dense as it likes.
    harmless: int
    # All parts together.
    total: int


# A survey of 1,000 items in ten languages has 1 MiB, and 8 MiB unpacked.
SURVEY = Limits(
    file=10 * MIB,
    sheets=32 * MIB,
    texts=32 * MIB,
    part=32 * MIB,
    harmless=4 * MIB,
    total=32 * MIB,
)
# Sheets of rosters are streamed, so their size costs time only. A text takes
# three times its size in memory, an element of another part ten times.
ROSTER = Limits(
    file=2048 * MIB,
    sheets=1024 * MIB,
    texts=64 * MIB,
    part=8 * MIB,
    harmless=64 * MIB,
    total=3072 * MIB,
)

# A survey is read into memory, where an element takes its reader 5 to 30 µs:
# 32 MiB of the shortest ones took three minutes and 4 GB. Cells and texts are
# many in an honest workbook, other elements few.
SURVEY_ELEMENTS = {
    "xl/worksheets/": 400_000,
    "xl/sharedStrings.xml": 200_000,
    "": 50_000,
}


class WorkbookArchive:
    """The parts of an .xlsx file.

    Raises UnsafeWorkbook when it is opened and while parts are read.
    """

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        self.limits = limits
        if file.seek(0, io.SEEK_END) > limits.file:
            raise UnsafeWorkbook(
                _("The file is larger than %(file)s MB.") % {"file": limits.file // MIB}
            )
        with report_damage():
            _check_directory(file)
            self._archive = zipfile.ZipFile(file)
        parts = self._archive.infolist()
        self.parts = {part.filename: part for part in parts}
        if len(parts) > MOST_PARTS:
            raise UnsafeWorkbook(
                _("The file has more than %(most_parts)s parts.")
                % {"most_parts": f"{MOST_PARTS:,}"}
            )
        if len(self.parts) < len(parts):
            raise UnsafeWorkbook(_("The file is damaged: it contains a part twice."))
        self._check_format()
        self._check_sizes()

    def _check_format(self) -> None:
        if "mimetype" in self.parts:
            raise UnsafeWorkbook(_(OPEN_DOCUMENT))
        if not {"[Content_Types].xml", "xl/workbook.xml"} <= self.parts.keys():
            raise UnsafeWorkbook(
                _(
                    "This is a ZIP archive, but not an Excel workbook. Unpack it, and"
                    " upload the file that it contains."
                )
            )
        for name, part in self.parts.items():
            if ".." in name or name[:1] in ("/", "\\"):
                raise UnsafeWorkbook(
                    _("The part %(name)s has a forbidden name.")
                    % {"name": f"{name[:60]!a}"}
                )
            if part.flag_bits & 1:
                raise UnsafeWorkbook(
                    _("The file is encrypted. Save it without a password.")
                )
            # zipfile unpacks all other kinds without any bound.
            if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise UnsafeWorkbook(
                    _("The part %(name)s is compressed in a way that Excel never uses.")
                    % {"name": f"{name[:60]!a}"}
                )

    def _check_sizes(self) -> None:
        """Refuse what the archive declares; `read` refuses declarations that lie."""
        limits, parts = self.limits, self.parts.values()
        unpacked = sum(part.file_size for part in parts)
        packed = sum(part.compress_size for part in parts)
        sheets = sum(part.file_size for part in parts if is_sheet(part.filename))
        if unpacked > limits.total or sheets > limits.sheets:
            raise UnsafeWorkbook(
                _("The workbook is larger than %(sheets)s MB when unpacked.")
                % {"sheets": limits.sheets // MIB}
            )
        for part in parts:
            name = part.filename.casefold()
            is_table_of_texts = name.endswith("sharedstrings.xml")
            largest = limits.texts if is_table_of_texts else limits.part
            # Pictures and the like are never read.
            is_read = name.endswith((".xml", ".rels")) and not is_sheet(part.filename)
            if is_read and part.file_size > largest:
                raise _too_large(part.filename, largest)
        if unpacked > max(limits.harmless, HIGHEST_RATIO * packed):
            raise UnsafeWorkbook(
                _(
                    "The workbook unpacks to more than %(highest_ratio)s times"
                    " its size, which no real workbook does."
                )
                % {"highest_ratio": HIGHEST_RATIO}
            )

    def read(self, name: str, largest: int) -> Iterator[bytes]:
        """Unpack a part in pieces, at most `largest` bytes of it.

        The limit depends on the use of a part, not on its name: a relationship
        can make a sheet of any size the table of styles.
        """
        with report_damage():
            part = self.parts[name]
            if part.file_size > largest:
                raise _too_large(name, largest)
            file = self._archive.open(part)
        size = 0
        with file:
            while True:
                # At most this much is unpacked, and never more than declared.
                with report_damage():
                    piece = file.read(CHUNK)
                if not piece:
                    break
                size += len(piece)
                yield piece
        if size != part.file_size:
            raise UnsafeWorkbook(
                _(
                    "The file is damaged: the part %(name)s declares"
                    " %(file_size)s bytes and contains %(size)s."
                )
                % {"name": f"{name[:60]!a}", "file_size": part.file_size, "size": size}
            )


def directory_size(file: BinaryIO) -> int:
    """Return the size that a ZIP declares for its list of files; 0 if it has none."""
    end_record = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    return end_record[zipfile._ECD_SIZE] if end_record else 0  # type: ignore[attr-defined]


def _check_directory(file: BinaryIO) -> None:
    # zipfile reads the whole directory before anything can be counted.
    if directory_size(file) > LARGEST_DIRECTORY:
        raise UnsafeWorkbook(
            _("The file has more than %(most_parts)s parts.")
            % {"most_parts": f"{MOST_PARTS:,}"}
        )


def is_sheet(name: str) -> bool:
    return name.startswith("xl/worksheets/sheet")


def _too_large(name: str, largest: int) -> UnsafeWorkbook:
    return UnsafeWorkbook(
        _(
            "The part %(name)s of the workbook is larger than %(largest)s"
            " MB when unpacked."
        )
        % {"name": f"{name[:60]!a}", "largest": largest // MIB}
    )


@contextmanager
def report_damage() -> Iterator[None]:
    """Turn every error that a damaged workbook causes into UnsafeWorkbook.

    zipfile, zlib, expat and the numbers in a file raise a dozen kinds.
    """
    try:
        yield
    except UnsafeWorkbook:
        raise
    except Exception as error:
        raise UnsafeWorkbook(
            _(
                "The workbook is damaged (%(name)s). Open it in a spreadsheet"
                " program and save it again."
            )
            % {"name": type(error).__name__}
        ) from error


def create_parser(
    part: str,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] | None = None,
    characters: Callable[[str], None] | None = None,
) -> expat.XMLParserType:
    """Create an XML parser that refuses document types.

    Entities, external ones too, can only be declared in a document type.
    """

    def refuse_document_type(*declared: object) -> None:
        raise UnsafeWorkbook(
            _(
                "The part %(part)s of the workbook declares a document type"
                " or entities, which no workbook does."
            )
            % {"part": f"{part[:60]!a}"}
        )

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refuse_document_type
    return parser


def check_number_format(code: str) -> None:
    if len(code) > LONGEST_FORMAT:
        raise UnsafeWorkbook(
            _("A number format has more than %(longest_format)s characters.")
            % {"longest_format": LONGEST_FORMAT}
        )


UPLOAD_WORKBOOK = gettext_noop(
    "Upload the workbook of the survey (.xlsx or .xls), or a questionnaire of"
    " LimeSurvey (.lss), Qualtrics (.qsf), REDCap (.csv) or SurveyJS (.json)."
)


def unpack_survey(content: bytes) -> bytes:
    """Return the same workbook uncompressed, every part counted and checked.

    A reader of the result sees only bytes and elements that were counted.
    """
    if not content:
        raise UnsafeWorkbook(_("The file is empty."))
    if not content.startswith(XLSX_SIGNATURE):
        if TEXT.fullmatch(content[:512]):
            raise UnsafeWorkbook(
                _(
                    "This is not an Excel workbook, but perhaps a CSV or text file. If"
                    " it has the questions in columns, open it in a spreadsheet"
                    " program and save it as .xlsx."
                )
            )
        raise UnsafeWorkbook(
            _("This is not an Excel workbook.") + " " + _(UPLOAD_WORKBOOK)
        )
    archive = WorkbookArchive(io.BytesIO(content), SURVEY)
    unpacked = io.BytesIO()
    left = dict(SURVEY_ELEMENTS)
    with zipfile.ZipFile(unpacked, "w", zipfile.ZIP_STORED) as copy:
        for name in archive.parts:
            data = b"".join(archive.read(name, SURVEY.total))
            kind = next(prefix for prefix in left if name.startswith(prefix))
            left[kind] -= _count_elements(name, data, left[kind])
            copy.writestr(zipfile.ZipInfo(name), data)
    return unpacked.getvalue()


def _count_elements(name: str, data: bytes, allowed: int) -> int:
    count = 0

    def count_element(element: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > allowed:
            raise UnsafeWorkbook(
                _(
                    "The part %(name)s has more cells, texts or styles than any"
                    " survey needs."
                )
                % {"name": f"{name[:60]!a}"}
            )
        check_number_format(attributes.get("formatCode", ""))

    try:
        create_parser(name, count_element).Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        if isinstance(error, UnsafeWorkbook):
            raise
        # Pictures, and broken XML, which the reader of the workbook reports.
    return count


def unpacked_size(file: BinaryIO, limits: Limits) -> int:
    """Return the size that an .xlsx or another ZIP file declares, 0 for other files.

    It is also 0 for workbooks that are refused.
    """
    try:
        archive = WorkbookArchive(file, limits)
    except UnsafeWorkbook:
        pass
    else:
        return sum(part.file_size for part in archive.parts.values())
    try:
        with report_damage():
            _check_directory(file)
            parts = zipfile.ZipFile(file).infolist()
    except UnsafeWorkbook:
        return 0
    if any(part.filename == "[Content_Types].xml" for part in parts):
        return 0
    return sum(part.file_size for part in parts)
