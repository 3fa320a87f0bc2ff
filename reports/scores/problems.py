"""Sentences about what was wrong with a measure or its answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop


class Kind(StrEnum):
    NO_MEASURES = "no_measures"
    NO_PEOPLE = "no_people"
    NO_SPREAD = "no_spread"
    FEW_SCHOOLS = "few_schools"
    NO_DIFFERENCES = "no_differences"
    UNANSWERED = "unanswered"
    ONE_CATEGORY = "one_category"
    JOINED = "joined"
    # In scores from before options were joined.
    UNUSED_CATEGORY = "unused_category"
    DISCONNECTED = "disconnected"
    TOO_FEW_ITEMS = "too_few_items"
    NO_ESTIMATE = "no_estimate"
    ALL_CHANGED = "all_changed"
    NOT_ANCHORED = "not_anchored"
    DRIFT = "drift"
    RELEASED = "released"


SENTENCES = {
    Kind.NO_MEASURES: gettext_noop("The survey has no measures, so it has no scores."),
    Kind.NO_PEOPLE: gettext_noop("Nobody has answered, so there are no scores."),
    Kind.NO_SPREAD: gettext_noop(
        "All people answered alike, so this measure has no scale and no scores."
    ),
    Kind.FEW_SCHOOLS: gettext_noop(
        "Too few schools have enough answers to compare schools. So 20 points are one"
        " standard deviation of people here, and not of schools."
    ),
    Kind.NO_DIFFERENCES: gettext_noop(
        "Chance alone can explain how far schools differ on this measure. So it has no"
        " bands such as “strong”."
    ),
    Kind.UNANSWERED: gettext_noop(
        "Nobody answered %(item)s. The measure was calculated without it."
    ),
    Kind.ONE_CATEGORY: gettext_noop(
        "Everybody gave the same answer to %(item)s. The measure was calculated"
        " without it."
    ),
    Kind.JOINED: gettext_noop(
        "%(item)s: the answers %(value)s count as one category, because fewer than 10"
        " people gave one of them when the item was placed on the scale."
    ),
    Kind.UNUSED_CATEGORY: gettext_noop(
        "Nobody chose the answer %(value)s of %(item)s, so it has no threshold."
    ),
    Kind.DISCONNECTED: gettext_noop(
        "Nobody answered both %(item)s and the other items of this measure, so they"
        " cannot be compared. The measure was calculated without it."
    ),
    Kind.TOO_FEW_ITEMS: gettext_noop(
        "Fewer than two items can be used, so this measure has no scores."
    ),
    Kind.NO_ESTIMATE: gettext_noop(
        "The answers are too few or too much alike to place the items on a scale, so"
        " this measure has no scores."
    ),
    Kind.ALL_CHANGED: gettext_noop(
        "No item of this measure can be compared with the benchmark: they are new,"
        " have other answers, were left out, or were released. Its scores begin anew"
        " and cannot be compared with earlier ones."
    ),
    Kind.NOT_ANCHORED: gettext_noop(
        "%(item)s is not used to compare the seasons: in the benchmark it had other"
        " answers, was left out, or was not asked."
    ),
    Kind.DRIFT: gettext_noop(
        "%(item)s has drifted by %(logits)s logits since the benchmark. Decide whether"
        " it still means the same, or release it."
    ),
    Kind.RELEASED: gettext_noop(
        "%(item)s has been released: it is not used to compare the seasons."
    ),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding that a page shows. `item` is a name, `value` that of an option."""

    kind: Kind
    item: str = ""
    value: str = ""
    logits: float | None = None

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Problem:
        return cls(**{**stored, "kind": Kind(stored["kind"])})

    def as_json(self) -> dict[str, Any]:
        return {
            key: value for key, value in asdict(self).items() if value not in ("", None)
        }

    @property
    def sentence(self) -> str:
        """The finding in the active language."""
        # It cuts digits off instead of rounding.
        logits = "" if self.logits is None else number_format(round(self.logits, 2), 2)
        return _(SENTENCES[self.kind]) % {
            "item": self.item,
            "value": self.value,
            "logits": logits,
        }
