"""Keep the groups in which people counted before a roster changes them.

Only in administrations that have opened; see `CountedGroup`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from django.db import connection
from django.utils import timezone

from survey.models import Respondent
from survey.people.rosters.diff import RosterDiff, any_column_differs
from survey.people.rosters.staging import Staging, sql_keys


class Writer(Protocol):
    """A cursor, or the temporary tables of a batch."""

    def execute(self, sql: str, params: Sequence[str | None], /) -> object: ...


# A second change keeps the groups in which the person still counts. A Citus cluster
# sends the people of a batch, `new`, to its nodes, instead of reading all people.
_KEEP = """
    INSERT INTO survey_countedgroup (
        respondent_id, administration_id, school_id, grade, language, attributes,
        withdrawn_at, cohort, changed_at
    )
    {batch}
    SELECT r.id, r.administration_id, {school}, r.grade, r.language, r.attributes,
           r.withdrawn_at, 0, %s
    FROM survey_respondent AS r
    JOIN survey_administration AS a
      ON a.id = r.administration_id AND a.opens_at <= %s
    {people}
    ON CONFLICT (respondent_id) DO UPDATE SET changed_at = excluded.changed_at
    """
_COUNTED_SCHOOL = "CASE WHEN r.withdrawn_at IS NULL THEN r.school_id END"


def schools_with_people(diff: RosterDiff) -> list[int]:
    """Return the schools in which the file's new people do not count at once.

    The first people of a school do: nobody else's number can be subtracted from
    theirs. Empty before the opening.
    """
    if diff.administration.opens_at > timezone.now():
        return []
    schools = [school.school_id for school in diff.report.schools if school.added]
    # Withdrawn people count for a while.
    people = diff.administration.respondents.on_roster().filter(school__in=schools)
    return list(people.values_list("school", flat=True).distinct())


def keep_groups_of_new(writer: Staging, schools: Sequence[int]) -> None:
    """Store that the people of `roster_new` in these schools don't count yet."""
    if schools:
        keys = sql_keys(schools)
        _keep(
            writer,
            "NULL",
            f"JOIN new ON new.respondent_id = r.id WHERE r.school_id IN ({keys})",
            "roster_new",
        )


def keep_group_of_added(writer: Writer, person: Respondent) -> None:
    """Store that a person who was added by hand doesn't count yet.

    As with rosters, the first people of a school do at once.
    """
    people = Respondent.objects.on_roster().filter(
        administration=person.administration_id, school=person.school_id
    )
    if people.exclude(pk=person.pk).exists():
        _keep(writer, "NULL", f"WHERE r.id = {int(person.pk)}")


def keep_groups_of_changed(
    writer: Staging, columns: Sequence[str], *, are_back: bool
) -> None:
    """Keep the groups of the people in `roster_batch` whose groups change."""
    shown = [name for name in columns if name != "classroom"]
    changes = "1 = 1" if are_back else any_column_differs("r", shown, writer)
    people = f"JOIN new ON new.respondent_id = r.id WHERE {changes}"
    _keep(writer, _COUNTED_SCHOOL, people, "roster_batch")


def keep_groups_of_withdrawn(writer: Writer, respondents: Sequence[int]) -> None:
    people = f"WHERE r.id IN ({sql_keys(respondents)}) AND r.withdrawn_at IS NULL"
    _keep(writer, _COUNTED_SCHOOL, people)


def keep_groups_of_returning(writer: Writer, respondents: Sequence[int]) -> None:
    _keep(writer, _COUNTED_SCHOOL, f"WHERE r.id IN ({sql_keys(respondents)})")


def _keep(writer: Writer, school: str, people: str, batch: str = "") -> None:
    """Keep the groups of people, whose SQL may join the rows of a table as `new`."""
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    joined = ""
    if batch:
        joined = f"WITH new AS MATERIALIZED (SELECT * FROM {batch})"  # noqa: S608
    writer.execute(_KEEP.format(batch=joined, school=school, people=people), [now, now])
