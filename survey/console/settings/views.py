"""The console's settings pages of the state, of districts and of schools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.logo_upload import draw_logo, store_logo
from accounts.logos import shown_size
from accounts.models import District, Logo, PlaceSettings, School
from accounts.permissions import Capability as C
from accounts.place_changes import may_change_place
from accounts.place_settings import (
    CONTACT,
    DEFAULT_CODING_THRESHOLD,
    DEFAULT_THRESHOLDS,
    Place,
    change_settings,
    change_time_zone,
    contact_of,
    levels_of,
    may_change,
    minimum_group_of,
    own_values,
    setting_of,
)
from accounts.time_zones import zone_label, zone_of
from survey.console.settings.forms import (
    PERCENTS,
    CodingThresholdForm,
    ContactForm,
    HelpForm,
    HiddenQuestionsForm,
    MinimumGroupForm,
    NameForm,
    PublicQuestionsForm,
    ThresholdsForm,
    TimeZoneForm,
)
from survey.console.settings.scope import (
    STATE,
    Crumb,
    about_place,
    own_places,
    place_or_404,
    settings_address,
)
from survey.models.administration import MINIMUM_GROUP

# Every role that opens these pages has it in its places.
OPEN = C.MANAGE_ROSTERS
ROLES = (gettext_lazy("Students"), gettext_lazy("Teachers"), gettext_lazy("Parents"))


@needs(OPEN)
@require_safe
def settings_home(request: StaffRequest) -> HttpResponse:
    """Lead to the only place of a user, or list the places. 2 statements."""
    permissions = request.permissions
    if permissions.places(OPEN).state:
        return redirect(settings_address(None))
    places = own_places(permissions)
    if len(places) == 1:
        return redirect(settings_address(places[0]))
    return render(
        request,
        "survey/console/settings_home.html",
        {"places": [Crumb(place.name, settings_address(place)) for place in places]},
    )


@needs(OPEN)
@require_safe
def settings_place(request: StaffRequest, place: str) -> HttpResponse:
    """Show what holds in a place, and where it comes from; list the places below."""
    target = place_or_404(request, place, OPEN)
    levels = levels_of(target)
    logo = setting_of(target, levels, "logo_id")
    logo_id = logo.values["logo_id"]
    context = {
        **about_place(request, target),
        "contact": contact_of(target, levels),
        "thresholds": [
            (label, *_threshold(target, levels, role, default))
            for (role, default), label in zip(
                DEFAULT_THRESHOLDS.items(), ROLES, strict=True
            )
        ],
        "minimum_group": minimum_group_of(target, levels),
        "default_minimum_group": MINIMUM_GROUP,
        "coding_threshold": setting_of(target, levels, "coding_threshold"),
        "default_coding_threshold": DEFAULT_CODING_THRESHOLD,
        "public_help": setting_of(target, levels, "public_help"),
        "public_questions": setting_of(target, levels, "public_questions"),
        "hides_questions": setting_of(target, levels, "hides_questions"),
        "name": setting_of(target, levels, "name"),
        "logo": logo,
        "accent": setting_of(target, levels, "accent"),
        "logo_size": shown_size(str(logo_id)) if logo_id else (0, 0),
        "time_zone": zone_label(zone_of(target))
        if not isinstance(target, School)
        else "",
        "may_change_place": target is not None
        and may_change_place(request.permissions, target),
        "may_change": may_change(request.permissions, target, C.MANAGE_SURVEYS),
    }
    if isinstance(target, School):
        return render(request, "survey/console/settings_school.html", context)
    rows = District.objects.all() if target is None else target.schools.all()
    listing: Listing[District | School] = Listing(
        request,
        rows,
        search=("name", "code"),
        sorts={"name": ("name",), "code": ("code",)},
    )
    context["prefix"] = "districts/" if target is None else "schools/"
    return listing.render("survey/console/settings_place.html", context)


@needs(OPEN)
def settings_contact(request: StaffRequest, place: str) -> HttpResponse:
    target = place_or_404(request, place, OPEN)
    form = ContactForm(request.POST or None, initial=own_values(target, *CONTACT))
    if request.method == "POST" and form.is_valid():
        return _change(
            request,
            target,
            "change contact person",
            {name: form.cleaned_data[name] for name in CONTACT},
            _("The contact person was saved."),
        )
    context = {**about_place(request, target), "form": form}
    return render(request, "survey/console/settings_contact.html", context)


@needs(C.MANAGE_SURVEYS)
def settings_thresholds(request: StaffRequest, place: str) -> HttpResponse:
    target = place_or_404(request, place, C.MANAGE_SURVEYS)
    form = ThresholdsForm(request.POST or None, initial=own_values(target, *PERCENTS))
    if request.method == "POST" and form.is_valid():
        return _change(
            request,
            target,
            "change response rate thresholds",
            {name: form.cleaned_data[name] for name in PERCENTS},
            _("The thresholds were saved. Response rates use them within a minute."),
        )
    context = {**about_place(request, target), "form": form}
    return render(request, "survey/console/settings_thresholds.html", context)


@needs(C.MANAGE_SURVEYS)
def settings_minimum_group(request: StaffRequest, place: str) -> HttpResponse:
    """Change the minimum group of new administrations of the state or a district."""
    target = place_or_404(request, place, C.MANAGE_SURVEYS)
    if isinstance(target, School):
        raise Http404
    least = 0
    if target is not None:
        least = minimum_group_of(None, levels_of(None)).values["minimum_group"] or 0
    form = MinimumGroupForm(
        request.POST or None, initial=own_values(target, "minimum_group"), least=least
    )
    if request.method == "POST" and form.is_valid():
        return _change(
            request,
            target,
            "change minimum group",
            {"minimum_group": form.cleaned_data["minimum_group"]},
            _("The minimum group was saved. It holds for new survey rounds."),
        )
    context = {
        **about_place(request, target),
        "form": form,
        "default": least or MINIMUM_GROUP,
    }
    return render(request, "survey/console/settings_minimum_group.html", context)


@needs(C.MANAGE_SURVEYS)
def settings_coding_threshold(request: StaffRequest) -> HttpResponse:
    """Change below which percentage the state's results show a bound."""
    state = place_or_404(request, STATE, C.MANAGE_SURVEYS)
    form = CodingThresholdForm(
        request.POST or None, initial=own_values(state, "coding_threshold")
    )
    if request.method == "POST" and form.is_valid():
        return _change(
            request,
            state,
            "change smallest percentage",
            {"coding_threshold": form.cleaned_data["coding_threshold"]},
            _("The smallest percentage was saved. It holds for new results."),
        )
    context = {
        **about_place(request, state),
        "form": form,
        "default": DEFAULT_CODING_THRESHOLD,
    }
    return render(request, "survey/console/settings_coding_threshold.html", context)


