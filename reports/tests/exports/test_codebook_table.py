"""The codebook as a table: a CSV file, and a sheet of each workbook."""

from __future__ import annotations

import csv
import io

import openpyxl
import polars
import pytest

from reports.tests.exports.conftest import HIDE, SKIP, answer, identify, made
from reports.tests.exports.test_formats import rows_of
from survey.work.files import path_of

pytestmark = pytest.mark.django_db


def table_of(export) -> list[dict[str, str]]:
    content = path_of(export.codebook_table_name).read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(content)))


def about(export, column: str) -> list[tuple[str, str, str]]:
    return [
        (line["value"], line["label"], line["count"])
        for line in table_of(export)
        if line["column"] == column
    ]


@pytest.fixture
def answered(staff, fall, spring, enrol):
    answer(enrol(fall, staff.lincoln), {"safe": "2", "pets": "cat dog", "age": SKIP})
    answer(enrol(fall, staff.lincoln), {"safe": "2", "pets": "dog", "age": "14"})
    answer(
        enrol(spring, staff.lincoln, attributes={"track": "b"}),
        {"safe": HIDE, "pets": SKIP, "far": "far"},
    )
    return fall, spring


def test_every_column_has_its_values_labels_and_counts(staff, answered):
    export = made(staff.state, *answered)
    lines = table_of(export)

    assert list(dict.fromkeys(line["column"] for line in lines)) == list(
        rows_of(export)[0]
    )
    first = next(line for line in lines if line["column"] == "safe")
    assert (first["question"], first["question_es"], first["versions"]) == (
        "I am safe.",
        "Estoy a salvo.",
        "2, 1",
    )
    assert about(export, "safe") == [
        ("", "", "2"),
        ("1", "Disagree", "0"),
        ("2", "Agree", "2"),
        ("-1", "Rather not say", "0"),
        ("-97", "Not applicable", "1"),
        ("-98", "Skipped", "0"),
        ("-99", "Not reached", "0"),
    ]
    assert about(export, "pets_dog") == [
        ("1", "'+Dog", "2"),
        ("-97", "Not applicable", "0"),
        ("-98", "Skipped", "1"),
        ("-99", "Not reached", "0"),
    ]
    # An item that differs is described once for each kind of it.
    assert [line["versions"] for line in lines if line["column"] == "far"] == [
        *["2"] * 4,
        *["1"] * 4,
    ]


def test_items_of_a_measure_name_it_and_whether_they_are_reversed(
    staff, measured, enrol
):
    answer(enrol(measured, staff.lincoln), {"safe": "2", "teen": "1", "hall": "1"})
    lines = {line["column"]: line for line in table_of(made(staff.state, measured))}
    reversed_items = {
        name: (line["measure"], line["essential"], line["reversed"])
        for name, line in lines.items()
        if name in ("safe", "hall", "age", "role")
    }
    assert reversed_items == {
        "role": ("", "", ""),
        "safe": ("calm", "safety", "no"),
        "hall": ("calm", "safety", "yes"),
        "age": ("", "", ""),
    }


def test_counts_are_those_of_the_data_file(staff, answered):
    export = made(staff.state, *answered)
    rows = rows_of(export)
    for line in table_of(export):
        if line["value"]:
            matching = [row for row in rows if row[line["column"]] == line["value"]]
            if line["column"] != "far":
                assert (line["column"], len(matching)) == (
                    line["column"],
                    int(line["count"]),
                )


def test_missing_answers_without_a_code_are_counted_as_well(staff, answered):
    export = made(staff.state, *answered, blank_missing=["choice"])
    assert ("", "Not applicable", "1") in about(export, "safe")
    assert ("-98", "Skipped", "1") in about(export, "age")


def test_a_workbook_has_the_same_table_on_its_second_sheet(staff, answered):
    export = made(staff.state, *answered, format="xlsx", language="es")
    book = openpyxl.load_workbook(path_of(export.file_name))
    assert book.sheetnames == ["Responses", "Codebook"]
    header, *rows = book["Codebook"].iter_rows(values_only=True)
    lines = table_of(export)
    assert list(header) == list(lines[0])
    assert (header[5], header[12]) == ("question", "question_en")
    for cells, line in zip(rows, lines, strict=True):
        texts = ["" if cell is None else str(cell) for cell in cells]
        assert texts == list(line.values())
    count = header.index("count")
    assert {type(row[count]) for row in rows} == {int, type(None)}


def test_a_long_file_has_a_table_by_item(staff, answered):
    export = made(staff.state, *answered, format="long", bom=True)
    assert about(export, "pets") == [
        ("", "", "2"),
        ("cat", "Cat", "1"),
        ("dog", "'+Dog", "2"),
    ]
    assert not [line for line in table_of(export) if line["column"] == "school_code"]
    content = path_of(export.codebook_table_name).read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")


def test_polars_reads_the_table(staff, answered):
    export = made(staff.state, *answered)
    frame = polars.read_csv(path_of(export.codebook_table_name))
    assert frame.columns[:2] == ["column", "item"]
    assert frame.height == len(table_of(export))


def test_the_table_has_no_names_of_people(staff, answered):
    fall, _ = answered
    identify(fall.respondents.first(), given_name="Maya")
    names = {"identities": True, "reason": "consent has to be checked"}
    places = {"districts": [staff.riverside.pk]}
    export = made(staff.dana, fall, places=places, **names)
    assert any(line["column"] == "given_name" for line in table_of(export))
    assert b"Maya" not in path_of(export.codebook_table_name).read_bytes()
