"""Rename, close and reopen districts and schools.

A closed place keeps its people, their answers and its staff. It is left out where
places are chosen: the school finder, rosters and forms.
"""

from __future__ import annotations

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import (
    District,
    School,
    SchoolListing,
    User,
)
from accounts.permissions import Capability, Permissions

LONGEST_NAME = 200
MANAGE = Capability.MANAGE_STAFF


def may_change_place(permissions: Permissions, place: District | School) -> bool:
    """Return whether the user renames and closes a place: as who merges them."""
    places = permissions.places(MANAGE)
    if isinstance(place, School):
        return places.has_district(place.district_id)
    return places.state


@transaction.atomic
def rename_place(
    place: District | School,
    *,
    name: str,
    by: User,
    request: HttpRequest | None = None,
) -> bool:
    """Change a name; return whether it differs. The code stays.

    Rosters that write the old name find the place. Raises PermissionDenied, and
    ValidationError for a name that another place has.
    """
    current = _lock(place, by)
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValidationError(
            _("Use a name of at most %(number)d characters.") % {"number": LONGEST_NAME}
        )
    before = current.name
    if name == before:
        return False
    places: QuerySet[School] | QuerySet[District] = District.objects.all()
    if isinstance(current, School):
        places = School.objects.filter(district=current.district_id)
    if places.exclude(pk=current.pk).filter(name__iexact=name).exists():
        raise ValidationError(
            _(
                "There is another place named %(name)s. Choose a name that tells them"
                " apart, or merge them if they are the same."
            )
            % {"name": name}
        )
    code, names = current.code, (before, name)
    current.aliases.filter(code=code, name__in=names).delete()
    current.aliases.create(code=code, name=before)
    current.name = name
    current.save(update_fields=["name"])
    _record("rename", current, by, request, before=before, after=name)
    return True


@transaction.atomic
def close_place(
    place: District | School, *, by: User, request: HttpRequest | None = None
) -> None:
    """Close a school, or a district with all its schools; twice changes nothing.

    Raises PermissionDenied.
    """
    current = _lock(place, by)
    if current.closed_at is not None:
        return
    now = timezone.now()
    schools = School.objects.filter(pk=current.pk)
    if isinstance(current, District):
        schools = current.schools.filter(closed_at=None)
    SchoolListing.objects.filter(school__in=schools).update(closed=True)
    schools.update(closed_at=now)
    type(current)._default_manager.filter(pk=current.pk).update(closed_at=now)
    _record("close", current, by, request, before="open", after="closed")


@transaction.atomic
def reopen_place(
    place: District | School, *, by: User, request: HttpRequest | None = None
) -> None:
    """Reopen a school, or a district with the schools that were closed with it.

    Raises PermissionDenied, and ValidationError for a school of a closed district.
    """
    current = _lock(place, by)
    if current.closed_at is None:
        return
    if isinstance(current, School):
        if current.district.closed_at is not None:
            raise ValidationError(
                _("The district %(district)s is closed. Reopen it first.")
                % {"district": current.district}
            )
        schools = School.objects.filter(pk=current.pk)
    else:
        schools = current.schools.filter(closed_at=current.closed_at)
    SchoolListing.objects.filter(school__in=schools).update(closed=False)
    schools.update(closed_at=None)
    type(current)._default_manager.filter(pk=current.pk).update(closed_at=None)
    _record("reopen", current, by, request, before="closed", after="open")


def _lock(place: District | School, by: User) -> District | School:
    """Lock a place until the transaction ends. Raises PermissionDenied."""
    if not may_change_place(Permissions(by), place):
        raise PermissionDenied
    rows = type(place)._default_manager.select_for_update()
    current: District | School = rows.get(pk=place.pk)
    return current


def _record(
    verb: str,
    place: District | School,
    by: User,
    request: HttpRequest | None,
    *,
    before: str,
    after: str,
) -> None:
    is_school = isinstance(place, School)
    what = "name" if verb == "rename" else "state"
    audit.record(
        f"{verb} {'school' if is_school else 'district'}",
        by=by,
        request=request,
        subject=place,
        school=place if isinstance(place, School) else None,
        district=place if isinstance(place, District) else None,
        before={what: before},
        after={what: after},
    )
