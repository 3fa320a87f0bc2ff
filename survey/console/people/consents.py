"""Record consents, of one person or of a list, where they are required."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy
from django.views.decorators.http import require_POST

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.people.opt_out_lists import (
    ListPages,
    OptOutListForm,
    save_checked,
    upload_list,
)
from survey.console.people.opt_outs import RequestForm, changeable_person_or_404
from survey.console.people.scope import record_look
from survey.console.table_files import TableField
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import Administration, Consent, ListedId
from survey.people.opt_outs.consents import give_consent
from survey.people.opt_outs.records import OptOutConflict


class ConsentForm(RequestForm):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        given_by = cast(forms.ChoiceField, self.fields["requested_by"])
        given_by.label = _("Who gave consent?")
        given_by.choices = Consent.GivenBy.choices
        self.fields["requested_on"].label = _("Date of the consent")
        self.fields["reason"].label = _("Note")
        self.fields["reason"].help_text = _(
            "Such as “paper form in the office”. Staff who may see this person's name"
            " can read it."
        )


class ConsentListForm(ConsentForm, OptOutListForm):
    file = TableField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy(
            "CSV or Excel, with one row for each person whose consent was given, and"
            " their student or staff ID."
        ),
        too_large=gettext_lazy(
            "The file is larger than 4 MB. Upload one school at a time."
        ),
    )


CONSENTS = ListPages(
    kind=ListedId.Kind.CONSENT,
    form=ConsentListForm,
    upload="people_consents",
    title=gettext_lazy("Upload consents"),
    checked_title=gettext_lazy("Check consents"),
    viewed="list of consents",
    saved_message=ngettext_lazy(
        "The consent of %(people)s person was recorded.",
        "The consents of %(people)s people were recorded.",
        "number",
    ),
    kept_message=ngettext_lazy(
        "%(ids)s ID was kept: its consent counts as soon as a roster lists it.",
        "%(ids)s IDs were kept: their consents count as soon as a roster lists them.",
        "number",
    ),
)


@needs(C.MANAGE_ROSTERS)
def people_consent(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Record the consent for one person."""
    administration = _administration_or_404(request, pk)
    person = changeable_person_or_404(request, administration, respondent)
    if request.method == "POST":
        form = ConsentForm(request.POST)
        if form.is_valid():
            try:
                give_consent(person, form.asked, by=request.user, request=request)
            except OptOutConflict as conflict:
                messages.error(request, str(conflict))
            else:
                messages.success(request, _("The consent was recorded."))
            return redirect("people_detail", pk, person.pk)
    else:
        form = ConsentForm(initial=ConsentForm.first_values(administration))
        record_look(request, person, administration)
    return render(
        request,
        "survey/console/people_consent.html",
        {
            "administration": administration,
            "person": person,
            "identity": getattr(person, "identity", None),
            "form": form,
        },
    )


@needs(C.MANAGE_ROSTERS)
def people_consents(request: StaffRequest, pk: int) -> HttpResponse:
    """Check a list, and show whose consent it would record; nothing is stored."""
    return upload_list(request, _administration_or_404(request, pk), CONSENTS)


@needs(C.MANAGE_ROSTERS)
@require_POST
def people_consents_save(request: StaffRequest, pk: int) -> HttpResponse:
    """Record the consents of a list that was checked, all or none."""
    return save_checked(request, _administration_or_404(request, pk), CONSENTS)


def _administration_or_404(request: StaffRequest, pk: int) -> Administration:
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    if not administration.requires_consent:
        raise Http404
    return administration
