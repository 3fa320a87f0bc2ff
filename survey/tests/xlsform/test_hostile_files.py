"""Files that were not made for us: each is a named problem, never a traceback.

Each protection has a twin that shows what it holds off.
"""

from __future__ import annotations

import io
import struct
import time
import xml.etree.ElementTree as ET
import zipfile

import pytest
from openpyxl import Workbook

from survey.spreadsheets import archive
from survey.spreadsheets.archive import MIB, FileRefused, safe_archive
from survey.tests.workbooks import (
    AGREE,
    SETTINGS,
    as_excel_writes_it,
    form,
    read,
    rezipped,
    saved,
    told,
)
from survey.xlsform import read_xlsform, workbook

pytestmark = pytest.mark.once

ROWS = [["type", "name", "label"], ["select_one pets", "a", "A?"]]
SHEET = "xl/worksheets/sheet1.xml"
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


def why(content: bytes) -> str:
    """The one problem of a file that is refused as a whole."""
    reading = read_xlsform(content)
    assert reading.draft is None
    assert told(reading.problems) == [("", None, "")]
    return reading.problems[0].reason


def with_sheet(change) -> bytes:
    return rezipped(
        as_excel_writes_it(form(ROWS)),
        lambda name, data: change(data) if name == SHEET else data,
    )


def with_entity(prolog: bytes) -> bytes:
    def change(data: bytes) -> bytes:
        head, body = data.split(b"<worksheet", 1)
        body = body.replace(b"<v>", b"<v>&a5;<!--", 1).replace(b"</v>", b"--></v>", 1)
        return prolog + b"<worksheet" + body

    return with_sheet(change)


def test_a_good_file_survives_the_checks():
    assert read_xlsform(form(ROWS)).draft
    assert read_xlsform(io.BytesIO(form(ROWS))).draft
    assert read_xlsform(as_excel_writes_it(form(ROWS))).draft == (
        read_xlsform(form(ROWS)).draft
    )


OLE = bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"type,name,label\ntext,a,A?\n", "not an .xlsx"),
        (b"<html></html>", "not an .xlsx"),
        (OLE, "old .xls"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "password"),
        (b"PK\x03\x04 and no more", "damaged"),
        (b"PK" + b"\xff" * 5000, "damaged"),
        (b"PK\x05\x06" + b"\0" * 18, "no .xlsx"),
    ],
)
def test_what_is_no_workbook_is_named(content: bytes, reason: str):
    assert reason in why(content)


