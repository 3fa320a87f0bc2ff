"""Follow people whose ID has changed, and refuse files in which everybody's did.

A file with the IDs of another column would invite everybody a second time. Where a
column has the previous IDs, people are found by these and get the new ones.
"""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.models import Administration, RosterUpload
from survey.people.rosters.comparison import Comparison
from survey.people.rosters.staging import ADDED
from survey.people.rosters.unreadable import RosterUnreadable

TWO_ROWS = gettext_noop("and its previous ID mean one person, who is in several rows")
OTHER_PERSON = gettext_noop(
    "belongs to another person on the roster than its previous ID"
)
OTHER_NAME = gettext_noop(
    "belongs to a person on the roster with another name and birth date, and"
    " its previous ID to nobody"
)
# Fewer people can have the same name and birth date by chance.
FEWEST = 2
# What says which IDs an applied roster has: its header, or the settings of its feed.
ID_COLUMNS = (
    "report__columns__external_id",
    "scan__feed__identity",
    "scan__feed__previous_identity",
)


# Reason -> rows that could give a person's answers to somebody else.
_CONFLICTS = {
    TWO_ROWS: """
        SELECT row FROM roster_match WHERE respondent_id IN (
            SELECT respondent_id FROM roster_match
            GROUP BY respondent_id HAVING count(*) > 1)
        """,
    OTHER_PERSON: """
        SELECT new.row FROM roster_row AS new
        JOIN roster_place AS p ON p.place = new.place
        JOIN survey_identity AS i
          ON i.administration_id = {administration} AND i.district_id = p.district_id
         AND i.external_id = new.external_id AND {in_file}
        JOIN survey_identity AS earlier
          ON earlier.administration_id = {administration}
         AND earlier.district_id = p.district_id
         AND earlier.external_id = new.previous_id
        WHERE earlier.respondent_id <> i.respondent_id
        """,
    OTHER_NAME: """
        SELECT new.row FROM roster_row AS new
        JOIN roster_place AS p ON p.place = new.place
        JOIN survey_identity AS i
          ON i.administration_id = {administration} AND i.district_id = p.district_id
         AND i.external_id = new.external_id AND {in_file}
        WHERE new.previous_id NOT IN ('', new.external_id)
          AND i.birth_date <> new.birth_date AND i.family_name <> new.family_name
          AND new.family_name <> ''
        """,
}


def reject_identity_conflicts(c: Comparison) -> None:
    """Reject rows whose new and previous IDs lead to different people."""
    if "previous_id" not in c.columns.fields:
        return
    for reason, query in _CONFLICTS.items():
        conflicts = query.format(
            administration=int(c.administration.pk),
            in_file=c.staging.identities_in_file,
        )
        c.staging.execute("DROP TABLE IF EXISTS roster_conflict")
        c.staging.execute(f"CREATE TEMPORARY TABLE roster_conflict AS {conflicts}")
        c.log_rows(
            "SELECT row, external_id FROM roster_row"
            " WHERE row IN (SELECT row FROM roster_conflict)"
            " AND row > %s ORDER BY row LIMIT %s",
            "external_id",
            _(reason),
        )
        rejected = "row IN (SELECT row FROM roster_conflict)"
        c.staging.remove_rejected_rows(rejected)
        c.staging.execute(f"DELETE FROM roster_match WHERE {rejected}")  # noqa: S608


def refuse_other_identifiers(c: Comparison) -> None:
    """Raise RosterUnreadable if most people are on the roster under other IDs.

    Only people count whose name and birth date nobody else has.
    """
    fields = c.columns.fields
    has_names = "name" in fields or {"given_name", "family_name"} <= fields.keys()
    [(people, added)] = c.staging.fetch_all(
        f"SELECT count(*), count(CASE WHEN change = '{ADDED}' THEN 1 END)"  # noqa: S608
        " FROM roster_match"
    )
    if not has_names or added < FEWEST or 2 * added <= people:
        return
    same = "i.birth_date = new.birth_date"
    if "birth_date" not in fields:
        same = "r.school_id = p.school_id"
    [(doubled,)] = c.staging.fetch_all(
        f"""
        SELECT count(*) FROM (
            SELECT 1
            FROM roster_match AS m
            JOIN roster_row AS new ON new.row = m.row
            JOIN roster_place AS p ON p.place = new.place
            JOIN survey_identity AS i
              ON i.administration_id = %s AND i.district_id = p.district_id
             AND lower(i.family_name) = lower(new.family_name)
             AND lower(i.given_name) = lower(new.given_name)
             AND {c.staging.identities_in_file}
            JOIN {c.staging.people} AS r ON r.id = i.respondent_id
            WHERE m.change = '{ADDED}' AND {same} AND new.family_name <> ''
              AND NOT EXISTS (
                  SELECT 1 FROM roster_match AS other
                  WHERE other.respondent_id = i.respondent_id)
            GROUP BY p.district_id, lower(new.family_name), lower(new.given_name),
                     new.birth_date
            HAVING count(*) = 1
        ) AS people
        """,  # noqa: S608
        [c.administration.pk],
    )
    if doubled < FEWEST or 2 * doubled <= people:
        return
    id_here = c.table.id_name or name_of_id(c.columns.heading("external_id"))
    raise RosterUnreadable(
        _(
            "%(doubled)s of %(people)s people in this file are on the roster"
            " under another ID, and would be invited twice: %(id_here)s"
            " identifies them here, %(earlier_id)s did before. Choose the"
            " column with the same IDs as before, or name the column with the"
            " previous IDs."
        )
        % {
            "doubled": f"{doubled:,}",
            "people": f"{people:,}",
            "id_here": id_here,
            "earlier_id": name_of_earlier_id(c.administration),
        }
    )


def name_of_earlier_id(administration: Administration) -> str:
    """Name what identified people in the roster that was applied last."""
    applied = RosterUpload.objects.filter(
        administration=administration, state=RosterUpload.State.APPLIED
    )
    columns = applied.order_by("-ended_at", "-pk").values_list(*ID_COLUMNS).first()
    if columns is None or not columns[0]:
        return _("another column")
    return name_of_id(*columns)


def name_of_id(
    header: str, identity: str | None = None, previous_identity: str | None = None
) -> str:
    """Name a column of IDs in the words of its source, a file or a feed.

    The previous identity of a feed counts until a scan has told both IDs of everybody.
    """
    if kind := previous_identity or identity:
        name, _colon, id_type = kind.partition(":")
        if not id_type:
            return _("the nightly roster sync's ID (%(name)s)") % {"name": name}
        return _("the nightly roster sync's ID (%(name)s, type %(type)s)") % {
            "name": name,
            "type": id_type,
        }
    return f"“{header}”"
