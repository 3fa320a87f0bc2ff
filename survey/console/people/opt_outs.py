"""Opt one person out of an administration, and take it back."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.people.scope import record_look, respondent_or_404
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import Administration, OptOut, Respondent, Role
from survey.people.opt_outs.records import OptOutConflict, Request, opt_out, take_back

By = OptOut.RequestedBy
# In the hidden field `seen`.
STARTED, NOT_STARTED = "started", "not started"


# A request from before is rather a typing mistake such as 1026.
MOST_YEARS = 5


class AskedForm(forms.Form):
    """Who asked for something, and when."""

    requested_by = forms.ChoiceField(
        label=gettext_lazy("Who asked for it?"),
        choices=By.choices,
        widget=forms.RadioSelect,
    )
    requested_on = forms.DateField(
        label=gettext_lazy("Date of the request"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def clean_requested_on(self) -> object:
        day = self.cleaned_data["requested_on"]
        if day > timezone.localdate():
            raise forms.ValidationError(_("This date is in the future."))
        if day.year < timezone.localdate().year - MOST_YEARS:
            raise forms.ValidationError(_("This date is long ago. Check the year."))
        return day

    @staticmethod
    def first_values(administration: Administration) -> dict[str, object]:
        is_adult = administration.role != Role.STUDENT
        return {
            "requested_by": By.PERSON if is_adult else By.PARENT,
            "requested_on": timezone.localdate(),
        }


class RequestForm(AskedForm):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=200,
        help_text=gettext_lazy(
            "Such as “form signed by the parents”. Staff who may see this person's"
            " name can read it."
        ),
    )

    @property
    def asked(self) -> Request:
        names = ("requested_on", "requested_by", "reason")
        return Request(**{name: self.cleaned_data[name] for name in names})


class OptOutForm(RequestForm):
    # Whether the person had started when the page was shown.
    seen = forms.CharField(required=False, widget=forms.HiddenInput)


@needs(C.MANAGE_ROSTERS)
def people_opt_out(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Say what opting out means for this person, and do it once confirmed."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = changeable_person_or_404(request, administration, respondent)
    if person.has_opted_out:
        messages.error(request, _("This person has opted out already."))
        return redirect("people_detail", pk, person.pk)
    shows_progress = not administration.is_completion_confidential
    started = shows_progress and person.started_at is not None
    seen = STARTED if started else NOT_STARTED
    if request.method == "POST":
        form = OptOutForm(request.POST)
        if form.is_valid():
            return _opt_out(request, person, form, shows_progress=shows_progress)
    else:
        initial = OptOutForm.first_values(administration)
        form = OptOutForm(initial={**initial, "seen": seen if shows_progress else ""})
        record_look(request, person, administration)
    return render(
        request,
        "survey/console/people_opt_out.html",
        {
            "administration": administration,
            "person": person,
            "identity": getattr(person, "identity", None),
            "form": form,
            "started": started,
            "shows_progress": shows_progress,
        },
    )


def _opt_out(
    request: StaffRequest,
    person: Respondent,
    form: OptOutForm,
    *,
    shows_progress: bool,
) -> HttpResponse:
    seen = form.cleaned_data["seen"]
    expects_start = seen == STARTED if shows_progress else None
    try:
        opt_out(
            person,
            form.asked,
            by=request.user,
            expects_start=expects_start,
            request=request,
        )
    except OptOutConflict as conflict:
        messages.error(request, str(conflict))
        return redirect("people_opt_out", person.administration_id, person.pk)
    if form.cleaned_data["requested_by"] == By.PERSON:
        done = _(
            "This person has opted out, and the access code no longer works. Take"
            " back the login card if it was handed out."
        )
    else:
        done = _(
            "This person was opted out, and the access code no longer works. Take"
            " back the login card if it was handed out."
        )
    messages.success(request, done)
    return redirect("people_detail", person.administration_id, person.pk)


@needs(C.MANAGE_ROSTERS)
@require_POST
def people_take_back(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Let a person who has opted out take part again."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = changeable_person_or_404(request, administration, respondent)
    try:
        take_back(person, by=request.user, request=request)
    except OptOutConflict as conflict:
        messages.error(request, str(conflict))
    else:
        messages.success(request, _("The opt-out was taken back."))
        if administration.requires_consent:
            messages.success(request, _("This person awaits consent now."))
    return redirect("people_detail", pk, person.pk)


def changeable_person_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> Respondent:
    """Return a person whose name the user may see, and whose roster manage."""
    person = respondent_or_404(request, administration, pk)
    places = request.permissions.places(C.SEE_IDENTITIES, C.MANAGE_ROSTERS)
    if not places.has_school(person.school):
        raise Http404
    return person
