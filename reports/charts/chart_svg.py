"""Draw a chart as an SVG file of its own, for slides and reports."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from textwrap import wrap

from reports.charts.chart_rows import NARROWEST_LABEL, ChartRow
from reports.charts.charts import ItemChart
from reports.suppression import HIDDEN

# As in results.css on a light page, from one end of a scale to the other.
SHADES = ("#8c510a", "#c28a3c", "#e3c898", "#b9c0c4", "#8fcac2", "#35978f", "#01574f")
WHITE_ON, HUE = (0, 6), SHADES[5]
INK, MUTED = "#15232b", "#51626c"
WIDTH, MARGIN, LINE, BAR = 800, 20, 22, 20
LABELS, PERCENT = 220, 70
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
        f'<rect width="{WIDTH}" height="{height}" fill="#fff" />{"".join(parts)}</svg>'
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
    x = MARGIN
    for segment in shown:
        if not segment.shade:
            continue
        width = 30 + 8 * len(segment.label.text)
        if x + width > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE
        yield (
            y,
            f'<rect x="{x}" y="{y + 8}" width="12" height="12"'
            f' fill="{SHADES[segment.shade - 1]}" />'
            f"{_text(x + 18, y + 18, segment.label.text, size=12)}",
        )
        x += width


def _bar(row: ChartRow, left: int, unit: float, y: int) -> str:
    if row.is_hidden:
        return _text(left, y + 15, HIDDEN)
    parts = []
    for segment in row.segments:
        if not segment.width:
            continue
        x, width = left + segment.start * unit, segment.width * unit
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}"'
            f' fill="{SHADES[segment.shade - 1]}" stroke="#fff" />'
        )
        if segment.count is not None and segment.share >= NARROWEST_LABEL:
            color = "#fff" if segment.shade - 1 in WHITE_ON else INK
            number = f"{segment.share:.0f}"
            centre = round(x + width / 2)
            parts.append(
                _text(centre, y + 15, number, color=color, size=12, anchor="middle")
            )
    return "".join(parts)


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
        percent = figures.percent if figures else HIDDEN
        yield y, _label(y, chart.columns[at].text)
        yield (
            y,
            (
                f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{BAR}"'
                f' fill="{HUE}" />'
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
