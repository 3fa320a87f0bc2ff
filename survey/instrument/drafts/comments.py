"""Comments of colleagues on a draft: add, reply, resolve."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import User
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.texts import places_of
from survey.models import DraftComment, Survey


@dataclass(frozen=True, slots=True)
class Thread:
    """A comment with its replies; `place` is "" if the question was deleted."""

    comment: DraftComment
    replies: list[DraftComment]
    place: str


def comments_of(survey: Survey) -> QuerySet[DraftComment]:
    """Return the first comments of all threads."""
    return DraftComment.objects.filter(survey=survey, replies_to=None)


def open_comments(survey: Survey) -> QuerySet[DraftComment]:
    return comments_of(survey).filter(resolved_at=None)


def threads_of(comments: QuerySet[DraftComment], survey: Survey) -> list[Thread]:
    """Return comments with their replies. 2 statements, and those of the reading."""
    places = places_of(read_rows_of(survey, with_pyxform=False))
    known = comments.select_related("by", "resolved_by").prefetch_related("replies__by")
    return [
        Thread(
            comment, [*comment.replies.all()], places.get(("survey", comment.key), "")
        )
        for comment in known
    ]


def is_in(survey: Survey, key: str) -> bool:
    """Return whether a row is there to be commented on."""
    sheet = read_rows_of(survey, with_pyxform=False).book.sheet("survey")
    return not key or any(row.key == key for row in sheet.rows)


def add_comment(
    *,
    survey: Survey,
    key: str,
    text: str,
    by: User,
    replies_to: DraftComment | None = None,
) -> DraftComment:
    """Add a comment. A reply to a resolved comment opens it again."""
    if replies_to is not None:
        set_resolved(replies_to, is_resolved=False, by=by)
    return DraftComment.objects.create(
        survey=survey, key=key, text=text, by=by, replies_to=replies_to
    )


def set_resolved(comment: DraftComment, *, is_resolved: bool, by: User) -> None:
    """Resolve a comment or open it again; the first to resolve it is recorded."""
    rows = DraftComment.objects.filter(pk=comment.pk, replies_to=None)
    if is_resolved:
        rows = rows.filter(resolved_at=None)
        rows.update(resolved_at=timezone.now(), resolved_by=by)
    else:
        rows.update(resolved_at=None, resolved_by=None)
