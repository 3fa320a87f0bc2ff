"""Reject rows that only look wrong next to other rows or to known people.

Single cells were checked before, by `rosters.row_parser`. Each check logs the
rows it rejects, and removes them from the temporary tables.
"""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.people.rosters.comparison import Comparison
from survey.people.rosters.scope import OTHER_ADDRESS, OTHER_SCHOOL
from survey.people.rosters.staging import ADDED, sql_keys


def reject_repeated_people(c: Comparison, *, by_matched_district: bool = False) -> None:
    """Reject all rows of a person but the first; a person is an ID in a district.

    Districts are compared as the file writes them. With `by_matched_district`,
    after they were looked up, people are also found who are listed under the
    code of a district and under its name.
    """
    rows, district = "roster_row", "district"
    if by_matched_district:
        [(spellings, districts)] = c.staging.fetch_all(
            "SELECT count(*), count(DISTINCT district_id) FROM roster_district"
        )
        if spellings == districts:
            return
        rows, district = "roster_row JOIN roster_place USING (place)", "district_id"
    c.staging.execute("DROP TABLE IF EXISTS roster_duplicate")
    c.staging.execute(
        f"""
        CREATE TEMPORARY TABLE roster_duplicate AS
        SELECT row, first, external_id FROM (
            SELECT row, external_id,
                   min(row) OVER (PARTITION BY {district}, external_id) AS first
            FROM {rows}
        ) AS ranked
        WHERE row > first
        """  # noqa: S608
    )
    c.staging.execute("CREATE INDEX roster_duplicate_row ON roster_duplicate (row)")

    def reason(first: int) -> str:
        words = _("is the same as in row %(first)s, in the same district")
        return words % {"first": first}

    c.log_rows(
        "SELECT row, external_id, first FROM roster_duplicate"
        " WHERE row > %s ORDER BY row LIMIT %s",
        "external_id",
        reason,
    )
    c.staging.execute(
        "DELETE FROM roster_row WHERE row IN (SELECT row FROM roster_duplicate)"
    )


# With 20 times as many dates of one order, the others are taken for mistakes;
# with fewer, the file was probably put together from two.
_MAJORITY = 20

OTHER_ORDER = {
    "month first": gettext_noop(
        "is not a date if read month first, like the other rows"
    ),
    "day first": gettext_noop("is not a date if read day first, like the other rows"),
}
ORDER_READ = {
    "month first": gettext_noop(
        "%(heading)s: dates such as 3/4/2015 were read month first"
    ),
    "day first": gettext_noop(
        "%(heading)s: dates such as 3/4/2015 were read day first"
    ),
}
# Order -> mark the rows for which it is impossible (place = -1), and decide
# the others.
_APPLY_DATE_ORDER = {
    "month first": """
        UPDATE roster_row SET place = -1
        WHERE birth_date IS NULL AND birth_date_day_first IS NOT NULL
        """,
    "day first": """
        UPDATE roster_row
        SET birth_date = birth_date_day_first,
            place = CASE WHEN birth_date IS NOT NULL AND birth_date_day_first IS NULL
                         THEN -1 ELSE place END
        WHERE birth_date IS NOT NULL OR birth_date_day_first IS NOT NULL
        """,
    "": """
        UPDATE roster_row
        SET birth_date = coalesce(birth_date, birth_date_day_first),
            place = CASE WHEN birth_date <> birth_date_day_first THEN -1 ELSE place END
        WHERE birth_date IS NULL AND birth_date_day_first IS NOT NULL
           OR birth_date <> birth_date_day_first
        """,
}


def settle_date_order(c: Comparison) -> dict[str, int]:
    """Decide whether 3/4/2015 is in March or April, and reject what contradicts.

    Unless a person has said it in the layout, dates that can be read in one way
    only decide for the whole file. Return a note for the report, with the number of
    dates that were ambiguous.
    """
    if "birth_date" not in c.columns.fields:
        return {}
    [(months, days, ambiguous)] = c.staging.fetch_all(
        """
        SELECT count(CASE WHEN birth_date_day_first IS NULL THEN birth_date END),
               count(CASE WHEN birth_date IS NULL THEN birth_date_day_first END),
               count(CASE WHEN birth_date <> birth_date_day_first THEN 1 END)
        FROM roster_row
        """
    )
    order, day_first = "", c.table.layout.day_first
    reason = _("could be two dates: some rows have the month first, others the day")
    if day_first is not None:
        order = "day first" if day_first else "month first"
    elif months >= days * _MAJORITY:
        order = "month first"
    elif days > months * _MAJORITY:
        order = "day first"
    if order:
        reason = _(OTHER_ORDER[order])
    c.staging.execute(_APPLY_DATE_ORDER[order])
    c.log_rows(
        "SELECT row, '' FROM roster_row WHERE place = -1"
        " AND row > %s ORDER BY row LIMIT %s",
        "birth_date",
        reason,
    )
    c.staging.remove_rejected_rows("place = -1")
    if ambiguous and order:
        heading = c.columns.heading("birth_date")
        return {_(ORDER_READ[order]) % {"heading": heading}: ambiguous}
    return {}


