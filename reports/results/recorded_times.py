"""Tell authors of a draft how long people took for an earlier version of it."""

from __future__ import annotations

from reports.models import ResultsRollUp
from survey.instrument.drafts.recorded_times import (
    RecordedTimes,
    reads_recorded_times,
)
from survey.models import Survey

# Releases of the survey that are looked at, the newest first.
MOST_RELEASES = 5


@reads_recorded_times
def times_of_last_release(survey: Survey) -> RecordedTimes | None:
    """Return the times of the last release of the same survey. 1 statement."""
    releases = ResultsRollUp.objects.exclude(released_at=None).filter(
        administration__published__survey__name=survey.name,
        administration__published__survey__district=survey.district_id,
    )
    versions = releases.order_by("-administration__closes_at", "-pk").values_list(
        "layout", "administration__published__survey__version"
    )
    for layout, version in versions[:MOST_RELEASES]:
        if times := layout.get("times"):
            return RecordedTimes(version, times["people"], times["seconds"])
    return None
