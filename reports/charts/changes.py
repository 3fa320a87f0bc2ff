"""How results differ from those that they are compared with, and by chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import copysign, hypot, sqrt

from django.utils.translation import get_language_bidi
from django.utils.translation import gettext as _

from reports.charts.chart_rows import ChartRow
from reports.scores.scale import CERTAIN
from reports.scores.words import LEFT_TO_RIGHT


@dataclass(frozen=True, slots=True)
class Change:
    """A difference with its margin of error: chance alone exceeds it in 1 of 20."""

    # In percentage points, or of a mean in its unit.
    difference: float
    margin: float
    exceeds_error: bool
    decimals: int = 0

    @property
    def text(self) -> str:
        """Return the difference with its sign, for pages."""
        number = f"{self.difference:+,.{self.decimals}f}".replace("-", "−")
        if not round(self.difference, self.decimals):
            number = f"{0:.{self.decimals}f}"
        # From right to left, the sign would follow the number.
        return f"{LEFT_TO_RIGHT}{number}" if get_language_bidi() else number

    @property
    def words(self) -> str:
        margin = f"{self.margin:,.1f}"
        if self.exceeds_error:
            return _("more than its error of %(margin)s") % {"margin": margin}
        return _("within its error of %(margin)s") % {"margin": margin}


def change_of_share(
    now: ChartRow, before: ChartRow, share_of: Callable[[ChartRow], float]
) -> Change:
    """Return the change of a percentage.

    Its interval has two more people in each group, one of whom gave the answer:
    otherwise a few people who all agree would have no error at all (Agresti and
    Caffo 2000). Its middle is nearer to zero than the change, and the margin
    includes this difference.
    """
    parts = []
    for row in (now, before):
        answered = row.answered or 0
        share = (share_of(row) / 100 * answered + 1) / (answered + 2)
        parts.append((share, share * (1 - share) / (answered + 2)))
    (share, error), (earlier, earlier_error) = parts
    difference = share_of(now) - share_of(before)
    margin = 100 * CERTAIN * sqrt(error + earlier_error)
    if difference:
        middle = 100 * (share - earlier) * copysign(1, difference)
        margin += abs(difference) - middle
    return Change(
        # Of the percentages as they are shown.
        round(share_of(now)) - round(share_of(before)),
        margin,
        abs(difference) > margin,
    )


def margin_of_share(percent: float, answered: int) -> float:
    """Return the margin of error of a percentage, in percentage points.

    The interval has four more people, two of whom gave the answer (Agresti and Coull
    1998). Its middle is nearer to the half, and the margin includes this difference.
    """
    middle = (percent / 100 * answered + 2) / (answered + 4)
    error = sqrt(middle * (1 - middle) / (answered + 4))
    return 100 * CERTAIN * error + abs(percent - 100 * middle)


def change_of_mean(now: ChartRow, before: ChartRow) -> Change | None:
    if now.mean is None or before.mean is None:
        return None
    difference = now.mean - before.mean
    margin = CERTAIN * hypot(now.error, before.error)
    return Change(difference, margin, abs(difference) > margin, decimals=1)


def changes_of_answers(now: ChartRow, before: ChartRow) -> list[Change | None]:
    """Return the change of each answer; None if a number is hidden or coded."""

    def change_of(at: int) -> Change | None:
        if now.segments[at].count is None or before.segments[at].count is None:
            return None
        return change_of_share(now, before, lambda row: row.segments[at].share)

    return [change_of(at) for at in range(len(now.segments))]
