"""Read a survey's measures, and compare those of two versions."""

from __future__ import annotations

from survey.definitions.schema import Measures
from survey.models import Survey, SurveyMeasures


def measures_of(survey: Survey) -> Measures | None:
    """Return the measures of a survey. 1 statement."""
    found = SurveyMeasures.objects.filter(survey=survey.pk).first()
    measures: Measures | None = found.content if found else None
    return measures


def without_texts(measures: Measures | None) -> object:
    """Return what has to be equal for answers of two versions to be joined."""
    if measures is None:
        return None
    return (
        [essential["name"] for essential in measures["essentials"]],
        [
            {
                key: value
                for key, value in measure.items()
                if key not in ("label", "description")
            }
            for measure in measures["measures"]
        ],
    )
