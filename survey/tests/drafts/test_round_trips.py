"""`manage.py check_round_trips` finds what opening and exporting would change."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from survey.instrument.drafts.workbook import DraftBook
from survey.management.commands import check_round_trips

DEMO = Path(settings.BASE_DIR) / "survey/simulation/demo"
SAMPLE = Path(settings.BASE_DIR) / "survey/tests/spreadsheets/sample_files/climate.xls"


def figures_of(*paths: Path) -> dict[str, Any]:
    out = io.StringIO()
    try:
        call_command("check_round_trips", *paths, stdout=out)
    finally:
        figures = json.loads(out.getvalue().splitlines()[-1])
    assert isinstance(figures, dict)
    return figures


def test_nothing_differs_but_the_changed_text() -> None:
    figures = figures_of(DEMO, SAMPLE)
    assert figures["workbooks"] == figures["changed"] == figures["written"] == 5
    assert figures["rules"] > 10
    assert not any(figures[key] for key in check_round_trips.WRONG)


def test_a_lost_rule_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    write = check_round_trips.workbook_of

    def forgetful(book: DraftBook) -> bytes:
        sheet = book.sheet("survey")
        number = sheet.column("relevant")
        for row in sheet.rows:
            row.cells.pop(number, None)
        return write(book)

    monkeypatch.setattr(check_round_trips, "workbook_of", forgetful)
    counts = check_round_trips.round_trip(
        check_round_trips.book_of_workbook((DEMO / "students.xlsx").read_bytes()), "x"
    )
    assert counts["changed_cells"] and counts["rewritten_rules"]
    with pytest.raises(SystemExit):
        figures_of(DEMO)
