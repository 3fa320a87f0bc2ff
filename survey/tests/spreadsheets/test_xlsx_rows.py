"""Sheets of Excel, of other programs and of attackers are read as text."""

from __future__ import annotations

import dataclasses
import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from survey.instrument.spreadsheets import xlsx_rows
from survey.instrument.spreadsheets.workbook_guard import ROSTER
from survey.people.rosters.file_reader import NotATable, RosterUnreadable, open_table
from survey.tests.spreadsheets.hostile_files import SHEET, with_part
from survey.tests.workbooks import workbook

RELATIONSHIPS = "xl/_rels/workbook.xml.rels"
NAMES = ["district", "school", "student ID", "given name"]
ROWS = [NAMES, ["D1", 7, 1, "Maya"]]
PLAIN = workbook({"people": ROWS})


def read(content: bytes):
    with open_table(io.BytesIO(content)) as table:
        return list(table.rows)


def test_prefixed_names_and_inline_texts_are_read():
    def rewritten(_: bytes) -> bytes:
        head = "".join(
            f'<x:c t="inlineStr"><x:is><x:t>{n}</x:t></x:is></x:c>' for n in NAMES
        )
        return (
            '<x:worksheet xmlns:x="urn:any">'
            f'<x:sheetData><x:row>{head}</x:row><x:row r="9">'
            '<x:c r="C9"><x:v>5</x:v></x:c>'
            '<x:c r="A9" t="str"><x:f>1+1</x:f><x:v>D_x0041_</x:v></x:c></x:row>'
            "</x:sheetData></x:worksheet>"
        ).encode()

    assert read(with_part(PLAIN, SHEET, rewritten)) == [(9, ["DA", "", "5", ""])]


def with_texts(texts: str) -> bytes:
    """Make a workbook as Excel does, with texts in a table of their own.

    The given name refers to the table's first text.
    """
    relation = (
        b'<Relationship Id="texts" Target="/xl/sharedStrings.xml"'
        b' Type="x/sharedStrings"/>'
    )
    content = with_part(
        PLAIN,
        RELATIONSHIPS,
        lambda data: data.replace(b"</Relationships>", relation + b"</Relationships>"),
    )
    maya = b'<c r="D2" t="inlineStr"><is><t>Maya</t></is></c>'
    content = with_part(
        content, SHEET, lambda data: data.replace(maya, b'<c r="D2" t="s"><v>0</v></c>')
    )
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", f"<sst>{texts}</sst>")
    return file.getvalue()


def test_shared_texts_are_read():
    rich = (
        "<si><r><t>Ma</t></r><r><rPr/><t>ya_x0041_</t></r>"
        "<rPh><t>read aloud</t></rPh></si><si><t>other</t></si>"
    )
    assert read(with_texts(rich)) == [(2, ["D1", "7", "1", "MayaA"])]


def test_shared_text_longer_than_any_cell_is_refused(monkeypatch):
    text = f"<si><t>{'A' * (xlsx_rows.LONGEST_CELL + 1)}</t></si>"
    assert len(with_texts(text)) < 7_000
    with pytest.raises(NotATable, match="Text 1 is far too long"):
        read(with_texts(text))
    # Without the limit, each cell that refers to the text is as long.
    monkeypatch.setattr(xlsx_rows, "LONGEST_CELL", 10**9)
    assert len(read(with_texts(text))[0][1][3]) > 131_072


def test_reference_to_a_missing_text_is_reported_as_damage():
    with pytest.raises(NotATable, match="damaged"):
        read(with_texts(""))


@pytest.mark.parametrize(("name", "size"), [("styles", 9), ("sharedStrings", 70)])
def test_styles_and_texts_above_their_limit_are_refused(name, size):
    content = with_texts("<si><t>Maya</t></si>")
    padding = b" " * size * 2**20
    padded = with_part(content, f"xl/{name}.xml", lambda data: data + padding)
    with pytest.raises(NotATable, match="larger than (8|64) MB when unpacked"):
        read(padded)


def with_relation(kind: str, data: bytes, content: bytes = PLAIN) -> bytes:
    """Add a part that is named like a sheet but has another use."""
    relation = (
        f'<Relationship Id="more" Target="worksheets/sheet9.xml" Type="x/{kind}"/>'
    ).encode()
    file = io.BytesIO(
        with_part(
            content,
            RELATIONSHIPS,
            lambda old: old.replace(
                b"</Relationships>", relation + b"</Relationships>"
            ),
        )
    )
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet9.xml", data)
    return file.getvalue()


def without_styles(content: bytes) -> bytes:
    return with_part(
        content, RELATIONSHIPS, lambda old: old.replace(b"/styles", b"/none")
    )


@pytest.mark.parametrize(
    ("kind", "limit"), [("styles", "part"), ("sharedStrings", "texts")]
)
def test_part_named_like_a_sheet_gets_the_limit_of_its_use(kind, limit, monkeypatch):
    content = with_relation(kind, b"<a/>" + b" " * 200_000, without_styles(PLAIN))
    assert read(content)
    limits = dataclasses.replace(ROSTER, **{limit: 100_000})
    monkeypatch.setattr(xlsx_rows, "ROSTER", limits)
    with pytest.raises(NotATable, match="xl/worksheets/sheet9.xml' .* is larger"):
        read(content)


def test_styles_of_too_many_elements_are_refused(monkeypatch):
    content = with_relation(
        "styles", b"<a>" + b"<b/>" * 500 + b"</a>", without_styles(PLAIN)
    )
    assert read(content)
    monkeypatch.setattr(xlsx_rows, "MOST_ELEMENTS", 400)
    with pytest.raises(NotATable, match="too many styles"):
        read(content)


def test_deeply_nested_texts_are_refused():
    deep = "<t>x" * 200_000 + "</t>" * 200_000
    with pytest.raises(NotATable, match="nested"):
        read(with_texts(f"<si>{deep}</si>"))


def test_second_table_of_styles_or_texts_is_refused():
    texts = with_texts("<si><t>Maya</t></si>")
    for kind in ("styles", "sharedStrings"):
        with pytest.raises(NotATable, match=f"two parts of {kind}"):
            read(with_relation(kind, b"<a/>", texts))


def test_two_sheets_with_the_same_part_are_refused():
    content = workbook({"Notes": [["Read this"]], "people": ROWS})
    assert read(content)
    doubled = with_part(
        content,
        RELATIONSHIPS,
        lambda data: data.replace(b"sheet2.xml", b"sheet1.xml"),
    )
    with pytest.raises(NotATable, match="one part"):
        read(doubled)


@given(st.data())
@settings(max_examples=150)
def test_damaged_workbook_gives_rows_or_a_sentence(data):
    name = data.draw(
        st.sampled_from(
            [
                SHEET,
                "xl/workbook.xml",
                "xl/styles.xml",
                RELATIONSHIPS,
                "",
            ]
        )
    )
    at = data.draw(st.floats(0, 1))
    junk = data.draw(
        st.one_of(
            st.binary(max_size=8),
            st.sampled_from(
                [b'r="ZZZZ9"', b"</c>", b't="s"', b"-1", b"1e999", b'r="99999999999"']
            ),
        )
    )
    cut = data.draw(st.integers(0, 12))

    def damaged(content: bytes) -> bytes:
        place = int(at * len(content))
        return content[:place] + junk + content[place + cut :]

    content = with_part(PLAIN, name, damaged) if name else damaged(PLAIN)
    try:
        read(content)
    except RosterUnreadable as error:
        assert str(error)
