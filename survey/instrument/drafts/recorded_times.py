"""Ask how long people took for the questions of an earlier version.

Answers are read by another app, which registers how: nothing of it is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from survey.models import Survey


@dataclass(frozen=True, slots=True)
class RecordedTimes:
    """Medians of `people` who answered `version`: seconds by the names of items."""

    version: str
    people: int
    seconds: Mapping[str, float]


Reader = Callable[[Survey], RecordedTimes | None]
_readers: list[Reader] = []


def reads_recorded_times(reader: Reader) -> Reader:
    """Register a function that returns the times of a survey's earlier versions.

    Only of so many people that the hiding of small groups allows it.
    """
    _readers.append(reader)
    return reader


def recorded_times(survey: Survey) -> RecordedTimes | None:
    return next((times for read in _readers if (times := read(survey))), None)