@needs(C.MANAGE_SURVEYS)
def settings_help(request: StaffRequest) -> HttpResponse:
    """Choose whether the help site is open to everyone."""
    state = place_or_404(request, STATE, C.MANAGE_SURVEYS)
    return _switch(
        request, state, HelpForm, "change who reads the help", "settings_help"
    )


@needs(C.MANAGE_SURVEYS)
def settings_questions(request: StaffRequest, place: str) -> HttpResponse:
    """Choose whether the questions of surveys are on public pages.

    The state for all survey rounds, and a district for its own.
    """
    target = place_or_404(request, place, C.MANAGE_SURVEYS)
    if isinstance(target, School):
        raise Http404
    form_of = PublicQuestionsForm if target is None else HiddenQuestionsForm
    action = "change whether questions are public"
    return _switch(request, target, form_of, action, "settings_questions")


def _switch(
    request: StaffRequest,
    target: Place,
    form_of: type[forms.Form],
    action: str,
    page: str,
) -> HttpResponse:
    """Switch something on public pages on or off: the form's only field."""
    [name] = form_of.base_fields
    # A box that is not ticked is not sent.
    form = form_of(
        request.POST if request.method == "POST" else None,
        initial=own_values(target, name),
    )
    if form.is_valid():
        done = _("The setting was saved. Pages follow it within a minute.")
        return _change(request, target, action, form.cleaned_data, done)
    context = {**about_place(request, target), "form": form}
    return render(request, f"survey/console/{page}.html", context)


@needs(C.MANAGE_SURVEYS)
def settings_name(request: StaffRequest, place: str) -> HttpResponse:
    """Change the name, logo and accent color of the state or of a district."""
    target = place_or_404(request, place, C.MANAGE_SURVEYS)
    if isinstance(target, School):
        raise Http404
    values = own_values(target, "name", "logo", "accent")
    form = NameForm(
        request.POST if request.method == "POST" else None,
        request.FILES or None,
        initial={"name": values["name"], "accent": values["accent"]},
        has_logo=values["logo"] is not None,
    )
    if request.method == "POST" and form.is_valid():
        try:
            file = form.cleaned_data["logo"]
            png = draw_logo(file.read()) if file else None
            return _save_name(request, target, form, values["logo"], png)
        except ValidationError as error:
            form.add_error("logo", error)
    context = {**about_place(request, target), "form": form}
    return render(request, "survey/console/settings_name.html", context)


@needs(C.MANAGE_SURVEYS)
def settings_time_zone(request: StaffRequest, place: str) -> HttpResponse:
    """Choose the time zone of a district."""
    target = place_or_404(request, place, C.MANAGE_SURVEYS)
    if not isinstance(target, District):
        raise Http404
    form = TimeZoneForm(request.POST or None, initial={"time_zone": target.time_zone})
    if request.method == "POST" and form.is_valid():
        changed = change_time_zone(
            target,
            time_zone=form.cleaned_data["time_zone"],
            by=request.user,
            request=request,
        )
        done = _("The time zone was saved.") if changed else _("Nothing was changed.")
        messages.success(request, done)
        return redirect(settings_address(target))
    context = {**about_place(request, target), "form": form}
    return render(request, "survey/console/settings_time_zone.html", context)


@transaction.atomic
def _save_name(
    request: StaffRequest,
    place: Place,
    form: NameForm,
    current: object,
    png: bytes | None,
) -> HttpResponse:
    logo = None if form.cleaned_data.get("remove_logo") else current
    if png:
        logo = store_logo(png)
    response = _change(
        request,
        place,
        "change name and logo",
        {
            "name": form.cleaned_data["name"],
            "logo": logo,
            "accent": form.cleaned_data["accent"],
        },
        _("The name, logo and color were saved. Pages show them within a minute."),
    )
    # Another place may have the same picture.
    if isinstance(current, Logo) and not PlaceSettings.objects.filter(logo=current):
        current.delete()
    return response


def _change(
    request: StaffRequest,
    place: Place,
    action: str,
    values: Mapping[str, object],
    done: str,
) -> HttpResponse:
    changed = change_settings(
        action, place=place, values=values, by=request.user, request=request
    )
    messages.success(request, done if changed else _("Nothing was changed."))
    return redirect(settings_address(place))


def _threshold(
    place: Place, levels: Sequence[PlaceSettings], role: str, default: int
) -> tuple[object, str]:
    name = f"{role}_percent"
    setting = setting_of(place, levels, name)
    return setting.values[name] or default, setting.source
