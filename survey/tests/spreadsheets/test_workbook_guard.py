"""Hostile workbooks are refused with a sentence, as surveys and as rosters.

Each protection has a twin that shows what happens without it.
"""

from __future__ import annotations

import dataclasses
import io
import time
import tracemalloc
import xml.etree.ElementTree as ET
import zipfile

import pytest

from survey.instrument.spreadsheets import workbook_guard, xlsx_rows
from survey.instrument.spreadsheets.workbook_guard import (
    LONGEST_FORMAT,
    MIB,
    ROSTER,
    SURVEY,
    UnsafeWorkbook,
    WorkbookArchive,
    create_parser,
    unpack_survey,
    unpacked_size,
)
from survey.instrument.xlsform import read_xlsform
from survey.people.rosters.file_reader import RosterUnreadable, open_table
from survey.tests.spreadsheets.hostile_files import (
    HOSTILE,
    LAUGHS,
    SHEET,
    STYLES,
    lying,
    padded,
    with_elements,
    with_entities,
    with_new_part,
    with_number_format,
)
from survey.tests.workbooks import form, workbook

SURVEY_FILE = form([["type", "name", "label"], ["select_one pets", "a", "A?"]])
ROSTER_FILE = workbook(
    {
        "people": [
            ["district", "school", "student ID", "given name"],
            ["D1", 7, 1, "Maya"],
        ]
    }
)


def survey_refusal(content: bytes) -> str:
    """Return why a file is refused as a whole; empty if it is read."""
    reading = read_xlsform(content)
    assert (reading.draft is None) == bool(reading.problems)
    if reading.draft:
        return ""
    (problem,) = reading.problems
    assert (problem.sheet, problem.row, problem.column) == ("", None, "")
    return problem.reason


def roster_refusal(content: bytes) -> str:
    try:
        with open_table(io.BytesIO(content)) as table:
            assert list(table.rows) == [(2, ["D1", "7", "1", "Maya"])]
    except RosterUnreadable as refusal:
        return str(refusal)
    return ""


USES = [
    pytest.param(SURVEY_FILE, survey_refusal, id="survey"),
    pytest.param(ROSTER_FILE, roster_refusal, id="roster"),
]


@pytest.mark.parametrize(("plain", "refusal"), USES)
def test_plain_workbook_is_read(plain, refusal):
    assert refusal(plain) == ""


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(("plain", "refusal"), USES)
def test_hostile_workbook_is_refused_with_a_sentence(plain, refusal, name):
    make, reason = HOSTILE[name]
    content = make(plain)
    tracemalloc.start()
    start = time.process_time()
    sentence = refusal(content)
    seconds = time.process_time() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert any(part in sentence for part in reason.split("|")), sentence
    assert sentence.endswith(".")
    assert peak < 150 * MIB
    assert seconds < 20


@pytest.mark.parametrize(("plain", "refusal"), USES)
def test_part_that_appears_twice_is_refused(plain, refusal):
    with pytest.warns(UserWarning, match="Duplicate"):
        content = with_new_part(plain, SHEET, b"another")
    assert "a part twice" in refusal(content)


@pytest.mark.parametrize(("plain", "refusal"), USES)
def test_every_flipped_byte_is_refused_or_harmless(plain, refusal):
    content = bytearray(plain)
    for position in range(0, len(content), 97):
        content[position] ^= 0xFF
        refusal(bytes(content))
        content[position] ^= 0xFF


@pytest.mark.parametrize("limits", [SURVEY, ROSTER])
def test_file_above_its_limit_is_not_opened(limits):
    class Huge(io.BytesIO):
        def seek(self, offset, whence=0):
            return limits.file + 1

        def read(self, size=-1):
            raise AssertionError

    with pytest.raises(UnsafeWorkbook, match=f"larger than {limits.file // MIB} MB"):
        WorkbookArchive(Huge(), limits)


