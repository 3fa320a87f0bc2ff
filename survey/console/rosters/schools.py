"""The console's page for choosing the known schools that a roster means."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_POST

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.rosters.school_options import SchoolOptions, school_options
from survey.console.rosters.views import _render_detail, _uploads
from survey.models import RosterUpload
from survey.people.rosters.school_choices import (
    MOST_FOUND,
    choose_schools,
    find_schools,
    undo_choice,
)
from survey.people.rosters.scope import RosterScope, scope_of_upload
from survey.people.rosters.upload_state import UploadConflict
from survey.work.job_turns import TooManyJobs, refuse_many

LONGEST_SEARCH = 200
NOTHING_CHOSEN = gettext_noop(
    "Say for at least one of the schools to check which school is meant."
)


@needs(Capability.MANAGE_ROSTERS)
@require_POST
def roster_schools(request: StaffRequest, pk: int) -> HttpResponse:
    """Choose schools, undo a choice, or search for schools to choose."""
    upload = get_object_or_404(_uploads(request), pk=pk)
    options = school_options(upload, request.POST, request.permissions)
    if "find" in request.POST:
        return _show_matches(request, upload, options)
    undone = request.POST.get("undo", "")
    chosen = {
        option.key: option.chosen for option in options if option.chosen is not None
    }
    if not undone and not chosen:
        messages.error(request, _(NOTHING_CHOSEN))
        return redirect("roster_detail", pk)
    try:
        refuse_many(request.user)
        if undone:
            undo_choice(upload, undone, by=request.user, request=request)
        else:
            choose_schools(upload, chosen, by=request.user, request=request)
    except (TooManyJobs, UploadConflict) as refused:
        messages.error(request, str(refused))
    return redirect("roster_detail", pk)


def _show_matches(
    request: StaffRequest, upload: RosterUpload, options: list[SchoolOptions]
) -> HttpResponse:
    """Search for each question that has a search word; one statement each.

    A request by htmx is about one of them.
    """
    scope = scope_of_upload(upload, request.permissions)
    key = request.POST["find"]
    if request.htmx:
        options = [option for option in options if option.key == key]
    if scope is None or not options:
        raise Http404
    options = [_with_matches(option, scope, request.POST) for option in options]
    if request.htmx:
        context = {"option": options[0], "upload": upload}
        return render(request, "survey/console/_roster_school.html", context)
    return _render_detail(request, upload, options=options)


def _with_matches(
    option: SchoolOptions, scope: RosterScope, data: QueryDict
) -> SchoolOptions:
    searched = data.get(f"q-{option.key}", "")[:LONGEST_SEARCH].strip()
    if not searched:
        return option
    matching = find_schools(scope, searched)
    return replace(
        option,
        schools=list(dict.fromkeys([*option.schools, *matching[:MOST_FOUND]])),
        searched=searched,
        matches=len(matching),
    )
