"""Turn distributions into the rows, bars and sentences of the results page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import hypot, sqrt
from types import MappingProxyType
from typing import Literal, cast

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reports.results.layout import Measured
from reports.results.reading import ItemDistribution
from reports.results.visible import VisibleGroup
from reports.school_report.parts import COMMA, SEMICOLON
from reports.scores.words import CERTAIN, signed
from reports.suppression import HIDDEN
from survey.definitions.schema import Measures, SurveyDefinition
from survey.taking.rendering import Localizer, Text

# Colours of the answers, from one end of a scale to the other.
SHADES = 7
ChartKind = Literal["scale", "choice", "multiple", "number", "text"]


@dataclass(frozen=True, slots=True)
class Segment:
    """One answer in a bar of 200 units, in which the middle of a scale is at 100."""

    label: str
    people: str
    percent: str
    start: float
    width: float
    shade: int

    @property
    def share(self) -> float:
        """Return the length of a bar of its own, in percent."""
        return self.width / 2


@dataclass(frozen=True, slots=True)
class ChartRow:
    """The answers of one place; without segments if they are hidden."""

    place: str
    segments: Sequence[Segment]
    answered: str
    skipped: str = ""
    not_applicable: str = ""
    not_reached: str = ""
    # Of numbers: the mean and its standard error.
    mean: float | None = None
    error: float = 0.0
    # Of the same place in an earlier administration.
    is_earlier: bool = False

    @property
    def is_hidden(self) -> bool:
        return self.answered == HIDDEN

    @property
    def states(self) -> tuple[str, ...]:
        """Return the numbers below the labels of `ItemChart.states`."""
        return (self.answered, self.skipped, self.not_applicable, self.not_reached)

    @property
    def figures(self) -> list[tuple[str, str, str]]:
        """Return answers, people and percentages, at least one row of them."""
        return [
            (one.label, one.people, one.percent.removesuffix(" %"))
            for one in self.segments
        ] or [("", HIDDEN if self.is_hidden else "", "")]


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
    columns: Sequence[str]
    rows: Sequence[ChartRow]
    sentence: str
    # Sentences of free text that were released.
    comments: Sequence[str] = ()
    # Of numbers: the lower ends of their bins, and the width of all; 0 for none.
    starts: Sequence[float] = ()
    bin_width: float = 0.0

    @property
    def has_bars(self) -> bool:
        """Test that each place has one bar, in which every answer has a colour."""
        if self.kind == "choice" and len(self.columns) > SHADES:
            return False
        return self.kind in ("scale", "choice") and bool(self.columns)

    @property
    def has_bar_per_answer(self) -> bool:
        if self.has_bars or not self.columns:
            return False
        return self.kind in ("choice", "multiple")

    @property
    def has_histograms(self) -> bool:
        return self.kind == "number" and bool(self.columns)

    @property
    def histograms(self) -> list[tuple[ChartRow, list[Bin]]]:
        """Return the bins of each place; all places have the same scale."""
        highest = max(
            (one.width for row in self.rows for one in row.segments), default=0.0
        )
        low, length = self.starts[0], self.starts[-1] + self.step - self.starts[0]
        return [
            (
                row,
                [
                    Bin(
                        round(100 * (start - low) / length, 2),
                        round(100 * segment.width / (highest or 1), 2),
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

    @property
    def legend(self) -> list[tuple[int, str]]:
        """Return colours and labels of the answers in the bars."""
        shown = next((row.segments for row in self.rows if row.segments), [])
        return [(one.shade, one.label) for one in shown if one.shade]

    @property
    def states(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return how many answered, skipped the item and so on, for each place."""
        labels = (
            *(_("Answered"), _("Skipped")),
            *(_("Not applicable"), _("Not reached")),
        )
        return list(
            zip(
                labels,
                zip(*(row.states for row in self.rows), strict=True),
                strict=True,
            )
        )

    @property
    def transposed(self) -> list[tuple[str, list[Segment | None]]]:
        """Return each answer with the figures of all places, None if hidden."""
        return [
            (label, [row.segments[at] if row.segments else None for row in self.rows])
            for at, label in enumerate(self.columns)
        ]


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
    earlier: Mapping[str, VisibleGroup | None],
    comments: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[ChartPage]:
    """Yield the pages of the survey with their charts.

    `places` are the figures to compare, by the name of the place; None is hidden.
    `earlier` are those of an earlier administration. There, items with other answers
    are left out. `comments` are released sentences by item.
    """
    # Item of a measure -> options such as "Don't know", which are not on its scale.
    scales = {
        item["name"]: measure["missing"]
        for measure in (measures["measures"] if measures else [])
        for item in measure["items"]
    }
    localizer = Localizer.of(
        definition, language, dict.fromkeys(definition["items"], "…")
    )
    charts = ItemCharts(definition, localizer, scales, places, earlier, comments)
    counted = {
        name
        for group in places.values()
        if group
        for name in (*group.items, *group.hidden_items)
    }
    for page in definition["pages"]:
        blocks = []
        for block in page["blocks"]:
            found = [charts.of(name) for name in block["items"] if name in counted]
            # Not calculated texts, which have neither a question nor answers.
            found = [one for one in found if one.plain_label or one.columns]
            if found:
                blocks.append((localizer.text(block["label"]), found))
        if blocks:
            yield ChartPage(localizer.text(page["title"]), blocks)


