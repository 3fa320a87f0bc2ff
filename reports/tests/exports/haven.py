"""Read files of SPSS and Stata with R's haven, where it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest

Rows = list[dict[str, Any]]
ZEROS = {"sav": date(1582, 10, 14), "zsav": date(1582, 10, 14), "dta": date(1960, 1, 1)}


def described_by_haven(path: Path) -> dict[str, Any]:
    done = subprocess.run(
        ["Rscript", "--vanilla", Path(__file__).parent / "read_with_haven.R", path],
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def read_with_haven(path: Path, kind: str) -> Rows:
    """Read a file as `read` does: R has days and seconds since 1970."""
    described = described_by_haven(path)
    names = described["names"]
    columns = [
        [cell_of_haven(cell, column, kind) for cell in column["cells"]]
        for column in described["columns"]
    ]
    return [
        {name: cells[row] for name, cells in zip(names, columns, strict=True)}
        for row in range(described["rows"])
    ]


def cell_of_haven(cell: str | None, column: dict[str, Any], kind: str) -> Any:
    if cell is None or column["is_text"]:
        return cell
    if cell.startswith(".") and not cell[1:].isdecimal():
        return cell[1:]
    number = float(cell)
    # With labels, as those of missing answers, a day of SPSS is a number.
    if column["class"] == "Date" or column.get("format") == "SDATE10":
        number += (date(1970, 1, 1) - ZEROS[kind]).days
        number *= 1 if kind == "dta" else 86_400
    elif column["class"] == "POSIXct":
        number += (date(1970, 1, 1) - ZEROS[kind]).days * 86_400
        number *= 1000 if kind == "dta" else 1
    else:
        return number
    return round(number, 3)


def has_haven() -> bool:
    if shutil.which("Rscript") is None:
        return False
    command = ["Rscript", "-e", "library(haven); library(jsonlite)"]
    return subprocess.run(command, capture_output=True).returncode == 0


needs_haven = pytest.mark.skipif(not has_haven(), reason="R has no haven")
