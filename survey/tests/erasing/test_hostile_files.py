"""Files made to keep the search busy, and such as it does not read in full."""

from __future__ import annotations

import struct
import time
import zlib
from io import BytesIO

import pytest

from survey.people.erasing import file_texts
from survey.people.erasing.file_texts import texts_of_pdf, texts_of_sav
from survey.people.erasing.trace_stores import search_folder
from survey.people.erasing.traces import Mark, Marks
from survey.tests.erasing.test_search_traces import cards

MARKS = Marks([Mark("name", ("Maya", "Zaragoza"))])
MOST_BLOCK = file_texts.MOST_BLOCK
# Of processor time; each of these files takes minutes, or all memory, without a limit.
SECONDS = 3.0
PAGES = b"1 0 obj\n<</Type /Pages>>\nendobj\n"
TABLE = b"<</ToUnicode 3 0 R>>"


def pdf(*objects: bytes, start: bytes = PAGES) -> bytes:
    return b"%PDF-1.7\n" + start + b"\n".join(objects) + b"\nstartxref\n9\n%%EOF"


def pdf_object(number: int, head: bytes, stream: bytes | None = None) -> bytes:
    if stream is not None:
        head += b"\nstream\n" + stream + b"\nendstream"
    return b"%d 0 obj\n%s\nendobj" % (number, head)


def packed(number: int, stream: bytes, head: bytes = b"") -> bytes:
    head = b"<</Filter /FlateDecode " + head + b">>"
    return pdf_object(number, head, zlib.compress(stream))


def with_letters(table: bytes) -> bytes:
    return pdf(pdf_object(2, TABLE), pdf_object(3, b"<<>>", table))


def sav(*widths: int, compression: int = 1, long_widths: str = "") -> bytes:
    header = bytearray(176)
    header[:4] = b"$FL2"
    struct.pack_into("<3i", header, 64, 2, 0, compression)
    struct.pack_into("<d", header, 84, 100.0)
    for number, width in enumerate(widths):
        name = f"V{number}".ljust(8).encode()
        header += struct.pack("<6i8s", 2, width, 0, 0, 0, 0, name)
    if long_widths:
        content = long_widths.encode()
        header += struct.pack("<4i", 7, 14, 1, len(content)) + content
    return bytes(header) + struct.pack("<2i", 999, 0)


ROW = b"\xfd" + bytes(7) + b"Zaragoza"


def zsav(
    block: bytes = zlib.compress(ROW),
    plain: int = len(ROW),
    size: int | None = None,
    count: int = 1,
) -> bytes:
    start = sav(8, compression=2)
    size = len(block) if size is None else size
    trailer = len(start) + 24 + len(block)
    return (
        start
        + struct.pack("<3q", len(start), trailer, 48)
        + block
        + struct.pack("<qqii", -100, 0, MOST_BLOCK, count)
        + struct.pack("<qqii", len(start), len(start) + 24, plain, size)
    )


