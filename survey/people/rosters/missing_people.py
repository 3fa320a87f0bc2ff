"""Keep the list of people whom a roster would withdraw, until it is decided on.

Also tell when they are so many that a person has to type their number.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from django.utils.translation import ngettext

from survey.models import RosterMissing, RosterUpload
from survey.models.roster import is_more_than_a_tenth
from survey.people.rosters.batch_writes import write_batch
from survey.people.rosters.diff import RosterDiff
from survey.people.rosters.report import SchoolCounts
from survey.people.rosters.staging import ExportedRows, Staging

AT_ONCE = 50_000
# In the order of the columns.
_TABLE = "survey_rostermissing (upload_id, respondent_id, has_left)"


def store_missing_people(upload: RosterUpload, diff: RosterDiff) -> None:
    """Replace the stored list by that of a comparison.

    The database copies the rows in batches: two million need no more memory.
    """
    forget_missing_people(upload)
    for batch in diff.staging.fetch_in_batches(
        "SELECT row FROM roster_missing WHERE row > %s ORDER BY row LIMIT %s",
        size=AT_ONCE,
    ):
        people = diff.staging.export_rows(
            f"""
            SELECT {int(upload.pk)}, row, has_left FROM roster_missing
            WHERE row BETWEEN %s AND %s
            """,  # noqa: S608
            [batch[0][0], batch[-1][0]],
        )
        write_batch(partial(_insert, people))


def _insert(people: ExportedRows, writer: Staging) -> tuple[None, tuple[()]]:
    writer.import_batch(people, _TABLE)
    return None, ()


def forget_missing_people(upload: RosterUpload) -> None:
    """Delete the stored list, in batches."""
    stored = RosterMissing.objects.filter(upload=upload)
    ids = stored.order_by("respondent_id").values_list("respondent_id", flat=True)
    while last := ids[AT_ONCE - 1 : AT_ONCE].first():
        stored.filter(respondent_id__lte=last).delete()
    stored.delete()


def number_not_shown(upload: RosterUpload, diff: RosterDiff) -> int:
    """Count people to withdraw who are not on the stored list."""
    [(number,)] = diff.staging.fetch_all(
        """
        SELECT count(*) FROM roster_missing AS m
        WHERE NOT EXISTS (
            SELECT 1 FROM survey_rostermissing AS shown
            WHERE shown.upload_id = %s AND shown.respondent_id = m.row)
        """,
        [upload.pk],
    )
    return int(number)


def withdraws_many(schools: list[SchoolCounts]) -> bool:
    """Tell whether more than a tenth of any school or district is withdrawn."""
    people: Counter[int] = Counter()
    withdrawn: Counter[int] = Counter()
    for school in schools:
        if is_more_than_a_tenth(school.withdrawn, school.people):
            return True
        people[school.district_id] += school.people
        withdrawn[school.district_id] += school.withdrawn
    return any(
        is_more_than_a_tenth(number, people[pk]) for pk, number in withdrawn.items()
    )


def many_withdrawn(withdrawn: int) -> str:
    """Say why a roster waits for a confirmation."""
    return ngettext(
        "%(withdrawn)s person would be withdrawn, more than a tenth of a"
        " school or of the district.",
        "%(withdrawn)s people would be withdrawn, more than a tenth of a"
        " school or of the district.",
        withdrawn,
    ) % {"withdrawn": f"{withdrawn:,}"}