def test_unpacked_size_of_a_damaged_or_hostile_file_is_zero():
    def size(content: bytes) -> int:
        return unpacked_size(io.BytesIO(content), SURVEY)

    assert size(SURVEY_FILE) > len(SURVEY_FILE)
    assert size(SURVEY_FILE[:-1]) == 0
    assert size(padded(SURVEY_FILE, 80 * MIB)) == 0
    assert size(b"") == 0


# Twins: what happens without a protection -------------------------------------


def test_without_limits_a_bomb_is_unpacked(monkeypatch):
    endless = dataclasses.replace(SURVEY, sheets=MIB**2, total=MIB**2)
    monkeypatch.setattr(workbook_guard, "SURVEY", endless)
    monkeypatch.setattr(workbook_guard, "HIGHEST_RATIO", 10_000)
    assert len(unpack_survey(padded(SURVEY_FILE, 40 * MIB))) > 40 * MIB


def test_reading_a_lying_part_at_once_unpacks_it_whole():
    content = lying(padded(ROSTER_FILE, 50 * MIB, STYLES), 700, STYLES)
    tracemalloc.start()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        with pytest.raises(zipfile.BadZipFile):
            archive.read(STYLES)
        assert tracemalloc.get_traced_memory()[1] > 50 * MIB
        tracemalloc.reset_peak()
        assert "damaged" in roster_refusal(content)
        assert tracemalloc.get_traced_memory()[1] < 10 * MIB
    tracemalloc.stop()


def test_zipfile_unpacks_other_compressions_without_bound():
    content = with_new_part(ROSTER_FILE, "a", b" " * 50 * MIB, zipfile.ZIP_BZIP2)
    with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open("a") as file:
        tracemalloc.start()
        file.read(4096)
        assert tracemalloc.get_traced_memory()[1] > 20 * MIB
        tracemalloc.stop()


def test_an_unguarded_parser_expands_entities():
    with zipfile.ZipFile(io.BytesIO(with_entities(ROSTER_FILE, LAUGHS))) as archive:
        root = ET.fromstring(archive.read(SHEET))  # noqa: S314
    texts = [element.text or "" for element in root.iter()]
    tails = [element.tail or "" for element in root.iter()]
    assert max(map(len, texts + tails)) >= 2 * 10**5


def test_without_the_count_countless_styles_are_all_read(monkeypatch):
    monkeypatch.setattr(workbook_guard, "SURVEY_ELEMENTS", {"": 10**9})
    content = with_elements(SURVEY_FILE, b"<xf/>", 60_000)
    assert seconds_to_read(content) > 5 * seconds_to_read(SURVEY_FILE)


def test_without_the_limit_a_format_of_brackets_is_searched_for_long(monkeypatch):
    longest = b"0" * LONGEST_FORMAT
    assert survey_refusal(with_number_format(SURVEY_FILE, longest)) == ""
    monkeypatch.setattr(workbook_guard, "LONGEST_FORMAT", 10**9)
    slow, quick = (
        with_number_format(SURVEY_FILE, sign * 20_000) for sign in (b"[", b"0")
    )
    assert seconds_to_read(slow) > 3 * seconds_to_read(quick)


def seconds_to_read(content: bytes) -> float:
    start = time.process_time()
    assert read_xlsform(content).draft
    return time.process_time() - start


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_document_types_are_found_in_any_encoding(encoding):
    text = '<?xml version="1.0"?>\n<!-- x -->\n<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    with pytest.raises(UnsafeWorkbook, match="entities"):
        create_parser("a.xml", lambda *_: None).Parse(text.encode(encoding), True)


def test_each_number_format_is_searched_once(monkeypatch):
    searched = []
    monkeypatch.setattr(xlsx_rows, "is_date_format", searched.append)
    styles = [("", "numFmt", {"numFmtId": "200", "formatCode": "[[["})]
    styles += [("cellXfs", "xf", {"numFmtId": "200"})] * 1000
    xlsx_rows._NumberFormats().read(iter(styles))
    assert searched == ["[[["]