ZEROS = bytes(20_000_000)
HOSTILE = {
    "no columns.sav": sav() + bytes(64),
    "long.sav": sav(8, long_widths=f"V0={10**15}") + b"\xff" * 64,
    "negative.sav": sav(8, 8, long_widths="V0=-600") + ROW * 9,
    "wide.sav": sav(40_000) + b"\xfe" * 5000,
    "many.sav": sav(*[32_767] * 250) + b"\xfe" * 1_100_000,
    "label.sav": sav(8)[:-8] + struct.pack("<2i", 4, -1) + bytes(64),
    "unlimited.zsav": zsav(zlib.compress(ZEROS), plain=0),
    "negative.zsav": zsav(plain=-1),
    "large.zsav": zsav(zlib.compress(ZEROS), plain=len(ZEROS)),
    "rest.zsav": zsav(size=-1),
    "cut.zsav": zsav(zlib.compress(ROW)[:-1]),
    "short.zsav": zsav(zlib.compress(ROW), plain=MOST_BLOCK),
    "empty.zsav": zsav(zlib.compress(b"")),
    "unlisted.zsav": zsav(count=0),
    "columns.dta": b"<stata_dta><header><release>118</release>"
    + b"<byteorder>LSF</byteorder>"
    + b"<K>\0\0</K><N>" + b"\xff" * 8 + b"</N><label>\0\0</label><map>"
    + struct.pack("<14Q", *[300] * 14) + bytes(400),
    "open.pdf": pdf(b"1 0 obj " * 60_000),
    "digits.pdf": pdf(b"1" * 200_000 + b"\n2 1 obj\nendobj"),
    "streams.pdf": pdf(b"1 0 obj " + b">>\nstream\n" * 60_000 + b"endobj"),
    "tables.pdf": with_letters(b"beginbfchar " * 60_000),
    "range.pdf": with_letters(b"beginbfrange <00000000> <FFFFFFFF> <0041> endbf"),
    "ranges.pdf": with_letters(
        b"beginbfrange" + b"<0000> <0FFF> <0041>" * 9_000 + b"endbf"
    ),
    "fonts.pdf": pdf(
        *(pdf_object(number, TABLE) for number in range(4, 5_000)),
        pdf_object(3, b"<<>>", b"beginbfrange <0000> <7FFF> <0041> endbf"),
    ),
    "overlap.pdf": pdf(
        packed(
            2,
            b" ".join(b"%d %d" % (n, n % 2 * 9_000_000) for n in range(9_000)).ljust(
                200_000
            )
            + bytes(9_000_000),
            b"/Type /ObjStm /First 200000",
        )
    ),
    "object.pdf": pdf(packed(2, b"7 0 " + b"()" * 3_000_000, b"/ObjStm /First 4")),
    "filter.pdf": pdf(pdf_object(2, b"<</Filter" + b" " * 60_000 + b"5 0 R>>", b"")),
    # These were called read.
    "cut.pdf": pdf(pdf_object(2, b"<</Filter /FlateDecode>>", zlib.compress(ROW)[:-4])),
    "generation.pdf": pdf(b"2 1 obj\n<</Title (Maya Zaragoza)>>\nendobj"),
    "twice.pdf": pdf(b"startxref\n9\n%%EOF\n"),
}  # fmt: skip
CUT_OFF = ("empty.zsav", "short.zsav", "tables.pdf")


def unread(folder, name: str, content: bytes) -> list[str]:
    (folder / name).write_bytes(content)
    searched = search_folder(MARKS, folder)
    return searched.unread


@pytest.mark.sqlite
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_soon_named(tmp_path, name):
    start = time.process_time()
    named = unread(tmp_path, name, HOSTILE[name])
    assert time.process_time() - start < SECONDS
    assert named == [f"{tmp_path / name}: rows cannot be read: ValueError"] or (
        name in CUT_OFF and named[0].endswith(": EOFError")
    )


@pytest.mark.sqlite
@pytest.mark.parametrize("content", (zsav(), sav(8) + ROW))
def test_the_same_files_without_harm_are_read(content):
    assert list(texts_of_sav(BytesIO(content)))[-1] == "Zaragoza"


@pytest.mark.sqlite
def test_all_that_a_pdf_file_unpacks_has_one_limit(tmp_path, monkeypatch):
    content = pdf(*(packed(number, bytes(40_000)) for number in range(2, 5)))
    assert unread(tmp_path, "bomb.pdf", content) == []
    monkeypatch.setattr(file_texts, "MOST_PDF", 100_000)
    [reason] = unread(tmp_path, "bomb.pdf", content)
    assert reason.endswith("rows cannot be read: ValueError")


@pytest.mark.sqlite
def test_streams_that_are_no_pages_are_read(tmp_path):
    about = b"<x:xmpmeta>\n<dc:creator>Maya Zaragoza</dc:creator>\n</x:xmpmeta>"
    for content in (pdf(pdf_object(2, b"<<>>", about)), pdf(packed(2, about))):
        (tmp_path / "about.pdf").write_bytes(content)
        searched = search_folder(MARKS, tmp_path)
        assert (sum(searched.traces.values()), searched.unread) == (1, [])


@pytest.mark.sqlite
def test_each_table_of_a_font_is_tried_once():
    """Each page has a list of fonts, which may all be the same."""
    page = b"BT /F1 9 Tf <0001> Tj ET"
    table = b"beginbfchar <0001> <0041> endbf"
    pages = [packed(number, page, b"/F1 2 0 R") for number in range(4, 40)]
    content = pdf(pdf_object(2, TABLE), pdf_object(3, b"<<>>", table), *pages)
    assert list(texts_of_pdf(BytesIO(content))).count("\nA") == len(pages)
    assert any("Maya" in text for text in texts_of_pdf(BytesIO(cards("Maya Ng"))))