def reject_lost_zeros(c: Comparison) -> None:
    """Reject a new person 123 if 00123 is already on the roster.

    Excel drops the zeros when it opens a CSV file, so everyone would be there
    twice. A file with both IDs means two people.
    """
    visible = "TRUE"
    if c.scope.is_single_schools:
        # IDs of other schools must not be found out by trying them without zeros.
        visible = f"r.school_id IN ({sql_keys(c.scope.places.schools)})"
    c.staging.execute(
        f"""
        CREATE TEMPORARY TABLE roster_lost_zero AS
        SELECT new.row, new.external_id, min(i.external_id) AS known, new.district,
               min(CASE WHEN {visible} THEN i.external_id END) AS shown
        FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        JOIN survey_identity AS i
          ON i.administration_id = %s AND i.district_id = p.district_id
         AND ltrim(i.external_id, '0') = ltrim(new.external_id, '0')
         AND {c.staging.identities_in_file}
        JOIN {c.staging.people} AS r ON r.id = i.respondent_id
        WHERE m.change = '{ADDED}' AND NOT EXISTS (
            SELECT 1 FROM roster_match
            WHERE roster_match.respondent_id = i.respondent_id)
        GROUP BY new.row, new.external_id, new.district
        """,  # noqa: S608
        [c.administration.pk],
    )
    c.staging.execute("CREATE INDEX roster_lost_zero_row ON roster_lost_zero (row)")

    def reason(shown: str | None) -> str:
        if shown is None:
            return _(
                "with leading zeros is on another school's roster, or was. Ask your"
                " district to move this person"
            )
        words = _("has lost its leading zeros: %(shown)s is already on the roster")
        return words % {"shown": shown}

    c.log_rows(
        "SELECT row, external_id, shown FROM roster_lost_zero"
        " WHERE row > %s ORDER BY row LIMIT %s",
        "external_id",
        reason,
    )
    # The person with the zeros is not withdrawn.
    c.staging.execute(
        "INSERT INTO roster_exempt SELECT district, known FROM roster_lost_zero"
    )
    c.staging.execute(
        f"DELETE FROM roster_match WHERE change = '{ADDED}'"  # noqa: S608
        " AND row IN (SELECT row FROM roster_lost_zero)"
    )


def reject_people_of_other_schools(c: Comparison) -> None:
    """Reject people who belong to a school that the uploader does not manage.

    Withdrawn people too: they keep their school and their answers. Otherwise a
    coordinator could print anyone's login card by their ID.
    """
    if not c.scope.is_single_schools:
        # People are matched by the district's own IDs, so they come from there.
        return
    # Null, and so never true, for people who are new.
    foreign = f"old_school_id NOT IN ({sql_keys(c.scope.places.schools)})"
    c.log_rows(
        f"""
        SELECT m.row, new.external_id
        FROM roster_match AS m JOIN roster_row AS new ON new.row = m.row
        WHERE m.{foreign} AND m.row > %s ORDER BY m.row LIMIT %s
        """,  # noqa: S608
        "external_id",
        _(OTHER_SCHOOL),
    )
    c.staging.execute(f"DELETE FROM roster_match WHERE {foreign}")  # noqa: S608


def reject_new_addresses(c: Comparison) -> None:
    """Reject a school's changes of addresses to which secret codes are e-mailed.

    Also of people without an address, and of withdrawn people. Otherwise a
    coordinator could have anyone's code sent to an address of their own.
    """
    if not c.scope.is_single_schools or "email" not in c.columns.fields:
        return
    # Where progress is shown, coordinators see the codes of the others anyway.
    people = "1 = 1"
    if not c.administration.is_completion_confidential:
        people = "r.started_at IS NOT NULL"
    c.staging.execute(
        f"""
        CREATE TEMPORARY TABLE roster_new_address AS
        SELECT new.row, new.email
        FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN survey_identity AS i ON i.respondent_id = m.respondent_id
        JOIN {c.staging.people} AS r ON r.id = m.respondent_id
        WHERE i.email <> new.email AND {people}
        """  # noqa: S608
    )
    c.log_rows(
        "SELECT row, email FROM roster_new_address"
        " WHERE row > %s ORDER BY row LIMIT %s",
        "email",
        _(OTHER_ADDRESS),
    )
    rejected = "row IN (SELECT row FROM roster_new_address)"
    c.staging.remove_rejected_rows(rejected)
    c.staging.execute(f"DELETE FROM roster_match WHERE {rejected}")  # noqa: S608
