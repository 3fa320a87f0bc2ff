"""Say what a score means, in the active language."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language_bidi, gettext_lazy
from django.utils.translation import gettext as _

from reports.scores.scale import BANDS, CERTAIN, HIGHEST
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
# What files say of a score, after its name. Changes are those of the means.
SCORE_COLUMNS = {
    "": "Score from 1 to 99, drawn toward the mean of schools as far as its"
    " reliability is below 1; 50 is the mean of the benchmark",
    " standard error": "Standard error of this score, in points; of a larger place, it"
    " knows that people of the same school are alike",
    " reliability": "Share of the variance of the score that is true, from 0 to 1; 0"
    " where chance alone can explain how far schools differ",
    " mean": "Score of the answers alone, not drawn toward the mean of schools",
    " mean standard error": "Standard error of the mean, in points, likewise",
}
LEFT_TO_RIGHT = "\u200e"


def band_words(band: int, *, is_positive: bool = True) -> str:
    return str((STRENGTHS if is_positive else AMOUNTS)[band - 1])


def band_tone(band: int, *, is_positive: bool = True) -> int:
    """Return the color of a band: 1 where a school is worst off, 5 at best."""
    return band if is_positive else len(BANDS) + 1 - band


def score_words(score: VisibleScore, *, is_positive: bool = True) -> str:
    """Return the band of a score with its doubt; "" where there are no bands."""
    if not score.band:
        return ""
    words = band_words(score.band, is_positive=is_positive)
    if not score.is_doubtful:
        return words
    ends = [band for band in score.possible_bands if band != score.band]
    if not ends:
        return _("%(band)s, but uncertain") % {"band": words}
    possible = [band_words(band, is_positive=is_positive) for band in ends]
    if len(possible) == 1:
        return _("%(band)s, but could be %(other)s") % {
            "band": words,
            "other": possible[0],
        }
    return _("%(band)s, but could be %(low)s or %(high)s") % {
        "band": words,
        "low": possible[0],
        "high": possible[1],
    }


def score_figures(score: VisibleScore | None) -> list[float | None]:
    """Return the cells of `SCORE_COLUMNS`; none of no score."""
    if score is None:
        return []
    numbers = (score.score, score.error, score.reliability, score.mean)
    digits = (0, 1, 2, 0, 1)
    return [
        None if number is None else round(number, places) if places else int(number)
        for number, places in zip((*numbers, score.mean_error), digits, strict=True)
    ]


def score_tone(score: VisibleScore, *, is_positive: bool = True) -> int:
    """Return the color of a score; 0 for none, where it is not reliable."""
    if not score.band or score.is_unreliable:
        return 0
    return band_tone(score.band, is_positive=is_positive)


def band_ranges() -> list[tuple[int, str, str]]:
    """Return each band with its scores and its words."""
    ends = [first - 1 for first in BANDS[1:]] + [HIGHEST]
    return [
        (number, f"{first}–{end}", band_words(number))
        for number, (first, end) in enumerate(zip(BANDS, ends, strict=True), 1)
    ]


def signed(points: int) -> str:
    """Return a change with its sign; from right to left, it would follow the number."""
    number = f"{points:+d}".replace("-", "−") if points else "0"
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
    change, error = now.change_since(before), now.error_of_change(before)
    return ScoreChange(change, None if error is None else abs(change) > CERTAIN * error)


def change_words(now: VisibleScore, before: VisibleScore) -> str:
    """Return the change between two waves, and whether it exceeds its error."""
    return score_change(now, before).words
