"""Record what an upload does to each person, so that it can be undone.

Each function runs in the transaction of the batch that it records, before the batch
is written. Where an interrupted upload is applied again, the first record of a
person stays, with the data from before the upload.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.models import Administration, RosterChange, RosterUndo, RosterUpload
from survey.people.rosters.diff import RosterDiff
from survey.people.rosters.staging import Staging, sql_keys

BEING_UNDONE = gettext_noop(
    "A roster of this survey round is being undone. Start this again when"
    " that is finished."
)
# Rows deleted in one transaction.
DELETED_AT_ONCE = 20_000

_INSERT = "INSERT INTO survey_rosterchange (upload_id, respondent_id, change"
_EARLIER = """
    school_id, grade, classroom, language, attributes, external_id, given_name,
    family_name, email, birth_date, withdrawn_at
    """


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """The record of one upload."""

    upload_id: int

    def begin(self, diff: RosterDiff) -> None:
        """Store which schools the file is about. Call it before the first change."""
        undo, _ = RosterUndo.objects.get_or_create(upload_id=self.upload_id)
        listed = {row.school_id for row in diff.report.schools if row.school_id > 0}
        undo.schools = sorted(listed.union(undo.schools))
        undo.save(update_fields=["schools"])

    def add_places(self, districts: Collection[int], schools: Collection[int]) -> None:
        """Store the districts and schools that the file has created."""
        undo = RosterUndo.objects.get(upload_id=self.upload_id)
        undo.schools = sorted({*undo.schools, *schools})
        undo.new_schools = sorted({*undo.new_schools, *schools})
        undo.new_districts = sorted({*undo.new_districts, *districts})
        undo.save(update_fields=["schools", "new_schools", "new_districts"])

    def add_new_people(self, writer: Staging) -> None:
        """Record the people of `roster_new`."""
        writer.execute(
            f"{_INSERT}) SELECT %s, respondent_id, 'a' FROM roster_new"  # noqa: S608
            " WHERE 1 = 1 ON CONFLICT DO NOTHING",
            [self.upload_id],
        )

    def add_changed_people(self, writer: Staging, change: str) -> None:
        """Record the people of `roster_batch` as they are now."""
        writer.execute(
            f"""
            {_INSERT}, {_EARLIER})
            WITH i AS MATERIALIZED (
                SELECT i.* FROM roster_batch AS new
                JOIN survey_identity AS i ON i.respondent_id = new.respondent_id
            )
            SELECT %s, r.id, %s, r.school_id, r.grade, r.classroom, r.language,
                   r.attributes, i.external_id, i.given_name, i.family_name, i.email,
                   i.birth_date, r.withdrawn_at
            FROM survey_respondent AS r JOIN i ON i.respondent_id = r.id
            WHERE 1 = 1 ON CONFLICT DO NOTHING
            """,  # noqa: S608
            [self.upload_id, change],
        )

    def add_withdrawn_people(self, writer: Staging, people: Sequence[int]) -> None:
        writer.execute(
            f"""
            {_INSERT})
            SELECT %s, id, 'w' FROM survey_respondent
            WHERE id IN ({sql_keys(people)}) AND withdrawn_at IS NULL
            ON CONFLICT DO NOTHING
            """,  # noqa: S608
            [self.upload_id],
        )


def forget_changes_of(administration: Administration) -> None:
    """Let no earlier roster of an administration be undone.

    For imports without an upload: nobody records what they change.
    """
    uploads = RosterUpload.objects.filter(administration=administration)
    forget_changes(uploads.filter(undo__isnull=False, undo__ended_at=None))


def forget_changes(uploads: QuerySet[RosterUpload]) -> None:
    """Delete the records of uploads, many people at a time."""
    for pk in list(uploads.values_list("pk", flat=True)):
        # First, so that nobody begins to undo what is half deleted.
        RosterUndo.objects.filter(upload=pk, ended_at=None).delete()
        rows = RosterChange.objects.filter(upload=pk).order_by("respondent")
        while last := list(rows.values_list("respondent", flat=True)[:DELETED_AT_ONCE])[
            -1:
        ]:
            rows.filter(respondent__lte=last[0])._raw_delete(rows.db)


def refuse_while_undoing(administration: Administration) -> str:
    """Return a message if a roster is half undone; call it under the roster lock."""
    undoing = administration.rosters.filter(state=RosterUpload.State.UNDOING)
    return _(BEING_UNDONE) if undoing.exists() else ""
