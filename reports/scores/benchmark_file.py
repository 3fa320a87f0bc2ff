"""Check the file of a published benchmark: measures, and the items of some of them.

A row without an item is about a measure, for all schools or for a grade span; a row
with an item has its thresholds. A file with any problem is refused as a whole.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from reports.answers.versions import SurveyVersion
from reports.scores.imported_measure import ImportedMeasure
from reports.scores.measure_scores import measure_options
from reports.scores.scale import PEOPLE, SCHOOLS, SMALLEST_DEVIATION, Scale
from reports.scores.spans import SPANS, SpanScale
from survey.instrument.definitions.schema import MeasureDefinition, Measures
from survey.people.rosters.columns import RosterColumns
from survey.people.rosters.list_headers import ListHeader
from survey.people.rosters.row_parser import CellRejection
from survey.people.rosters.table import RosterTable

# Field -> headers that mean it, without punctuation and case. The first is the one
# of the template.
_HEADERS = {
    "measure": "measure scale construct",
    "item": "item question variable",
    "span": "gradespan span level",
    "thresholds": "thresholds threshold steps",
    "errors": "thresholderrors standarderrors errors se",
    "mean": "mean average",
    "deviation": "standarddeviation sd deviation",
    "unit": "deviationof unit",
    "people": "people n respondents samplesize",
    "date": "date year collected",
    "source": "source publication reference",
}
TEMPLATE_HEADER = (
    *("Measure", "Item", "Grade span", "Thresholds", "Threshold errors", "Mean"),
    *("Standard deviation", "Deviation of", "People", "Date", "Source"),
)
BENCHMARK_HEADER = ListHeader(
    {name: headers.split() for name, headers in _HEADERS.items()},
    {gettext_noop("measure"): ("measure",), gettext_noop("mean"): ("mean",)},
)
# Ten measures of twenty items in four spans have 240 rows.
MOST_ROWS = 2_000
LONGEST_SOURCE, LONGEST_SHOWN = 200, 100
MOST_LOGITS = 10
# More digits are no number of people.
LONGEST_COUNT = 12
NUMBER = re.compile(r"[-−+]?[0-9]*\.?[0-9]+")
# A day that a spreadsheet wrote can have a time after it.
DATE = re.compile(
    r"((?:19|20)[0-9]{2}(?:-(?:0[1-9]|1[0-2])(?:-[0-3][0-9])?)?)(?:[ T].*)?"
)
COUNT = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+")


@dataclass
class BenchmarkReport:
    """Describe what a file would import: nothing, if anything is rejected."""

    description: str
    rows: int = 0
    measures: dict[str, ImportedMeasure] = field(default_factory=dict)
    rejections: list[CellRejection] = field(default_factory=list)


def check_benchmark(
    table: RosterTable, content: Measures, version: SurveyVersion
) -> BenchmarkReport:
    """Read a file about the measures of a survey, and change nothing."""
    report = BenchmarkReport(table.description)
    reader = _Reader(table.columns, content, version, report.rejections)
    for number, cells in table.rows:
        report.rows += 1
        if report.rows > MOST_ROWS:
            words = _("A benchmark has at most %(rows)s rows.") % {
                "rows": f"{MOST_ROWS:,}"
            }
            report.rejections.append(CellRejection(number, "", words, ""))
            break
        reader.read(number, cells)
    reader.check_measures()
    report.rejections.sort()
    if not report.rejections:
        report.measures = {
            name: reader.measure(name) for name in reader.names if name in reader.scales
        }
    return report


class _Reader:
    """Collect the rows of a file by measure, and the reasons to reject them."""

    def __init__(
        self,
        columns: RosterColumns,
        content: Measures,
        version: SurveyVersion,
        rejections: list[CellRejection],
    ) -> None:
        self.columns, self.version, self.rejections = columns, version, rejections
        self.definitions: dict[str, MeasureDefinition] = {
            measure["name"]: measure for measure in content["measures"]
        }
        self.names = list(self.definitions)
        # Measure -> row of the file, and its facts, as `ImportedMeasure`.
        self.scales: dict[str, tuple[int, SpanScale, str, str]] = {}
        self.spans: dict[tuple[str, str], SpanScale] = {}
        # Measure and item -> row, and as `Calibration.items`.
        self.items: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self.number, self.cells = 0, list[str]()
        # First row about a measure.
        self.first: dict[str, int] = {}

    def read(self, number: int, cells: Sequence[str]) -> None:
        self.number, self.cells = number, list(cells)
        name = self._text("measure")
        if name not in self.definitions:
            self._reject("measure", _("is no measure of this survey"))
            return
        self.first.setdefault(name, number)
        if self._text("item"):
            self._read_item(self.definitions[name], self._text("item"))
        else:
            self._read_scale(name)

    def check_measures(self) -> None:
        """Refuse measures without a mean."""
        for name in self.first.keys() - self.scales.keys():
            if any(rejection.row == self.first[name] for rejection in self.rejections):
                continue
            self.rejections.append(
                CellRejection(
                    self.first[name],
                    self.columns.heading("measure"),
                    _("has no row with its mean for all schools, which has no item"),
                    name,
                )
            )

    def measure(self, name: str) -> ImportedMeasure:
        _row, of_all_schools, date, source = self.scales[name]
        return ImportedMeasure(
            *(of_all_schools.scale, of_all_schools.people, date, source),
            [item for (of, _item), (_number, item) in self.items.items() if of == name],
            {span: scale for (of, span), scale in self.spans.items() if of == name},
        )

    def _read_item(self, definition: MeasureDefinition, item: str) -> None:
        options = measure_options(self.version, definition)
        key = definition["name"], item
        if item not in options:
            self._reject("item", _("is no item of this measure"))
            return
        if key in self.items:
            row = self.items[key][0]
            self._reject("item", _("is in row %(row)s already") % {"row": row})
            return
        numbers = self._numbers("thresholds")
        errors = self._numbers("errors") if self._text("errors") else None
        wanted = len(options[item]) - 1
        if len(numbers) != wanted:
            words = _(
                "needs %(wanted)s thresholds, one between each two neighboring answers,"
                " separated by spaces"
            )
            self._reject("thresholds", words % {"wanted": wanted})
        elif None in numbers:
            self._reject("thresholds", _not_logits())
        elif errors is not None and len(errors) != wanted:
            words = _(
                "needs %(wanted)s standard errors, one of each threshold, or none"
            )
            self._reject("errors", words % {"wanted": wanted})
        elif errors is not None and any(not error or error < 0 for error in errors):
            self._reject("errors", _("is no number above 0"))
        else:
            stored: dict[str, Any] = {
                "name": item,
                "options": options[item],
                "option_categories": list(range(len(options[item]))),
                "thresholds": numbers,
            }
            if errors:
                # Of the mean of its thresholds, as if their errors were independent.
                variance = sum((error or 0.0) ** 2 for error in errors) / wanted**2
                stored |= {"standard_errors": errors, "covariances": {item: variance}}
            self.items[key] = self.number, stored

    def _numbers(self, name: str) -> list[float | None]:
        """Return the numbers of a cell, with None for texts that are none."""
        parts = re.split(r"[;\s]+", self._text(name).strip("; "))
        return [self._logits(part) for part in parts if part]

    def _read_scale(self, name: str) -> None:
        span = self._text("span").casefold()
        before = len(self.rejections)
        if span and span not in SPANS:
            words = _("is none of %(spans)s")
            self._reject("span", words % {"spans": ", ".join(SPANS)})
        elif (name, span) in self.spans or (not span and name in self.scales):
            self._reject("measure", _("has several rows with a mean"))
        mean = self._logits(self._text("mean"))
        if mean is None:
            self._reject("mean", _not_logits())
        deviation = self._logits(self._text("deviation"))
        if deviation is None or deviation < SMALLEST_DEVIATION:
            self._reject("deviation", _("is no number above 0"))
        unit = self._text("unit").casefold() or SCHOOLS
        if unit not in (SCHOOLS, PEOPLE):
            self._reject("unit", _("is neither “schools” nor “people”"))
        people = self._people()
        date, source = DATE.fullmatch(self._text("date")), self._text("source")
        if not date:
            self._reject("date", _("is no date such as 2025, 2025-05 or 2025-05-31"))
        if not source or len(source) > LONGEST_SOURCE:
            words = _("is empty, or longer than %(most)s characters")
            self._reject("source", words % {"most": LONGEST_SOURCE})
        if len(self.rejections) > before or not date:
            return
        scale = SpanScale(Scale(mean or 0.0, deviation or 1.0, unit), people)
        if span:
            self.spans[name, span] = scale
        else:
            self.scales[name] = self.number, scale, date[1], source

    def _people(self) -> int:
        text = self._text("people")
        digits = text.replace(",", "")
        if COUNT.fullmatch(text) and len(digits) <= LONGEST_COUNT and int(digits):
            return int(digits)
        self._reject("people", _("is no whole number above 0"))
        return 0

    def _logits(self, text: str) -> float | None:
        if not NUMBER.fullmatch(text):
            return None
        value = float(text.replace("−", "-"))
        return value if math.isfinite(value) and abs(value) <= MOST_LOGITS else None

    def _text(self, name: str) -> str:
        return self.columns.text(self.cells, name)

    def _reject(self, name: str, reason: str) -> None:
        heading = self.columns.heading(name)
        text = self._text(name)[:LONGEST_SHOWN]
        self.rejections.append(CellRejection(self.number, heading, reason, text))


def _not_logits() -> str:
    return _("is no number from -10 to 10, such as -0.35")


def template_rows(content: Mapping[str, Any]) -> list[Sequence[str]]:
    """Return a file to fill in: all measures and their items."""
    rows: list[Sequence[str]] = [TEMPLATE_HEADER]
    blank = [""] * (len(TEMPLATE_HEADER) - 2)
    for measure in content["measures"]:
        rows.append([measure["name"], "", *blank])
        rows += [[measure["name"], item["name"], *blank] for item in measure["items"]]
    return rows
