"""Create, publish, revoke and replace open codes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict, Unpack

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import School, User
from accounts.permissions import Capability, Permissions
from survey.fieldwork.administrations import format_moment, schools_of
from survey.models import (
    Administration,
    Denominator,
    OpenCode,
    OpenCodeFile,
    OpenCodeSeat,
)
from survey.people.access_codes import (
    current_version,
    digest_for,
    format_code,
    open_code_for,
)
from survey.taking.published import published_survey

# Beyond this, one school's codes can't be told apart any more.
MOST_CODES = 50


class CodeRevoked(ValidationError):
    """The code was revoked, and is not handed out again."""


class CodeOptions(TypedDict, total=False):
    label: str
    language: str
    opens_at: datetime | None
    closes_at: datetime | None
    # Most starts; for each, a seat is created. None: unlimited.
    limit: int | None
    # Most starts in an hour. None: by the size of the school.
    hourly_limit: int | None


@transaction.atomic
def create_open_code(
    *,
    administration: Administration,
    school: School,
    by: User | str,
    request: HttpRequest | None = None,
    **options: Unpack[CodeOptions],
) -> OpenCode:
    """Create a code with which anyone can begin in the name of this school.

    `by` is a user or the name of a command.

    Raises PermissionDenied, and ValidationError with a message for each field.
    """
    _check_permission(by, school)
    current = lock_administration(administration)
    check_options(current, options)
    if not schools_of(current).filter(pk=school.pk).exists():
        raise ValidationError(
            {"school": _("It is not offered at %(school)s.") % {"school": school}}
        )
    valid = current.open_codes.filter(school=school, revoked_at=None)
    if valid.count() >= MOST_CODES:
        raise ValidationError(
            _(
                "%(school)s has %(most_codes)s codes already. Revoke one that"
                " is no longer used first."
            )
            % {"school": school, "most_codes": MOST_CODES}
        )
    [code] = save_codes(current, [school], by=by, options=options)
    record_action("create open code", code, by, request)
    return code


def lock_administration(administration: Administration) -> Administration:
    """Lock it as when it is changed, so that both don't happen at once."""
    locked = Administration.objects.select_for_update(no_key=True, of=("self",))
    return locked.select_related("district").get(pk=administration.pk)


def check_options(administration: Administration, options: CodeOptions) -> None:
    """Raise ValidationError if no school can have such a code."""
    if administration.denominator != Denominator.COUNT:
        raise ValidationError(
            _(
                "This survey round is for people on a roster, who have"
                " codes of their own. School links need one that anyone can"
                " take part in."
            )
        )
    errors: dict[str, list[str]] = {}
    language = options.get("language", "")
    offered = published_survey(administration.published_id).languages
    if language and language not in offered:
        errors["language"] = [_("Choose one of the languages of the survey.")]
    opens_at, closes_at = options.get("opens_at"), options.get("closes_at")
    # Forms have no seconds.
    first = administration.opens_at.replace(second=0, microsecond=0)
    last = administration.closes_at
    window = _(
        "The survey round is open from %(first)s to %(last)s."
        " Choose a time within, or leave it empty."
    ) % {"first": format_moment(first), "last": format_moment(last)}
    if opens_at and not first <= opens_at < last:
        errors["opens_at"] = [window]
    if closes_at and not first < closes_at <= last:
        errors["closes_at"] = [window]
    elif opens_at and closes_at and closes_at <= opens_at:
        errors["closes_at"] = [_("It has to end after it begins.")]
    not_given = {field.name for field in OpenCode._meta.fields} - options.keys()
    try:
        OpenCode(**options).clean_fields(exclude=not_given)
    except ValidationError as error:
        errors = error.message_dict | errors
    if errors:
        raise ValidationError(errors)


def save_codes(
    administration: Administration,
    schools: Sequence[School],
    *,
    by: User | str,
    options: CodeOptions,
) -> list[OpenCode]:
    """Create a code for each of these schools, with its seats. 3 statements."""
    version = current_version()
    codes = OpenCode.objects.bulk_create(
        OpenCode(
            administration=administration,
            school=school,
            # The code is derived from the key that the row gets.
            code_digest=secrets.token_bytes(32),
            code_key_version=version,
            created_by=by if isinstance(by, User) else None,
            **options,
        )
        for school in schools
    )
    for code in codes:
        code.code_digest = digest_for(code_of(code), version)
    OpenCode.objects.bulk_update(codes, ["code_digest"])
    OpenCodeSeat.objects.bulk_create(
        (
            OpenCodeSeat(open_code=code)
            for code in codes
            for _ in range(code.limit or 0)
        ),
        batch_size=5000,
    )
    return codes


