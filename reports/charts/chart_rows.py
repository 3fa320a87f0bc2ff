"""The answers of one place as the segments of a bar and the cells of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from math import ceil, floor, sqrt
from typing import Literal

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from reports.results.distributions import ItemDistribution
from reports.results.visible import VisibleGroup
from reports.suppression import HIDDEN
from reports.suppression.end_coding import CodedShare

# Colors of the answers, from one end of a scale to the other.
SHADES = 7
# In percent: the number does not fit into a narrower segment of a scale.
NARROWEST_LABEL = 8
# The word "hidden" needs more, on a phone too.
NARROWEST_WORD = 25
# Marks of the places beside the first one, around their middle.
MARKS = (
    "M0-4l4 7h-8z",
    "M0-4.5L4.5 0 0 4.5-4.5 0z",
    "M-3.5-3.5h7v7h-7z",
)
ChartKind = Literal["scale", "choice", "multiple", "number", "text"]


@dataclass(frozen=True, slots=True)
class Label:
    """A text of the survey, with `lang` and `dir` if these are not the page's."""

    text: str
    attributes: SafeString = field(default_factory=SafeString)


@dataclass(frozen=True, slots=True)
class Segment:
    """One answer in a bar of 200 units, in which the middle of a scale is at 100."""

    label: Label
    # None: hidden, or coded.
    count: int | None
    # In percent of those who answered the item. Of a coded answer, as it is drawn: the
    # bound of one that nearly everybody gave, and equal parts of the rest otherwise.
    share: float
    start: float = 0.0
    width: float = 0.0
    # 0: not in the bar.
    shade: int = 0
    # Only this bound of the share is shown.
    coded: CodedShare | None = None
    # Of several answers in one part of the bar; "" for the label and percentage.
    tooltip: str = ""

    @property
    def has_hidden_length(self) -> bool:
        """Test that only the length of all such answers together is known."""
        return bool(self.coded and not self.coded.is_over)

    @property
    def is_hidden(self) -> bool:
        return self.count is None and self.coded is None

    @property
    def people(self) -> str:
        """Return the number for pages; "" if the percentage is coded and tells it."""
        return "" if self.coded else cell(self.count)

    @property
    def percent(self) -> str:
        if self.coded:
            words = _("over %(n)s %%") if self.coded.is_over else _("under %(n)s %%")
            # In a narrow cell, the line does not end before the sign.
            return (words % {"n": self.coded.percent}).replace(" %", "\u00a0%")
        return HIDDEN if self.count is None else f"{whole_percent(self.share)} %"

    @property
    def cell(self) -> SafeString:
        """Return the content of a cell of the table: percentage and people."""
        people = f' <span class="hint">({self.people})</span>' if self.people else ""
        return SafeString(f"{escape(self.percent)}{people}")

    @property
    def rectangle(self) -> str:
        """Return the segment of a scale, with its text if that fits into it."""
        shade = "shade-hidden" if self.has_hidden_length else f"shade-{self.shade}"
        tooltip = self.tooltip or f"{self.label.text}: {self.percent}"
        rectangle = (
            f'<rect class="{shade}" x="{self.start / 2:g}%" y="15%"'
            f' width="{self.width / 2:g}%" height="70%">'
            f"<title>{escape(tooltip)}</title></rect>"
        )
        if self.has_hidden_length:
            end = self.start + self.width
            rectangle += (
                f'<line class="stripes" x1="{self.start / 2:g}%" x2="{end / 2:g}%"'
                ' y1="50%" y2="50%" />'
            )
        if not self.text:
            return rectangle
        middle = (self.start + self.width / 2) / 2
        return (
            f'{rectangle}<text class="on-{shade}" x="{middle:g}%" y="50%"'
            f' dy="0.35em" text-anchor="middle">{escape(self.text)}</text>'
        )

    @property
    def text(self) -> str:
        """Return the text in the segment of a scale; "" if it would not fit."""
        if self.has_hidden_length:
            return _("hidden") if self.share >= NARROWEST_WORD else ""
        if self.count is None or self.share < NARROWEST_LABEL:
            return ""
        return whole_percent(self.share)


