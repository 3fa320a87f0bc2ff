"""A measure of a published benchmark, as it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from reports.scores.scale import Scale
from reports.scores.spans import SpanScale


@dataclass(frozen=True)
class ImportedMeasure:
    """Its scale, and as far as they were published its items and spans."""

    scale: Scale
    people: int
    # As it was typed: a year, a month or a day.
    date: str
    source: str
    # As the items of `Calibration`, as far as anchors need them.
    items: Sequence[Mapping[str, Any]] = ()
    spans: Mapping[str, SpanScale] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ImportedMeasure:
        return cls(
            Scale(**stored["scale"]),
            *(stored["people"], stored["date"], stored["source"], stored["items"]),
            {
                span: SpanScale.from_json(of_span)
                for span, of_span in stored["spans"].items()
            },
        )

    @property
    def has_errors(self) -> bool:
        """Test that its thresholds come with their standard errors."""
        return bool(self.items) and all(
            "standard_errors" in item for item in self.items
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