@dataclass(frozen=True, slots=True)
class ItemCharts:
    """Makes the charts of a survey's items; the fields are those of `chart_pages`."""

    definition: SurveyDefinition
    localizer: Localizer
    scales: Mapping[str, Sequence[str]]
    places: Mapping[str, VisibleGroup | None]
    earlier: Mapping[str, VisibleGroup | None]
    comments: Mapping[str, Sequence[str]]

    def of(self, name: str) -> ItemChart:
        item = self.definition["items"][name]
        option_set = self.definition["option_sets"].get(item.get("option_set", ""), [])
        options = {
            option["value"]: self.localizer.plain(option["label"])
            for option in option_set
        }
        found = [group.items.get(name) for group in self.places.values() if group]
        now = next((one for one in found if one), None)
        kind = self._kind(name, now, has_options=bool(options))
        values: list[str] = []
        width = now.width if now else ""
        if kind == "number":
            compared = [
                group.items.get(name) for group in self.earlier.values() if group
            ]
            found += [one for one in compared if are_comparable(now, one)]
            values = sorted(
                {value for one in found if one for value in one.values}, key=float
            )
            options = {value: _bin_label(value, width) for value in values}
        beside_scale = self.scales.get(name, ())
        if kind == "scale":
            # After the others, as they are not in the bar.
            options |= {
                value: options.pop(value) for value in beside_scale if value in options
            }
        on_scale = len(options) - len(beside_scale)
        rows = [
            chart_row(place, group, name, options, kind, on_scale)
            for place, group in self.places.items()
        ]
        rows[1:1] = [
            replace(
                chart_row(place, group, name, options, kind, on_scale), is_earlier=True
            )
            for place, group in self.earlier.items()
            if not group
            or name in group.hidden_items
            or are_comparable(now, group.items.get(name))
        ]
        return ItemChart(
            name,
            self.localizer.text(item.get("label")),
            self.localizer.plain(item.get("label")),
            kind,
            list(options.values()),
            rows,
            sentence(kind, rows, on_scale),
            self.comments.get(name, ()),
            [float(value) for value in values],
            float(width or 0),
        )

    def _kind(
        self, name: str, now: ItemDistribution | None, *, has_options: bool
    ) -> ChartKind:
        otherwise: Measured = "choice" if has_options else "text"
        measured = now.measured if now else otherwise
        if measured == "choice":
            return "scale" if name in self.scales else "choice"
        if measured in ("multiple", "number"):
            return cast("ChartKind", measured)
        return "text"


def are_comparable(
    one: ItemDistribution | None, other: ItemDistribution | None
) -> bool:
    """Test that two administrations have the same answers to an item."""
    return bool(
        one
        and other
        and (one.measured, one.width) == (other.measured, other.width)
        and (one.measured == "number" or one.values.keys() == other.values.keys())
    )


def chart_row(
    place: str,
    group: VisibleGroup | None,
    name: str,
    options: Mapping[str, str],
    kind: ChartKind,
    on_scale: int,
) -> ChartRow:
    distribution = group.items.get(name) if group else None
    if group is None or distribution is None:
        return ChartRow(place, [], HIDDEN)
    segments = list(_segments(distribution, options, kind, on_scale))
    mean, error = _mean(distribution) if kind == "number" else (None, 0.0)
    return ChartRow(
        place,
        segments,
        f"{distribution.answered:,}",
        f"{distribution.skipped:,}",
        f"{distribution.not_applicable:,}",
        f"{distribution.not_reached:,}",
        mean,
        error,
    )


def _mean(distribution: ItemDistribution) -> tuple[float | None, float]:
    """Return the mean and its standard error; in a bin, all have its middle."""
    middle = float(distribution.width or 0) / 2
    counts = [(float(value) + middle, n) for value, n in distribution.values.items()]
    people = sum(n for _value, n in counts)
    if not people:
        return None, 0.0
    mean = sum(value * n for value, n in counts) / people
    squares = sum(n * (value - mean) ** 2 for value, n in counts)
    return mean, sqrt(squares / max(people - 1, 1) / people)