@dataclass(frozen=True, slots=True)
class ChartRow:
    """The answers of one place; without segments if they are hidden."""

    place: str
    segments: Sequence[Segment] = ()
    # None: hidden.
    answered: int | None = None
    skipped: int | None = None
    not_applicable: int | None = None
    not_reached: int | None = None
    # Of numbers: the mean and its standard error.
    mean: float | None = None
    error: float = 0.0
    # Instead of both, where numbers are coded: the mean is between these.
    mean_ends: tuple[float, float] | None = None
    # Of the same place in the administration that was chosen to compare.
    is_compared: bool = False

    @property
    def is_hidden(self) -> bool:
        return self.answered is None

    @property
    def parts(self) -> Iterator[Segment]:
        """Yield the parts of the bar of a scale.

        Neighbouring answers with a hidden length are one part, because a part for each
        would look like their percentages.
        """
        in_bar = (segment for segment in self.segments if segment.width)
        for is_hidden, group in groupby(in_bar, lambda each: each.has_hidden_length):
            segments = list(group)
            if not is_hidden:
                yield from segments
                continue
            yield replace(
                segments[0],
                share=sum(segment.share for segment in segments),
                width=round(sum(segment.width for segment in segments), 2),
                tooltip="\n".join(
                    f"{segment.label.text}: {segment.percent}" for segment in segments
                ),
            )

    @property
    def states(self) -> tuple[str, ...]:
        """Return the numbers below the labels of `ItemChart.states`."""
        states = (self.answered, self.skipped, self.not_applicable, self.not_reached)
        return tuple(map(cell, states))

    # A page has a thousand segments and more. In the template, their cells took half
    # of its time.
    @property
    def bar(self) -> str:
        """Return the name of the place and its bar on a scale; a star if hidden."""
        name = f'<bdi class="bar-place">{escape(self.place)}</bdi>'
        if self.is_hidden:
            return f'{name}<span class="bar-hidden">{HIDDEN}</span>'
        bars = "".join(segment.rectangle for segment in self.parts)
        # The line is seen above and below the bar, so that it crosses no number.
        return (
            f'{name}<svg class="bar" aria-hidden="true">'
            f'<line x1="50%" x2="50%" y1="0" y2="100%" />{bars}</svg>'
        )

    def table_row(self, answers: int) -> SafeString:
        """Return the row of the table, with cells of `answers` and then of states."""
        cells: list[str] = [segment.cell for segment in self.segments]
        cells = cells or [HIDDEN] * answers
        contents = "".join(
            f'<td class="number">{content}</td>' for content in (*cells, *self.states)
        )
        place = f'<th scope="row"><bdi>{escape(self.place)}</bdi></th>'
        return SafeString(f"<tr>{place}{contents}</tr>")


def mark(number: int, at: str = "50%") -> str:
    """Return the mark of a place beside the first one, at a percentage of the width."""
    shape = MARKS[number % len(MARKS)]
    return (
        f'<svg class="mark-{number % len(MARKS)}" x="{at}" y="50%" overflow="visible">'
        f'<path d="{shape}" /></svg>'
    )


def whole_percent(share: float) -> str:
    """Return a share of answers, rounded to the nearest whole number.

    Sentences, bars and tables of results all use it, so that they are equal. Response
    rates, which are compared with a threshold, are rounded down (`rate_lines.percent`).
    """
    return f"{share:.0f}"


def cell(people: int | None) -> str:
    return HIDDEN if people is None else f"{people:,}"


@dataclass(frozen=True, slots=True)
class ChartScale:
    """What the bars of all places have in common."""

    kind: ChartKind
    # Label by value; the last ones may be beside the scale, such as "Don't know".
    options: Mapping[str, Label]
    on_scale: int


