"""The pages of the school calendar: holidays, and the days of the weekend."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District
from accounts.permissions import Capability as C
from survey.console.administrations.forms import owners_for, show_errors
from survey.fieldwork.school_calendar import (
    MAX_NAME_LENGTH,
    MOST_HOLIDAYS,
    WEEKDAYS,
    add_holiday,
    add_us_holidays,
    holidays_for,
    missing_us_holidays,
    remove_holiday,
    set_weekend,
    weekend,
)
from survey.fieldwork.us_holidays import school_year
from survey.models import DayOff

MANAGE = C.MANAGE_SURVEYS
# The position of the owner in the list of possible owners.
OWNER = "owner"


class HolidayForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME_LENGTH,
        help_text=gettext_lazy("Such as Spring break."),
        error_messages={
            "required": gettext_lazy("Enter a name, such as Spring break.")
        },
    )
    first = forms.DateField(
        label=gettext_lazy("First day"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={
            "required": gettext_lazy("Enter the first day without school."),
            "invalid": gettext_lazy("Enter a date."),
        },
    )
    last = forms.DateField(
        label=gettext_lazy("Last day"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text=gettext_lazy("Leave empty for a single day."),
        error_messages={"invalid": gettext_lazy("Enter a date.")},
    )
    owner = forms.TypedChoiceField(label=gettext_lazy("District"), coerce=int)

    def __init__(
        self, data: QueryDict | None, *, owners: list[District | None]
    ) -> None:
        super().__init__(data)
        if len(owners) == 1:
            del self.fields[OWNER]
        else:
            field = cast(forms.TypedChoiceField, self.fields[OWNER])
            field.choices = list(enumerate(map(str, owners)))


class WeekendForm(forms.Form):
    weekdays = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Days without school"),
        coerce=int,
        choices=[(day, gettext_lazy(name)) for day, name in enumerate(WEEKDAYS)],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one weekday.")},
    )


@needs(MANAGE)
@require_safe
def calendar_list(request: StaffRequest) -> HttpResponse:
    """List the holidays ahead and the past ones, and usual ones that are missing."""
    permissions, today = request.permissions, timezone.localdate()
    holidays = holidays_for(permissions).select_related("district")
    search = ("name", "district__name")
    listing: Listing[DayOff] = Listing(
        request,
        holidays.filter(last__gte=today),
        search=search,
        sorts={"first": ("first",)},
    )
    past: Listing[DayOff] = Listing(
        request,
        holidays.filter(last__lt=today),
        search=search,
        sorts={"first": ("-first",)},
        per_page=MOST_HOLIDAYS,
    )
    owner = owners_for(permissions)[0]
    year = school_year(today)
    missing = missing_us_holidays(year, owner)
    if not missing:
        year += 1
        missing = missing_us_holidays(year, owner)
    return listing.render(
        "survey/console/calendar_list.html",
        {
            "past": past,
            "own": {
                row.pk
                for row in (*listing.page, *past.page)
                if permissions.may_own(row.district_id)
            },
            "owner": owner,
            "year": year,
            "next_year": year + 1,
            "missing": missing,
            "weekend": get_text_list(
                [_(WEEKDAYS[day]) for day in sorted(weekend())], _("and")
            ),
            "is_state": permissions.places(MANAGE).state,
        },
    )


@needs(MANAGE)
def calendar_add(request: StaffRequest) -> HttpResponse:
    owners = owners_for(request.permissions)
    form = HolidayForm(request.POST or None, owners=owners)
    if form.is_bound and form.is_valid():
        cleaned = form.cleaned_data
        try:
            holiday = add_holiday(
                name=cleaned["name"],
                first=cleaned["first"],
                last=cleaned["last"] or cleaned["first"],
                district=owners[cleaned.get(OWNER, 0)],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(
                request,
                _("%(holiday)s was added to the calendar.") % {"holiday": holiday},
            )
            return redirect("calendar_list")
    return render(request, "survey/console/calendar_add.html", {"form": form})


@needs(MANAGE)
@require_POST
def calendar_remove(request: StaffRequest, pk: int) -> HttpResponse:
    holidays = holidays_for(request.permissions).select_related("district")
    holiday = get_object_or_404(holidays, pk=pk)
    try:
        remove_holiday(holiday=holiday, by=request.user, request=request)
    except PermissionDenied:
        raise Http404 from None
    messages.success(
        request, _("%(holiday)s was removed from the calendar.") % {"holiday": holiday}
    )
    return redirect("calendar_list")


@needs(MANAGE)
@require_POST
def calendar_us_holidays(request: StaffRequest) -> HttpResponse:
    """Add the holidays that the list showed as missing, of one school year."""
    this_year = school_year(timezone.localdate())
    years = {str(year): year for year in (this_year, this_year + 1)}
    year = years.get(request.POST.get("year", ""))
    if year is None:
        raise Http404
    added = add_us_holidays(
        year=year,
        district=owners_for(request.permissions)[0],
        by=request.user,
        request=request,
    )
    messages.success(
        request,
        _("%(added)s holidays were added. Remove those on which your schools are open.")
        % {"added": added},
    )
    return redirect("calendar_list")


@needs(MANAGE)
def calendar_weekend(request: StaffRequest) -> HttpResponse:
    if not request.permissions.places(MANAGE).state:
        raise Http404
    # Without a tick, the form has no data but is bound all the same.
    data = request.POST if request.method == "POST" else None
    form = WeekendForm(data, initial={"weekdays": sorted(weekend())})
    if form.is_bound and form.is_valid():
        try:
            set_weekend(
                weekdays=form.cleaned_data["weekdays"], by=request.user, request=request
            )
        except ValidationError as error:
            form.add_error("weekdays", error)
        else:
            messages.success(request, _("The weekend was changed."))
            return redirect("calendar_list")
    return render(request, "survey/console/calendar_weekend.html", {"form": form})
