"""Say how many people of a roster have opted out: none of them is brought back."""

from __future__ import annotations

from survey.rosters.staging import Staging

OPTED_OUT = "This person has opted out and is not invited again"


def note_opted_out(staging: Staging) -> dict[str, int]:
    """Return a note for the report, or none. 1 statement, over all opt-outs."""
    [(people,)] = staging.fetch_all(
        """
        SELECT count(*) FROM survey_optout AS o
        JOIN roster_match AS m ON m.respondent_id = o.respondent_id
        WHERE o.ended_at IS NULL
        """
    )
    return {OPTED_OUT: int(people)} if people else {}
