"""Read a survey's measures."""

from __future__ import annotations

from survey.instrument.definitions.schema import Measures
from survey.models import Survey, SurveyMeasures


def measures_of(survey: Survey) -> Measures | None:
    """Return the measures of a survey. 1 statement."""
    stored = SurveyMeasures.objects.filter(survey=survey.pk).first()
    measures: Measures | None = stored.content if stored else None
    return measures