def _segments(
    distribution: ItemDistribution,
    options: Mapping[str, str],
    kind: ChartKind,
    on_scale: int,
) -> Iterator[Segment]:
    answered = distribution.answered
    shares = {
        value: 100 * distribution.values.get(value, 0) / answered if answered else 0.0
        for value in options
    }
    start = 0.0
    if kind == "scale":
        # Half of the middle answer is on each side of the middle.
        half = on_scale / 2
        start = 100 - sum(
            share * min(max(half - number, 0), 1)
            for number, share in enumerate(shares.values())
        )
    for number, (value, label) in enumerate(options.items()):
        is_shown = value in distribution.values or kind == "number"
        width = shares[value] * (1 if kind == "scale" else 2)
        if kind == "scale" and number >= on_scale:
            width = 0.0
        steps = on_scale if kind == "scale" else len(options)
        yield Segment(
            label,
            f"{distribution.values.get(value, 0):,}" if is_shown else HIDDEN,
            f"{shares[value]:.0f} %" if is_shown else HIDDEN,
            round(start, 2),
            round(width, 2),
            # Not in the bar: answers beside the scale, such as "Don't know".
            _shade(number, steps) if number < steps else 0,
        )
        if kind in ("scale", "choice"):
            start += width


def _shade(number: int, steps: int) -> int:
    """Return the colour of an answer: the ends of every scale look alike."""
    return 1 + round(number * (SHADES - 1) / max(steps - 1, 1))


def _bin_label(value: str, width: str) -> str:
    if not width:
        return value
    end = float(value) + float(width)
    return _("%(low)s to under %(high)s") % {"low": value, "high": f"{end:g}"}


def sentence(kind: ChartKind, rows: Sequence[ChartRow], on_scale: int) -> str:
    """Say what the first place answered, and the others to compare."""
    shown = [row for row in rows if row.segments and not row.is_hidden]
    if not shown or shown[0] is not rows[0] or kind == "text":
        return ""
    if kind == "number":
        return _number_sentence(shown)
    say: Callable[[ChartRow], float]
    if kind == "scale":
        upper = slice(on_scale - on_scale // 2, on_scale)
        labels = [segment.label for segment in rows[0].segments[upper]]
        said = _(" or ").join(_("“%(label)s”") % {"label": one} for one in labels)

        def say(row: ChartRow) -> float:
            return sum(segment.width for segment in row.segments[upper])

        first = _("%(percent)s %% answered %(answers)s") % {
            "percent": f"{say(rows[0]):.0f}",
            "answers": said,
        }
    else:
        counted = [n for n, one in enumerate(rows[0].segments) if one.people != HIDDEN]
        if not counted:
            return ""
        most = max(counted, key=lambda n: rows[0].segments[n].width)
        # Of a multiple choice, single answers can be hidden.
        shown = [row for row in shown if row.segments[most].people != HIDDEN]

        def say(row: ChartRow) -> float:
            return row.segments[most].width / 2

        first = _("The most frequent answer is “%(answer)s” (%(percent)s %%)")
        if len(counted) < len(rows[0].segments):
            first = _(
                "The most frequent answer of those shown is “%(answer)s”"
                " (%(percent)s %%)"
            )
        first %= {
            "answer": rows[0].segments[most].label,
            "percent": f"{say(rows[0]):.0f}",
        }
    others = str(COMMA).join(
        f"{row.place}: {say(row):.0f} %" for row in shown[1:] if not row.is_earlier
    )
    words = f"{first}{SEMICOLON}{others}." if others else f"{first}."
    for row in shown[1:]:
        if row.is_earlier:
            words += f" {change(rows[0], row, say)}"
    return words


def change(now: ChartRow, before: ChartRow, say: Callable[[ChartRow], float]) -> str:
    """Say how a percentage changed, and whether chance alone can explain it.

    With two more people in each group, one of whom gave the answer: otherwise a few
    people who all agree would have no error at all (Agresti and Caffo).
    """
    points = round(say(now)) - round(say(before))
    parts = []
    for row in (now, before):
        answered = int(row.answered.replace(",", ""))
        share = (say(row) / 100 * answered + 1) / (answered + 2)
        parts.append((share, share * (1 - share) / (answered + 2)))
    (share, error), (earlier, earlier_error) = parts
    why = chance_words(abs(share - earlier), sqrt(error + earlier_error))
    words = ngettext(
        "%(points)s percentage point compared with %(before)s, %(why)s.",
        "%(points)s percentage points compared with %(before)s, %(why)s.",
        abs(points),
    )
    return words % {"points": signed(points), "before": before.place, "why": why}


def chance_words(difference: float, error: float) -> str:
    if difference > CERTAIN * error:
        return _("more than chance alone explains")
    return _("which can be chance")


def _number_sentence(shown: Sequence[ChartRow]) -> str:
    """Say the mean of the first place, and those of the others to compare."""
    first, *others = shown
    if first.mean is None:
        return ""
    words = _("The mean is %(mean)s") % {"mean": f"{first.mean:,.1f}"}
    means = [
        f"{row.place}: {row.mean:,.1f}"
        for row in others
        if row.mean is not None and not row.is_earlier
    ]
    words = f"{words}{SEMICOLON}{str(COMMA).join(means)}." if means else f"{words}."
    for row in others:
        if row.is_earlier and row.mean is not None:
            difference = first.mean - row.mean
            said = _("%(difference)s compared with %(before)s, %(why)s.") % {
                "difference": f"{difference:+,.1f}".replace("-", "−"),
                "before": row.place,
                "why": chance_words(abs(difference), hypot(first.error, row.error)),
            }
            words += f" {said}"
    return words
