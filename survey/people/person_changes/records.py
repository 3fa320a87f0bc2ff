"""Correct, move, withdraw and bring back one person; reopen a finished survey.

The next roster that lists the person decides again: it is what a district keeps up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts import audit
from accounts.models import School, User
from survey.fieldwork.login_cards.card_sets import mark_sets_of_person_outdated
from survey.fieldwork.message_platforms.hooks import people_removed
from survey.models import Identity, Respondent, RosterChange
from survey.people.changes import changes_person
from survey.people.opt_outs.listed_ids import apply_listed_ids
from survey.people.rosters.counted_groups import (
    keep_groups_of_returning,
    keep_groups_of_withdrawn,
)

OF_RESPONDENT = ("grade", "classroom", "school")
OF_IDENTITY = ("given_name", "family_name", "email")
# Figures are about these; see `survey.people.rosters.counted_groups`.
OF_GROUPS = {"grade", "school"}

GONE = gettext_noop(
    "This person is no longer there, or has no name. Nothing was changed."
)
NO_SCHOOL = gettext_noop(
    "This school no longer exists. Nothing was changed. Choose another one."
)
WITHDRAWN = gettext_noop("This person was withdrawn already. Nothing was changed.")
NOT_WITHDRAWN = gettext_noop(
    "This person is invited, or has opted out or was joined with another"
    " record. Nothing was changed."
)


HIDDEN = gettext_noop(
    "Nobody may see who has finished this survey, so it can't be reopened for"
    " one person. Nothing was changed."
)
NOT_FINISHED = gettext_noop(
    "This person has not finished, or no longer. Nothing was changed."
)
CANNOT_GO_ON = gettext_noop(
    "This person cannot go on: the survey has closed, or the person was"
    " withdrawn. Nothing was changed."
)


class PersonConflict(Exception):
    """The person is not as the page showed. The text says so; nothing was changed."""


@changes_person
def correct_person(
    current: Respondent,
    changes: Mapping[str, Any],
    *,
    by: User,
    request: HttpRequest | None = None,
) -> list[str]:
    """Store some of a person's values; return the names of those that differed.

    `changes` has only what somebody changed: another value may have come from a
    roster since the page was loaded. Raises PersonConflict.
    """
    identity = Identity.objects.filter(pk=current.pk).first()
    if identity is None:
        raise PersonConflict(_(GONE))
    of_person = _differing(current, changes, OF_RESPONDENT)
    of_identity = _differing(identity, changes, OF_IDENTITY)
    changed = sorted({*of_person, *of_identity})
    if not changed:
        return []
    before, after = {}, {"administration": str(current.administration)}
    if "school" in of_person:
        school = of_person["school"]
        # Until this is committed, the school is neither deleted nor merged.
        locked = School.objects.select_for_update(no_key=True)
        if not locked.filter(pk=school.pk).exists():
            raise PersonConflict(_(NO_SCHOOL))
        before, after["school"] = {"school": str(current.school)}, str(school)
    if OF_GROUPS.intersection(of_person):
        with connection.cursor() as cursor:
            keep_groups_of_returning(cursor, [current.pk])
    if of_person:
        Respondent.objects.filter(pk=current.pk).update(**of_person)
    if of_identity:
        Identity.objects.filter(pk=current.pk).update(**of_identity)
    if "school" in of_person:
        # The new school may have listed the ID.
        with connection.cursor() as cursor:
            apply_listed_ids(cursor, current.administration, [current.pk])
    _finish(current)
    audit.record(
        "correct a person",
        by=by,
        request=request,
        subject=current,
        school=current.school,
        before=before,
        # Not the values: they are names.
        after={**after, "changed": changed},
    )
    return changed


def _differing(
    row: Respondent | Identity, changes: Mapping[str, Any], names: tuple[str, ...]
) -> dict[str, Any]:
    return {
        name: changes[name]
        for name in names
        if name in changes and getattr(row, name) != changes[name]
    }


@changes_person
def withdraw_person(
    current: Respondent, *, by: User, request: HttpRequest | None = None
) -> None:
    """Withdraw a person until a roster lists them. Raises PersonConflict."""
    if current.withdrawn_at:
        raise PersonConflict(_(WITHDRAWN))
    with connection.cursor() as cursor:
        keep_groups_of_withdrawn(cursor, [current.pk])
    Respondent.objects.filter(pk=current.pk).update(withdrawn_at=timezone.now())
    mark_sets_of_person_outdated(current)
    _finish(current)
    _record("withdraw a person", current, by, request)


@changes_person
def bring_back_person(
    current: Respondent, *, by: User, request: HttpRequest | None = None
) -> None:
    """Let a withdrawn person take part again. Raises PersonConflict.

    Not people who have opted out, and no record that was joined with another one.
    """
    has_name = Identity.objects.filter(pk=current.pk).exists()
    if current.withdrawn_at is None or current.opted_out_at or not has_name:
        raise PersonConflict(_(NOT_WITHDRAWN))
    with connection.cursor() as cursor:
        keep_groups_of_returning(cursor, [current.pk])
    Respondent.objects.filter(pk=current.pk).update(withdrawn_at=None)
    _finish(current)
    _record("bring back a person", current, by, request)


@changes_person
def reopen_survey(
    current: Respondent, *, by: User, request: HttpRequest | None = None
) -> None:
    """Let a person who has finished, or declined, go on. Raises PersonConflict.

    Not where it is confidential who has finished: it would tell.
    """
    administration = current.administration
    if administration.is_completion_confidential:
        raise PersonConflict(_(HIDDEN))
    if not current.completed_at:
        raise PersonConflict(_(NOT_FINISHED))
    if current.withdrawn_at or timezone.now() >= administration.closes_at:
        raise PersonConflict(_(CANNOT_GO_ON))
    Respondent.objects.filter(pk=current.pk).update(completed_at=None, declined_at=None)
    # What message platforms read about finishing is never taken back by writing it.
    people_removed([current.pk])
    _record("reopen a finished survey", current, by, request)


def _finish(person: Respondent) -> None:
    """Let no roster that is undone replace what was changed by hand.

    Undoing still removes a person whom the roster added.
    """
    changes = RosterChange.objects.filter(
        upload__administration=person.administration_id, respondent=person.pk
    ).exclude(change=RosterChange.Change.ADDED)
    uploads = list(changes.values_list("upload", flat=True))
    if uploads:
        rows = RosterChange.objects.filter(upload__in=uploads, respondent=person.pk)
        rows._raw_delete(rows.db)


def _record(
    action: str, person: Respondent, by: User, request: HttpRequest | None
) -> None:
    audit.record(
        action,
        by=by,
        request=request,
        subject=person,
        school=person.school,
        after={"administration": str(person.administration)},
    )
