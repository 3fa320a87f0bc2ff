"""Compare ways to read a large .xlsx roster: CPU time and peak memory.

    python -m provisioning.measure.benchmarks.workbook_readers [ROWS]

Each reader runs in a process of its own. calamine takes part if it is
installed (pip install python-calamine).
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import openpyxl
import xlsxwriter

from survey.instrument.spreadsheets.xlsx_rows import XlsxWorkbook

READERS = ("xlsx_rows", "openpyxl", "calamine")


def write_roster(path: Path, rows: int) -> None:
    chance = random.Random(1)  # noqa: S311
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        sheet = book.add_worksheet("Students")
        for row in range(rows):
            for column in range(15):
                sheet.write_string(row, column, f"text {chance.randrange(10**6)}")


def count_rows(reader: str, path: Path) -> int:
    if reader == "xlsx_rows":
        with path.open("rb") as file:
            workbook = XlsxWorkbook(file)
            return sum(1 for _ in workbook.rows(workbook.sheets[0], 300))
    if reader == "openpyxl":
        with closing(openpyxl.load_workbook(path, read_only=True)) as book:
            return sum(1 for _ in book.worksheets[0].iter_rows(values_only=True))
    # Not in requirements.txt: it is only measured.
    import python_calamine

    sheet = python_calamine.load_workbook(path).get_sheet_by_index(0)
    return sum(1 for _ in sheet.iter_rows())


def main(arguments: list[str]) -> None:
    if len(arguments) == 2:
        reader, path = arguments
        start = time.process_time()
        rows = count_rows(reader, Path(path))
        seconds = time.process_time() - start
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        sys.stdout.write(f"{reader:<10}{rows:>10,}{seconds:>8.1f} s{megabytes:>7} MB\n")
        return
    with TemporaryDirectory() as folder:
        roster = Path(folder) / "roster.xlsx"
        write_roster(roster, int(arguments[0]) if arguments else 200_000)
        for reader in READERS:
            command = [sys.executable, "-m", __spec__.name, reader, str(roster)]
            subprocess.run(command, check=False)


if __name__ == "__main__":
    main(sys.argv[1:])
