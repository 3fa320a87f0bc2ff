"""Find people by the ID of a record that was joined with theirs.

A person who was on the roster under two IDs may be in the next file under either, or
under both. Rows get the ID under which the person is on the roster, before people are
matched: all later checks see one person. See `survey/people/merging/README.md`.
"""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.people.rosters.comparison import Comparison
from survey.people.rosters.scope import OTHER_SCHOOL
from survey.people.rosters.staging import sql_keys

REPEATED = gettext_noop(
    "row left out, because another row has another ID of the same person"
)

# A joined ID and the person's own one. If a roster lists somebody under a joined ID
# after all, it is that person's.
_JOINED = """
    SELECT j.district_id, j.external_id, i.external_id AS known_id, r.school_id
    FROM survey_recordjoin AS j
    JOIN survey_identity AS i
      ON i.respondent_id = j.kept_id AND i.district_id = j.district_id
    JOIN {people} AS r ON r.id = j.kept_id
    WHERE j.administration_id = {administration} AND j.state = 'joined'
      AND NOT EXISTS (
          SELECT 1 FROM survey_identity AS own
          WHERE own.administration_id = j.administration_id
            AND own.district_id = j.district_id AND own.external_id = j.external_id)
    """
_ROWS = """
    SELECT new.row, new.external_id, joined.district_id, joined.known_id,
           joined.school_id
    FROM roster_row AS new
    JOIN roster_place AS p ON p.place = new.place
    JOIN roster_joined AS joined
      ON joined.district_id = p.district_id AND joined.external_id = new.external_id
    """
# The person's own ID is in the file too, or an earlier row has a joined one.
_REPEATED_ROWS = """
    SELECT j.row FROM roster_joined_row AS j
    JOIN roster_row AS own ON own.external_id = j.known_id
    JOIN roster_place AS p ON p.place = own.place AND p.district_id = j.district_id
    UNION
    SELECT j.row FROM roster_joined_row AS j
    JOIN roster_joined_row AS earlier
      ON earlier.known_id = j.known_id AND earlier.district_id = j.district_id
     AND earlier.row < j.row
    """
_REPLACE_IDS = """
    UPDATE roster_row SET external_id = (
        SELECT known_id FROM roster_joined_row AS j WHERE j.row = roster_row.row)
    WHERE row IN (SELECT row FROM roster_joined_row)
    """
_REPLACE_PREVIOUS_IDS = """
    UPDATE roster_row SET previous_id = coalesce((
        SELECT joined.known_id FROM roster_joined AS joined
        JOIN roster_place AS p ON p.district_id = joined.district_id
        WHERE p.place = roster_row.place
          AND joined.external_id = roster_row.previous_id), previous_id)
    WHERE previous_id IN (SELECT external_id FROM roster_joined)
    """
# People whose row was rejected stay, whichever ID it has.
_EXEMPT = """
    INSERT INTO roster_exempt
    SELECT e.district, joined.known_id FROM roster_exempt AS e
    JOIN roster_district AS d ON d.district = e.district
    JOIN roster_joined AS joined
      ON joined.district_id = d.district_id AND joined.external_id = e.external_id
    """
# A system that gave somebody a new ID says that the earlier one has left. The person
# has left when all of the IDs have.
_KEEP_LEAVERS = """
    DELETE FROM roster_left WHERE row IN (
        SELECT gone.row FROM roster_left AS gone
        JOIN roster_place AS p ON p.place = gone.place
        JOIN roster_joined AS joined
          ON joined.district_id = p.district_id AND joined.known_id = gone.external_id
        WHERE NOT EXISTS (
            SELECT 1 FROM roster_left AS other
            JOIN roster_place AS its ON its.place = other.place
            WHERE its.district_id = joined.district_id
              AND other.external_id = joined.external_id))
    """


def replace_joined_ids(c: Comparison) -> dict[str, int]:
    """Replace IDs of joined records by those of the people; return notes.

    Call it once the places of the rows are known. 1 statement if nobody's records
    were joined.
    """
    joins = "SELECT 1 FROM survey_recordjoin WHERE administration_id = %s LIMIT 1"
    if not c.staging.fetch_all(joins, [c.administration.pk]):
        return {}
    joined = _JOINED.format(
        administration=int(c.administration.pk), people=c.staging.people
    )
    c.staging.execute(f"CREATE TEMPORARY TABLE roster_joined AS {joined}")
    c.staging.execute(_EXEMPT)
    c.staging.execute(_KEEP_LEAVERS)
    c.staging.execute(f"CREATE TEMPORARY TABLE roster_joined_row AS {_ROWS}")
    _reject_people_of_other_schools(c)
    repeated = [row for (row,) in c.staging.fetch_all(_REPEATED_ROWS)]
    if repeated:
        rows = f"row IN ({sql_keys(repeated)})"
        c.staging.execute(f"DELETE FROM roster_row WHERE {rows}")  # noqa: S608
        c.staging.execute(f"DELETE FROM roster_joined_row WHERE {rows}")  # noqa: S608
    c.staging.execute(_REPLACE_IDS)
    if "previous_id" in c.columns.fields:
        c.staging.execute(_REPLACE_PREVIOUS_IDS)
    return {_(REPEATED): len(repeated)} if repeated else {}


def _reject_people_of_other_schools(c: Comparison) -> None:
    """Reject them here, because later messages would show the person's other ID."""
    if not c.scope.is_single_schools:
        return
    schools = sql_keys(c.scope.places.schools)
    foreign = f"school_id NOT IN ({schools})"
    c.log_rows(
        f"SELECT row, external_id FROM roster_joined_row WHERE {foreign}"  # noqa: S608
        " AND row > %s ORDER BY row LIMIT %s",
        "external_id",
        _(OTHER_SCHOOL),
    )
    c.staging.remove_rejected_rows(
        f"row IN (SELECT row FROM roster_joined_row WHERE {foreign})"  # noqa: S608
    )
    c.staging.execute(f"DELETE FROM roster_joined_row WHERE {foreign}")  # noqa: S608
