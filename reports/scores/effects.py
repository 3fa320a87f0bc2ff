"""Say what careless answers, and people who did not answer, change in the scores.

A technical report calculates it (`reports.technical.effects`); no score is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from reports.suppression import HIDDEN


@dataclass(frozen=True)
class Effects:
    """Changes in points by measure; "*" is hidden, and None does not exist."""

    # Of the people who could be judged, in percent.
    careless_percent: float | str | None
    without_careless: Mapping[str, float | str | None]
    weighted: Mapping[str, float | str | None]
    # The attributes by which people are weighted.
    weighted_by: Sequence[str] = ()

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Effects:
        return cls(**stored)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def careless_sentence(self) -> str:
        percent, largest = self.careless_percent, _largest(self.without_careless)
        if percent == 0:
            return _("Nobody seems to have answered without reading the questions.")
        if not isinstance(percent, float) or largest is None:
            return _(
                "So few people seem to have answered without reading the questions that"
                " the effect is not shown."
            )
        words = _(
            "Leaving out the %(percent)s %% of people who seem not to have read the"
            " questions changes no measure by more than %(points)s points."
        )
        return _joined(
            words % {"percent": _number(percent), "points": _number(largest)}
        )

    @property
    def weights_sentence(self) -> str:
        largest = _largest(self.weighted)
        if largest is None:
            return ""
        words = _(
            "Weighting the people who answered so that they are like the roster"
            " (%(attributes)s) changes no measure by more than %(points)s points."
        )
        return words % {
            "attributes": ", ".join(self.weighted_by),
            "points": _number(largest),
        }

    def cells(self, measure: str) -> list[str]:
        """Return both changes of a measure, for a row of a table."""
        return [
            _change(changes.get(measure))
            for changes in (self.without_careless, self.weighted)
        ]


def _largest(changes: Mapping[str, float | str | None]) -> float | None:
    known = [abs(change) for change in changes.values() if isinstance(change, float)]
    return max(known, default=None)


def _change(change: float | str | None) -> str:
    if isinstance(change, float):
        sign = "+" if change > 0 else "\N{MINUS SIGN}" if change < 0 else ""
        return f"{sign}{_number(abs(change))}"
    return HIDDEN if change == HIDDEN else "–"


def _number(value: float) -> str:
    return number_format(value, 1)


def _joined(words: str) -> str:
    # On a phone, a line could end between them.
    return words.replace(" %", "\N{NO-BREAK SPACE}%")
