"""Waves: groups of administrations that are compared with each other over time.

The state or a district owns a wave, and its administrators rename and delete
it. Districts may put their own administrations into the state's waves. A wave
is only a name; it gives no access to other administrations in it.
"""

from __future__ import annotations

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.deletion import ProtectedError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.audit import record_owned
from accounts.models import District, User
from accounts.permissions import Capability, Permissions
from survey.fieldwork.administrations import ChangeBlocked
from survey.models import Wave

MAX_NAME_LENGTH = 200


def waves_for(permissions: Permissions) -> QuerySet[Wave]:
    """Return the waves that the user's administrations may be put into."""
    places = permissions.places(Capability.MANAGE_SURVEYS)
    if places.state:
        return Wave.objects.all()
    if not places.districts:
        return Wave.objects.none()
    return Wave.objects.filter(Q(district=None) | Q(district__in=places.districts))


def may_manage_wave(permissions: Permissions, wave: Wave) -> bool:
    return permissions.may_own(wave.district_id)


def create_wave(
    *,
    name: str,
    district: District | None = None,
    by: User | str,
    request: HttpRequest | None = None,
) -> Wave:
    """Raises PermissionDenied, and ValidationError for a name that is taken."""
    wave = Wave(name=clean_name(name), district=district)
    _check_may_manage(by, wave)
    _save(wave)
    record_owned("create wave", wave, by, request, after={"name": wave.name})
    return wave


def get_or_create_wave(
    *,
    name: str,
    district: District | None = None,
    by: User | str,
    request: HttpRequest | None = None,
) -> Wave:
    """Return the owner's wave of this name, ignoring case; create it if needed."""
    wave = Wave.objects.filter(name__iexact=clean_name(name), district=district).first()
    return wave or create_wave(name=name, district=district, by=by, request=request)


@transaction.atomic
def rename_wave(
    *, wave: Wave, name: str, by: User | str, request: HttpRequest | None = None
) -> None:
    """Raises PermissionDenied, and ValidationError for a name that is taken."""
    _check_may_manage(by, wave)
    # Locked, so that the audit entry has the right old name.
    current = Wave.objects.select_for_update(of=("self",)).get(pk=wave.pk)
    before, current.name = current.name, clean_name(name)
    if current.name == before:
        return
    _save(current)
    record_owned(
        "rename wave",
        current,
        by,
        request,
        before={"name": before},
        after={"name": current.name},
    )
    wave.name = current.name


def delete_wave(
    *, wave: Wave, by: User | str, request: HttpRequest | None = None
) -> None:
    """Raises PermissionDenied, and ChangeBlocked for a wave that is not empty."""
    _check_may_manage(by, wave)
    try:
        with transaction.atomic():
            record_owned("delete wave", wave, by, request, before={"name": wave.name})
            Wave.objects.get(pk=wave.pk).delete()
    # Django checks first; the foreign key refuses an administration that was
    # added at the same moment.
    except (ProtectedError, IntegrityError) as error:
        raise ChangeBlocked(
            _(
                "%(name)s has survey rounds, so it can't be deleted. Move"
                " them to another season first."
            )
            % {"name": wave.name}
        ) from error


def _check_may_manage(by: User | str, wave: Wave) -> None:
    if isinstance(by, User) and not may_manage_wave(Permissions(by), wave):
        raise PermissionDenied


def clean_name(name: str) -> str:
    """Return a wave's name on one line; raises ValidationError."""
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise ValidationError(
            {
                "name": _(
                    "Use a name of one line, at most %(max_name_length)s characters."
                )
                % {"max_name_length": MAX_NAME_LENGTH}
            }
        )
    return name


def _save(wave: Wave) -> None:
    # The unique constraint decides in the end; this check has a message.
    namesakes = Wave.objects.filter(name__iexact=wave.name, district=wave.district)
    taken = ValidationError(
        {
            "name": _("A season named %(name)s already exists. Choose another name.")
            % {"name": wave.name}
        }
    )
    if namesakes.exclude(pk=wave.pk).exists():
        raise taken
    try:
        with transaction.atomic():
            wave.save()
    except IntegrityError as error:
        raise taken from error
