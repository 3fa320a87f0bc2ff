"""The tables of the rates pages as CSV files, with the same numbers hidden."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.http import HttpResponse
from django.utils import timezone

from accounts.http import Cell, csv_response
from accounts.models import School
from reports.console.rates.board import RolePanel
from reports.rates.freshness import freshness_of
from reports.rates.rate_lines import NO_COUNT, RateLine, RateTotal, SchoolRateLine
from reports.suppression import HIDDEN
from survey.models import Administration, Denominator

FIGURES = ("eligible", "started", "finished", "rate (%)")
DISTRICTS = (
    "district",
    "code",
    *FIGURES,
    "schools",
    "schools that can have a report",
    "threshold reached",
    "missing",
    "schools without a roster or count",
    "opted out",
    "awaiting consent",
)
SCHOOLS = (
    *("district", "school", "code", *FIGURES),
    *("needed", "threshold", "last start", "denominator", "opted out"),
    "awaiting consent",
)
SCHOOL = (
    *("school", "code", "administration", "role", "grade", *FIGURES),
    *("denominator", "opted out", "awaiting consent"),
)


def districts_csv(
    lines: Iterable[RateTotal], administration: Administration
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
            line.not_invited,
            line.opted_out,
            line.awaiting_consent,
        )
        for line in lines
    )
    return _rates_csv(DISTRICTS, rows, administration, "districts")


def schools_csv(
    lines: Iterable[SchoolRateLine], administration: Administration
) -> HttpResponse:
    def rows() -> Iterable[Sequence[Cell]]:
        for line in lines:
            last = line.last_started_at
            day = timezone.localtime(last).date().isoformat() if last else ""
            yield (
                line.school.district.name,
                line.name,
                line.school.code,
                *_figures(line),
                line.needed,
                line.words,
                HIDDEN if line.is_hidden else day,
                _denominator(line),
                line.opted_out,
                line.awaiting_consent,
            )

    return _rates_csv(SCHOOLS, rows(), administration, "schools")


def school_csv(
    school: School, panels: Sequence[RolePanel], administration: Administration
) -> HttpResponse:
    def rows() -> Iterable[Sequence[Cell]]:
        for panel in panels:
            about = (
                school.name,
                school.code,
                panel.administration.name,
                panel.administration.role,
            )
            denominator = _denominator(panel.line)
            whole = (*about, "all", *_figures(panel.line))
            apart = (panel.line.opted_out, panel.line.awaiting_consent)
            yield (*whole, denominator, *apart)
            for grade in panel.grades:
                # Only the school has these numbers.
                yield (*about, grade.name, *_figures(grade), denominator, "", "")

    return _rates_csv(SCHOOL, rows(), administration, "school")


def _figures(line: RateLine | RateTotal) -> tuple[Cell, ...]:
    """Return plain numbers to calculate with, and blanks without count or rate."""
    eligible = None if line.eligible_words == NO_COUNT else line.eligible
    if line.finished is None:
        return (eligible, HIDDEN, HIDDEN, HIDDEN)
    return (eligible, line.started or 0, line.finished, line.rate)


def _denominator(line: SchoolRateLine) -> str:
    """Return what the rate is a part of: the roster, or what the school supplied."""
    if not line.is_count:
        return Denominator.ROSTER.value
    return line.unit or str(NO_COUNT).lower()


def _rates_csv(
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    administration: Administration,
    subject: str,
) -> HttpResponse:
    as_of = freshness_of(administration).as_of
    counted = f"{timezone.localtime(as_of):%Y-%m-%d %H:%M:%S}" if as_of else ""
    lines: list[Sequence[Cell]] = [
        (*header, f"as of ({timezone.get_current_timezone_name()})")
    ]
    lines += [(*row, counted) for row in rows]
    # By name, as titles have spaces and may be in any script.
    filename = f"response-rates-{administration.name}-{subject}.csv"
    return csv_response(lines, filename=filename)
