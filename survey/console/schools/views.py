"""The console's pages for importing addresses and coordinates of schools."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, cast

from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest, csv_response
from accounts.permissions import Capability
from survey.console.rosters.forms import ENDINGS
from survey.console.table_files import TableField
from survey.models import SchoolImport
from survey.people.schools import uploads
from survey.work.job_turns import TooManyJobs

MANAGE = Capability.MANAGE_ROSTERS
MOST_SHOWN = 200
COUNT_LABELS = (
    ("created", pgettext_lazy("schools", "created")),
    ("changed", pgettext_lazy("schools", "changed")),
    ("unchanged", pgettext_lazy("schools", "unchanged")),
    ("rejected", pgettext_lazy("schools", "rejected")),
)
P = ParamSpec("P")


class SchoolFileForm(forms.Form):
    file = TableField(
        label=gettext_lazy("List of schools"),
        help_text=gettext_lazy("CSV or Excel, at most 30 MB, with one row per school."),
        endings=ENDINGS,
        # A list of 100,000 schools has 12 MB.
        largest=30 * 10**6,
        too_large=gettext_lazy(
            "The file is larger than 30 MB. Save it as CSV, or split it by state."
        ),
    )
    create = forms.BooleanField(
        label=gettext_lazy("Add schools that are not known here"),
        help_text=gettext_lazy(
            "They need a code, a name and the code of their district."
        ),
        required=False,
    )


def _of_the_state(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
    """Answer 404 to all but the state's administrators: a file may name any school."""

    @wraps(view)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        request = cast(StaffRequest, args[0])
        if not request.permissions.places(MANAGE).state:
            raise Http404
        return view(*args, **kwargs)

    return wrapper


@needs(MANAGE)
@_of_the_state
def school_imports(request: StaffRequest) -> HttpResponse:
    """Upload a list of schools, and list the earlier ones. 2 statements."""
    form = SchoolFileForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            upload = uploads.receive_schools(
                name=file.name,
                content=file.read(),
                create=form.cleaned_data["create"],
                by=request.user,
                request=request,
            )
        except TooManyJobs as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("school_import", upload.pk)
    listing = Listing(
        request,
        SchoolImport.objects.defer("content", "report").select_related("by"),
        search=("name", "by__email"),
        sorts={"uploaded": ("-created_at",), "name": ("name",), "state": ("state",)},
    )
    return listing.render("survey/console/school_imports.html", {"form": form})


@needs(MANAGE)
@_of_the_state
@require_safe
def school_import(request: StaffRequest, pk: int) -> HttpResponse:
    return _render(request, _upload_or_404(pk))


@needs(MANAGE)
@_of_the_state
@require_POST
def school_import_confirm(request: StaffRequest, pk: int) -> HttpResponse:
    upload = _upload_or_404(pk)
    try:
        uploads.confirm_schools(upload=upload, by=request.user, request=request)
    except ValidationError as refused:
        return _render(request, upload, str(refused.message), status=409)
    return redirect("school_import", pk)


@needs(MANAGE)
@_of_the_state
@require_POST
def school_import_cancel(request: StaffRequest, pk: int) -> HttpResponse:
    upload = _upload_or_404(pk)
    try:
        uploads.cancel_schools(upload=upload, by=request.user, request=request)
    except ValidationError as refused:
        return _render(request, upload, str(refused.message), status=409)
    return redirect("school_imports")


@needs(MANAGE)
@_of_the_state
@require_safe
def school_import_rejected(request: StaffRequest, pk: int) -> HttpResponse:
    """Download the rejected cells, by line and column."""
    columns = ("row", "column", "reason", "text")
    cells = _upload_or_404(pk).report.get("rejections", [])
    rows = [tuple(cell[column] for column in columns) for cell in cells]
    return csv_response([columns, *rows], filename="rejected-schools.csv")


def _upload_or_404(pk: int) -> SchoolImport:
    known = SchoolImport.objects.defer("content").select_related("by")
    return get_object_or_404(known, pk=pk)


def _render(
    request: StaffRequest, upload: SchoolImport, error: str = "", status: int = 200
) -> HttpResponse:
    upload.refresh_from_db(fields=["state"])
    job = uploads.latest_job(upload)
    is_waiting = upload.state in ("checking", "applying")
    report = upload.report
    return render(
        request,
        "survey/console/school_import.html",
        {
            "upload": upload,
            "job": job if is_waiting else None,
            "error": error,
            "totals": [(label, report.get(name, 0)) for name, label in COUNT_LABELS],
            "rejections": report.get("rejections", [])[:MOST_SHOWN],
            "most_shown": MOST_SHOWN,
            "writes": report.get("created", 0) + report.get("changed", 0),
        },
        status=status,
    )
