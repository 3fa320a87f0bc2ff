"""Whose names somebody may look at, and what may be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability
from survey.administrations import administrations_for
from survey.models import Administration, Respondent, Role

C = Capability


def administration_or_404(request: StaffRequest, pk: int) -> Administration:
    offered = administrations_for(request.permissions, C.SEE_IDENTITIES)
    return get_object_or_404(offered, pk=pk)


def respondent_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> Respondent:
    """With identity and school."""
    people = Respondent.objects.filter(administration=administration)
    people = people.select_related("identity", "school__district", "administration")
    return get_object_or_404(
        people.filter(school__in=request.permissions.schools(C.SEE_IDENTITIES)),
        pk=pk,
    )


def shows_progress(administration: Administration) -> bool:
    """Who has started and who has finished, by name.

    Nobody's in the console without the administration's consent, whatever
    their role: what a coordinator must not know of a child, their district
    has no more reason to. Of teachers never.
    """
    return (
        administration.coordinators_see_finished and administration.role != Role.TEACHER
    )


def asked_school(request: StaffRequest, asked: str | None) -> School | None:
    """The one that was asked for, or the only one there is; None: not yet one.

    Raises Http404 for another's.
    """
    permissions = request.permissions
    schools = permissions.schools(C.SEE_IDENTITIES).select_related("district")
    if asked:
        if not asked.isascii() or not asked.isdecimal() or len(asked) > 18:
            raise Http404
        return get_object_or_404(schools, pk=int(asked))
    places = permissions.places(C.SEE_IDENTITIES)
    if not places.state and not places.districts and len(places.schools) == 1:
        return schools.get()
    return None


def may_choose_school(request: StaffRequest) -> bool:
    places = request.permissions.places(C.SEE_IDENTITIES)
    return places.state or bool(places.districts) or len(places.schools) > 1


def schools_listing(request: StaffRequest, administration: Administration) -> Listing:
    return Listing(
        request,
        schools_for(request, administration).select_related("district"),
        search=("name", "code", "district__name"),
        sorts={
            "name": ("name", "district__name"),
            "district": ("district__name", "name"),
        },
    )


def schools_for(
    request: StaffRequest, administration: Administration
) -> QuerySet[School]:
    """Where people can have been invited: of a district's own, only its own."""
    schools = request.permissions.schools(C.SEE_IDENTITIES)
    if administration.district_id is not None:
        schools = schools.filter(district=administration.district_id)
    return schools


def groups_of(administration: Administration, school: School) -> list[tuple[str, str]]:
    """(grade, class) of a school, where people are in them. 1 statement."""
    people = administration.respondents.filter(school=school, withdrawn_at=None)
    return sorted(people.order_by().values_list("grade", "classroom").distinct())


def offer(form: forms.Form, name: str, choices: Sequence[tuple[Any, str]]) -> None:
    """The choices of a field that depend on the school."""
    cast(forms.ChoiceField, form.fields[name]).choices = choices
