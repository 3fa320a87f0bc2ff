"""Upload real-world files in the console.

`sample_files/expected.json` has the expected result of each file. Very large files
are generated here.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import openpyxl
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from accounts.tests.logging_in import log_in
from survey.console.rosters import forms
from survey.instrument.spreadsheets.workbook_guard import HIGHEST_RATIO
from survey.models import Identity, Respondent, RosterUpload

FOLDER = Path(__file__).parent / "sample_files"
SPREADSHEETS = Path(__file__).parents[1] / "spreadsheets" / "sample_files"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
HEADER = ["district", "school", "student ID", "given name"]
MAYA = ["riverside", "lincoln", "00123", "Maya"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def dana(staff):
    return log_in(Client(), staff.dana)


@pytest.fixture
def check_file(dana, administration, django_capture_on_commit_callbacks):
    """Upload a file, and return what the check found."""

    def check_file(name: str, content: bytes) -> dict[str, object]:
        with django_capture_on_commit_callbacks(execute=True):
            response = dana.post(
                f"/console/administrations/{administration.pk}/roster/",
                {
                    "file": SimpleUploadedFile(name, content),
                    "complete_for": "schools",
                },
            )
        if response.status_code == 200:
            return {"refused": str(response.context["form"].errors["file"])}
        upload = RosterUpload.objects.latest("pk")
        page = dana.get(f"/console/rosters/{upload.pk}/")
        assert page.status_code == 200
        if upload.state == "refused":
            return {"refused": upload.message}
        if upload.state == "mapping":
            return {"asks": upload.samples["questions"]}
        assert upload.state == "checked", upload.message
        counts = {
            name: upload.report[name]
            for name in ("added", "rejected")
            if upload.report[name]
        }
        first = upload.rejections.first()
        return {
            **counts,
            "reason": first.reason if first else "",
            "note": " ".join(upload.report["notes"]),
        }

    return check_file


@pytest.fixture
def upload_file(check_file, dana, django_capture_on_commit_callbacks):
    """Upload a file, confirm it, and return what the check found."""

    def upload_file(name: str, content: bytes) -> dict[str, object]:
        result = check_file(name, content)
        assert not Respondent.objects.exists()
        upload = RosterUpload.objects.order_by("pk").last()
        if upload and upload.state == "checked":
            with django_capture_on_commit_callbacks(execute=True):
                dana.post(f"/console/rosters/{upload.pk}/confirm/", {"seen": 0})
            assert Respondent.objects.count() == upload.report["added"]
        return result

    return upload_file


def matches(result: dict[str, object], expected: dict[str, object]) -> bool:
    """Compare numbers exactly; texts must contain the expected words."""
    texts = ("refused", "asks", "reason", "note")
    return all(
        str(expected.get(name, "")) in str(result.get(name, "")) for name in texts
    ) and {k: v for k, v in result.items() if k not in texts} == {
        k: v for k, v in expected.items() if k not in texts
    }


def test_every_sample_file_has_an_expected_result():
    files = {path.name for path in FOLDER.iterdir() if path.is_file()} - {
        "expected.json"
    }
    assert files == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_form_and_worker_give_the_same_result(
    name, check_file, upload_file, monkeypatch
):
    content = (FOLDER / name).read_bytes()
    result = check_file(name, content)
    assert matches(result, EXPECTED[name]), result
    monkeypatch.setattr(forms, "OPENED_AT_ONCE", 0)
    result = upload_file(name, content)
    assert matches(result, EXPECTED[name]), result


def test_names_in_windows_1252_are_decoded(upload_file):
    upload_file("r.csv", (FOLDER / "windows_1252.csv").read_bytes())
    assert Identity.objects.get().given_name == "Zoë"


def workbook(rows) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def with_part(content: bytes, name: str, data: bytes) -> bytes:
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return file.getvalue()


PLAIN = workbook([HEADER, MAYA])


def bomb(megabytes: int) -> bytes:
    return with_part(PLAIN, "xl/worksheets/sheet9.xml", b" " * megabytes * 2**20)


def entities() -> bytes:
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(PLAIN)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for part in old.infolist():
            data = old.read(part)
            if part.filename == "xl/workbook.xml":
                data = b'<!DOCTYPE x [<!ENTITY a "aaa"><!ENTITY b "&a;&a;">]>' + data
            new.writestr(part.filename, data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: PLAIN, {"added": 1}),
        (lambda: workbook([["Riverside"], [], HEADER, MAYA]), {"added": 1}),
        (lambda: bomb(20), {"added": 1}),
        (lambda: bomb(80), {"refused": f"more than {HIGHEST_RATIO} times"}),
        (entities, {"refused": "declares a document type"}),
        (
            lambda: with_part(PLAIN, "../../etc/cron.d/x", b"x"),
            {"refused": "forbidden name"},
        ),
        (
            lambda: with_part(PLAIN, "xl/huge.xml", b" " * 9 * 2**20),
            {"refused": "larger than 8 MB when unpacked"},
        ),
        (
            lambda: "".join(f"{','.join(HEADER)},{'x,' * 400}\n").encode(),
            {"refused": "more than 300 columns"},
        ),
        (
            lambda: f"{','.join(HEADER)}\n{'x' * 600_000}".encode(),
            {"refused": "Row 2"},
        ),
    ],
    ids=["plain", "title", "dense", "bomb", "entities", "path", "part", "wide", "line"],
)
def test_oversized_files(upload_file, make, expected):
    result = upload_file("roster.xlsx", make())
    assert matches(result, expected), result


def test_old_excel_file_is_read_by_a_worker(upload_file):
    content = (SPREADSHEETS / "students.xls").read_bytes()
    assert matches(upload_file("students.xls", content), {"added": 2})


def test_damaged_old_excel_file_is_refused_by_a_worker(upload_file):
    content = (SPREADSHEETS / "students.xls").read_bytes()[:3000]
    result = upload_file("students.xls", content)
    assert matches(result, {"refused": "The .xls file is damaged or too large"})


def test_a_large_file_is_refused_by_its_size(upload_file, monkeypatch):
    monkeypatch.setattr(forms.RosterForm.base_fields["file"], "largest", 10)
    result = upload_file("roster.csv", (FOLDER / "semicolons.csv").read_bytes())
    assert "larger than 300 MB" in str(result["refused"])


@pytest.mark.sqlite
@pytest.mark.skipif(
    connection.vendor != "sqlite",
    reason="on PostgreSQL they end with the transaction, here the test's",
)
def test_no_temporary_table_is_left(upload_file):
    upload_file("roster.csv", (FOLDER / "semicolons.csv").read_bytes())
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_temp_master")
        assert not [name for (name,) in cursor if name.startswith("roster_")]
