"""Say in one sentence what a chart shows."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from django.utils.translation import get_language_bidi, ngettext
from django.utils.translation import gettext as _

from reports.console.results.changes import Change, change_of_mean, change_of_share
from reports.console.results.chart_rows import ChartKind, ChartRow
from reports.school_report.parts import COMMA, SEMICOLON
from reports.scores.words import signed

# First strong isolate, and pop directional isolate.
ISOLATE, END = "\u2068", "\u2069"


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
    if kind == "scale":
        upper = slice(on_scale - on_scale // 2, on_scale)
        labels = [isolated(one.label.text) for one in rows[0].segments[upper]]
        said = _(" or ").join(_("“%(label)s”") % {"label": one} for one in labels)

        def share_of(row: ChartRow) -> float:
            return sum(segment.share for segment in row.segments[upper])

        first = _("%(percent)s %% answered %(answers)s") % {
            "percent": f"{share_of(rows[0]):.0f}",
            "answers": said,
        }
        return _with_others(first, shown, share_of)
    counted = [n for n, one in enumerate(rows[0].segments) if one.count is not None]
    if not counted:
        return ""
    most = max(counted, key=lambda n: rows[0].segments[n].share)
    first = _("The most frequent answer is “%(answer)s” (%(percent)s %%)")
    if len(counted) < len(rows[0].segments):
        first = _(
            "The most frequent answer of those shown is “%(answer)s” (%(percent)s %%)"
        )
    first %= {
        "answer": isolated(rows[0].segments[most].label.text),
        "percent": f"{rows[0].segments[most].share:.0f}",
    }
    # Of a multiple choice, single answers can be hidden.
    shown = [row for row in shown if row.segments[most].count is not None]
    return _with_others(first, shown, lambda row: row.segments[most].share)


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


def _with_others(
    first: str, shown: Sequence[ChartRow], share_of: Callable[[ChartRow], float]
) -> str:
    others = str(COMMA).join(
        f"{isolated(row.place)}: {share_of(row):.0f} %"
        for row in shown[1:]
        if not row.is_compared
    )
    words = f"{first}{SEMICOLON}{others}." if others else f"{first}."
    for row in shown[1:]:
        if row.is_compared and row.answered:
            change = change_of_share(shown[0], row, share_of)
            words += f" {change_sentence(change, row.place)}"
    return words


def _number_sentence(shown: Sequence[ChartRow]) -> str:
    """Say the mean of the first place, and those of the others to compare."""
    first, *others = shown
    if first.mean is None:
        return ""
    words = _("The mean is %(mean)s") % {"mean": f"{first.mean:,.1f}"}
    means = [
        f"{isolated(row.place)}: {row.mean:,.1f}"
        for row in others
        if row.mean is not None and not row.is_compared
    ]
    words = f"{words}{SEMICOLON}{str(COMMA).join(means)}." if means else f"{words}."
    for row in others:
        change = change_of_mean(first, row) if row.is_compared else None
        if change:
            said = _("%(difference)s compared with %(before)s, %(why)s.") % {
                "difference": change.text,
                "before": isolated(row.place),
                "why": chance_words(change),
            }
            words += f" {said}"
    return words
