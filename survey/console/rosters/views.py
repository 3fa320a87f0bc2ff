"""Rosters: uploaded, looked at, confirmed."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.access import needs
from accounts.audit import record
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability, Permissions
from survey.administrations import administrations_for
from survey.console.rosters.forms import RosterForm, name_of
from survey.files import download
from survey.models import Administration, RosterUpload
from survey.rosters import uploads
from survey.rosters.template import XLSX, csv_template, rows_of_template, xlsx_template
from survey.rosters.uploads import NotNow, WrongWord

MANAGE = Capability.MANAGE_ROSTERS
# Of administrations to choose from.
MOST_SHOWN = 12
# Digits of a key in an address.
LONGEST_KEY = 18
FIELDS = {
    "district": "district",
    "district_name": "district's name",
    "school": "school",
    "school_name": "school's name",
    "role": "role",
    "external_id": "ID",
    "grade": "grade",
    "classroom": "class",
    "given_name": "given name",
    "family_name": "family name",
    "name": "whole name",
    "email": "e-mail",
    "birth_date": "birth date",
    "language": "language",
}


@needs(MANAGE)
@require_safe
def roster_list(request: StaffRequest) -> HttpResponse:
    """3 statements: the uploads, their number, and for what one may upload."""
    permissions = request.permissions
    visible = RosterUpload.objects.visible_to(permissions)
    asked = request.GET.get("administration", "")
    filtered = asked.isascii() and asked.isdecimal() and len(asked) <= LONGEST_KEY
    if filtered:
        visible = visible.filter(administration=int(asked))
    listing = Listing(
        request,
        visible.select_related("administration", "by", "district", "school"),
        search=("name", "administration__name", "by__email"),
        sorts={
            "uploaded": ("-uploaded_at",),
            "name": ("name",),
            "administration": ("administration__name",),
            "state": ("state",),
        },
    )
    open_ones = _offered(permissions).filter(closes_at__gt=timezone.now())
    return listing.render(
        "survey/console/roster_list.html",
        {
            "administrations": (
                [] if listing.is_part else open_ones.order_by("opens_at")[:MOST_SHOWN]
            ),
            "filtered": filtered,
        },
    )


@needs(MANAGE)
@require_http_methods(["GET", "HEAD", "POST"])
def roster_upload(request: StaffRequest, pk: int) -> HttpResponse:
    administration = get_object_or_404(_offered(request.permissions), pk=pk)
    form = RosterForm(
        request.POST or None, request.FILES or None, permissions=request.permissions
    )
    if request.method == "POST" and form.is_valid():
        upload = uploads.receive(
            administration=administration,
            file=form.cleaned_data["file"],
            complete_for=form.cleaned_data["complete_for"],
            district=form.cleaned_data["district"],
            school=form.cleaned_data["school"],
            by=request.user,
            request=request,
        )
        return redirect("roster_detail", upload.pk)
    return render(
        request,
        "survey/console/roster_upload.html",
        {
            "administration": administration,
            "form": form,
            "place": ", ".join(map(name_of, form.places.values())),
        },
    )


@needs(MANAGE)
@require_safe
def roster_template(request: StaffRequest, pk: int, ending: str) -> HttpResponse:
    administration = get_object_or_404(_offered(request.permissions), pk=pk)
    # One of their own: an example that names another school would add it.
    schools = request.permissions.schools(MANAGE).select_related("district")
    if administration.district_id is not None:
        schools = schools.filter(district=administration.district_id)
    rows = rows_of_template(administration, schools.order_by("name", "pk").first())
    if ending == "xlsx":
        response = HttpResponse(xlsx_template(rows), content_type=XLSX)
    else:
        response = HttpResponse(csv_template(rows), content_type="text/csv")
    name = f"roster-{administration.name}.{ending}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@needs(MANAGE)
@require_safe
def roster_detail(request: StaffRequest, pk: int) -> HttpResponse:
    return _show(request, _upload(request, pk))


def _show(
    request: StaffRequest,
    upload: RosterUpload,
    *,
    typed: str = "",
    error: str = "",
) -> HttpResponse:
    """4 statements: the job, and the schools, their number and their sums."""
    job = uploads.job_of(upload)
    listing = Listing(
        request,
        upload.schools.all(),
        search=("name", "district_name"),
        sorts={
            "name": ("name",),
            "district": ("district_name", "name"),
            **{name: (name, "name") for name in _NUMBERS},
        },
    )
    report = upload.report
    return listing.render(
        "survey/console/roster_detail.html",
        {
            "upload": upload,
            "job": job,
            # Its worker died, or it was cancelled before it began.
            "stands_still": upload.state in ("checking", "applying", "failed")
            and (job is None or job.is_over),
            "mapping": [
                (report["columns"][name], FIELDS.get(name, name))
                for name in report.get("order_of_columns", report.get("columns", ()))
            ],
            "totals": [(label, report.get(name, 0)) for name, label in _TOTALS],
            "nobody_withdrawn": _why_nobody(upload),
            "new_districts": report.get("districts_created", ()),
            "new_schools": len(report.get("schools_created", ())),
            "typed": typed,
            "error": error,
        },
    )


_NUMBERS = (
    "people",
    "withdrawn",
    "added",
    "changed",
    "moved",
    "moved_away",
    "back",
    "unchanged",
)
_TOTALS = (
    ("added", "added"),
    ("changed", "changed"),
    ("moved", "moved"),
    ("back", "come back"),
    ("withdrawn", "withdrawn"),
    ("unchanged", "unchanged"),
    ("rejected", "rows rejected"),
)


def _why_nobody(upload: RosterUpload) -> str:
    """Why people who are missing are left as they are, if not as asked for."""
    if upload.complete_for == RosterUpload.CompleteFor.CHANGES:
        return ""
    if upload.report.get("is_correction"):
        return (
            "This is a file of rejected rows, corrected. It names these people only,"
            " so nobody is withdrawn."
        )
    if nameless := upload.report.get("nameless"):
        rows = (
            "1 rejected row does" if nameless == 1 else f"{nameless} rejected rows do"
        )
        return (
            f"{rows} not say whose they are, so nobody is withdrawn: it could be"
            " somebody who seems to be missing. Correct them and upload the whole"
            " file again to withdraw who is gone."
        )
    return ""


@needs(MANAGE)
@require_safe
def roster_rejected(request: StaffRequest, pk: int) -> HttpResponse:
    upload = _upload(request, pk)
    _look(request, upload, "see rejected rows")
    listing = Listing(
        request,
        upload.rejections.all(),
        search=("column", "reason", "text"),
        sorts={
            "row": ("row", "pk"),
            "column": ("column", "row"),
            "reason": ("reason",),
        },
    )
    return listing.render("survey/console/roster_rejected.html", {"upload": upload})


@needs(MANAGE)
@require_safe
def roster_rejected_file(request: StaffRequest, pk: int) -> HttpResponseBase:
    upload = _upload(request, pk)
    if not upload.rejected_file:
        raise Http404
    _look(request, upload, "download rejected rows")
    stem = slugify(upload.name.rpartition(".")[0]) or "roster"
    return download(
        upload.rejected_file,
        as_name=f"{stem}-rejected.csv",
        content_type="text/csv; charset=utf-8",
    )


@needs(MANAGE)
@require_POST
def roster_confirm(request: StaffRequest, pk: int) -> HttpResponse:
    upload, typed = _upload(request, pk), request.POST.get("typed", "")
    try:
        uploads.confirm(
            upload,
            by=request.user,
            seen=request.POST.get("seen", ""),
            typed=typed,
            request=request,
        )
    except WrongWord:
        error = f"Type the number of people who will be withdrawn: {upload.withdrawn}."
        return _show(request, upload, typed=typed[:200], error=error)
    except NotNow as reason:
        messages.error(request, str(reason))
    return redirect("roster_detail", pk)


@needs(MANAGE)
@require_POST
def roster_cancel(request: StaffRequest, pk: int) -> HttpResponse:
    upload = _upload(request, pk)
    try:
        uploads.cancel(upload, by=request.user, request=request)
        messages.success(request, "Cancelled. Nothing was changed.")
    except NotNow as reason:
        messages.error(request, str(reason))
    return redirect("roster_detail", pk)


@needs(MANAGE)
@require_POST
def roster_again(request: StaffRequest, pk: int) -> HttpResponse:
    upload = _upload(request, pk)
    try:
        uploads.start_again(upload, by=request.user, request=request)
    except NotNow as reason:
        messages.error(request, str(reason))
    return redirect("roster_detail", pk)


def _offered(permissions: Permissions) -> QuerySet[Administration]:
    return administrations_for(permissions, MANAGE)


def _upload(request: StaffRequest, pk: int) -> RosterUpload:
    visible = RosterUpload.objects.visible_to(request.permissions)
    return get_object_or_404(
        visible.select_related(
            "administration", "by", "confirmed_by", "district", "school"
        ),
        pk=pk,
    )


def _look(request: StaffRequest, upload: RosterUpload, action: str) -> None:
    """The cells that were refused may be anybody's name."""
    record(
        action,
        by=request.user,
        request=request,
        subject=upload,
        school=upload.school,
        district=upload.district,
        after={"rejected": upload.rejected},
    )
