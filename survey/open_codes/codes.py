"""Create, publish, revoke and replace open codes."""

from __future__ import annotations

import secrets
from datetime import datetime

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import School, User
from accounts.permissions import Capability, Permissions
from survey.access_codes import current_version, digest_for, open_code_for
from survey.administrations.queries import schools_offered
from survey.models import Administration, Denominator, OpenCode, OpenCodeSeat
from survey.taking.published import published_survey


class CodeRevoked(ValidationError):
    """The code was revoked, and is not handed out again."""


@transaction.atomic
def create_open_code(
    *,
    administration: Administration,
    school: School,
    by: User | str,
    label: str = "",
    language: str = "",
    opens_at: datetime | None = None,
    closes_at: datetime | None = None,
    limit: int | None = None,
    request: HttpRequest | None = None,
) -> OpenCode:
    """Create a code with which anyone can begin in the name of this school.

    With `limit`, also the seats that its starts take. `by` is a user or the name
    of a command.

    Raises PermissionDenied, and ValidationError with a message for each field.
    """
    _check_permission(by, school)
    # Locked as when it is changed, so that both don't happen at once.
    current = Administration.objects.select_for_update(no_key=True).get(
        pk=administration.pk
    )
    if current.denominator != Denominator.COUNT:
        raise ValidationError(
            "This administration is for people on a roster, who have codes of their"
            " own. Open codes need one that anyone can take part in."
        )
    offered = schools_offered(
        current.district, current.districts.all(), current.schools.all()
    )
    if not offered.filter(pk=school.pk).exists():
        raise ValidationError({"school": f"It is not offered at {school}."})
    if language and language not in published_survey(current.published_id).languages:
        raise ValidationError(
            {"language": "Choose one of the languages of the survey."}
        )
    version = current_version()
    code = OpenCode(
        administration=current,
        school=school,
        label=label,
        language=language,
        opens_at=opens_at,
        closes_at=closes_at,
        limit=limit,
        # The code is derived from the key that the row gets.
        code_digest=secrets.token_bytes(32),
        code_key_version=version,
        created_by=by if isinstance(by, User) else None,
    )
    if opens_at and closes_at and closes_at <= opens_at:
        raise ValidationError({"closes_at": "It has to end after it begins."})
    code.full_clean()
    code.save(force_insert=True)
    code.code_digest = digest_for(code_of(code), version)
    code.save(update_fields=["code_digest"])
    if limit:
        OpenCodeSeat.objects.bulk_create(
            OpenCodeSeat(open_code=code) for _ in range(limit)
        )
    _record("create open code", code, by, request)
    return code


def code_of(code: OpenCode) -> str:
    """Return the code that is printed on posters."""
    return open_code_for(code.pk, code.issue, code.code_key_version)


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
        _record("revoke open code", current, by, request)
    return current


@transaction.atomic
def replace_open_code(
    *, code: OpenCode, by: User | str, request: HttpRequest | None = None
) -> OpenCode:
    """Give a code new letters; the old ones start nothing any more.

    Raises CodeRevoked.
    """
    current = _lock(code, by)
    if current.revoked_at is not None:
        raise CodeRevoked("This code was revoked. Create a new one instead.")
    current.issue += 1
    current.code_key_version = current_version()
    current.code_digest = digest_for(code_of(current), current.code_key_version)
    if current.published:
        current.published_code = code_of(current)
    current.save(
        update_fields=["issue", "code_key_version", "code_digest", "published_code"]
    )
    _record("replace open code", current, by, request)
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
        raise CodeRevoked("This code was revoked. Create a new one instead.")
    if current.published != published:
        current.published_code = code_of(current) if published else ""
        current.save(update_fields=["published_code"])
        action = "publish open code" if published else "unpublish open code"
        _record(action, current, by, request)
    return current


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


def _record(
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
            "issue": code.issue,
        },
    )
