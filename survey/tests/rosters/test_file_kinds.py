"""Files that are no table are refused with what they are and what to do."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from survey.instrument.spreadsheets import file_kinds
from survey.instrument.spreadsheets.file_kinds import EXPORT, reason_not_a_table
from survey.instrument.spreadsheets.old_excel import ENCRYPTED_PACKAGE
from survey.instrument.spreadsheets.workbook_guard import OLE_SIGNATURE
from survey.models import RosterUpload
from survey.people.rosters.file_reader import NotATable, open_table
from survey.people.rosters.unreadable import RosterUnreadable
from survey.tests.rosters.roster_console import HEADER, MAYA, errors_of
from survey.tests.workbooks import workbook


def archive(*names: str, **contents: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        for name in names:
            zipped.writestr(name, contents.get(name, b"x" * 1000))
    return file.getvalue()


def old_office(stream: str) -> bytes:
    return OLE_SIGNATURE + b"\0" * 1000 + f"{stream}\0".encode("utf-16-le")


NUMBERS = archive("Index/Document.iwa", "Index/Tables/DataList.iwa", "preview.jpg")
WORD = archive("[Content_Types].xml", "word/document.xml")
OPEN_DOCUMENT = archive(
    "mimetype",
    "content.xml",
    mimetype=b"application/vnd.oasis.opendocument.spreadsheet",
)
KINDS = [
    ("roster.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", f"This is a PDF. {EXPORT}"),
    ("roster.csv", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", f"This is a PDF. {EXPORT}"),
    ("roster.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "This is an image"),
    ("roster.xlsx", b"\xff\xd8\xff\xe0\0\x10JFIF", "This is an image"),
    ("photo.heic", b"\0\0\0\x18ftypheic\0\0\0\0", "This is an image"),
    ("roster.docx", WORD, f"This is a Word document. {EXPORT}"),
    ("roster.xlsx", WORD, "This is a Word document"),
    ("roster.doc", old_office("WordDocument"), "This is a Word document"),
    ("roster.rtf", b"{\\rtf1\\ansi", "This is a Word document"),
    ("roster.json", b' [\n {"id": 1, "name": "Maya"}]', f"a JSON file. {EXPORT}"),
    ("roster.csv", b'\xef\xbb\xbf{"students": []}', "This is a JSON file"),
    ("roster.numbers", NUMBERS, "This is a document of Numbers"),
    ("roster.xlsx", NUMBERS, "choose File, then Export To, then Excel"),
    (
        "roster.xlsx",
        old_office("x") + ENCRYPTED_PACKAGE,
        "protected by a password. Open it in Excel, save it without a password",
    ),
    ("roster.csv", b"\x1f\x8b\x08\0\0", "This is a compressed file. Unpack it"),
    ("roster.xls", b"\n<html><table><tr><td>ID", "This is a web page"),
    (
        "roster.xls",
        b'<?xml version="1.0"?>\n<Workbook>',
        "XML format of 2003. Open it in E",
    ),
    ("roster.xml", b'<?xml version="1.0"?>\n<SIF>', f"This is an XML file. {EXPORT}"),
    (
        "roster.xls",
        "<html><table><tr><td>ID".encode("utf-16"),
        "If it shows the table, open it in a spreadsheet program",
    ),
    ("survey.qsf", b'{"SurveyEntry":{"SurveyID":"SV_1"}}', f"JSON file. {EXPORT}"),
    (
        "roster.gsheet",
        b'{"url": "https://docs.google.com/open?id=1", "doc_id": "1"}',
        "a link to a Google Sheet, and not the sheet itself. Open it in Google Sheets",
    ),
    ("roster.url", b"[InternetShortcut]\r\nURL=https://x.org", "This is a shortcut"),
    ("roster.ods", OPEN_DOCUMENT, "spreadsheet program and save it as .xlsx"),
    (
        "roster.odt",
        OPEN_DOCUMENT.replace(b"spreadsheet", b"text"),
        f"Word document. {EXPORT}",
    ),
    (
        "roster.xlsb",
        archive("xl/workbook.bin"),
        "a binary .xlsb workbook. Open it in Excel",
    ),
    ("roster.sav", b"$FL2@(#) SPSS DATA FILE", f"a statistics program. {EXPORT}"),
    (
        "roster.msg",
        old_office("__substg1.0_0037001F"),
        "that is attached to it, and upload",
    ),
    (
        "roster.ppt",
        old_office("PowerPoint Document"),
        "This is a PowerPoint presentation",
    ),
    ("roster.mdb", b"\x00\x01\x00\x00Standard Jet DB\0", "This is a database"),
]


@pytest.mark.django_db
def test_the_form_says_what_a_file_is_and_what_to_do(staff, administration, console_of):
    chen = console_of(staff.chen)
    for name, content, message in KINDS:
        response = chen.post(
            f"/console/administrations/{administration.pk}/roster/",
            file=SimpleUploadedFile(name, content),
            complete_for="changes",
        )
        assert message in str(errors_of(response)["file"])
    assert not RosterUpload.objects.exists()


def test_the_reader_says_the_same():
    """Lists of schools and the command have no form."""
    for _, content, message in KINDS:
        with pytest.raises(NotATable) as refused, open_table(io.BytesIO(content)):
            pass
        assert message in str(refused.value)


def test_a_zip_of_one_table_is_to_be_unpacked():
    for content in (archive("roster.csv"), archive("roster.xlsx")):
        unpack = pytest.raises(RosterUnreadable, match="Unpack it, and upload the")
        with unpack, open_table(io.BytesIO(content)):
            pass


def test_tables_are_not_refused():
    tables = [
        f"{HEADER}\n{MAYA}".encode(),
        b"[student id],[school]\n1,2\n",
        b"<Student ID>,<School>\n1,2\n",
        "ID,School\n1,2\n".encode("utf-16"),
        b"",
        workbook({"Sheet": [HEADER.split(","), MAYA.split(",")]}),
        # A workbook in which somebody has embedded a document.
        archive("xl/workbook.xml", "word/document.xml"),
        old_office("Workbook") + "WordDocument".encode("utf-16-le"),
        archive("users.csv", "orgs.csv"),
    ]
    for content in tables:
        assert reason_not_a_table(io.BytesIO(content)) == ""


def test_a_large_file_of_office_97_is_not_read_whole(monkeypatch):
    monkeypatch.setattr(file_kinds, "LARGEST_XLS", 100)
    assert reason_not_a_table(io.BytesIO(old_office("WordDocument"))) == ""
