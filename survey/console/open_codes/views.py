"""The pages to list, create, show, revoke and replace open codes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.administrations.forms import show_errors
from survey.console.open_codes.forms import OpenCodeForm, languages_of
from survey.console.open_codes.scope import (
    codes_for,
    open_code_or_404,
    schools_for,
    selected_school,
)
from survey.console.people.scope import set_choices
from survey.fieldwork.administrations.queries import administration_or_404
from survey.fieldwork.open_codes.codes import (
    code_of,
    create_open_code,
    link_of,
    publish_open_code,
    record_action,
    replace_open_code,
    revoke_open_code,
)
from survey.fieldwork.open_codes.figures import (
    BURST,
    BURST_WITHIN,
    SMALLEST_GROUP,
    crowded_periods,
    figures_of,
    watched_codes,
)
from survey.fieldwork.open_codes.lookup import read_hourly_limit
from survey.models import Administration, Denominator, OpenCode
from survey.people.access_codes import format_code

# In the session: the code that the next page shows once, by its key and issue.
SHOW_CODE_ONCE = "open_code_to_show"
UNUSUAL = "unusual"
STATES = {"current": Q(revoked_at=None), "revoked": Q(revoked_at__isnull=False)}
STATE_CHOICES: list[tuple[str, Any]] = [
    ("", gettext_lazy("All")),
    ("current", gettext_lazy("Not revoked")),
    ("revoked", gettext_lazy("Revoked")),
]


class StateFilter(forms.Form):
    state = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Status"),
        choices=STATE_CHOICES,
    )

    def __init__(self, data: QueryDict, *, sees_abuse: bool) -> None:
        super().__init__(data)
        if sees_abuse:
            choices = [*STATE_CHOICES, (UNUSUAL, _("Unusual number of starts"))]
            set_choices(self, "state", choices)


@needs(C.MANAGE_ROSTERS)
@require_safe
def open_codes_list(request: StaffRequest, pk: int) -> HttpResponse:
    """List the codes of the user's schools with their figures."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    state = request.GET.get("state", "")
    codes = codes_for(request, administration).filter(STATES.get(state, Q()))
    if state == UNUSUAL:
        watched = watched_codes(request.permissions, administration)
        codes = codes.filter(pk__in=crowded_periods(watched))
    listing: Listing[OpenCode] = Listing(
        request,
        codes,
        search=("school__name", "school__district__name", "label"),
        sorts={
            "school": ("school__name", "school__district__name", "created_at"),
            "district": ("school__district__name", "school__name", "created_at"),
            "label": ("label", "school__name"),
            "created": ("-created_at",),
        },
    )
    shown = list(listing.page.object_list)
    figures = figures_of(shown, request.permissions)
    places = request.permissions.places(C.MANAGE_ROSTERS)
    sees_abuse = request.permissions.has(C.SEE_AUDIT)
    return listing.render(
        "survey/console/open_codes_list.html",
        {
            "administration": administration,
            "codes": [(code, figures[code.pk]) for code in shown],
            "filter_form": StateFilter(request.GET, sees_abuse=sees_abuse),
            "narrowed": bool(state or listing.query),
            "is_by_roster": administration.denominator != Denominator.COUNT,
            "is_whole_place": places.state or bool(places.districts),
            "sees_abuse": sees_abuse,
            **explanation(),
        },
    )


def explanation() -> dict[str, object]:
    return {
        "now": timezone.now(),
        "smallest": SMALLEST_GROUP,
        "burst": BURST,
        "minutes": BURST_WITHIN.seconds // 60,
    }


