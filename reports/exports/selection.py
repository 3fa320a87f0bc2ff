"""Select the people of an export, and the groups they are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accounts.permissions import Places
from survey.models import Administration

# Respondents with the cells of their `CountedGroup`. The cohort is NEVER_COUNTED
# for people who came after the opening and don't count yet.
COUNTED_RESPONDENTS = """(
    SELECT r.id, r.administration_id, r.open_code_id, r.started_at, r.completed_at,
        r.opted_out_at, r.response_language,
        coalesce(c.school_id, r.school_id) AS school_id,
        CASE WHEN c.respondent_id IS NULL THEN r.grade ELSE c.grade END AS grade,
        CASE WHEN c.respondent_id IS NULL THEN r.language ELSE c.language END
        AS language,
        CASE WHEN c.respondent_id IS NULL THEN r.attributes ELSE c.attributes END
        AS attributes,
        CASE WHEN c.respondent_id IS NULL THEN r.withdrawn_at ELSE c.withdrawn_at END
        AS withdrawn_at,
        CASE WHEN c.respondent_id IS NULL THEN 0
             WHEN c.school_id IS NULL AND c.cohort = 0 THEN -1
             ELSE c.cohort END AS cohort
    FROM survey_respondent r
    LEFT JOIN survey_countedgroup c ON c.respondent_id = r.id
)"""
NEVER_COUNTED = -1


@dataclass(frozen=True, slots=True)
class Selection:
    """Select the people in these places who have started and not opted out.

    All exports, and all counts of people in them, ask here who is in a file.
    """

    administrations: Sequence[Administration]
    places: Places
    finished_only: bool = False
    # Whether the file keeps its minimum group: then changes of rosters show in it
    # as late as in response rates.
    without_names: bool = False
    # The console may not read responses. It counts starts with an open code although
    # they may have no answer.
    reads_responses: bool = True

    def shows_counted(self, administration: Administration) -> bool:
        return self.without_names and administration.minimum_group > 1

    def respondents(self, administration: Administration) -> str:
        """Return the table to read as `r`."""
        counted = self.shows_counted(administration)
        return COUNTED_RESPONDENTS if counted else "survey_respondent"

    def cohort(self, administration: Administration) -> str:
        return "r.cohort" if self.shows_counted(administration) else "0"

    def people(self, administration: Administration) -> str:
        """Return a condition on the table `r`.

        It is built from whole numbers only, so nothing can be injected.
        """
        conditions = [
            f"r.administration_id = {int(administration.pk)}",
            "r.started_at IS NOT NULL",
            # A parent, or the person, has refused.
            "r.opted_out_at IS NULL",
        ]
        if self.reads_responses:
            # A start with an open code may be a look at the first page, or a
            # program's.
            conditions.append(
                "(r.open_code_id IS NULL OR EXISTS (SELECT 1 FROM survey_response e"  # noqa: S608
                f" WHERE e.administration_id = {int(administration.pk)}"
                " AND e.respondent_id = r.id))"
            )
        if self.finished_only:
            conditions.append("r.completed_at IS NOT NULL")
        if not self.places.state:
            conditions.append(
                "r.school_id IN (SELECT s.id FROM accounts_school s"  # noqa: S608
                f" WHERE s.district_id IN ({_numbers(self.places.districts)})"
                f" OR s.id IN ({_numbers(self.places.schools)}))"
            )
        return " AND ".join(conditions)


def _numbers(keys: frozenset[int]) -> str:
    # An empty list is no SQL, and nothing is in (NULL).
    return ", ".join(str(int(key)) for key in sorted(keys)) or "NULL"