def test_a_cut_off_file_is_damaged():
    content = form(ROWS)
    for length in (30, len(content) // 2, len(content) - 1):
        assert "damaged" in why(content[:length])


def test_every_flipped_byte_is_a_named_error_or_harmless():
    content = bytearray(form(ROWS))
    for position in range(0, len(content), 97):
        content[position] ^= 0xFF
        reading = read_xlsform(bytes(content))
        assert (reading.draft is None) == bool(reading.problems)
        content[position] ^= 0xFF


def zipped(**parts: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, data in parts.items():
            whole.writestr(name, data)
    return file.getvalue()


def test_other_zips_are_named():
    assert "no .xlsx" in why(zipped(a=b"b"))
    oasis = b"application/vnd.oasis.opendocument.spreadsheet"
    assert "OpenDocument" in why(zipped(mimetype=oasis))
    assert ".xlsb" in why(zipped(**{"xl/workbook.bin": b""}))


def test_an_encrypted_part_is_named():
    content = bytearray(form(ROWS))
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = content.find(signature)
        content[at + offset] |= 1
    assert "encrypted" in why(bytes(content))


def test_a_part_that_is_there_twice_is_named():
    file = io.BytesIO(form(ROWS))
    with (
        zipfile.ZipFile(file, "a") as whole,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        whole.writestr(SHEET, b"another")
    assert "twice" in why(file.getvalue())


def test_too_many_parts_are_named():
    many = {f"p{n}": b"" for n in range(archive.MAX_PARTS + 1)}
    assert "parts" in why(zipped(**many))


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "large.xlsx"
    path.write_bytes(b"PK" + b"\0" * (archive.MAX_FILE + 5 * MIB))
    reading = read_xlsform(path)
    assert "larger than 10 MB" in reading.problems[0].reason
    assert len(reading.source) == archive.MAX_FILE + 1


# --- Bombs ---------------------------------------------------------------


def bomb(size: int) -> bytes:
    return with_sheet(lambda data: data + b" " * size)


def lying(content: bytes, part: str, declared: int) -> bytes:
    """The directory and the part's own header say a size that is not so."""
    changed = bytearray(content)
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        info = whole.getinfo(part)
    struct.pack_into("<I", changed, info.header_offset + 22, declared)
    at = changed.rfind(part.encode()) - 46
    assert changed[at : at + 4] == b"PK\x01\x02"
    struct.pack_into("<I", changed, at + 24, declared)
    return bytes(changed)


def test_a_bomb_is_refused_by_its_declared_size():
    assert "declares more than 32 MB" in why(bomb(40 * MIB))


def test_a_bomb_is_refused_by_its_declared_ratio():
    assert "250 times" in why(bomb(20 * MIB))


def test_a_bomb_that_lies_is_refused_while_it_inflates():
    content = lying(bomb(40 * MIB), SHEET, 5_000)
    assert len(content) < 100_000
    assert "inflates to more than 32 MB" in why(content)


def test_without_the_bounds_the_bomb_goes_off(monkeypatch):
    honest, liar = bomb(40 * MIB), lying(bomb(40 * MIB), SHEET, 5_000)
    monkeypatch.setattr(archive, "MAX_INFLATED", 1024 * MIB)
    monkeypatch.setattr(archive, "MAX_RATIO", 10_000)
    assert len(safe_archive(honest)) > 40 * MIB
    # Inflated whole before anything could compare it with what was declared.
    with pytest.raises(FileRefused, match=r"declares 5000 bytes and holds 4\d{7}"):
        safe_archive(liar)


def test_many_small_parts_are_one_bomb_together():
    parts = {f"p{n}": b" " * (3 * MIB) for n in range(11)}
    assert "declares more than 32 MB" in why(zipped(**parts))


def test_a_part_that_is_smaller_than_it_says_is_refused():
    content = lying(form(ROWS), SHEET, 999_999)
    assert "declares 999999 bytes and holds" in why(content)


# --- Entities ------------------------------------------------------------


@pytest.mark.parametrize("prolog", [LAUGHS, EXTERNAL])
def test_documents_that_declare_entities_are_refused(prolog: bytes):
    assert "entities" in why(with_entity(prolog))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_entities_are_found_in_any_encoding(encoding: str):
    text = '<?xml version="1.0"?>\n<!-- x -->\n<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    with pytest.raises(FileRefused, match="entities"):
        archive._count_elements("a.xml", text.encode(encoding), 10)


def test_a_doctype_in_any_part_is_refused():
    content = rezipped(
        form(ROWS),
        lambda name, data: (
            b"<!DOCTYPE a []><a/>" if name == "docProps/app.xml" else data
        ),
    )
    assert "docProps/app.xml" in why(content)


def test_without_the_check_entities_still_meet_the_second_guard(monkeypatch):
    monkeypatch.setattr(archive, "_count_elements", lambda name, data, allowed: 0)
    for prolog in (LAUGHS, EXTERNAL):
        assert "EntitiesForbidden" in why(with_entity(prolog))


def test_an_unguarded_parser_would_swell():
    with zipfile.ZipFile(io.BytesIO(with_entity(LAUGHS))) as whole:
        root = ET.fromstring(whole.read(SHEET))  # noqa: S314
    assert max(len(element.text or "") for element in root.iter()) == 2 * 10**5


@pytest.mark.parametrize(
    ("part", "before", "element"),
    [
        (SHEET, b"</sheetData>", b"<row/>"),
        (SHEET, b"</sheetData>", b"<row><c/><c/></row>"),
        ("xl/sharedStrings.xml", b"</sst>", b"<si/>"),
        ("xl/styles.xml", b"</cellXfs>", b"<xf/>"),
    ],
)
def test_millions_of_elements_are_refused_before_they_are_read(part, before, element):
    content = rezipped(
        as_excel_writes_it(form(ROWS)),
        lambda name, data: (
            data.replace(before, element * (410_000 // element.count(b"/")) + before)
            if name == part
            else data
        ),
    )
    start = time.process_time()
    assert "more cells, texts or styles" in why(content)
    assert time.process_time() - start < 1.5


def test_without_the_count_they_are_all_read(monkeypatch):
    monkeypatch.setattr(archive, "MAX_ELEMENTS", {"": 10**9})
    content = rezipped(
        form(ROWS),
        lambda name, data: (
            data.replace(b"</cellXfs>", b"<xf/>" * 60_000 + b"</cellXfs>")
            if name == "xl/styles.xml"
            else data
        ),
    )
    assert seconds_to_read(content) > 5 * seconds_to_read(form(ROWS))


def seconds_to_read(content: bytes) -> float:
    start = time.process_time()
    assert read_xlsform(content).draft
    return time.process_time() - start


def with_format(code: bytes) -> bytes:
    def change(name: str, data: bytes) -> bytes:
        if name != "xl/styles.xml":
            return data
        number = b'<numFmts><numFmt numFmtId="200" formatCode="%b"/></numFmts>' % code
        data = data.replace(b"<fonts", number + b"<fonts", 1)
        head, cells = data.replace(b'<numFmts count="0" />', b"").split(b"<cellXfs")
        return head + b"<cellXfs" + cells.replace(b'numFmtId="0"', b'numFmtId="200"')

    return rezipped(form(ROWS), change)


def test_a_number_format_longer_than_excels_is_refused():
    assert read_xlsform(with_format(b"0" * archive.MAX_FORMAT)).draft
    start = time.process_time()
    assert "number format of more than 255" in why(with_format(b"[" * 100_000))
    assert time.process_time() - start < 1


def test_without_that_bound_a_format_of_brackets_is_searched_for_long(monkeypatch):
    monkeypatch.setattr(archive, "MAX_FORMAT", 10**9)
    slow, quick = (with_format(sign * 20_000) for sign in (b"[", b"0"))
    assert seconds_to_read(slow) > 3 * seconds_to_read(quick)


# --- Sizes of sheets -----------------------------------------------------


def test_many_formatted_but_empty_rows_are_read():
    rows = b"".join(b'<row r="%d" ht="15"/>' % n for n in range(3, 100_000))
    content = with_sheet(
        lambda data: data.replace(b"</sheetData>", rows + b"</sheetData>")
    )
    assert read_xlsform(content).draft


def test_a_gap_of_a_million_rows_costs_nothing():
    book = Workbook()
    sheet = book.active
    sheet.title = "survey"
    for row in ROWS[:1] + [["text", "a", "A?"]]:
        sheet.append(row)
    sheet.cell(1_048_576, 16_384).value = None
    sheet.cell(1_048_576, 16_384).number_format = "0.00"
    settings = book.create_sheet("settings")
    for row in SETTINGS:
        settings.append(row)
    start = time.perf_counter()
    assert read_xlsform(saved(book)).draft
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("cell", [(1_048_576, 1), (2, 16_384), (1, 301), (10_001, 3)])
def test_content_beyond_the_limits_is_named_and_not_lost(cell):
    book = Workbook()
    book.active.title = "survey"
    book.active.append(ROWS[0])
    book.active.cell(*cell).value = "far away"
    assert "beyond 10,000 rows or 300 columns" in why(saved(book))


def test_five_thousand_options_are_refused():
    options = [["big", f"o{n}", f"Option {n}"] for n in range(5_000)]
    rows = [ROWS[0], ["select_one big", "a", "A?"]]
    reading = read(rows, [AGREE[0], *options])
    assert told(reading.problems) == [("choices", 1002, "list_name")]
    assert "more than 1,000 options" in reading.problems[0].reason
    assert read(rows, [AGREE[0], *options[:1_000]]).draft


def test_a_survey_of_more_than_a_thousand_items_is_refused():
    rows = [ROWS[0], *(["text", f"q{n}", "Q?"] for n in range(1_001))]
    assert "more than 1,000 items" in read(rows).problems[0].reason
    assert read(rows[:-1]).draft


def test_groups_nested_without_end_are_refused():
    rows = [ROWS[0], *(["begin group", f"g{n}", "G"] for n in range(500))]
    rows += [["text", "a", "A?"], *(["end group"] for n in range(500))]
    assert "nested more than 20 deep" in read(rows).problems[0].reason


def test_cells_of_xml_nested_without_end_are_survived():
    deep = b"<is>" * 100_000 + b"</is>" * 100_000
    content = with_sheet(lambda data: data.replace(b"<v>", deep + b"<v>", 1))
    assert read_xlsform(content)


def test_more_languages_than_anyone_speaks_are_refused():
    codes = [f"{a}{b}" for a in "abc" for b in "defghijklmnopqrstuv"]
    rows = [["type", "name", *(f"label::L ({code})" for code in codes)]]
    rows += [["text", "a", *("A?" for _ in codes)]]
    assert "more than 50 languages" in str(read(rows).problems)


# --- Cells ---------------------------------------------------------------


def test_a_cell_that_is_too_long_is_named():
    book = with_sheet(
        lambda data: data.replace(
            b"</sheetData>",
            b'<row r="3"><c r="C3" t="inlineStr"><is><t>'
            + b"x" * 32_768
            + b"</t></is></c></row></sheetData>",
        )
    )
    reading = read_xlsform(book)
    assert told(reading.problems)[0] == ("survey", 3, "label")
    assert "32,767" in reading.problems[0].reason
    assert len(reading.problems[0].text) < 200


@pytest.mark.parametrize(
    "character", ["_x0000_", "_x0007_", "_x001F_", "_xD800_", "\x85"]
)
def test_control_characters_are_named(character: str):
    rows = [ROWS[0], ["text", "a", f"A{character}?"]]
    reading = read(rows)
    assert ("survey", 2, "label") in told(reading.problems)
    assert reading.problems[0].text == "A\N{REPLACEMENT CHARACTER}?"


def test_a_formula_without_a_value_is_named():
    rows = [ROWS[0], ["text", "a", '=CONCATENATE("A","?")']]
    reading = read(rows)
    assert told(reading.problems)[0] == ("survey", 2, "label")
    assert "formula" in reading.problems[0].reason


def test_a_formula_is_read_by_its_value():
    content = rezipped(
        form([ROWS[0], ["text", "a", '=CONCATENATE("A","?")']]),
        lambda name, data: (
            data.replace(b"<v></v>", b"<v>A?</v>")
            .replace(b"<v />", b"<v>A?</v>")
            .replace(b'<c r="C2"><f>', b'<c r="C2" t="str"><f>')
            if name == SHEET
            else data
        ),
    )
    reading = read_xlsform(content)
    assert reading.draft, reading.problems
    (item,) = reading.draft.items()
    assert item.label == {"en": "A?"}


def test_a_spreadsheet_error_is_named():
    rows = [ROWS[0], ["text", "a", "#REF!"]]
    content = rezipped(
        form(rows),
        lambda name, data: data.replace(b't="e"', b't="e"') if name == SHEET else data,
    )
    reading = read_xlsform(content)
    assert told(reading.problems)[0] == ("survey", 2, "label")
    assert "spreadsheet error" in reading.problems[0].reason


def test_merged_cells_are_warned_of():
    book = Workbook()
    book.active.title = "survey"
    for row in [*ROWS[:1], ["text", "a", "A?"]]:
        book.active.append(row)
    book.active.merge_cells("C2:D4")
    warnings = read_xlsform(saved(book), name="merged").warnings
    assert any("merged" in warning.reason for warning in warnings)
    assert any(warning.text == "C2:D4" for warning in warnings)


def test_values_below_no_header_are_warned_of():
    reading = read([[*ROWS[0], None], ["text", "a", "A?", "lost"]])
    assert ("survey", 2, "D") in told(reading.warnings)


def test_two_sheets_of_one_name_are_named():
    book = Workbook()
    book.active.title = "survey"
    book.create_sheet("Survey ")
    assert "two sheets named survey" in why(saved(book))


def test_references_of_thirty_thousand_blanks_take_no_time():
    rows = [ROWS[0], ["text", "a", "${" + " " * 30_000 + "!"]]
    rows += [["text", "b", "${" * 15_000]]
    start = time.perf_counter()
    assert read(rows).problems
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b'r="A2"', b'r="AAAAAAA2"'),
        lambda data: data.replace(b'r="A2"', b'r="2A"'),
        lambda data: data.replace(b'<row r="2"', b'<row r="x"'),
        lambda data: data.replace(b"<v>0</v>", b"<v>99999</v>"),
        lambda data: data.replace(b"<v>0</v>", b"<v>-99</v>"),
        lambda data: data.replace(b'<c r="A1" t="s"><v>0</v>', b'<c r="A1"><v>x</v>'),
        lambda data: data[:200],
        lambda data: b"",
        lambda data: b"<a/>",
        lambda data: b"\x00\xff",
    ],
)
def test_broken_sheets_are_named(change):
    reading = read_xlsform(with_sheet(change))
    assert reading.draft is None
    assert reading.problems


def test_numbers_beyond_measure_are_text():
    assert workbook._as_text(1e400) == "Infinity"
    assert workbook._as_text(1e22) == "1" + "0" * 22
    assert workbook._as_text(1e-7) == "0.0000001"
