"""Ask which known school an unknown one of a roster is, and store the answers.

The check lists schools that it would create, or whose rows it rejects. A person
chooses a known school for them, which counts for this file only, and the file is
checked again. Every check asks anew whether the school lies in the upload's scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import School, User
from accounts.permissions import Permissions
from survey.models import RosterUpload
from survey.people.rosters.dry_run import FILE_DELETED, NOT_PERMITTED, check_roster
from survey.people.rosters.layouts import NEW_SCHOOL, PlaceTexts, RosterLayout
from survey.people.rosters.school_questions import key_of_places
from survey.people.rosters.scope import (
    RosterScope,
    schools_to_choose,
    scope_of_upload,
)
from survey.people.rosters.upload_state import (
    UploadConflict,
    change_state,
    record_action,
)
from survey.people.rosters.uploads import refuse_of_scan, unchecked
from survey.work.jobs import start

State = RosterUpload.State
# Schools that one search shows.
MOST_FOUND = 10
FIGURES_CHANGED = gettext_noop(
    "The schools to check have changed. Look at them again before you choose."
)
NOT_TO_CHOOSE = gettext_noop(
    "You can't upload people of one of these schools, or it is closed. Choose another"
    " school."
)


def find_schools(scope: RosterScope, query: str) -> list[School]:
    """Search by name, code or district; each word must be in one of them."""
    schools = schools_to_choose(scope).select_related("district")
    for word in query.replace("\x00", "").split():
        schools = schools.filter(
            Q(name__icontains=word)
            | Q(code__iexact=word)
            | Q(district__name__icontains=word)
        )
    return list(schools[: MOST_FOUND + 1])


def may_choose_schools(upload: RosterUpload) -> bool:
    return upload.state == State.CHECKED and not upload.scan_id and bool(upload.file)


@transaction.atomic
def choose_schools(
    upload: RosterUpload,
    chosen: Mapping[str, int],
    *,
    by: User,
    request: HttpRequest | None = None,
) -> None:
    """Put the people of unknown schools into known ones, and check the file again.

    `chosen` are the primary keys of schools, or NEW_SCHOOL, by the keys of the
    report's questions. Raises UploadConflict.
    """
    questions = {
        question["key"]: question
        for question in upload.report.get("school_questions", ())
    }
    if not chosen or not chosen.keys() <= questions.keys():
        raise UploadConflict(_(FIGURES_CHANGED))
    scope = scope_of_upload(upload, Permissions(by))
    if scope is None:
        raise UploadConflict(_(NOT_PERMITTED))
    wanted = set(chosen.values()) - {NEW_SCHOOL}
    allowed = schools_to_choose(scope).filter(pk__in=wanted)
    is_rejected = any(
        pk == NEW_SCHOOL and questions[key]["reason"] for key, pk in chosen.items()
    )
    if is_rejected or {school.pk for school in allowed} != wanted:
        raise UploadConflict(_(NOT_TO_CHOOSE))
    layout = RosterLayout.from_dict(upload.layout)
    schools = dict(layout.schools)
    for key, pk in chosen.items():
        schools |= dict.fromkeys(map(tuple, questions[key]["places"]), pk)
    _check_with(upload, schools, by=by, request=request)


@transaction.atomic
def undo_choice(
    upload: RosterUpload, key: str, *, by: User, request: HttpRequest | None = None
) -> None:
    """Forget the school that was chosen for one spelling, and check the file again.

    Raises UploadConflict.
    """
    schools = RosterLayout.from_dict(upload.layout).schools
    remaining = {
        texts: pk for texts, pk in schools.items() if key_of_places([texts]) != key
    }
    if remaining == schools:
        raise UploadConflict(_(FIGURES_CHANGED))
    _check_with(upload, remaining, by=by, request=request)


def _check_with(
    upload: RosterUpload,
    schools: Mapping[PlaceTexts, int],
    *,
    by: User,
    request: HttpRequest | None,
) -> None:
    refuse_of_scan(upload)
    if not upload.file:
        raise UploadConflict(_(FILE_DELETED))
    layout = replace(RosterLayout.from_dict(upload.layout), schools=schools)
    change_state(
        upload,
        allowed=(State.CHECKED,),
        values={**unchecked(), "layout": layout.as_dict()},
    )
    record_action(
        "choose schools of a roster",
        upload,
        by=by,
        request=request,
        schools=sorted(set(schools.values()) - {NEW_SCHOOL}),
    )
    start(check_roster, subject_id=upload.pk, by=by)
