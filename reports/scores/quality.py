"""Read how well the measures of an administration measured, without what is hidden.

Hidden is a measure with an item that is hidden in the answers of everyone, all of them
while that is hidden or not decided, and a measure that fewer people have than the
administration's minimum.
"""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from reports.models import Calibration, GroupResults
from reports.releases.levels import LEVELS
from reports.scores.visible import decided
from survey.instrument.definitions.schema import Measures
from survey.models import Administration

# The usual limits for groups and for single people (Nunnally).
FOR_GROUPS, FOR_PEOPLE = 0.7, 0.8
# Mean squares that are reasonable for rating scales (Wright and Linacre 1994).
LEAST_FIT, MOST_FIT = 0.6, 1.4


def visible_calibrations(
    administration: Administration, content: Measures
) -> dict[str, Calibration | None]:
    """Return the calibration of each measure; None is hidden. 2 statements."""
    everyone = GroupResults.objects.filter(
        administration=administration,
        level=LEVELS.STATE,
        place_id=0,
        attribute="",
    )
    hidden = decided(everyone).values_list("hidden_items", flat=True).first()
    items = {
        measure["name"]: {item["name"] for item in measure["items"]}
        for measure in content["measures"]
    }
    calibrations = Calibration.objects.filter(
        administration=administration
    ).select_related(
        "anchored_to__administration__published__survey",
        "anchored_to__administration__scoring",
        "administration__scoring",
        "imported",
    )
    wave = "anchored_to__administration__wave"
    visible: dict[str, Calibration | None] = {}
    for calibration in calibrations.select_related(wave).defer(
        "anchored_to__administration__published__definition",
        "anchored_to__administration__published__survey__source",
    ):
        is_hidden = (
            hidden is None
            or not items.get(calibration.measure, set()).isdisjoint(hidden)
            or 0 < calibration.people < administration.minimum_group
        )
        visible[calibration.measure] = None if is_hidden else calibration
    return visible


def reliability_sentence(reliability: float | None) -> str:
    """Say what a reliability means for a person who has never heard of it."""
    if reliability is None:
        return _("It could not be calculated how well the answers tell people apart.")
    if reliability >= FOR_PEOPLE:
        words = _(
            "The answers tell people apart well: about %(percent)s %% of the"
            " differences between them are real, and the rest is chance."
        )
    elif reliability >= FOR_GROUPS:
        words = _(
            "The answers tell groups of people apart, but hardly single people:"
            " about %(percent)s %% of the differences between people are real, and"
            " the rest is chance."
        )
    else:
        words = _(
            "The answers tell people apart poorly: only about %(percent)s %% of the"
            " differences between them are real, and the rest is chance. Compare only"
            " large groups."
        )
    words %= {"percent": number_format(max(0, round(100 * reliability)))}
    # On a phone, a line could end between them.
    return words.replace(" %", "\N{NO-BREAK SPACE}%")


def fit_words(mean_square: float | None) -> str:
    """Return what is wrong with the fit of an item, or ""."""
    if mean_square is None or LEAST_FIT <= mean_square <= MOST_FIT:
        return ""
    return _("unexpected answers") if mean_square > MOST_FIT else _("too predictable")
