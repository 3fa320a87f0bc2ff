"""The administrations, schools and open codes that a user manages."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from survey.fieldwork.administrations import schools_of
from survey.models import Administration, OpenCode


def codes_for(
    request: StaffRequest, administration: Administration
) -> QuerySet[OpenCode]:
    codes = OpenCode.objects.visible_to(request.permissions)
    return codes.filter(administration=administration).select_related(
        "school__district", "administration", "created_by"
    )


def open_code_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> OpenCode:
    return get_object_or_404(codes_for(request, administration), pk=pk)


def schools_for(
    request: StaffRequest, administration: Administration
) -> QuerySet[School]:
    """Return the user's schools in which the administration is offered."""
    manageable = request.permissions.schools(C.MANAGE_ROSTERS)
    schools = schools_of(administration).filter(pk__in=manageable.values("pk"))
    return schools.select_related("district")


def selected_school(
    request: StaffRequest, administration: Administration
) -> School | None:
    """Return the school in the address, or the user's only one, or None.

    Raises Http404 for a school where the user creates no code.
    """
    schools = schools_for(request, administration)
    if key := request.GET.get("school"):
        return get_object_or_404(schools, pk=parse_key(key))
    selected = list(schools[:2])
    return selected[0] if len(selected) == 1 else None


def parse_key(key: str) -> int:
    # Longer numbers do not fit into a key.
    if not key.isascii() or not key.isdecimal() or len(key) > 18:
        raise Http404
    return int(key)
