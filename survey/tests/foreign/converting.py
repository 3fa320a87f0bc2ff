"""Convert in tests, and look things up in the result."""

from __future__ import annotations

from survey.instrument.foreign.converted import Cells, Converted, ReportLine
from survey.instrument.foreign.recognise import convert
from survey.instrument.foreign.settling import settled
from survey.instrument.xlsform.draft import Draft


class Result:
    """A converted questionnaire, and the draft that the reader made of it."""

    def __init__(self, content: bytes) -> None:
        self.converted: Converted = convert(content)
        self.reading = settled(self.converted, "pets")
        assert not self.reading.problems, self.reading.problems
        assert self.reading.draft
        self.draft: Draft = self.reading.draft

    def row(self, name: str) -> Cells:
        rows = self.converted.sheets["survey"]
        return next(row for row in rows if row.get("name") == name)

    def options(self, name: str) -> list[str]:
        rows = self.converted.sheets["choices"]
        return [row["name"] for row in rows if row["list_name"] == name]

    def lines(self, place: str, part: str = "question") -> list[ReportLine]:
        report = self.converted.report
        return [line for line in report if (line.place, line.part) == (place, part)]

    def outcome(self, place: str, part: str = "question") -> str:
        (line,) = self.lines(place, part)
        return line.outcome
