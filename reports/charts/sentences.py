"""Say in one sentence what a chart shows."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple

from django.utils.translation import get_language_bidi, gettext_noop, ngettext
from django.utils.translation import gettext as _

from reports.answers.texts import COMMA, SEMICOLON
from reports.charts.changes import Change, change_of_mean, change_of_share
from reports.charts.chart_rows import ChartKind, ChartRow, Segment, whole_percent
from reports.scores.words import signed

# First strong isolate, and pop directional isolate.
ISOLATE, END = "\u2068", "\u2069"
# By the sign of a `Share`.
ANSWERED = {
    "": gettext_noop("%(percent)s %% answered %(answers)s"),
    "at least": gettext_noop("At least %(percent)s %% answered %(answers)s"),
    "over": gettext_noop("Over %(percent)s %% answered %(answers)s"),
    "under": gettext_noop("Under %(percent)s %% answered %(answers)s"),
}
BOUNDS = {
    "at least": gettext_noop("at least %(n)s %%"),
    "over": gettext_noop("over %(n)s %%"),
    "under": gettext_noop("under %(n)s %%"),
}


def sentence(kind: ChartKind, rows: Sequence[ChartRow], on_scale: int) -> str:
    """Say what the first place answered, and the others to compare."""
    shown = [row for row in rows if row.segments and not row.is_hidden]
    if kind == "text" or not rows or rows[0].is_hidden:
        return ""
    if not rows[0].answered:
        return _("Nobody answered this question.")
    if not shown or shown[0] is not rows[0]:
        return ""
    if kind == "number":
        return _number_sentence(shown)
    segments = rows[0].segments
    if kind == "scale":
        upper = slice(on_scale - on_scale // 2, on_scale)
        share = share_of_answers(rows[0], upper)
        if share is None:
            return ""
        first = answered_words(share, segments[upper])
        return _with_others(first, shown, upper)
    most = _most_frequent(segments)
    if most is None:
        return ""
    share = share_of_answers(rows[0], slice(most, most + 1))
    first = _("The most frequent answer is “%(answer)s” (%(percent)s %%)")
    if any(segment.is_hidden for segment in segments):
        first = _(
            "The most frequent answer of those shown is “%(answer)s” (%(percent)s %%)"
        )
    elif segments[most].coded:
        first = _("The most frequent answer is “%(answer)s” (over %(percent)s %%)")
    first %= {
        "answer": isolated(segments[most].label.text),
        "percent": whole_percent(share.percent) if share else "",
    }
    # Of a multiple choice, single answers can be hidden.
    shown = [row for row in shown if not row.segments[most].is_hidden]
    return _with_others(first, shown, slice(most, most + 1))


def _most_frequent(segments: Sequence[Segment]) -> int | None:
    """Return the number of the most frequent answer; None if it is not shown."""
    over = [
        n
        for n, segment in enumerate(segments)
        if segment.coded and segment.coded.is_over
    ]
    if over:
        # Several answers of a multiple choice, or beside hidden ones: nobody can say.
        is_only = len(over) == 1 and not any(segment.is_hidden for segment in segments)
        return over[0] if is_only else None
    exact = [n for n, segment in enumerate(segments) if segment.count is not None]
    return max(exact, key=lambda n: segments[n].share, default=None)


class Share(NamedTuple):
    """The percentage of people who gave one of some answers, or a bound of it."""

    # "" if the percentage is exact.
    sign: Literal["", "at least", "over", "under"]
    percent: float

    @property
    def least(self) -> float:
        return 0.0 if self.sign == "under" else self.percent

    @property
    def most(self) -> float:
        return 100.0 if self.sign in ("at least", "over") else self.percent

    @property
    def words(self) -> str:
        number = whole_percent(self.percent)
        return _(BOUNDS[self.sign]) % {"n": number} if self.sign else f"{number} %"


def share_of_answers(row: ChartRow, answers: slice) -> Share | None:
    """Return the share of these answers together, as far as their parts tell it."""
    parts = row.segments[answers]
    coded = [part.coded for part in parts if part.coded]
    exact = sum(part.share for part in parts if not part.coded)
    if not coded:
        return Share("", exact)
    for share in coded:
        if share.is_over:
            return Share("over", share.percent)
    if exact:
        return Share("at least", exact)
    # All others together are under the rest of one that is over its bound.
    over = [
        segment.coded.percent
        for segment in row.segments
        if segment.coded and segment.coded.is_over
    ]
    under = 100 - over[0] if over else sum(share.percent for share in coded)
    # A larger bound would say next to nothing.
    return Share("under", under) if under < 50 else None


def quoted(segments: Sequence[Segment]) -> str:
    """Return these answers in quotation marks."""
    labels = [isolated(segment.label.text) for segment in segments]
    return _(" or ").join(_("“%(label)s”") % {"label": label} for label in labels)


def answered_words(share: Share, segments: Sequence[Segment]) -> str:
    """Say how many gave one of these answers, without a full stop."""
    figures = {"percent": whole_percent(share.percent), "answers": quoted(segments)}
    return _(ANSWERED[share.sign]) % figures


def exact_share(row: ChartRow, answers: slice) -> float:
    return sum(segment.share for segment in row.segments[answers])


def isolated(text: str) -> str:
    """Keep a text of the other direction from moving the words around it."""
    if text.startswith(ISOLATE) and text.find(END) == len(text) - 1:
        return text
    has_right_to_left = any(
        unicodedata.bidirectional(letter) in ("R", "AL") for letter in text
    )
    if has_right_to_left == get_language_bidi():
        return text
    return f"{ISOLATE}{text}{END}"


def change_sentence(change: Change, compared: str) -> str:
    """Say how a percentage changed, and whether chance alone can explain it."""
    points = int(change.difference)
    words = ngettext(
        "%(points)s percentage point compared with %(before)s, %(why)s.",
        "%(points)s percentage points compared with %(before)s, %(why)s.",
        abs(points),
    )
    return words % {
        "points": signed(points),
        "before": isolated(compared),
        "why": chance_words(change),
    }


def chance_words(change: Change) -> str:
    if change.exceeds_error:
        return _("more than chance alone explains")
    return _("which can be chance")


def _with_others(first: str, shown: Sequence[ChartRow], answers: slice) -> str:
    shares = [(row, share_of_answers(row, answers)) for row in shown]
    comparisons = str(COMMA).join(
        f"{isolated(row.place)}: {share.words}"
        for row, share in shares[1:]
        if share and not row.is_compared
    )
    words = f"{first}{SEMICOLON}{comparisons}." if comparisons else f"{first}."
    for row, share in shares[1:]:
        are_exact = all(each and not each.sign for each in (shares[0][1], share))
        if row.is_compared and row.answered and are_exact:
            change = change_of_share(
                shown[0], row, lambda each: exact_share(each, answers)
            )
            words += f" {change_sentence(change, row.place)}"
    return words


def ends_of_mean(row: ChartRow) -> str:
    """Say between which numbers the mean is; "" if it is exact or not known."""
    if row.mean_ends is None:
        return ""
    low, high = (f"{end:,.1f}" for end in row.mean_ends)
    return _("%(low)s to %(high)s") % {"low": low, "high": high}


def _number_sentence(shown: Sequence[ChartRow]) -> str:
    """Say the mean of the first place, and those of the others to compare."""
    first, *compared_rows = shown
    if first.mean is not None:
        words = _("The mean is %(mean)s") % {"mean": f"{first.mean:,.1f}"}
    elif first.mean_ends:
        low, high = (f"{end:,.1f}" for end in first.mean_ends)
        words = _("The mean is between %(low)s and %(high)s") % {
            "low": low,
            "high": high,
        }
    else:
        return ""
    means = [
        f"{isolated(row.place)}: {mean}"
        for row in compared_rows
        if not row.is_compared
        and (
            mean := ends_of_mean(row)
            or (f"{row.mean:,.1f}" if row.mean is not None else "")
        )
    ]
    words = f"{words}{SEMICOLON}{str(COMMA).join(means)}." if means else f"{words}."
    for row in compared_rows:
        change = change_of_mean(first, row) if row.is_compared else None
        if change:
            comparison = _("%(difference)s compared with %(before)s, %(why)s.") % {
                "difference": change.text,
                "before": isolated(row.place),
                "why": chance_words(change),
            }
            words += f" {comparison}"
    return words
