"""Delete schools and districts that nothing refers to any more."""

from __future__ import annotations

from collections.abc import Collection

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from accounts.models import District, School
from survey.models import Administration, SchoolCount


def is_chosen(place: District | School) -> bool:
    """Tell whether an administration names a place, or a count was typed for it.

    A deletion would take these along, as it does with figures.
    """
    if isinstance(place, District):
        return Administration.objects.filter(districts=place).exists()
    return (
        Administration.objects.filter(schools=place).exists()
        or SchoolCount.objects.filter(school=place).exists()
    )


def delete_empty_schools(schools: Collection[int]) -> int:
    return sum(_delete_if_unused(School, pk) for pk in schools)


def delete_empty_districts(districts: Collection[int]) -> int:
    return sum(_delete_if_unused(District, pk) for pk in districts)


def _delete_if_unused(model: type[District] | type[School], pk: int) -> bool:
    try:
        with transaction.atomic():
            # A roster locks the schools of each batch, so it has written its people
            # before this, or finds the school gone and compares again.
            place: District | School | None
            place = model._default_manager.select_for_update().filter(pk=pk).first()
            if place is None or is_chosen(place):
                return False
            place.delete()
            return True
    except (ProtectedError, IntegrityError):
        # Something was added to it at this moment.
        return False
