"""The page of the survey day: administrators of the state begin it and end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from accounts.time_zones import in_zone, zone_label, zone_of
from survey.models import SurveyDay
from survey.work import survey_day as survey_days

if TYPE_CHECKING:
    from django.http import QueryDict

# Analysts read on it why their exports wait.
SEE, CHANGE = C.SEE_RESPONSES, C.MANAGE_SURVEYS
LISTED = 10


class SurveyDayForm(forms.Form):
    until = forms.TimeField(
        label=gettext_lazy("Ends at"),
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        error_messages={
            "required": gettext_lazy("Enter a time, such as 16:00."),
            "invalid": gettext_lazy("Enter a time, such as 16:00."),
        },
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=200,
        help_text=gettext_lazy("Such as “All high schools answer today”."),
        error_messages={"required": gettext_lazy("Enter a reason.")},
    )

    def __init__(self, data: QueryDict | None) -> None:
        super().__init__(data)
        self.fields["until"].help_text = _(
            "Today, or tomorrow if this time is over today. In %(zone)s."
        ) % {"zone": zone_label(zone_of(None))}


@needs(SEE)
def survey_day(request: StaffRequest) -> HttpResponse:
    """Show the survey day that is on, and the last ones; begin one. 2 statements."""
    may_change = request.permissions.places(CHANGE).state
    if request.method == "POST" and not may_change:
        raise Http404
    form = SurveyDayForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            survey_days.begin(
                ends_at=survey_days.next_time(form.cleaned_data["until"]),
                reason=form.cleaned_data["reason"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            form.add_error("until", error)
        else:
            messages.success(request, _("The survey day has begun."))
            return redirect("survey_day")
    days = SurveyDay.objects.select_related("by")
    with in_zone(zone_of(None)):
        return render(
            request,
            "survey/console/survey_day.html",
            {
                "form": form,
                "may_change": may_change,
                "day": survey_days.current(),
                "days": days[:LISTED] if may_change else (),
            },
        )


@needs(CHANGE)
@require_POST
def survey_day_end(request: StaffRequest) -> HttpResponse:
    if not request.permissions.places(CHANGE).state:
        raise Http404
    if survey_days.end(by=request.user, request=request):
        messages.success(request, _("The survey day has ended. Work goes on."))
    else:
        messages.info(request, _("No survey day is on."))
    return redirect("survey_day")