def code_of(code: OpenCode) -> str:
    """Return the code that is printed on posters."""
    return open_code_for(code.pk, code.issue, code.code_key_version)


def link_of(code: OpenCode) -> str:
    """Return the address that begins with this code.

    Browsers do not send the part behind the #, so that codes are in no server's log.
    """
    return f"{settings.PUBLIC_ADDRESS}/open/#{format_code(code_of(code))}"


@transaction.atomic
def revoke_open_code(
    *, code: OpenCode, by: User | str, request: HttpRequest | None = None
) -> OpenCode:
    """End a code for ever. The people who have begun with it can go on."""
    current = _lock(code, by)
    if current.revoked_at is None:
        current.revoked_at = timezone.now()
        current.published_code = ""
        current.save(update_fields=["revoked_at", "published_code"])
        _mark_files_outdated(current)
        record_action("revoke open code", current, by, request)
    return current


@transaction.atomic
def replace_open_code(
    *,
    code: OpenCode,
    by: User | str,
    seen: str | None = None,
    request: HttpRequest | None = None,
) -> OpenCode:
    """Give a code new letters; the old ones start nothing any more.

    `seen` is the issue on the page that was confirmed: the same form sent twice
    replaces the code once, because posters may be printed in between.

    Raises CodeRevoked, and ValidationError for another issue than the one seen.
    """
    current = _lock(code, by)
    if current.revoked_at is not None:
        raise CodeRevoked(_("This code was revoked. Create a new one instead."))
    if seen is not None and seen != str(current.issue):
        raise ValidationError(_("The code was already replaced. Nothing was changed."))
    current.issue += 1
    current.code_key_version = current_version()
    current.code_digest = digest_for(code_of(current), current.code_key_version)
    if current.published:
        current.published_code = code_of(current)
    current.save(
        update_fields=["issue", "code_key_version", "code_digest", "published_code"]
    )
    _mark_files_outdated(current)
    record_action("replace open code", current, by, request)
    return current


@transaction.atomic
def publish_open_code(
    *,
    code: OpenCode,
    by: User | str,
    published: bool = True,
    request: HttpRequest | None = None,
) -> OpenCode:
    """Show a code's link on its school's public page, or show it no more.

    A replaced code stays published, with its new letters; a revoked one does not.

    Raises CodeRevoked.
    """
    current = _lock(code, by)
    if published and current.revoked_at is not None:
        raise CodeRevoked(_("This code was revoked. Create a new one instead."))
    if current.published != published:
        current.published_code = code_of(current) if published else ""
        current.save(update_fields=["published_code"])
        action = "publish open code" if published else "unpublish open code"
        record_action(action, current, by, request)
    return current


def _mark_files_outdated(code: OpenCode) -> None:
    """Mark the files that hold a code that was replaced or revoked."""
    of_place = Q(school=code.school) | Q(
        Q(district=None) | Q(district=code.school.district_id), school=None
    )
    OpenCodeFile.objects.filter(
        Q(open_code=code) | Q(of_place, open_code=None),
        administration=code.administration_id,
        outdated_at=None,
        deleted_at=None,
    ).update(outdated_at=timezone.now())


def _lock(code: OpenCode, by: User | str) -> OpenCode:
    # Starts read the row without a lock, and do not wait.
    current = (
        OpenCode.objects.select_related("school", "administration")
        .select_for_update(of=("self",), no_key=True)
        .get(pk=code.pk)
    )
    _check_permission(by, current.school)
    return current


def _check_permission(by: User | str, school: School) -> None:
    if isinstance(by, User):
        schools = Permissions(by).schools(Capability.MANAGE_ROSTERS)
        if not schools.filter(pk=school.pk).exists():
            raise PermissionDenied


def record_action(
    action: str, code: OpenCode, by: User | str, request: HttpRequest | None
) -> None:
    audit.record(
        action,
        by=by,
        request=request,
        subject=code,
        school=code.school,
        after={
            "administration": code.administration.name,
            "label": code.label,
            "limit": code.limit or "none",
            "hourly limit": code.hourly_limit or "by the size of the school",
            "issue": code.issue,
        },
    )
