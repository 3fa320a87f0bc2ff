"""Correct, move, withdraw and bring back one person; reopen a finished survey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from survey.console.people.opt_outs import changeable_person_or_404
from survey.console.people.roster_fields import RosterFieldsForm
from survey.console.people.scope import record_look, schools_for
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import Administration, Respondent, Role
from survey.models.grades import grade_name
from survey.people.person_changes.records import (
    PersonConflict,
    bring_back_person,
    correct_person,
    reopen_survey,
    withdraw_person,
)
from survey.people.rosters.scope import offered_schools


class CorrectionForm(RosterFieldsForm):
    """The values of a roster. Only what somebody changed is stored."""

    school = forms.ModelChoiceField(
        queryset=School.objects.none(), label=gettext_lazy("School"), empty_label=None
    )

    def __init__(
        self,
        *args: Any,
        role: str,
        schools: QuerySet[School],
        may_change_email: bool,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        school = cast(forms.ModelChoiceField, self.fields["school"])
        school.queryset = schools
        if role != Role.STUDENT:
            del self.fields["grade"]
        if not may_change_email:
            del self.fields["email"]
        if len(schools) < 2:
            del self.fields["school"]
        for field in self.fields.values():
            field.show_hidden_initial = True

    @property
    def changes(self) -> dict[str, object]:
        return {name: self.cleaned_data[name] for name in self.changed_data}


@needs(C.MANAGE_ROSTERS)
def people_correct(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Correct a person's name, grade, class and e-mail, or move them."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = changeable_person_or_404(request, administration, respondent)
    identity = getattr(person, "identity", None)
    if identity is None:
        messages.error(request, _("The name of this person was deleted."))
        return redirect("people_detail", pk, person.pk)
    initial = {
        "given_name": identity.given_name,
        "family_name": identity.family_name,
        "grade": grade_name(person.grade),
        "classroom": person.classroom,
        "email": identity.email,
        "school": person.school_id,
    }
    form = CorrectionForm(
        request.POST if request.method == "POST" else None,
        initial=initial,
        role=administration.role,
        schools=_schools_to_move_to(request, administration, person),
        may_change_email=_may_change_email(request, administration, person),
    )
    if request.method == "POST" and form.is_valid():
        try:
            changed = correct_person(
                person, form.changes, by=request.user, request=request
            )
        except PersonConflict as conflict:
            messages.error(request, str(conflict))
        else:
            done = (
                _("The corrections were saved.")
                if changed
                else _("Nothing was changed.")
            )
            messages.success(request, done)
        return redirect("people_detail", pk, person.pk)
    if request.method != "POST":
        record_look(request, person, administration)
    return render(
        request,
        "survey/console/people_correct.html",
        {
            "administration": administration,
            "person": person,
            "identity": identity,
            "form": form,
        },
    )


def _schools_to_move_to(
    request: StaffRequest, administration: Administration, person: Respondent
) -> QuerySet[School]:
    """Return the user's schools of the person's district that take part."""
    manageable = request.permissions.schools(C.SEE_IDENTITIES, C.MANAGE_ROSTERS)
    district = person.school.district_id
    schools = schools_for(request, administration).filter(
        pk__in=manageable.values("pk"), district=district
    )
    offered = offered_schools(administration)
    chosen = {
        school.pk
        for school in schools
        if school.closed_at is None and offered.includes(district, school.pk)
    }
    return schools.filter(pk__in=chosen | {person.school_id}).order_by("name")


def _may_change_email(
    request: StaffRequest, administration: Administration, person: Respondent
) -> bool:
    """Apply the rule of rosters: else codes could be sent to another's address."""
    places = request.permissions.places(C.MANAGE_ROSTERS)
    if places.has_district(person.school.district_id):
        return True
    return not administration.is_completion_confidential and person.started_at is None


@needs(C.MANAGE_ROSTERS)
def people_withdraw(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Say what withdrawing means, and do it once confirmed."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = changeable_person_or_404(request, administration, respondent)
    if request.method == "POST":
        done = _("This person was withdrawn.")
        return _change(request, person, withdraw_person, done)
    return _explain(request, person, administration, "people_withdraw")


@needs(C.MANAGE_ROSTERS)
@require_POST
def people_bring_back(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = changeable_person_or_404(request, administration, respondent)
    done = _("This person is invited again, with the same code.")
    return _change(request, person, bring_back_person, done)


@needs(C.MANAGE_ROSTERS)
def people_reopen(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Say what reopening a finished survey means, and do it once confirmed."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = changeable_person_or_404(request, administration, respondent)
    if request.method == "POST":
        done = _("The survey is open again for this person.")
        return _change(request, person, reopen_survey, done)
    return _explain(request, person, administration, "people_reopen")


def _change(
    request: StaffRequest, person: Respondent, change: Callable[..., object], done: str
) -> HttpResponse:
    try:
        change(person, by=request.user, request=request)
    except PersonConflict as conflict:
        messages.error(request, str(conflict))
    else:
        messages.success(request, done)
    return redirect("people_detail", person.administration_id, person.pk)


def _explain(
    request: StaffRequest,
    person: Respondent,
    administration: Administration,
    template: str,
) -> HttpResponse:
    """Say what a change means, before it is confirmed."""
    record_look(request, person, administration)
    return render(
        request,
        f"survey/console/{template}.html",
        {
            "administration": administration,
            "person": person,
            "identity": getattr(person, "identity", None),
            "shows_progress": not administration.is_completion_confidential,
        },
    )
