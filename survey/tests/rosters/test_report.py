"""Write rejected rows to a file that spreadsheets open safely."""

from __future__ import annotations

import csv
import io

import pytest

from accounts.csv_injection import escape_formula, unescape_formula
from survey.people.rosters import row_parser
from survey.people.rosters.columns import columns_of
from survey.people.rosters.report import MOST_REJECTIONS_KEPT, write_rejected_rows
from survey.tests.rosters.roster_imports import HEADER, MAYA, many_rows, run_import


def test_the_file_has_all_rejections_and_the_report_the_first(administration):
    file = io.StringIO()
    rows = [row.replace("Diaz,,", "Diaz,=1+1,") for row in many_rows(1300)]
    report = run_import(administration, HEADER, MAYA, *rows, rejects=file)

    assert report.rejected == 1300
    assert len(report.rejections) == MOST_REJECTIONS_KEPT
    lines = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert len(lines) == 1300
    assert lines[1299]["Rejected because"].startswith(
        "Row 1302: e-mail is not an e-mail"
    )
    assert lines[1299]["e-mail"] == "'=1+1"
    assert lines[1299]["given name"] == "Ali"


@pytest.mark.parametrize(
    "cell", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", " =1", "＝1", "＋1"]
)
def test_cells_that_excel_would_run_are_escaped(cell):
    assert escape_formula(cell) == f"'{cell}"


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("Ann;=1+1", "Ann;'=1+1"),
        ("Ann; +1", "Ann; '+1"),
        ("Ann;;-1;@x", "Ann;;'-1;'@x"),
        ('Ann;"=1', "Ann;\"'=1"),
        ("Ann\t=1", "Ann\t'=1"),
        ("Ann\r\n =1", "Ann\r\n '=1"),
        ("Ann;＝1", "Ann;'＝1"),
        ("=1;=2", "'=1;'=2"),
    ],
)
def test_cells_that_another_separator_would_split_are_escaped(cell, written):
    assert escape_formula(cell) == written


def cells_by_semicolon(cell):
    """Read the rejected rows as Excel does where a semicolon separates cells."""
    file = io.StringIO()
    columns = columns_of(["district", "grade"])
    rejection = row_parser.CellRejection(2, "grade", "is not a grade", cell)
    rows = iter([(2, ["Riverside", cell])])
    assert write_rejected_rows(file, columns, rows, iter([rejection])) == 1
    file.seek(0)
    return [cell for row in csv.reader(file, delimiter=";") for cell in row]


def test_rejected_rows_hold_no_formulas_when_split_at_semicolons(monkeypatch):
    assert "'=1+1" in cells_by_semicolon("Ann;=1+1")
    # Without the escaping it would.
    monkeypatch.setattr("survey.people.rosters.report.escape_formula", str)
    assert "=1+1" in cells_by_semicolon("Ann;=1+1")


@pytest.mark.parametrize(
    "cell",
    ["=1+1", " =1", "＝1", "Ann;=1+1", "Ann;;-1;@x", "=1;=2", "'x", "O'Brien", "Maya"]
    + ["\tx", "it's; 'x", "-"],
)
def test_escaping_a_cell_can_be_undone(cell):
    assert unescape_formula(escape_formula(cell)) == cell


@pytest.mark.parametrize(
    "cell",
    ["", "Maya", "00123", "a=b", "'x", "é", "Ann; Ben;", "a;b=c", "a; b-c", "a\n"],
)
def test_harmless_cells_are_not_escaped(cell):
    assert escape_formula(cell) == cell
