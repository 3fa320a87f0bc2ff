"""Read SPSS, Stata and Parquet files back, and compare them cell by cell.

With pyreadstat and pyarrow; and with R's haven, where it is installed, which
`provisioning/run check_formats` sees to.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pandas
import pyreadstat
import pytest
from pyarrow import parquet

from reports.exports.cells import Date, Number
from reports.exports.typed import sav_file
from reports.exports.typed.columns import Described, Storage
from reports.exports.typed.dta_file import DtaFile
from reports.exports.typed.names import SPSS, STATA, unique_names
from reports.exports.typed.parquet_file import ParquetFile
from reports.exports.typed.sav_file import SavFile
from reports.exports.typed.typed_file import TypedFile
from reports.tests.exports import reference
from reports.tests.exports.conftest import COLUMNS, made
from reports.tests.exports.haven import (
    ZEROS,
    Rows,
    described_by_haven,
    needs_haven,
    read_with_haven,
)
from survey.work.files import path_of
from survey.work.jobs import JobRefused

TYPED = ("sav", "zsav", "dta", "parquet")
LETTERS = {"-97": "a", "-98": "b", "-99": "c", "*": "d"}
NASTY = [
    'a "quoted", text; with \\ and \' and `',
    "two\nlines\r\nand\ttabs",
    "=1+1",
    "+49 (0) 30",
    "@SUM(A1)",
    "-98 degrees",
    "* left",
    "🙂👩‍👩‍👧",
    "שלום, עולם \u200f!",
    "\u202eright to left\u202c",
    "𠀋" * 100,
    "a" * 255,
    "b" * 256,
    "c" * 504 + "d",
    "ü" * 128,
    "é" * 5000,
    "\u0001\u001f control",
    "N/A",
    "nan",
    "\ufeffmark",
]


def read(path: Path, kind: str) -> Rows:
    """Read a file with dates as numbers and reasons as what they are."""
    if kind == "parquet":
        return parquet.read_table(path).to_pylist()
    reader = pyreadstat.read_dta if kind == "dta" else pyreadstat.read_sav
    frame, _ = reader(path, user_missing=True, disable_datetime_conversion=True)
    rows = frame.astype(object).where(frame.notna(), None)
    return rows.to_dict("records")


# Each kind of file with what reads it.
HAVEN = [
    pytest.param(kind, read_with_haven, id=f"{kind}-haven", marks=needs_haven)
    for kind in ("sav", "zsav", "dta")
]
READERS = [*(pytest.param(kind, read, id=kind) for kind in TYPED), *HAVEN]
every_reader = pytest.mark.parametrize(("kind", "reader"), READERS)


def expected(text: str, kind: str, storage: str) -> Any:
    """Return a cell of the reference implementation as a format has it."""
    is_code = text in LETTERS
    if storage == "text":
        return text or None if kind == "parquet" else text
    if text == "":
        return None
    if is_code and kind == "dta":
        return LETTERS[text]
    if is_code:
        if kind == "parquet" and storage != "number":
            return None
        return -96 if text == "*" else int(text)
    if storage == "number":
        return float(text)
    if kind == "parquet":
        parse = {
            "day": date.fromisoformat,
            "time": time.fromisoformat,
        }[storage]
        return parse(text)
    if storage == "time":
        moment = time.fromisoformat(text)
        seconds = 3600 * moment.hour + 60 * moment.minute
        return seconds * (1000 if kind == "dta" else 1)
    days = (date.fromisoformat(text) - ZEROS[kind]).days
    return days if kind == "dta" else days * 86_400


STORAGES = {
    **dict.fromkeys(("safe", "pets_cat", "pets_dog", "age", "far", "bus"), "number"),
    **dict.fromkeys(("teen", "score"), "number"),
    **dict.fromkeys(("started", "finished", "born"), "day"),
    "wake": "time",
}


@pytest.mark.django_db
@pytest.mark.usefixtures("known_key")
@every_reader
def test_each_cell_is_that_of_the_database(
    staff, fall, maya, other_people, kind, reader, monkeypatch
):
    monkeypatch.setattr(reference, "escape_formula", lambda text: text)
    export = made(staff.state, fall, format=kind, labels=True)
    assert export.file_name, export.job.message
    path = path_of(export.file_name)
    # Codes, whatever was chosen: the labels are beside them.
    export.labels = False
    header, *lines = reference.wide(export, COLUMNS)
    rows = reader(path, kind)

    names = {"sav": SPSS, "zsav": SPSS, "dta": STATA}
    columns = unique_names(header, names[kind]) if kind in names else header
    assert rows == [
        {
            column: expected(text, kind, STORAGES.get(name, "text"))
            for column, name, text in zip(columns, header, line, strict=True)
        }
        for line in lines
    ]
    assert path.suffix == f".{kind}"
    if kind == "dta":
        # An implementation of its own, which shares no code with pyreadstat.
        frame = pandas.read_stata(path, convert_categoricals=False)
        assert frame["comment"].tolist() == [row["comment"] for row in rows]
        assert frame["born"].iloc[0] in (pandas.NaT, pandas.Timestamp("2014-02-28"))


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ("sav", "zsav", "dta"))
def test_labels_are_those_of_the_survey(staff, fall, maya, kind):
    export = made(staff.state, fall, format=kind, language="es")
    reader = pyreadstat.read_dta if kind == "dta" else pyreadstat.read_sav
    _, meta = reader(path_of(export.file_name), user_missing=True)

    labels = meta.column_names_to_labels
    assert labels["safe"] == "Estoy a salvo."
    assert labels["pets_dog"] == "¿Mascotas?: Perro"
    values = meta.variable_value_labels["safe"]
    assert values[1], values[2] == ("En desacuerdo", "De acuerdo")
    assert values[-1] == "Prefiero no decir"
    reasons = ("Not applicable", "Skipped", "Not reached")
    codes = "abc" if kind == "dta" else (-97, -98, -99)
    assert tuple(values[code] for code in codes) == reasons
    if kind == "dta":
        return
    # Four codes are a range, and three of a text are themselves.
    assert meta.missing_ranges["safe"] == [{"lo": -99, "hi": -96}]
    assert [code["lo"] for code in meta.missing_ranges["comment"]] == [
        "-99",
        "-98",
        "-97",
    ]
    assert meta.mr_sets["pets"]["variable_list"] == ["pets_cat", "pets_dog"]
    assert meta.mr_sets["pets"]["counted_value"] == 1
    assert meta.variable_measure["bus"] == "scale"
    assert meta.variable_measure["safe"] == "nominal"


@needs_haven
@pytest.mark.django_db
@pytest.mark.parametrize("kind", ("sav", "zsav", "dta"))
def test_haven_has_the_labels_of_the_survey(staff, fall, maya, kind):
    export = made(staff.state, fall, format=kind, language="es")
    described = described_by_haven(path_of(export.file_name))
    columns = dict(zip(described["names"], described["columns"], strict=True))

    assert columns["safe"]["label"] == "Estoy a salvo."
    assert columns["pets_dog"]["label"] == "¿Mascotas?: Perro"
    values = dict(zip(columns["safe"]["codes"], columns["safe"]["texts"], strict=True))
    reasons = (
        "Not applicable",
        "Skipped",
        "Not reached",
        "Left out, because few people answered",
    )
    codes = (".a", ".b", ".c", ".d") if kind == "dta" else ("-97", "-98", "-99", "-96")
    assert values == {
        "1": "En desacuerdo",
        "2": "De acuerdo",
        "-1": "Prefiero no decir",
        **dict(zip(codes, reasons, strict=True)),
    }
    if kind != "dta":
        assert columns["safe"]["missing_range"] == [-99, -96]
        assert sorted(columns["comment"]["missing_values"]) == ["-97", "-98", "-99"]


@pytest.mark.django_db
def test_columns_of_parquet_have_labels(staff, fall, maya):
    export = made(staff.state, fall, format="parquet")
    schema = parquet.read_schema(path_of(export.file_name))
    notes = schema.field("safe").metadata
    assert notes[b"label"] == b"I am safe."
    assert b'"2": "Agree"' in notes[b"values"]
    assert b'"-98": "Skipped"' in notes[b"missing"]
    assert str(schema.field("born").type) == "date32[day]"


@pytest.mark.django_db
@every_reader
def test_an_export_of_nobody_has_its_columns(staff, fall, maya, kind, reader):
    export = made(staff.state, fall, format=kind, finished_only=True, role="student")
    maya_finished = maya.completed_at is not None
    assert len(reader(path_of(export.file_name), kind)) == int(maya_finished)


WRITERS: dict[str, Callable[..., TypedFile]] = {
    "sav": SavFile,
    "zsav": lambda *args, **kwargs: SavFile(*args, zlib_compressed=True, **kwargs),
    "dta": DtaFile,
    "parquet": ParquetFile,
}


def written(
    folder: Path, kind: str, columns: list[Described], rows: list[tuple[Any, ...]]
) -> Path:
    path = folder / f"data.{kind}"
    with WRITERS[kind](path, columns, title="Our school", scratch=folder) as file:
        for start in range(0, len(rows), 7):
            file.write([(file.piece(row),) for row in rows[start : start + 7]])
        file.close()
    assert [child.name for child in folder.iterdir()] == [path.name]
    return path


@every_reader
def test_nasty_texts_are_complete(tmp_path, kind, reader):
    columns = [
        Described("number", "", Storage.NUMBER),
        Described("text", "", Storage.TEXT),
        Described("short", "", Storage.TEXT),
    ]
    rows = [(Number(number), text, text[:20]) for number, text in enumerate(NASTY)] + [
        (Number(99), None, "")
    ]
    cells = reader(written(tmp_path, kind, columns, rows), kind)
    texts = [row["text"] or "" for row in cells]
    assert texts == [*NASTY, ""]
    assert [row["short"] or "" for row in cells] == [
        (row[2] or "").rstrip(" ") if "sav" in kind else row[2] or "" for row in rows
    ]
    assert [row["number"] for row in cells] == [*range(len(NASTY)), 99]


@every_reader
def test_a_text_of_32_kilobytes(tmp_path, kind, reader):
    columns = [Described("text", "", Storage.TEXT)]
    texts = ["x" * 32_759, "ü" * 16_379, "", "end"]
    path = written(tmp_path, kind, columns, [(text,) for text in texts])
    assert [row["text"] or "" for row in reader(path, kind)] == texts


def test_a_text_that_spss_cannot_hold_is_refused(tmp_path):
    columns = [Described("text", "", Storage.TEXT)]
    with pytest.raises(JobRefused, match="32,760"):
        written(tmp_path, "sav", columns, [("x" * 32_760,)])


@needs_haven
@pytest.mark.parametrize("room", (sav_file.ROOM, 0))
def test_the_longest_text_is_complete_whatever_its_length(tmp_path, room, monkeypatch):
    monkeypatch.setattr(sav_file, "ROOM", room)
    columns = [Described("text", "", Storage.TEXT)]
    lengths = []
    for length in (1_522, 1_523, 2_272, 2_790):
        path = written(tmp_path, "sav", columns, [("x" * length,)])
        [row] = read_with_haven(path, "sav")
        lengths.append(len(row["text"]))
        path.unlink()
    # Without room behind it haven loses a byte.
    lost = 0 if room else 1
    assert lengths == [1_522, 1_523 - lost, 2_272 - lost, 2_790 - lost]


@every_reader
def test_two_thousand_columns(tmp_path, kind, reader):
    columns = [
        Described(f"item_{number}", f"Question {number}", Storage.NUMBER)
        for number in range(2_000)
    ]
    rows = [
        tuple(Number((row * column) % 7) for column in range(2_000))
        for row in range(20)
    ]
    cells = reader(written(tmp_path, kind, columns, rows), kind)
    assert [tuple(row.values()) for row in cells] == [
        tuple(int(cell) for cell in row) for row in rows
    ]


@every_reader
def test_a_file_without_rows(tmp_path, kind, reader):
    columns = [
        Described("text", "Text", Storage.TEXT),
        Described("born", "Born", Storage.DAY),
    ]
    path = written(tmp_path, kind, columns, [])
    assert reader(path, kind) == []
    if kind != "parquet":
        reader = pyreadstat.read_dta if kind == "dta" else pyreadstat.read_sav
        assert reader(path)[1].column_names == ["text", "born"]


@every_reader
def test_numbers_and_moments(tmp_path, kind, reader):
    columns = [
        Described("whole", "", Storage.NUMBER),
        Described("far", "", Storage.NUMBER),
        Described("exact", "", Storage.NUMBER),
        Described("at", "", Storage.MOMENT),
    ]
    moment = datetime(2027, 3, 1, 10, 30, 5)  # noqa: DTZ001
    numbers = (-127, 100, 101, 32_740, 32_741, 2_147_483_621, 999_999_999_999_999, 0)
    rows = [
        (
            Number(number),
            Number(f"{number % 1000}.25"),
            # More digits than a double has: the column is a text.
            Number("123456789012345.1234567891"),
            Date(moment.isoformat()),
        )
        for number in numbers
    ]
    cells = reader(written(tmp_path, kind, columns, rows), kind)
    assert [row["whole"] for row in cells] == list(numbers)
    assert [row["far"] for row in cells] == [number % 1000 + 0.25 for number in numbers]
    assert {row["exact"] for row in cells} == {"123456789012345.1234567891"}
    zero = datetime.combine(ZEROS.get(kind, date(1970, 1, 1)), time())
    seconds = (moment - zero) / timedelta(seconds=1)
    if kind == "parquet":
        assert cells[0]["at"] == moment
    else:
        assert cells[0]["at"] == seconds * (1000 if kind == "dta" else 1)


def test_names_that_are_cut_stay_different():
    long = "how_often_do_you_" * 5
    headers = [
        long + "a",
        long.upper() + "B",
        long + "c",
        "ok",
        "OK",
        "with",
        "_x",
        "=1",
    ]
    spss, stata = unique_names(headers, SPSS), unique_names(headers, STATA)
    for names, longest in ((spss, 64), (stata, 32)):
        assert len({name.casefold() for name in names}) == len(headers)
        assert all(len(name.encode()) <= longest for name in names)
    assert spss[0] == long[:64]
    assert spss[1] == long.upper()[:62] + "_2"
    assert spss[3:] == ["ok", "OK_2", "with_", "v__x", "v__1"]
    # Cut before a character, not within it.
    assert unique_names(["a" + "ü" * 40], SPSS) == ["a" + "ü" * 31]
