"""Read the SQL of the folder `sql`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).with_name("sql")


def read_sql(name: str) -> str:
    return (FOLDER / f"{name}.sql").read_text()
