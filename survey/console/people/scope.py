"""The administrations, schools and people whose names a user may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit, forms
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from survey.models import Administration, Respondent
from survey.models.grades import grade_name

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def respondent_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> Respondent:
    """Return one person with identity and school."""
    if administration.identities_destroyed_at is not None:
        raise Http404
    people = (
        Respondent.objects.on_roster()
        .not_erased()
        .filter(administration=administration)
    )
    people = people.select_related("identity", "school__district", "administration")
    # Other people are a 404, as if they did not exist.
    return get_object_or_404(
        people.filter(school__in=request.permissions.schools(C.SEE_IDENTITIES)),
        pk=pk,
    )


def record_look(
    request: StaffRequest, person: Respondent, administration: Administration
) -> None:
    audit.record(
        "look at a person",
        by=request.user,
        request=request,
        subject=person,
        school=person.school,
        after={"administration": str(administration)},
    )


def selected_school(request: StaffRequest) -> School | None:
    """Return the school in the address, or the user's only one, or None.

    Raises Http404 for a school that the user may not see.
    """
    permissions = request.permissions
    schools = permissions.schools(C.SEE_IDENTITIES).select_related("district")
    if key := request.GET.get("school"):
        # Longer numbers do not fit into a key.
        if not key.isascii() or not key.isdecimal() or len(key) > 18:
            raise Http404
        return get_object_or_404(schools, pk=int(key))
    return None if may_choose_school(request) else schools.get()


def may_choose_school(request: StaffRequest) -> bool:
    places = request.permissions.places(C.SEE_IDENTITIES)
    return places.state or bool(places.districts) or len(places.schools) > 1


def schools_listing(request: StaffRequest, administration: Administration) -> Listing:
    schools = schools_for(request, administration)
    if administration.closes_at <= timezone.now():
        # Schools that later rosters of other administrations have added.
        people = Respondent.objects.filter(
            administration=administration, school=OuterRef("pk")
        )
        schools = schools.filter(
            Q(added_at=None) | Q(added_at__lte=administration.opens_at) | Exists(people)
        )
    return Listing(
        request,
        schools.select_related("district"),
        search=("name", "code", "district__name"),
        sorts={
            "name": ("name", "district__name"),
            "district": ("district__name", "name"),
        },
    )


def schools_for(
    request: StaffRequest, administration: Administration
) -> QuerySet[School]:
    """Return the user's schools that belong to the administration's owner."""
    schools = request.permissions.schools(C.SEE_IDENTITIES)
    if administration.district_id is not None:
        schools = schools.filter(district=administration.district_id)
    return schools


def groups_of(administration: Administration, school: School) -> list[tuple[str, str]]:
    """Return a school's (grade, class) pairs that have people. 1 statement."""
    people = administration.respondents.on_roster().filter(
        school=school, withdrawn_at=None
    )
    return sorted(people.order_by().values_list("grade", "classroom").distinct())


def set_choices(
    form: forms.Form, name: str, choices: Sequence[tuple[object, StrOrPromise]]
) -> None:
    cast(forms.ChoiceField, form.fields[name]).choices = choices


def set_group_choices(form: forms.Form, groups: Sequence[tuple[str, str]]) -> None:
    """Fill the fields `grade` and `classroom`; remove a field without choices."""
    codes = sorted({grade for grade, _room in groups if grade})
    grades = [(code, grade_name(code)) for code in codes]
    rooms = [(room, room) for room in sorted({room for _grade, room in groups if room})]
    for name, values, everyone in (
        ("grade", grades, _("All grades")),
        ("classroom", rooms, _("All classes")),
    ):
        if values:
            set_choices(form, name, [("", everyone), *values])
        else:
            del form.fields[name]
