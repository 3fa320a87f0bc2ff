"""Say how many people of a roster have opted out, or await consent.

None of them is brought back.
"""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.people.rosters.comparison import Comparison

OPTED_OUT = gettext_noop("This person has opted out and is not invited again")
LISTED = gettext_noop("This person is on a list of opt-outs and is not invited")
AWAITS = gettext_noop(
    "This person awaits consent and can't start before it is recorded"
)


def note_opted_out(c: Comparison) -> dict[str, int]:
    """Return notes for the report. 2 statements, over all opt-outs.

    1 more where consent is required.
    """
    [(people,)] = c.staging.fetch_all(
        """
        SELECT count(*) FROM survey_optout AS o
        JOIN roster_match AS m ON m.respondent_id = o.respondent_id
        WHERE o.ended_at IS NULL
        """
    )
    [(listed,)] = c.staging.fetch_all(
        f"""
        SELECT count(DISTINCT m.row) FROM survey_listedid AS l
        JOIN roster_row AS new ON new.external_id = l.external_id
        JOIN roster_place AS p
          ON p.place = new.place AND p.district_id = l.district_id
         AND (l.school_id IS NULL OR l.school_id = p.school_id)
        JOIN roster_match AS m ON m.row = new.row
        LEFT JOIN {c.staging.people} AS r ON r.id = m.respondent_id
        WHERE l.administration_id = %s AND l.kind = 'opt out'
          AND (m.respondent_id IS NULL OR r.awaits_consent OR r.opted_out_at IS NULL)
        """,  # noqa: S608
        [c.administration.pk],
    )
    notes = {_(OPTED_OUT): int(people), _(LISTED): int(listed)}
    if c.administration.requires_consent:
        notes[_(AWAITS)] = _count_awaiting(c)
    return {note: number for note, number in notes.items() if number}


def _count_awaiting(c: Comparison) -> int:
    """Count people without a consent, also on lists, once the roster is applied."""
    [(people,)] = c.staging.fetch_all(
        f"""
        SELECT count(*) FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        LEFT JOIN {c.staging.people} AS r ON r.id = m.respondent_id
        WHERE (m.respondent_id IS NULL OR r.awaits_consent)
          AND NOT EXISTS (
              SELECT 1 FROM survey_listedid AS l
              WHERE l.administration_id = %s AND l.district_id = p.district_id
                AND l.external_id = new.external_id
                AND (l.school_id IS NULL OR l.school_id = p.school_id))
        """,  # noqa: S608
        [c.administration.pk],
    )
    return int(people)
