"""Say from which survey, window and program the figures of results are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reports.models import ResultsRollUp
from survey.models import Administration
from survey.taking.published import SurveyNotFound, published_survey


@dataclass(frozen=True, slots=True)
class Provenance:
    survey: str
    version: str
    # The first symbols of the digest of the published survey.
    digest: str
    administration: str
    role: str
    wave: str
    counted_at: datetime
    software: str

    @classmethod
    def of(cls, administration: Administration) -> Provenance | None:
        """Return the provenance, or None if nobody has counted the answers.

        No statement, unless the texts of the survey were corrected since.
        """
        roll_up: ResultsRollUp | None = getattr(administration, "results_roll_up", None)
        if roll_up is None:
            return None
        survey = administration.published.survey
        version, digest = survey.version, roll_up.survey_digest
        if digest != administration.published_id:
            try:
                version = published_survey(digest).definition["version"]
            except SurveyNotFound:
                version = ""
        return cls(
            survey.title_to_read,
            version,
            digest[:12],
            administration.name,
            administration.get_role_display(),
            administration.wave.name if administration.wave else "",
            roll_up.as_of,
            roll_up.software,
        )
