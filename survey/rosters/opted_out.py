"""Say how many people of a roster have opted out: none of them is brought back."""

from __future__ import annotations

from survey.models import Administration
from survey.rosters.staging import Staging

OPTED_OUT = "This person has opted out and is not invited again"
LISTED = "This person is on a list of opt-outs and is not invited"


def note_opted_out(staging: Staging, administration: Administration) -> dict[str, int]:
    """Return notes for the report. 2 statements, over all opt-outs."""
    [(people,)] = staging.fetch_all(
        """
        SELECT count(*) FROM survey_optout AS o
        JOIN roster_match AS m ON m.respondent_id = o.respondent_id
        WHERE o.ended_at IS NULL
        """
    )
    [(listed,)] = staging.fetch_all(
        """
        SELECT count(DISTINCT m.row) FROM survey_listedid AS l
        JOIN roster_row AS new ON new.external_id = l.external_id
        JOIN roster_place AS p
          ON p.place = new.place AND p.district_id = l.district_id
         AND (l.school_id IS NULL OR l.school_id = p.school_id)
        JOIN roster_match AS m ON m.row = new.row
        LEFT JOIN survey_respondent AS r ON r.id = m.respondent_id
        WHERE l.administration_id = %s AND r.opted_out_at IS NULL
        """,
        [administration.pk],
    )
    notes = {OPTED_OUT: int(people), LISTED: int(listed)}
    return {note: number for note, number in notes.items() if number}
