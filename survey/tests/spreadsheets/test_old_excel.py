"""Files of Excel 97-2003 are read as surveys and rosters, or refused."""

from __future__ import annotations

import io
import re
import struct
from pathlib import Path

import pytest

from survey.instrument.spreadsheets import old_excel, xls_to_xlsx
from survey.instrument.spreadsheets.old_excel import (
    ENCRYPTED_PACKAGE,
    converted_to_xlsx,
)
from survey.instrument.spreadsheets.workbook_guard import UnsafeWorkbook
from survey.instrument.xlsform import read_xlsform
from survey.people.rosters.file_reader import NotATable, RosterUnreadable, open_table
from survey.tests.workbooks import draft_items

FOLDER = Path(__file__).parent / "sample_files"
SURVEY_FILE = (FOLDER / "climate.xls").read_bytes()
ROSTER_FILE = (FOLDER / "students.xls").read_bytes()


def survey_refusal(content: bytes) -> str:
    reading = read_xlsform(content)
    (problem,) = reading.problems
    return problem.reason


def roster_refusal(content: bytes) -> str:
    with (
        pytest.raises(RosterUnreadable) as refusal,
        open_table(io.BytesIO(content)) as table,
    ):
        list(table.rows)
    return str(refusal.value)


USES = [
    pytest.param(SURVEY_FILE, survey_refusal, id="survey"),
    pytest.param(ROSTER_FILE, roster_refusal, id="roster"),
]


def test_survey_is_read():
    reading = read_xlsform(SURVEY_FILE)
    items = draft_items(reading)
    assert items["safe"].label["es"] == "Me siento seguro en la escuela."
    assert items["age"].kind == "integer"
    assert [option.value for option in reading.draft.option_sets["agree"]] == ["1", "2"]
    assert (reading.draft.name, reading.draft.version) == ("climate", "1")
    # The file itself is kept, not its conversion.
    assert reading.source == SURVEY_FILE


def test_roster_is_read_as_excel_shows_it():
    with open_table(io.BytesIO(ROSTER_FILE)) as table:
        rows = list(table.rows)
        assert list(table.rows) == rows
    assert table.description == (
        "Excel, sheet Students (headers in row 3); hidden and not read: 'Hidden'"
    )
    assert rows == [
        (4, ["riverside", "lincoln", "000042", "Zoë _x0041_", "2014-03-04", "TRUE"]),
        (6, ["riverside", "lincoln", "12345", "Noor", "", ""]),
    ]


def with_password(content: bytes) -> bytes:
    """Turn the record with the author's name into that of a password."""
    return content.replace(b"\x5c\x00\x70\x00", b"\x2f\x00\x70\x00", 1)


def with_endless_sectors(content: bytes) -> bytes:
    """Put the workbook in a chain of short sectors that never ends."""
    changed = bytearray(content) + bytearray(1024)
    sectors = len(content) // 512 - 1
    (table,) = struct.unpack_from("<i", changed, 76)
    # Two new sectors: the table of short sectors, all zero, and their content.
    struct.pack_into("<2i", changed, 512 + table * 512 + 4 * sectors, -2, -2)
    struct.pack_into("<3i", changed, 56, 2**30, sectors, 1)
    (directory,) = struct.unpack_from("<i", changed, 48)
    root = 512 + directory * 512
    struct.pack_into("<2i", changed, root + 116, sectors + 1, 512)
    struct.pack_into("<2i", changed, root + 128 + 116, 0, 512)
    return bytes(changed)


@pytest.mark.parametrize(("plain", "refusal"), USES)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda plain: plain[:8], "damaged or too large"),
        (lambda plain: plain[: len(plain) // 2], "damaged or too large"),
        (lambda plain: plain[:8] + b"\0" * 600, "damaged or too large"),
        (lambda plain: plain[:2048] + b"\xff" * len(plain), "damaged or too large"),
        (lambda plain: plain + ENCRYPTED_PACKAGE, "protected by a password"),
        (with_password, "protected by a password"),
    ],
)
def test_hostile_file_is_refused_with_a_sentence(plain, refusal, make, reason):
    assert reason in refusal(make(plain))
    assert refusal(make(plain)).endswith(".")


@pytest.mark.parametrize(("plain", "refusal"), USES)
@pytest.mark.slow
def test_flipped_bytes_are_refused_or_harmless(plain, refusal):
    for position in range(0, len(plain), 997):
        content = bytearray(plain)
        content[position] ^= 0xFF
        if read_xlsform(bytes(content)).draft:
            continue
        try:
            with open_table(io.BytesIO(content)) as table:
                list(table.rows)
        except RosterUnreadable as error:
            assert str(error)


def converter_with(monkeypatch, tmp_path, **constants: str) -> None:
    text = Path(xls_to_xlsx.__file__).read_text()
    for name, value in constants.items():
        text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        assert count == 1
    script = tmp_path / "converter.py"
    script.write_text(text)
    monkeypatch.setattr(xls_to_xlsx, "__file__", str(script))


@pytest.mark.parametrize("constant", ["MEMORY", "LARGEST_TARGET"])
@pytest.mark.parametrize(("plain", "refusal"), USES)
def test_conversion_is_limited(plain, refusal, constant, monkeypatch, tmp_path):
    converter_with(monkeypatch, tmp_path, **{constant: "2000"})
    assert "damaged or too large" in refusal(plain)


@pytest.mark.slow
def test_endless_loop_ends_with_the_limits(monkeypatch, tmp_path):
    converter_with(monkeypatch, tmp_path, CPU_SECONDS="1")
    assert "damaged or too large" in roster_refusal(with_endless_sectors(ROSTER_FILE))


@pytest.mark.slow
def test_without_a_limit_on_computing_time_the_loop_goes_on(monkeypatch, tmp_path):
    converter_with(monkeypatch, tmp_path, CPU_SECONDS="600", MEMORY="-1")
    monkeypatch.setattr(old_excel, "LONGEST_SECONDS", 3)
    ended = []
    run = old_excel.subprocess.run

    def recording_run(*args, **options):
        try:
            done = run(*args, **options)
        except old_excel.subprocess.TimeoutExpired:
            ended.append("timeout")
            raise
        ended.append(done.returncode)
        return done

    monkeypatch.setattr(old_excel.subprocess, "run", recording_run)
    assert "damaged or too large" in roster_refusal(with_endless_sectors(ROSTER_FILE))
    assert ended == ["timeout"]


def test_file_above_the_limit_is_not_read(monkeypatch):
    monkeypatch.setattr(old_excel, "LARGEST_XLS", len(ROSTER_FILE) - 1)
    with (
        pytest.raises(UnsafeWorkbook, match="at most 0 MB"),
        converted_to_xlsx(io.BytesIO(ROSTER_FILE)),
    ):
        pass


def test_temporary_files_are_removed(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with converted_to_xlsx(io.BytesIO(ROSTER_FILE)):
        assert list(tmp_path.iterdir())
    with pytest.raises(NotATable), open_table(io.BytesIO(ROSTER_FILE[:900])):
        pass
    assert not list(tmp_path.iterdir())