def chart_row(
    place: str,
    group: VisibleGroup | None,
    name: str,
    scale: ChartScale,
    *,
    is_compared: bool = False,
) -> ChartRow:
    distribution = group.items.get(name) if group else None
    if distribution is None:
        return ChartRow(place, is_compared=is_compared)
    is_number = scale.kind == "number"
    mean, error, ends = None, 0.0, None
    if is_number and distribution.coded:
        ends = _ends_of_mean(distribution)
    elif is_number:
        mean, error = _mean(distribution)
    return ChartRow(
        place,
        list(_segments(distribution, scale)),
        distribution.answered,
        distribution.skipped,
        distribution.not_applicable,
        distribution.not_reached,
        mean,
        error,
        ends,
        is_compared,
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


def _ends_of_mean(distribution: ItemDistribution) -> tuple[float, float]:
    """Return the least and the largest mean that the shown figures allow.

    The exact mean, with the number of people of the coded answers, is an equation that
    could give back a coded number.
    """
    answered, coded = distribution.answered, distribution.coded
    middle = float(distribution.width or 0) / 2
    exact = sum((float(value) + middle) * n for value, n in distribution.values.items())
    people = sum(distribution.values.values()) + distribution.coded_people
    order = sorted(coded, key=float)
    ends = []
    for values in (order, order[::-1]):
        # As many as possible gave the first ones.
        rest = distribution.coded_people
        rest -= sum(coded[value].least(answered) for value in order)
        total = exact
        for value in values:
            share = coded[value]
            least = share.least(answered)
            more = min(rest, share.most(answered) - least)
            rest -= more
            total += (float(value) + middle) * (least + more)
        ends.append(total / people)
    # Rounded away from each other, so that the mean is between them.
    return floor(ends[0] * 10) / 10, ceil(ends[1] * 10) / 10


def _drawn_shares(distribution: ItemDistribution) -> dict[str, float]:
    """Return the length of each answer's bar, in percent of those who answered.

    The bars of coded answers tell nothing more than their bounds and the exact shares.
    """
    answered, coded = distribution.answered, distribution.coded
    shares = {
        value: 100 * n / answered for value, n in distribution.values.items() if n
    }
    shares |= {value: float(share.percent) for value, share in coded.items()}
    low = [value for value, share in coded.items() if not share.is_over]
    if distribution.measured == "multiple":
        return shares | {value: shares[value] / 2 for value in low}
    rest = 100.0 - sum(share for value, share in shares.items() if value not in low)
    return shares | dict.fromkeys(low, max(rest, 0.0) / max(len(low), 1))


def _segments(distribution: ItemDistribution, scale: ChartScale) -> Iterator[Segment]:
    is_scale = scale.kind == "scale"
    drawn = _drawn_shares(distribution)
    shares = {value: drawn.get(value, 0.0) for value in scale.options}
    start = 0.0
    if is_scale:
        # Half of the middle answer is on each side of the middle.
        half = scale.on_scale / 2
        start = 100 - sum(
            share * min(max(half - number, 0), 1)
            for number, share in enumerate(shares.values())
        )
    lowest = next(
        (share for share in distribution.coded.values() if not share.is_over), None
    )
    steps = scale.on_scale
    for number, (value, label) in enumerate(scale.options.items()):
        coded = distribution.coded.get(value)
        is_shown = value in distribution.values
        if scale.kind == "number" and value not in distribution.answers:
            # Of the compared results alone: nobody here gave this number.
            coded = lowest
            is_shown = coded is None
        is_in_bar = is_scale and number < steps
        width = shares[value] if is_in_bar else 0.0
        # The ends of every scale look alike.
        shade = 1 + round(number * (SHADES - 1) / max(steps - 1, 1))
        yield Segment(
            label,
            distribution.values.get(value, 0) if is_shown else None,
            shares[value],
            round(start, 2),
            round(width, 2),
            shade if is_in_bar else 0,
            coded,
        )
        start += width
