"""Turn distributions into the charts, tables and sentences of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import pairwise
from types import MappingProxyType
from typing import cast

from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_noop
from django.utils.translation import gettext as _

from reports.answers.texts import COMMA, localizer_for, marked_text
from reports.charts.changes import (
    Change,
    change_of_mean,
    changes_of_answers,
)
from reports.charts.chart_rows import (
    SHADES,
    ChartKind,
    ChartRow,
    ChartScale,
    Label,
    Segment,
    chart_row,
    mark,
)
from reports.charts.sentences import ends_of_mean, sentence
from reports.releases.layout import Measured
from reports.results.distributions import ItemDistribution
from reports.results.visible import VisibleGroup
from reports.scores.scale import CERTAIN
from reports.suppression import HIDDEN
from survey.instrument.definitions.scales import agreement_scales
from survey.instrument.definitions.schema import (
    ANSWERABLE,
    NUMBERS,
    Measures,
    SurveyDefinition,
    Texts,
)
from survey.taking.rendering import Localizer, Text

PICTURES = {
    "scale": gettext_noop("Diverging bars of the answers: %(places)s."),
    "choice": gettext_noop("Bars of the answers: %(places)s."),
    "multiple": gettext_noop("Bars of the answers: %(places)s."),
    "number": gettext_noop("Histograms of the numbers: %(places)s."),
}


@dataclass(frozen=True, slots=True)
class Bin:
    """A bar of a histogram; start and height in percent."""

    start: float
    height: float
    figures: Segment

    @property
    def top(self) -> float:
        return round(100 - self.height, 2)


@dataclass(frozen=True, slots=True)
class ItemChart:
    name: str
    label: Text
    plain_label: str
    kind: ChartKind
    columns: Sequence[Label]
    rows: Sequence[ChartRow]
    sentence: str
    # Of each column; empty if nothing is compared.
    changes: Sequence[Change | None] = ()
    mean_change: Change | None = None
    # The question of the compared administration, if it is worded in another way.
    compared_label: Text = Text()
    # Sentences of free text that were released.
    comments: Sequence[str] = ()
    # Of numbers: the lower ends of their bins, and the width of all; 0 for none.
    starts: Sequence[float] = ()
    bin_width: float = 0.0
    # Not of a scale whose colors are explained above the chart before.
    has_legend: bool = True

    @property
    def has_bars(self) -> bool:
        """Test that each place has one bar, in which every answer has a color."""
        return self.kind == "scale" and bool(self.columns)

    @property
    def has_bar_per_answer(self) -> bool:
        return self.kind in ("choice", "multiple") and bool(self.columns)

    @property
    def has_file(self) -> bool:
        """Test that `chart_svg` can draw it."""
        return self.has_bars or self.has_bar_per_answer

    @property
    def has_histograms(self) -> bool:
        return self.kind == "number" and bool(self.columns)

    @property
    def picture_name(self) -> str:
        """Return the name of the bars for screen readers; the table says the rest."""
        places = str(COMMA).join(row.place for row in self.rows)
        return _(PICTURES[self.kind]) % {"places": places}

    @property
    def histograms(self) -> list[tuple[ChartRow, list[Bin]]]:
        """Return the bins of each place; all places have the same scale."""
        highest = max(
            (segment.share for row in self.rows for segment in row.segments),
            default=0.0,
        )
        low, length = self.starts[0], self.starts[-1] + self.step - self.starts[0]
        return [
            (
                row,
                [
                    Bin(
                        round(100 * (start - low) / length, 2),
                        round(100 * segment.share / (highest or 1), 2),
                        segment,
                    )
                    for start, segment in zip(self.starts, row.segments, strict=False)
                ],
            )
            for row in self.rows
        ]

    @property
    def step(self) -> float:
        """Return the width of bins, or the smallest difference of two numbers."""
        gaps = (later - first for first, later in pairwise(self.starts))
        return self.bin_width or min(gaps, default=1.0)

    @property
    def bar_width(self) -> float:
        """Return the width of a histogram's bars, in percent."""
        return round(
            100 * self.step / (self.starts[-1] + self.step - self.starts[0]), 2
        )

    # As texts, because in the template each answer takes as long as ten here.
    @property
    def legend(self) -> SafeString:
        """Return the colors and labels of a scale's answers, as list items."""
        shown = next((row.segments for row in self.rows if row.segments), [])
        return SafeString(
            "".join(
                f'<li><span class="key shade-{segment.shade}"></span>'
                f"<bdi{segment.label.attributes}>{escape(segment.label.text)}</bdi></li>"
                for segment in shown
                if segment.shade
            )
            + (
                '<li><span class="key shade-hidden"></span>'
                f"{escape(_('hidden: the figures show only a bound'))}</li>"
                if self.has_hidden_parts
                else ""
            )
        )

    @property
    def has_hidden_parts(self) -> bool:
        """Test that a bar of a scale has parts whose own lengths are hidden."""
        return self.has_bars and any(
            part.has_hidden_length for row in self.rows for part in row.parts
        )

    @property
    def bars(self) -> SafeString:
        return SafeString("".join(row.bar for row in self.rows))

    @property
    def marks(self) -> SafeString:
        """Return the marks and names of all places but the first, as list items."""
        if len(self.rows) == 1:
            return SafeString()
        items = [
            f'<svg class="mark" aria-hidden="true">{mark(number)}</svg>'
            f"<bdi>{escape(row.place)}</bdi>"
            for number, row in enumerate(self.rows[1:])
        ]
        first = (
            f'<span class="key shade-6"></span><bdi>{escape(self.rows[0].place)}</bdi>'
        )
        return SafeString("".join(f"<li>{item}</li>" for item in (first, *items)))

    @property
    def answer_bars(self) -> SafeString:
        """Return a bar for each answer, with marks of the other places.

        Their percentages are in the table. The mark of one that is hidden or coded
        would be at a wrong place, so there is none.
        """
        bars = []
        for at in self.bar_order:
            label = self.columns[at]
            figures = self.rows[0].segments[at] if self.rows[0].segments else None
            percent = figures.percent if figures else HIDDEN
            width = figures.share if figures and not figures.is_hidden else 0
            is_coded = ' class="coded"' if figures and figures.coded else ""
            marks = "".join(
                mark(number, f"{row.segments[at].share:g}%")
                for number, row in enumerate(self.rows[1:])
                if row.segments and row.segments[at].count is not None
            )
            bars.append(
                f'<bdi class="bar-place"{label.attributes}>{escape(label.text)}</bdi>'
                f'<svg class="answer-bar" aria-hidden="true">'
                f'<rect{is_coded} width="{width:g}%" height="100%" />{marks}</svg>'
                f'<span class="bar-percent">{escape(percent)}</span>'
            )
        return SafeString("".join(bars))

    @property
    def bar_order(self) -> Sequence[int]:
        """Return the numbers of the answers, the most frequent one first.

        Answers keep their order if most labels have numbers, such as grades or hours.
        """
        order = range(len(self.columns))
        numbered = [
            any(letter.isdecimal() for letter in label.text) for label in self.columns
        ]
        segments = self.rows[0].segments
        if not segments or 2 * sum(numbered) > len(numbered):
            return order
        # Hidden ones have no place among the others.
        return sorted(
            order, key=lambda at: (segments[at].is_hidden, -segments[at].share)
        )

    @property
    def table_rows(self) -> list[tuple[ChartRow, SafeString]]:
        return [(row, row.table_row(len(self.columns))) for row in self.rows]

    @property
    def heads(self) -> SafeString:
        """Return the heads of the columns of answers, and then of states."""
        answers = (
            f'<th scope="col" class="answer number"{label.attributes}>'
            f"{escape(label.text)}</th>"
            for label in self.columns
        )
        states = (
            f'<th scope="col" class="number">{escape(label)}</th>'
            for label in self.state_labels
        )
        return SafeString("".join((*answers, *states)))

    @property
    def state_labels(self) -> tuple[str, ...]:
        return (
            *(_("Answered"), _("Skipped")),
            *(_("Not applicable"), _("Not reached")),
        )

    @property
    def states(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return how many answered, skipped the item and so on, for each place."""
        return list(
            zip(
                self.state_labels,
                zip(*(row.states for row in self.rows), strict=True),
                strict=True,
            )
        )

    @property
    def means(self) -> list[str]:
        """Return the mean of each place with its margin of error; empty for none."""
        if self.kind != "number" or all(
            row.mean is None and row.mean_ends is None for row in self.rows
        ):
            return []
        means = []
        for row in self.rows:
            if row.is_hidden:
                means.append(HIDDEN)
            elif row.mean is not None:
                means.append(f"{row.mean:,.1f} (±{CERTAIN * row.error:,.1f})")
            else:
                means.append(ends_of_mean(row) or "–")
        return means

    @property
    def transposed(self) -> list[tuple[Label, list[Segment | None], Change | None]]:
        """Return each answer with the figures of all places, None if hidden."""
        order = self.bar_order if self.has_bar_per_answer else range(len(self.columns))
        return [
            (
                self.columns[at],
                [row.segments[at] if row.segments else None for row in self.rows],
                self.changes[at] if self.changes else None,
            )
            for at in order
        ]

    @property
    def answer_rows(self) -> list[tuple[SafeString, Change | None]]:
        """Return the cells of each answer's row in the table, and its change."""
        rows = []
        for label, cells, change in self.transposed:
            contents = "".join(
                f'<td class="number">{segment.cell if segment else HIDDEN}</td>'
                for segment in cells
            )
            head = f'<th scope="row" class="answer"{label.attributes}>'
            html = f"{head}{escape(label.text)}</th>{contents}"
            rows.append((SafeString(html), change))
        return rows


@dataclass(frozen=True, slots=True)
class ChartPage:
    """The charts of a page of the survey."""

    title: Text
    # The stem of a grid or a heading, and the items below it.
    blocks: Sequence[tuple[Text, Sequence[ItemChart]]]


def chart_pages(
    definition: SurveyDefinition,
    language: str,
    measures: Measures | None,
    places: Mapping[str, VisibleGroup | None],
    compared: Mapping[str, VisibleGroup | None],
    comments: Mapping[str, Sequence[str]] = MappingProxyType({}),
    compared_definition: SurveyDefinition | None = None,
    *,
    is_other_survey: bool = False,
    only: Container[str] | None = None,
) -> Iterator[ChartPage]:
    """Yield the pages of the survey with their charts.

    `places` are the figures to compare, by the name of the place; None is hidden.
    `compared` are those of another administration, which asked `compared_definition`.
    There, items with other answers are left out, and in another survey also those
    whose answers have other labels. `comments` are released sentences by item. `only`
    limits the charts to these items.
    """
    charts = ItemCharts(
        definition,
        localizer_for(definition, language),
        agreement_scales(definition, measures),
        places,
        compared,
        comments,
        compared_definition,
        is_other_survey,
    )
    counted = counted_items(definition, places)
    for page in definition["pages"]:
        blocks = []
        for block in page["blocks"]:
            item_charts = [
                charts.of(name)
                for name in block["items"]
                if name in counted and (only is None or name in only)
            ]
            # Not calculated texts, which have neither a question nor answers.
            item_charts = [
                chart for chart in item_charts if chart.plain_label or chart.columns
            ]
            if item_charts:
                blocks.append(
                    (charts.text(block["label"]), _with_shared_legends(item_charts))
                )
        if blocks:
            yield ChartPage(charts.text(page["title"]), blocks)


def counted_items(
    definition: SurveyDefinition, places: Mapping[str, VisibleGroup | None]
) -> set[str]:
    """Return the items that have a chart, although it may have nothing but stars."""
    groups = [group for group in places.values() if group]
    return {
        name for group in groups for name in (*group.items, *group.hidden_items)
    } or {
        # Everything is hidden.
        name
        for name, item in definition["items"].items()
        if item["kind"] in ANSWERABLE and places and not groups
    }


def pages_with(pages: Iterable[ChartPage], names: Container[str]) -> list[ChartPage]:
    """Return the pages with the charts of these items alone."""
    chosen = []
    for page in pages:
        blocks = [
            (stem, [chart for chart in charts if chart.name in names])
            for stem, charts in page.blocks
        ]
        blocks = [
            (stem, _with_shared_legends(charts)) for stem, charts in blocks if charts
        ]
        if blocks:
            chosen.append(ChartPage(page.title, blocks))
    return chosen


def _with_shared_legends(charts: Sequence[ItemChart]) -> list[ItemChart]:
    """Leave out a legend that is the same as that of the chart before."""
    explained: Sequence[Label] = ()
    explains_hidden = False
    shared = []
    for chart in charts:
        is_same = chart.has_bars and chart.columns == explained
        is_same = is_same and (explains_hidden or not chart.has_hidden_parts)
        if not chart.has_bars:
            explained = ()
        elif any(row.segments for row in chart.rows) and not is_same:
            explained, explains_hidden = chart.columns, chart.has_hidden_parts
        shared.append(replace(chart, has_legend=not is_same))
    return shared


@dataclass(frozen=True, slots=True)
class ItemCharts:
    """Makes the charts of a survey's items; the fields are those of `chart_pages`."""

    definition: SurveyDefinition
    localizer: Localizer
    scales: Mapping[str, Sequence[str]]
    places: Mapping[str, VisibleGroup | None]
    compared: Mapping[str, VisibleGroup | None]
    comments: Mapping[str, Sequence[str]]
    compared_definition: SurveyDefinition | None
    is_other_survey: bool
    # By option set of either survey; many items have the same.
    labels: dict[tuple[bool, str], dict[str, Label]] = field(default_factory=dict)

    def of(self, name: str) -> ItemChart:
        item = self.definition["items"][name]
        distributions = [
            group.items.get(name) for group in self.places.values() if group
        ]
        now = next(filter(None, distributions), None)
        options = self._options(self.definition, name)
        kind = self._kind(name, now, has_options=bool(options))
        values: list[str] = []
        width = now.width if now else ""
        if kind == "number":
            compared = [
                group.items.get(name) for group in self.compared.values() if group
            ]
            distributions += [
                distribution
                for distribution in compared
                if are_comparable(now, distribution)
            ]
            values = sorted(
                {
                    value
                    for distribution in distributions
                    if distribution
                    for value in distribution.answers
                },
                key=float,
            )
            options = {value: Label(_bin_label(value, width)) for value in values}
        beside_scale = self.scales.get(name, ()) if kind == "scale" else ()
        # After the others, as they are not in the bar.
        options |= {
            value: options.pop(value) for value in beside_scale if value in options
        }
        scale = ChartScale(kind, options, len(options) - len(beside_scale))
        rows = [
            chart_row(place, group, name, scale) for place, group in self.places.items()
        ]
        before = self._compared_rows(name, now, scale)
        rows[1:1] = before
        has_change = bool(before) and bool(rows[0].answered and before[0].answered)
        return ItemChart(
            name,
            self.text(item.get("label")),
            self.localizer.plain(item.get("label")),
            kind,
            list(options.values()),
            rows,
            sentence(kind, rows, scale.on_scale),
            changes_of_answers(rows[0], before[0]) if has_change else (),
            change_of_mean(rows[0], before[0]) if has_change else None,
            self._compared_label(name) if before else Text(),
            self.comments.get(name, ()),
            [float(value) for value in values],
            float(width or 0),
        )

    def text(self, texts: Texts | None) -> Text:
        return marked_text(self.localizer, texts, get_language() or "")

    def _options(self, definition: SurveyDefinition, name: str) -> dict[str, Label]:
        item = definition["items"].get(name)
        option_set = item.get("option_set", "") if item else ""
        key = definition is self.definition, option_set
        if key not in self.labels:
            options = definition["option_sets"].get(option_set, [])
            texts = [
                self.localizer.plain(option["label"]) or option["value"]
                for option in options
            ]
            count = Counter(texts)
            # Labels that quote different answers may be the same without them.
            self.labels[key] = {
                option["value"]: Label(
                    f"{text} ({option['value']})" if count[text] > 1 else text,
                    self.text(option["label"]).attributes,
                )
                for option, text in zip(options, texts, strict=True)
            }
        return dict(self.labels[key])

    def _kind(
        self, name: str, now: ItemDistribution | None, *, has_options: bool
    ) -> ChartKind:
        asked = self.definition["items"][name]["kind"]
        otherwise: Measured = "text"
        if has_options:
            otherwise = "multiple" if asked == "select_multiple" else "choice"
        elif asked in NUMBERS:
            otherwise = "number"
        measured = now.measured if now else otherwise
        if measured == "choice":
            beside_scale = self.scales.get(name)
            steps = len(self._options(self.definition, name)) - len(beside_scale or ())
            # Every answer of a scale has a color of its own.
            is_scale = beside_scale is not None and steps <= SHADES
            return "scale" if is_scale else "choice"
        if measured in ("multiple", "number"):
            return cast("ChartKind", measured)
        return "text"

    def _compared_rows(
        self, name: str, now: ItemDistribution | None, scale: ChartScale
    ) -> list[ChartRow]:
        if self.is_other_survey and self.compared_definition:
            theirs = self._options(self.compared_definition, name)
            ours = self._options(self.definition, name)
            if name not in self.compared_definition["items"] or ours != theirs:
                return []
        return [
            chart_row(place, group, name, scale, is_compared=True)
            for place, group in self.compared.items()
            if not group
            or name in group.hidden_items
            or are_comparable(now, group.items.get(name))
        ]

    def _compared_label(self, name: str) -> Text:
        if self.compared_definition is None:
            return Text()
        item = self.compared_definition["items"].get(name)
        theirs = item.get("label") if item else None
        ours = self.definition["items"][name].get("label")
        if self.localizer.plain(theirs) == self.localizer.plain(ours):
            return Text()
        return self.text(theirs)


def are_comparable(
    current: ItemDistribution | None, compared: ItemDistribution | None
) -> bool:
    """Test that two administrations have the same answers to an item."""
    return bool(
        current
        and compared
        and (current.measured, current.width) == (compared.measured, compared.width)
        and (current.measured == "number" or current.answers == compared.answers)
    )


def _bin_label(value: str, width: str) -> str:
    if not width:
        return value
    end = float(value) + float(width)
    return _("%(low)s to under %(high)s") % {"low": value, "high": f"{end:g}"}
