"""Say what a score means, in the active language."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language_bidi, gettext_lazy
from django.utils.translation import gettext as _

from reports.scores.scale import BANDS, HIGHEST
from reports.scores.visible import VisibleScore

# From the lowest band to the highest. Of a negative measure such as noise, much is
# not strong.
STRENGTHS = (
    gettext_lazy("very weak"),
    gettext_lazy("weak"),
    gettext_lazy("neutral"),
    gettext_lazy("strong"),
    gettext_lazy("very strong"),
)
AMOUNTS = (
    gettext_lazy("very low"),
    gettext_lazy("low"),
    gettext_lazy("average"),
    gettext_lazy("high"),
    gettext_lazy("very high"),
)
# Of an estimate, 95 % of the errors are within so many standard errors.
CERTAIN = 1.96
LEFT_TO_RIGHT = "\u200e"


def band_words(band: int, *, is_positive: bool = True) -> str:
    return str((STRENGTHS if is_positive else AMOUNTS)[band - 1])


def band_tone(band: int, *, is_positive: bool = True) -> int:
    """Return the color of a band: 1 where a school is worst off, 5 at best."""
    return band if is_positive else len(BANDS) + 1 - band


def band_ranges() -> list[tuple[int, str, str]]:
    """Return each band with its scores and its words."""
    ends = [first - 1 for first in BANDS[1:]] + [HIGHEST]
    return [
        (number, f"{first}–{end}", band_words(number))
        for number, (first, end) in enumerate(zip(BANDS, ends, strict=True), 1)
    ]


def signed(points: int) -> str:
    """Return a change with its sign; from right to left, it would follow the number."""
    number = f"{points:+d}".replace("-", "−") if points else "±0"
    return f"{LEFT_TO_RIGHT}{number}" if get_language_bidi() else number


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """The difference of a score from an earlier one, in points."""

    difference: int
    # None: not known, because a score has no error.
    exceeds_error: bool | None

    @property
    def points(self) -> str:
        return signed(self.difference)

    @property
    def words(self) -> str:
        points = self.points
        if self.exceeds_error is None:
            return points
        if self.exceeds_error:
            return _("%(points)s, more than chance") % {"points": points}
        return _("%(points)s, too uncertain to call a change") % {"points": points}


def score_change(now: VisibleScore, before: VisibleScore) -> ScoreChange:
    change, error = now.score - before.score, now.error_of_change(before)
    return ScoreChange(change, None if error is None else abs(change) > CERTAIN * error)


def change_words(now: VisibleScore, before: VisibleScore) -> str:
    """Return the change between two waves, and whether it exceeds its error."""
    return score_change(now, before).words
