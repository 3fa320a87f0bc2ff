"""Name the files of answers in which an erased person may be."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, QuerySet

from accounts.models import School
from reports.models import Export
from survey.people.erasing.files import may_hold_people


@may_hold_people
def exports(administrations: Collection[int], district: int | None) -> QuerySet[Export]:
    """Return exports that cover a part of the district, with or without names."""
    if district is None:
        return Export.objects.filter(administrations__in=administrations).exclude(
            file_name="", job=None
        )
    schools = School.objects.filter(district=district).values_list("pk", flat=True)
    rows = Export.objects.filter(administrations__in=administrations).exclude(
        file_name="", job=None
    )
    keys = [
        pk
        for pk, places in rows.values_list("pk", "places")
        if places.get("state")
        or district in places.get("districts", ())
        or not set(places.get("schools", ())).isdisjoint(schools)
    ]
    return Export.objects.filter(Q(pk__in=keys))
