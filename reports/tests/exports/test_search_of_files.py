"""`manage.py search_traces` reads the SPSS and Stata files that exports are."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.exports.cells import Date, Number
from reports.exports.typed.columns import Described, Storage
from reports.tests.exports.test_typed_formats import NASTY, WRITERS, written
from survey.people.erasing.file_texts import texts_of_dta, texts_of_sav
from survey.people.erasing.traces import Mark, Marks

READERS = {"sav": texts_of_sav, "zsav": texts_of_sav, "dta": texts_of_dta}
KINDS = pytest.mark.parametrize("kind", READERS)
COLUMNS = [
    Described("given", "Given name", Storage.TEXT, missing={-98: "Skipped"}),
    Described("age", "Age", Storage.NUMBER, values={"11": "Eleven"}),
    Described("family", "Family name", Storage.TEXT),
    Described("born", "Born", Storage.DAY, missing={-97: "Not asked", -98: "Skipped"}),
    Described("remark", "Zaragoza of all", Storage.TEXT),
]


def rows(count: int) -> list[tuple[object, ...]]:
    return [
        (
            f"Name{number}",
            Number(number * 7919),
            f"Family{number}",
            Date("2014-02-28") if number % 3 else Number("-98"),
            NASTY[number % len(NASTY)],
        )
        for number in range(count)
    ]


def texts(folder: Path, kind: str, lines: list[tuple[object, ...]]) -> list[str]:
    path = written(folder, kind, COLUMNS, lines)
    with path.open("rb") as file:
        return list(READERS[kind](file))


@KINDS
def test_each_row_has_its_cells(tmp_path, kind):
    lines = rows(500)
    read = texts(tmp_path, kind, lines)
    for given, age, family, _born, remark in lines:
        marks = Marks([Mark("row", (given, str(age), family))])
        assert sum("row" in marks.kinds_in(text) for text in read) == 1
        # A long text of Stata's lies behind the rows.
        assert any(remark.rstrip() in text for text in read)
    # Words of two rows are not together.
    marks = Marks([Mark("name", ("Name7", "Family8"))])
    assert not any(marks.kinds_in(text) for text in read)
    # Nor do numbers or segments part what is one text.
    assert any("Given name" in text for text in read)


@KINDS
def test_labels_are_read(tmp_path, kind):
    read = texts(tmp_path, kind, rows(3))
    for words in ("Zaragoza", "Eleven"):
        assert any(words in text for text in read)


@KINDS
def test_a_file_without_rows(tmp_path, kind):
    assert any("Family name" in text for text in texts(tmp_path, kind, []))


@KINDS
def test_a_file_that_is_cut_off_is_not_called_read(tmp_path, kind):
    path = written(tmp_path, kind, COLUMNS, rows(500))
    content = path.read_bytes()
    for size in (100, len(content) // 3, len(content) // 2, len(content) - 300):
        path.write_bytes(content[:size])
        with path.open("rb") as file, pytest.raises(Exception):  # noqa: B017, PT011
            list(READERS[kind](file))


def test_every_format_of_ours_is_read():
    assert {*READERS, "parquet"} == {*WRITERS}
