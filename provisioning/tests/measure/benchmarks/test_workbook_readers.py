from __future__ import annotations

import pytest

from provisioning.measure.benchmarks.workbook_readers import count_rows, write_roster


@pytest.mark.parametrize("reader", ["xlsx_rows", "openpyxl"])
def test_each_reader_finds_all_rows(reader, tmp_path):
    path = tmp_path / "roster.xlsx"
    write_roster(path, 20)
    assert count_rows(reader, path) == 20
