"""Create and revoke platforms, and rotate their API keys."""

from __future__ import annotations

import hashlib
import secrets

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record_owned
from accounts.models import District, User
from accounts.permissions import Permissions
from survey.fieldwork.message_platforms.hooks import platforms_changed
from survey.fieldwork.message_platforms.rebuild import start_rebuild
from survey.models import MessagePlatform, MessagePlatformKey

# For scanners that look for secrets in public repositories.
KEY_PREFIX = "gsmp_"
SLOTS = (1, 2)


@transaction.atomic
def create_platform(
    *,
    name: str,
    district: District | None,
    by: User | str,
    request: HttpRequest | None = None,
) -> MessagePlatform:
    """Register a platform for a district's people, or with None for everybody.

    It can ask for nothing until it has an API key. `by` is a user or the name of a
    command. Raises PermissionDenied and
    ValidationError.
    """
    _check_permission(by, district.pk if district else None)
    platform = MessagePlatform(
        name=name.strip(), district=district, created_by=_user(by)
    )
    platform.full_clean()
    platform.save(force_insert=True)
    record_owned("add message platform", platform, by, request)
    platforms_changed()
    start_rebuild()
    return platform


@transaction.atomic
def create_key(
    *, platform: MessagePlatform, by: User | str, request: HttpRequest | None = None
) -> tuple[MessagePlatformKey, str]:
    """Return a new key's row and the key itself, which can't be shown again.

    Two keys are valid at a time: a third one raises ValidationError. Raises
    PermissionDenied.
    """
    current = _lock(platform, by)
    if current.revoked_at is not None:
        raise ValidationError(_("This platform was removed. Add it again instead."))
    used = set(current.keys.filter(revoked_at=None).values_list("slot", flat=True))
    free = next((slot for slot in SLOTS if slot not in used), None)
    if free is None:
        raise ValidationError(
            _("There are two valid API keys. Revoke the one that is not used any more.")
        )
    text = KEY_PREFIX + secrets.token_urlsafe(32)
    key = MessagePlatformKey.objects.create(
        platform=current,
        slot=free,
        digest=hashlib.sha256(text.encode()).digest(),
        ending=text[-4:],
        created_by=_user(by),
    )
    record_owned(
        "create API key", current, by, request, after={"key": f"…{key.ending}"}
    )
    platforms_changed()
    return key, text


@transaction.atomic
def revoke_key(
    *, key: MessagePlatformKey, by: User | str, request: HttpRequest | None = None
) -> None:
    """End an API key for ever; it works for at most five seconds more."""
    platform = _lock(key.platform, by)
    valid = MessagePlatformKey.objects.filter(pk=key.pk, revoked_at=None)
    if valid.update(revoked_at=timezone.now()):
        record_owned(
            "revoke API key", platform, by, request, after={"key": f"…{key.ending}"}
        )
        platforms_changed()


@transaction.atomic
def remove_platform(
    *, platform: MessagePlatform, by: User | str, request: HttpRequest | None = None
) -> None:
    """End a platform with all its keys, and the keys of people that it has."""
    current = _lock(platform, by)
    if current.revoked_at is None:
        current.revoked_at = timezone.now()
        current.save(update_fields=["revoked_at"])
        current.keys.filter(revoked_at=None).update(revoked_at=current.revoked_at)
        record_owned("remove message platform", current, by, request)
        platforms_changed()


def _lock(platform: MessagePlatform, by: User | str) -> MessagePlatform:
    rows = MessagePlatform.objects.select_related("district")
    current = rows.select_for_update(of=("self",)).get(pk=platform.pk)
    _check_permission(by, current.district_id)
    return current


def _user(by: User | str) -> User | None:
    return by if isinstance(by, User) else None


def _check_permission(by: User | str, district_id: int | None) -> None:
    if isinstance(by, User) and not Permissions(by).may_own(district_id):
        raise PermissionDenied
