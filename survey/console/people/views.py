"""The people of an administration: who is invited, and one person's code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts import audit
from accounts.access import needs
from accounts.console.listing import LONGEST_SEARCH, Listing
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability
from survey import access_codes
from survey.console.people.scope import (
    administration_or_404,
    asked_school,
    groups_of,
    may_choose_school,
    offer,
    respondent_or_404,
    schools_for,
    schools_listing,
    shows_progress,
)
from survey.console.people.search import MOST_FOUND, find_people
from survey.login_cards.card_sets import mark_sets_of_person_outdated
from survey.models import Administration, Respondent

C = Capability
BY_NAME = ("identity__family_name", "identity__given_name")
SCHOOLS_NAMED = 10
# In the session: whose code the next page shows, once. Never the code itself.
SHOWN_ONCE = "code_to_show"

# What is asked for -> what it is called, and what it means.
States = dict[str, tuple[str, dict[str, Any]]]
PROGRESS: States = {
    "not-started": ("Not started", {"started_at": None, "withdrawn_at": None}),
    "started": (
        "Started, not finished",
        {"started_at__isnull": False, "completed_at": None, "withdrawn_at": None},
    ),
    "finished": ("Finished", {"completed_at__isnull": False, "withdrawn_at": None}),
}
STANDING: States = {
    "invited": ("Invited", {"withdrawn_at": None}),
    "withdrawn": ("Withdrawn", {"withdrawn_at__isnull": False}),
}


class PeopleFilter(forms.Form):
    """Of one school; `states` are those that may be asked for."""

    school = forms.ChoiceField(required=False)
    grade = forms.ChoiceField(required=False)
    classroom = forms.ChoiceField(required=False, label="Class")
    state = forms.ChoiceField(required=False)

    def __init__(
        self,
        data: Any,
        *,
        school: School | None,
        groups: Sequence[tuple[str, str]],
        states: States,
    ) -> None:
        super().__init__(data)
        everybody = [("", "Everybody")]
        states_named = [(key, name) for key, (name, _) in states.items()]
        offer(self, "state", everybody + states_named)
        grades = sorted({grade for grade, _ in groups if grade})
        rooms = sorted({room for _, room in groups if room})
        for name, options in (("grade", grades), ("classroom", rooms)):
            if options:
                offer(self, name, [("", "All"), *((one, one) for one in options)])
            else:
                del self.fields[name]
        if school:
            offer(self, "school", [(school.pk, school.name), ("", "All my schools")])
        else:
            del self.fields["school"]


@needs(C.SEE_IDENTITIES)
@never_cache
@require_safe
def people_list(request: StaffRequest, pk: int) -> HttpResponse:
    """One school's people; somebody of many schools chooses one, or searches."""
    administration = administration_or_404(request, pk)
    school = asked_school(request, request.GET.get("school"))
    if school:
        return _people_of(request, administration, school)
    if request.GET.get("q", "").strip():
        return _people_found(request, administration)
    listing = schools_listing(request, administration)
    return listing.render(
        "survey/console/people_schools.html",
        {"administration": administration, "route": "people_list"},
    )


def _people_of(
    request: StaffRequest, administration: Administration, school: School
) -> HttpResponse:
    seen = shows_progress(administration)
    states = {**(PROGRESS if seen else {}), **STANDING}
    chosen = PeopleFilter(
        request.GET,
        school=school if may_choose_school(request) else None,
        groups=groups_of(administration, school),
        states=states,
    )
    people = Respondent.objects.filter(administration=administration, school=school)
    people, said = _filtered(people, chosen, states)
    listing: Listing[Respondent] = Listing(
        request,
        people.select_related("identity"),
        search=(
            "identity__given_name",
            "identity__family_name",
            "identity__external_id",
            "identity__email",
        ),
        sorts={
            "name": BY_NAME,
            "id": ("identity__external_id",),
            "grade": ("grade", "classroom", *BY_NAME),
            "class": ("classroom", *BY_NAME),
        },
    )
    _record_look(request, administration, listing, school=school, said=said)
    return listing.render(
        "survey/console/people_list.html",
        {
            "administration": administration,
            "school": school,
            "filter_form": chosen,
            "shows_progress": seen,
            "narrowed": bool(said) or bool(listing.query),
        },
    )


