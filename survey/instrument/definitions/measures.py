"""Read a survey's measures."""

from __future__ import annotations

from survey.instrument.definitions.schema import Measures
from survey.instrument.xlsform.columns import SheetColumns, SurveyRow
from survey.instrument.xlsform.measures import ESSENTIAL, MEASURE, REVERSED
from survey.models import Survey, SurveyMeasures


def measures_of(survey: Survey) -> Measures | None:
    """Return the measures of a survey. 1 statement."""
    stored = SurveyMeasures.objects.filter(survey=survey.pk).first()
    measures: Measures | None = stored.content if stored else None
    return measures


def sheet_rows(content: Measures) -> list[SurveyRow]:
    """Return the rows of a measures sheet, the essentials first."""
    values = [
        {"type": ESSENTIAL, "name": essential["name"]}
        for essential in content["essentials"]
    ] + [
        {
            "type": MEASURE,
            "name": measure["name"],
            "essential": measure["essential"],
            "direction": measure["direction"],
            "items": " ".join(
                REVERSED * item["reversed"] + item["name"] for item in measure["items"]
            ),
            "missing": " ".join(measure["missing"]),
        }
        for measure in content["measures"]
    ]
    entries = [*content["essentials"], *content["measures"]]
    return [
        SurveyRow(
            "measures",
            number,
            SheetColumns(),
            values=cells,
            texts={"label": entry["label"], "description": entry["description"]},
        )
        for number, (cells, entry) in enumerate(zip(values, entries, strict=True), 2)
    ]