@needs(C.MANAGE_ROSTERS)
def open_codes_new(request: StaffRequest, pk: int) -> HttpResponse:
    """Create a code for a school; without one, choose it."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    school = selected_school(request, administration)
    if school is None:
        return _choose_school(request, administration)
    form = OpenCodeForm(request.POST or None, administration=administration)
    if form.is_bound and form.is_valid():
        try:
            code = create_open_code(
                administration=administration,
                school=school,
                by=request.user,
                request=request,
                **form.options(),
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(
                request, _("A code for %(school)s was created.") % {"school": school}
            )
            return _redirect_and_show(request, code)
    return render(
        request,
        "survey/console/open_codes_new.html",
        {"administration": administration, "school": school, "form": form},
    )


def _choose_school(
    request: StaffRequest, administration: Administration
) -> HttpResponse:
    listing = Listing(
        request,
        schools_for(request, administration),
        search=("name", "code", "district__name"),
        sorts={
            "name": ("name", "district__name"),
            "district": ("district__name", "name"),
        },
    )
    return listing.render(
        "survey/console/open_codes_schools.html", {"administration": administration}
    )


@needs(C.MANAGE_ROSTERS)
@require_safe
def open_code_detail(request: StaffRequest, pk: int, open_code: int) -> HttpResponse:
    """Show how a code fills; htmx requests the figures again."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    code = open_code_or_404(request, administration, open_code)
    figures = figures_of([code], request.permissions)[code.pk]
    context = {
        "administration": administration,
        "code": code,
        "figures": figures,
        "sees_abuse": figures.bursts is not None,
        "shows_stars": figures.answered is None,
        **explanation(),
    }
    if request.htmx:
        return render(request, "survey/console/_open_code_figures.html", context)
    opens_at, closes_at = code.window
    names = languages_of(administration)
    context |= {
        "opens_at": opens_at,
        "closes_at": closes_at,
        "language": names.get(code.language, _("The browser’s")),
        "most_per_hour": read_hourly_limit(code),
    }
    # A reload does not show the code again.
    if request.session.pop(SHOW_CODE_ONCE, None) == [code.pk, code.issue]:
        context |= {"letters": format_code(code_of(code)), "link": link_of(code)}
    return render(request, "survey/console/open_code_detail.html", context)


@needs(C.MANAGE_ROSTERS)
@require_POST
def open_code_show(request: StaffRequest, pk: int, open_code: int) -> HttpResponse:
    """Show the code and its link once, on the next page."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    code = open_code_or_404(request, administration, open_code)
    if code.revoked_at is not None:
        messages.error(
            request, _("This code was revoked, and starts nothing any more.")
        )
        return redirect("open_code_detail", pk, code.pk)
    record_action("show open code", code, request.user, request)
    return _redirect_and_show(request, code)


@needs(C.MANAGE_ROSTERS)
@require_POST
def open_code_publish(request: StaffRequest, pk: int, open_code: int) -> HttpResponse:
    """Show a code's link on the school's public page, or show it no more."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    code = open_code_or_404(request, administration, open_code)
    published = request.POST.get("published") == "yes"
    try:
        publish_open_code(
            code=code, published=published, by=request.user, request=request
        )
    except ValidationError as error:
        messages.error(request, error.messages[0])
    else:
        words = (
            _("The school’s public page shows the link within a minute.")
            if published
            else _("The school’s public page no longer shows the link within a minute.")
        )
        messages.success(request, words)
    return redirect("open_code_detail", pk, code.pk)


def _redirect_and_show(request: StaffRequest, code: OpenCode) -> HttpResponse:
    request.session[SHOW_CODE_ONCE] = [code.pk, code.issue]
    return redirect("open_code_detail", code.administration_id, code.pk)


@needs(C.MANAGE_ROSTERS)
def open_code_revoke(request: StaffRequest, pk: int, open_code: int) -> HttpResponse:
    """End a code, after a page that says what happens."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    code = open_code_or_404(request, administration, open_code)
    if request.method == "POST":
        revoke_open_code(code=code, by=request.user, request=request)
        messages.success(
            request, _("The code was revoked. It starts nothing any more.")
        )
        return redirect("open_code_detail", pk, code.pk)
    return _confirm(request, "revoke", administration, code)


@needs(C.MANAGE_ROSTERS)
def open_code_replace(request: StaffRequest, pk: int, open_code: int) -> HttpResponse:
    """Give a code new letters, after a page that says what happens."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    code = open_code_or_404(request, administration, open_code)
    if request.method != "POST":
        return _confirm(request, "replace", administration, code)
    try:
        code = replace_open_code(
            code=code,
            seen=request.POST.get("seen", ""),
            by=request.user,
            request=request,
        )
    except ValidationError as error:
        messages.error(request, error.messages[0])
        return redirect("open_code_detail", pk, code.pk)
    messages.success(
        request, _("The code was replaced. Print new posters and letters.")
    )
    return _redirect_and_show(request, code)


def _confirm(
    request: StaffRequest, action: str, administration: Administration, code: OpenCode
) -> HttpResponse:
    context = {
        "administration": administration,
        "code": code,
        "figures": figures_of([code], request.permissions)[code.pk],
    }
    return render(request, f"survey/console/open_code_{action}.html", context)
