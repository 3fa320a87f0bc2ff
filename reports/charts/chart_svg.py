"""Draw a chart as an SVG file of its own, for slides and reports."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from textwrap import wrap

from django.utils.translation import gettext as _

from reports.charts.chart_rows import ChartRow, Segment
from reports.charts.charts import ItemChart
from reports.suppression import HIDDEN

# As in results.css on a light page, from one end of a scale to the other.
SHADES = ("#8c510a", "#c28a3c", "#e3c898", "#b9c0c4", "#8fcac2", "#35978f", "#01574f")
WHITE_ON, HUE = (0, 6), SHADES[5]
INK, MUTED = "#15232b", "#51626c"
WIDTH, MARGIN, LINE, BAR = 800, 20, 22, 20
LABELS, PERCENT = 220, 70
# Of answers of which only a bound is known.
HATCHING = (
    '<defs><pattern id="hidden" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff" />'
    '<rect width="2" height="6" fill="#8a99a3" /></pattern></defs>'
)
BARS = WIDTH - 2 * MARGIN - LABELS - PERCENT
# Letters in a line of the question, and in a label beside a bar.
LETTERS, LABEL_LETTERS = 80, 30


def chart_svg(chart: ItemChart) -> str:
    """Return the picture with what the page shows: question, bars and percentages."""
    y = MARGIN + LINE
    parts: list[str] = []
    for line in wrap(chart.plain_label or chart.name, LETTERS):
        parts.append(_text(MARGIN, y, line, weight="bold", size=16))
        y += LINE
    if chart.sentence:
        for line in wrap(chart.sentence, LETTERS + 10):
            parts.append(_text(MARGIN, y, line, color=MUTED))
            y += LINE
    drawn = _scale(chart, y) if chart.has_bars else _answers(chart, y)
    for bottom, part in drawn:
        parts.append(part)
        y = bottom
    height = y + LINE + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" role="img">'
        f"<title>{escape(chart.plain_label or chart.name)}</title>"
        f'{HATCHING}<rect width="{WIDTH}" height="{height}" fill="#fff" />'
        f"{''.join(parts)}</svg>"
    )


def _scale(chart: ItemChart, y: int) -> Iterator[tuple[int, str]]:
    """Yield a diverging bar for each place, and the legend."""
    left, unit = MARGIN + LABELS, (BARS + PERCENT) / 200
    for row in chart.rows:
        yield y, _label(y, row.place)
        middle = left + 100 * unit
        yield (
            y,
            (
                f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y - 2}"'
                f' y2="{y + BAR + 2}" stroke="{INK}" />'
            ),
        )
        yield y, _bar(row, left, unit, y)
        y += BAR + 10
    shown = next((row.segments for row in chart.rows if row.segments), ())
    keys = [
        (SHADES[segment.shade - 1], segment.label.text)
        for segment in shown
        if segment.shade
    ]
    if chart.has_hidden_parts:
        keys.append(("url(#hidden)", _("hidden")))
    x = MARGIN
    for fill, label in keys:
        width = 30 + 8 * len(label)
        if x + width > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE
        yield (
            y,
            f'<rect x="{x}" y="{y + 8}" width="12" height="12"'
            f' fill="{fill}" />{_text(x + 18, y + 18, label, size=12)}',
        )
        x += width


def _bar(row: ChartRow, left: int, unit: float, y: int) -> str:
    if row.is_hidden:
        return _text(left, y + 15, HIDDEN)
    parts = []
    for segment in row.parts:
        x, width = left + segment.start * unit, segment.width * unit
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}"'
            f' fill="{_fill(segment)}" stroke="#fff" />'
        )
        if segment.text:
            is_dark = segment.shade - 1 in WHITE_ON and not segment.has_hidden_length
            color = "#fff" if is_dark else INK
            centre = round(x + width / 2)
            parts.append(
                _text(
                    *(centre, y + 15, segment.text),
                    color=color,
                    size=12,
                    anchor="middle",
                )
            )
    return "".join(parts)


def _fill(segment: Segment) -> str:
    return "url(#hidden)" if segment.has_hidden_length else SHADES[segment.shade - 1]


def _answers(chart: ItemChart, y: int) -> Iterator[tuple[int, str]]:
    """Yield a bar for each answer, of the first place."""
    segments = chart.rows[0].segments
    if len(chart.rows) > 1:
        yield y, _text(MARGIN, y + 15, chart.rows[0].place, size=12)
        y += LINE
    for at in chart.bar_order:
        figures = segments[at] if segments else None
        width = BARS * figures.share / 100 if figures and not figures.is_hidden else 0
        left = MARGIN + LABELS
        hue = "url(#hidden)" if figures and figures.has_hidden_length else HUE
        percent = figures.percent if figures else HIDDEN
        yield y, _label(y, chart.columns[at].text)
        yield (
            y,
            (
                f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{BAR}"'
                f' fill="{hue}" />'
            ),
        )
        yield y, _text(WIDTH - MARGIN, y + 15, percent, size=12, anchor="end")
        y += BAR + 10


def _label(y: int, text: str) -> str:
    shown = text if len(text) <= LABEL_LETTERS else f"{text[: LABEL_LETTERS - 1]}…"
    return _text(MARGIN, y + 15, shown, size=13)


def _text(
    x: int,
    y: int,
    text: str,
    *,
    color: str = INK,
    size: int = 14,
    weight: str = "normal",
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{color}" font-size="{size}"'
        f' font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
    )
