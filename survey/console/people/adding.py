"""Add one person to the roster of an administration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import cast

from django import forms
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.console.widgets import LanguageSelect
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from survey.console.people.roster_fields import RosterFieldsForm
from survey.console.people.scope import record_look, schools_for, selected_school
from survey.console.rosters.column_form import ID_LABELS
from survey.fieldwork.administrations import subgroup_label
from survey.fieldwork.administrations.queries import administration_or_404
from survey.instrument.definitions.schema import LanguageDefinition
from survey.models import Administration, Role
from survey.people.person_changes.additions import NewPerson, PersonExists, add_person
from survey.people.person_changes.records import PersonConflict
from survey.people.rosters.date_parsers import parse_birth_date
from survey.people.rosters.field_parsers import (
    LONGEST_ID,
    InvalidCell,
    parse_external_id,
)
from survey.people.rosters.scope import (
    NOT_OFFERED,
    RosterRefused,
    check_takes_roster,
    offered_schools,
)
from survey.taking.published import published_survey

SUBGROUP = "subgroup-"
AT_OTHER_SCHOOL = gettext_noop(
    "This ID is on another school's roster, or was. Ask your district to move this"
    " person."
)
ZEROS_AT_OTHER_SCHOOL = gettext_noop(
    "This ID with other leading zeros is on another school's roster, or was. Ask your"
    " district to move this person."
)


class NewPersonForm(RosterFieldsForm):
    external_id = forms.CharField(
        label=gettext_lazy("ID"),
        max_length=LONGEST_ID,
        help_text=gettext_lazy("As in your student information system."),
    )
    birth_date = forms.DateField(
        required=False,
        label=gettext_lazy("Birth date"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        required=False,
        help_text=gettext_lazy("The language in which the survey opens."),
        widget=LanguageSelect,
    )

    field_order = (
        "external_id",
        "given_name",
        "family_name",
        "grade",
        "classroom",
        "birth_date",
        "email",
        "language",
    )

    def __init__(
        self,
        data: QueryDict | None,
        *,
        role: str,
        languages: Sequence[LanguageDefinition],
        subgroups: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__(data)
        self.fields["external_id"].label = ID_LABELS[Role(role)]
        language = cast(forms.ChoiceField, self.fields["language"])
        language.choices = [
            ("", _("Not stated")),
            *((entry["code"], entry["name"]) for entry in languages),
        ]
        if role != Role.STUDENT:
            del self.fields["grade"], self.fields["birth_date"]
        for name, values in subgroups.items():
            choices = [("", _("Not stated")), *((value, value) for value in values)]
            self.fields[SUBGROUP + name] = forms.ChoiceField(
                label=subgroup_label(name), required=False, choices=choices
            )

    def main_fields(self) -> list[forms.BoundField]:
        return [field for field in self if not field.name.startswith(SUBGROUP)]

    def more_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name.startswith(SUBGROUP)]

    def shows_more(self) -> bool:
        """Tell whether a folded field has an error or a value."""
        return any(field.errors or field.value() for field in self.more_fields())

    def clean_external_id(self) -> str:
        return self.parsed("external_id", parse_external_id)

    def clean_birth_date(self) -> date | None:
        born: date | None = self.cleaned_data["birth_date"]
        if born:
            try:
                parse_birth_date(born.isoformat(), timezone.localdate())
            except InvalidCell as error:
                raise forms.ValidationError(
                    _("Birth date %(reason)s.") % {"reason": error}
                ) from error
        return born

    @property
    def person(self) -> NewPerson:
        values = dict(self.cleaned_data)
        attributes = {
            name.removeprefix(SUBGROUP): values.pop(name)
            for name in sorted(self.fields)
            if name.startswith(SUBGROUP)
        }
        stated = {name: value for name, value in attributes.items() if value}
        return NewPerson(**values, attributes=stated)


@needs(C.MANAGE_ROSTERS)
def people_add(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the fields of a roster's row, and invite the person."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    try:
        check_takes_roster(administration)
    except RosterRefused as refused:
        messages.error(request, str(refused))
        return redirect("people_list", pk)
    school = selected_school(request)
    if school is None:
        return _choose_school(request, administration)
    if not _own_schools(request, administration).filter(pk=school.pk).exists():
        raise Http404
    if not offered_schools(administration).includes(school.district_id, school.pk):
        message = f"{school.name} {_(NOT_OFFERED)}."
        messages.error(request, message)
        return redirect("people_list", pk)
    form = NewPersonForm(
        request.POST if request.method == "POST" else None,
        role=administration.role,
        languages=published_survey(administration.published_id).definition["languages"],
        subgroups=administration.subgroups,
    )
    exists = None
    if request.method == "POST" and form.is_valid():
        try:
            person = add_person(
                administration,
                form.person,
                school=school,
                by=request.user,
                request=request,
            )
        except PersonExists as known:
            exists = _shown(request, form, known)
        except PersonConflict as conflict:
            form.add_error(None, str(conflict))
        else:
            messages.success(request, _added(administration))
            return redirect("people_detail", pk, person.pk)
    return render(
        request,
        "survey/console/people_add.html",
        {
            "administration": administration,
            "school": school,
            "form": form,
            "exists": exists,
        },
    )


def _added(administration: Administration) -> str:
    if administration.requires_consent:
        return _("This person was added.")
    if administration.is_completion_confidential:
        return _("This person was added. The school's next login cards have one more.")
    return _("This person was added. You can print the login card below.")


def _own_schools(
    request: StaffRequest, administration: Administration
) -> QuerySet[School]:
    manageable = request.permissions.schools(C.SEE_IDENTITIES, C.MANAGE_ROSTERS)
    return schools_for(request, administration).filter(pk__in=manageable.values("pk"))


def _choose_school(
    request: StaffRequest, administration: Administration
) -> HttpResponse:
    schools = _own_schools(request, administration)
    offered = offered_schools(administration)
    if offered.districts or offered.schools:
        schools = schools.filter(
            Q(district__in=offered.districts) | Q(pk__in=offered.schools)
        )
    listing = Listing(
        request,
        schools.select_related("district"),
        search=("name", "code", "district__name"),
        sorts={
            "name": ("name", "district__name"),
            "district": ("district__name", "name"),
        },
    )
    return listing.render(
        "survey/console/people_add_schools.html", {"administration": administration}
    )


def _shown(
    request: StaffRequest, form: NewPersonForm, known: PersonExists
) -> PersonExists | None:
    """Return the known person if the user may see them; else only an error."""
    person = known.person
    places = request.permissions.places(C.SEE_IDENTITIES, C.MANAGE_ROSTERS)
    if not places.has_school(person.school):
        reason = ZEROS_AT_OTHER_SCHOOL if known.differs_in_zeros else AT_OTHER_SCHOOL
        form.add_error("external_id", _(reason))
        return None
    record_look(request, person, person.administration)
    form.add_error("external_id", _("This ID is on the roster already: see above."))
    return known
