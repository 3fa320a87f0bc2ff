"""The file of results: each answer with its figures, change and provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from accounts.http import Cell
from reports.charts.changes import Change
from reports.charts.chart_rows import ChartRow
from reports.charts.charts import ItemChart
from reports.console.results.page import ResultsPage
from reports.console.results.provenance import Provenance
from reports.suppression import HIDDEN
from reports.suppression.end_coding import coded_cells

HEADER = (
    *("place", "group", "page", "item", "question", "answer", "people", "percent"),
    *("answered", "skipped", "not applicable", "not reached", "mean"),
    *("compared with", "change", "margin of error", "exceeds error", "note"),
    *("administration", "role", "wave", "survey", "survey version", "survey digest"),
    *("counted", "software"),
)


def csv_rows(page: ResultsPage) -> Iterator[list[Cell]]:
    """Yield a row for each answer at each place, and one for each mean."""
    current = Provenance.of(page.administration)
    compared = Provenance.of(page.compared) if page.compared else None
    for number, survey_page in enumerate(page.charts, start=1):
        for _stem, charts in survey_page.blocks:
            for chart in charts:
                for row in chart.rows:
                    source = compared if row.is_compared else current
                    for cells in _rows_of(chart, row):
                        yield [
                            row.place,
                            page.group.label,
                            *(number, chart.name, chart.plain_label),
                            *cells,
                            *_provenance(source),
                        ]


def _rows_of(chart: ItemChart, row: ChartRow) -> Iterator[list[Cell]]:
    """Yield the cells from the answer to the change, and the note."""
    states = [
        HIDDEN if row.is_hidden else count
        for count in (row.answered, row.skipped, row.not_applicable, row.not_reached)
    ]
    is_changed = row is chart.rows[0] and bool(chart.changes)
    before = next(
        (place_row.place for place_row in chart.rows if place_row.is_compared), ""
    )
    before = before if is_changed else ""
    note = _(
        "* Hidden, because with so few people it would show what somebody answered, or"
        " would let it be calculated."
    )
    note_of_bounds = _(
        "< and > are bounds: the exact figure would show what nearly everybody or"
        " hardly anybody answered."
    )
    if row.is_hidden:
        for answer in [label.text for label in chart.columns] or [""]:
            yield [answer, HIDDEN, HIDDEN, *states, "", *[""] * 4, note]
        return
    if not row.segments:
        yield ["", "", "", *states, "", *[""] * 4, ""]
    for at, segment in enumerate(row.segments):
        change = chart.changes[at] if is_changed else None
        figures: Sequence[Cell] = (segment.count, round(segment.share))
        note_of_answer = ""
        if segment.coded:
            figures = coded_cells(segment.coded, row.answered or 0)
            note_of_answer = note_of_bounds
        elif segment.is_hidden:
            figures, note_of_answer = (HIDDEN, HIDDEN), note
        yield [
            segment.label.text,
            *figures,
            *states,
            "",
            *_change(change, before),
            note_of_answer,
        ]
    if row.mean is not None:
        change = chart.mean_change if is_changed else None
        cells = _change(change, before if change else "")
        yield [_("Mean"), "", "", *states, round(row.mean, 2), *cells, ""]
    elif row.mean_ends:
        mean = "{} to {}".format(*row.mean_ends)
        yield [_("Mean"), "", "", *states, mean, *[""] * 4, note_of_bounds]


def _change(change: Change | None, compared: str) -> list[Cell]:
    """Return the cells of a change; without one, a number of it is hidden."""
    if not compared:
        return [""] * 4
    if change is None:
        return [compared, HIDDEN, HIDDEN, HIDDEN]
    exceeds = "yes" if change.exceeds_error else "no"
    difference = round(change.difference, 2)
    return [compared, difference, round(change.margin, 2), exceeds]


def _provenance(source: Provenance | None) -> list[Cell]:
    if source is None:
        return [""] * 8
    return [
        *(source.administration, source.role, source.wave),
        *(source.survey, source.version, source.digest),
        localtime(source.counted_at).isoformat(timespec="seconds"),
        source.software,
    ]