def _filtered(
    people: QuerySet[Respondent],
    chosen: PeopleFilter,
    states: States,
) -> tuple[QuerySet[Respondent], dict[str, str]]:
    """Who was asked for, and how that is written into the audit."""
    if not chosen.is_valid():
        return people.none(), {"filter": "one that there is not"}
    said = {
        name: value
        for name in ("grade", "classroom", "state")
        if (value := chosen.cleaned_data.get(name, ""))
    }
    for name in ("grade", "classroom"):
        if name in said:
            people = people.filter(**{name: said[name]})
    if "state" in said:
        people = people.filter(**states[said["state"]][1])
    return people, said


def _people_found(
    request: StaffRequest, administration: Administration
) -> HttpResponse:
    query = request.GET["q"][:LONGEST_SEARCH].replace("\x00", "").strip()
    people, more = find_people(request.permissions, administration, query)
    listing: Listing[Respondent] = Listing(
        request,
        people.select_related("identity", "school__district"),
        sorts={
            "name": BY_NAME,
            "school": ("school__name", *BY_NAME),
            "id": ("identity__external_id",),
        },
    )
    _record_look(request, administration, listing)
    schools = schools_for(request, administration).select_related("district")
    return listing.render(
        "survey/console/people_list.html",
        {
            "administration": administration,
            "school": None,
            "schools": schools.filter(name__icontains=query)[:SCHOOLS_NAMED],
            "more": more,
            "most": MOST_FOUND,
            "shows_progress": shows_progress(administration),
            "narrowed": True,
        },
    )


def _record_look(
    request: StaffRequest,
    administration: Administration,
    listing: Listing[Respondent],
    *,
    school: School | None = None,
    said: dict[str, str] | None = None,
) -> None:
    """One entry for a page of names; what was typed may be one, and is left out."""
    places = request.permissions.places(C.SEE_IDENTITIES)
    district = None
    if school is None and not places.state and len(places.districts) == 1:
        district = request.permissions.districts(C.SEE_IDENTITIES).first()
    audit.record(
        "look at people",
        by=request.user,
        request=request,
        subject=administration,
        school=school,
        district=district,
        after={
            **(said or {}),
            "searched": bool(listing.query),
            "page": listing.page.number,
            "people": len(listing.page.object_list),
        },
    )


@needs(C.SEE_IDENTITIES)
@never_cache
@require_safe
def people_detail(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    administration = administration_or_404(request, pk)
    person = respondent_or_404(request, administration, respondent)
    shown = request.session.pop(SHOWN_ONCE, None) == [person.pk, person.issue]
    audit.record(
        "look at a person",
        by=request.user,
        request=request,
        subject=person,
        school=person.school,
        after={"administration": str(administration)},
    )
    return render(
        request,
        "survey/console/people_detail.html",
        {
            "administration": administration,
            "person": person,
            "identity": getattr(person, "identity", None),
            "code": access_codes.format_code(access_codes.code_of(person))
            if shown
            else "",
            "shows_progress": shows_progress(administration),
            "may_reissue": _may_reissue(request, person),
        },
    )


@needs(C.SEE_IDENTITIES)
@never_cache
@require_POST
def people_code(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Show a code that is still valid, on the next page and only there."""
    person = _invited_or_404(request, pk, respondent)
    audit.record(
        "show an access code",
        by=request.user,
        request=request,
        subject=person,
        school=person.school,
        after={"issue": person.issue},
    )
    return _shown_once(request, person)


@needs(C.MANAGE_ROSTERS)
@never_cache
@require_POST
def people_reissue(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    person = _invited_or_404(request, pk, respondent)
    if not _may_reissue(request, person):
        raise Http404
    before = person.issue
    with transaction.atomic():
        access_codes.reissue(respondent=person)
        mark_sets_of_person_outdated(person)
        audit.record(
            "reissue an access code",
            by=request.user,
            request=request,
            subject=person,
            school=person.school,
            before={"issue": before},
            after={"issue": person.issue},
        )
    messages.success(request, "There is a new code. The old one no longer works.")
    return _shown_once(request, person)


def _invited_or_404(request: StaffRequest, pk: int, respondent: int) -> Respondent:
    administration = administration_or_404(request, pk)
    person = respondent_or_404(request, administration, respondent)
    if person.withdrawn_at:
        raise Http404
    return person


def _may_reissue(request: StaffRequest, person: Respondent) -> bool:
    return request.permissions.places(C.MANAGE_ROSTERS).has_school(person.school)


def _shown_once(request: StaffRequest, person: Respondent) -> HttpResponse:
    request.session[SHOWN_ONCE] = [person.pk, person.issue]
    return redirect("people_detail", person.administration_id, person.pk)
