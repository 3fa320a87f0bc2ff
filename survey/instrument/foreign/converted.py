"""The result of converting a questionnaire of another program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

# A row of a sheet: header -> text, as in `{"type": "text", "name": "q1"}`.
Cells = dict[str, str]
Outcome = Literal["taken", "changed", "refused"]
Part = Literal["question", "group", "options", "rule", "setting", "file"]


class UnreadableQuestionnaire(ValueError):
    """Tell a person why a file is not converted."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """What became of one part of the original; `place` is its code there."""

    place: str
    text: str
    outcome: Outcome
    reason: str = ""
    part: Part = "question"


@dataclass(slots=True)
class Converted:
    """Sheets of an XLSForm by name, and a line for each part of the original.

    `places` has the place in the original for each row of a sheet.
    """

    sheets: dict[str, list[Cells]] = field(default_factory=dict)
    report: list[ReportLine] = field(default_factory=list)
    places: dict[str, list[str]] = field(default_factory=dict)

    def note(
        self,
        place: str,
        text: str,
        outcome: Outcome,
        reason: str = "",
        part: Part = "question",
    ) -> None:
        self.report.append(ReportLine(place, text, outcome, reason, part))
