"""The board's tables as CSV, with what is hidden on screen hidden here."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.utils import timezone

from accounts.csv_injection import escape_formula
from accounts.models import School
from reports.rate_lines import Line, SchoolLine, Total
from reports.rates import age_of
from reports.suppression import HIDDEN
from survey.models import Administration

if TYPE_CHECKING:
    from reports.console.rates import Panel

FIGURES = ("eligible", "started", "finished", "rate (%)")
DISTRICTS = ("district", "code", *FIGURES, "schools", "schools that can have a report")
SCHOOLS = ("district", "school", "code", *FIGURES, "needed", "threshold", "last start")
SCHOOL = ("school", "code", "administration", "role", "grade", *FIGURES)
Cell = str | int


def districts_csv(
    lines: Iterable[Total], administration: Administration
) -> HttpResponse:
    rows = (
        (
            line.district.name if line.district else "",
            line.district.code if line.district else "",
            *_figures(line),
            line.schools,
            line.reporting,
            line.reached,
            line.missing,
        )
        for line in lines
    )
    header = (*DISTRICTS, "threshold reached", "missing")
    return _file(header, rows, administration, "districts")


def schools_csv(
    lines: Iterable[SchoolLine], administration: Administration
) -> HttpResponse:
    rows = (
        (
            line.school.district.name,
            line.name,
            line.school.code,
            *_figures(line),
            "" if line.needed is None else line.needed,
            line.words,
            _day(line),
        )
        for line in lines
    )
    return _file(SCHOOLS, rows, administration, "schools")


def school_csv(
    school: School, panels: Sequence[Panel], administration: Administration
) -> HttpResponse:
    def rows() -> Iterable[Sequence[Cell]]:
        for panel in panels:
            told = (
                school.name,
                school.code,
                panel.administration.name,
                panel.administration.role,
            )
            yield (*told, "all", *_figures(panel.line))
            for grade in panel.grades:
                yield (*told, grade.name, *_figures(grade))

    return _file(SCHOOL, rows(), administration, "school")


def _figures(line: Line | Total) -> tuple[Cell, ...]:
    """Numbers to calculate with; nothing where there is no rate."""
    rate = "" if line.rate is None else line.rate
    if line.finished is None:
        return (line.eligible, HIDDEN, HIDDEN, HIDDEN)
    return (line.eligible, line.started or 0, line.finished, rate)


def _day(line: SchoolLine) -> str:
    if line.is_hidden:
        return HIDDEN
    last = line.last_started_at
    return "" if last is None else timezone.localtime(last).date().isoformat()


def _file(
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    administration: Administration,
    what: str,
) -> HttpResponse:
    as_of = age_of(administration).as_of
    moment = f"{timezone.localtime(as_of):%Y-%m-%d %H:%M:%S}" if as_of else ""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"response-rates-{administration.name}-{what}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "private, no-store"
    # Excel takes a file without this mark for one in its own old alphabet.
    response.write("\ufeff")
    writer = csv.writer(response)
    writer.writerow((*header, "as of"))
    for row in rows:
        cells = [escape_formula(one) if isinstance(one, str) else one for one in row]
        writer.writerow([*cells, moment])
    return response
