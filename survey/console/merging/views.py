"""The console's pages for merging duplicate districts and schools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Capability
from survey.console.merging.forms import ConfirmMergeForm, MergeForm
from survey.models import Administration, CardSet, PlaceMerge
from survey.people.merging import merges

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MANAGE = Capability.MANAGE_STAFF
State = PlaceMerge.State
# Digits of a primary key in an address.
LONGEST_KEY = 18
# Schools whose merging the page lists.
MOST_SHOWN = 200
CONFIRMABLE = (State.CHECKED, State.PARTLY)
# Below a number.
PEOPLE_MOVE = ngettext_lazy("person moves", "people move", "number")
PEOPLE_TWICE = ngettext_lazy("person exists twice", "people exist twice", "number")
SCHOOLS_MOVE = ngettext_lazy("school moves", "schools move", "number")
SCHOOLS_TWICE = ngettext_lazy("school exists twice", "schools exist twice", "number")
ROLES_MOVE = ngettext_lazy("staff role moves", "staff roles move", "number")
OPEN_CODES_MOVE = ngettext_lazy("school link moves", "school links move", "number")


@needs(MANAGE)
@require_safe
def merge_list(request: StaffRequest) -> HttpResponse:
    """List merges, newest first. 2 statements."""
    listing = Listing(
        request,
        PlaceMerge.objects.visible_to(request.permissions).select_related("by"),
        search=("duplicate_name", "kept_name", "by__email"),
        sorts={
            "created": ("-created_at",),
            "duplicate": ("duplicate_name",),
            "state": ("state",),
        },
    )
    return listing.render(
        "survey/console/merge_list.html",
        {"is_state": request.permissions.places(MANAGE).state},
    )


@needs(MANAGE)
def merge_new(request: StaffRequest) -> HttpResponse:
    """Choose two districts, or with `?district=` two of its schools."""
    district = _chosen_district(request)
    districts = request.permissions.districts(MANAGE)
    places = School.objects.filter(district=district) if district else districts
    form = MergeForm(request.POST or None, places=places)
    if request.method == "POST" and form.is_valid():
        merge = merges.request_merge(
            form.cleaned_data["duplicate"],
            form.cleaned_data["kept"],
            by=request.user,
            request=request,
        )
        return redirect("merge_detail", merge.pk)
    return render(
        request,
        "survey/console/merge_new.html",
        {
            "form": form,
            "district": district,
            "districts": districts.order_by("name", "pk"),
            "is_state": request.permissions.places(MANAGE).state,
        },
    )


def _chosen_district(request: StaffRequest) -> District | None:
    """Return the district whose schools are merged; None merges districts.

    Raises Http404 for districts of others, and for merging districts without the state.
    """
    districts = request.permissions.districts(MANAGE)
    key = request.GET.get("district", "")
    if key.isascii() and key.isdecimal() and len(key) <= LONGEST_KEY:
        return get_object_or_404(districts, pk=int(key))
    if request.permissions.places(MANAGE).state:
        return None
    district = districts.order_by("name", "pk").first()
    if district is None:
        raise Http404
    return district


@needs(MANAGE)
@require_safe
def merge_detail(request: StaffRequest, pk: int) -> HttpResponse:
    merge = merge_or_404(request, pk)
    return _render(request, merge, ConfirmMergeForm(merge=merge))


@needs(MANAGE)
@require_POST
def merge_confirm(request: StaffRequest, pk: int) -> HttpResponse:
    merge = merge_or_404(request, pk)
    form = ConfirmMergeForm(request.POST, merge=merge)
    if form.is_valid():
        try:
            merges.confirm_merge(
                merge,
                by=request.user,
                typed=form.cleaned_data["typed"],
                keep=form.cleaned_data.get("keep", ""),
                request=request,
            )
        except merges.MergeConflict as conflict:
            form.add_error("typed", str(conflict))
        else:
            return redirect("merge_detail", pk)
    return _render(request, merge, form)


@needs(MANAGE)
@require_POST
def merge_cancel(request: StaffRequest, pk: int) -> HttpResponse:
    merge = merge_or_404(request, pk)
    try:
        merges.cancel_merge(merge, by=request.user, request=request)
        messages.success(request, _("Merge cancelled. Nothing was changed."))
    except merges.MergeConflict as conflict:
        messages.error(request, str(conflict))
    return redirect("merge_detail", pk)


def merge_or_404(request: StaffRequest, pk: int) -> PlaceMerge:
    visible = PlaceMerge.objects.visible_to(request.permissions)
    return get_object_or_404(visible.select_related("by", "confirmed_by"), pk=pk)


def _render(
    request: StaffRequest, merge: PlaceMerge, form: ConfirmMergeForm
) -> HttpResponse:
    job = merges.latest_job(merge)
    stopped = merge.state == State.MERGING and (job is None or job.is_over)
    return render(
        request,
        "survey/console/merge_detail.html",
        {
            "merge": merge,
            "job": job,
            "form": form,
            "has_stopped": stopped,
            "is_confirmable": merge.state in CONFIRMABLE or stopped,
            "figures": _figures(merge),
            "schools": _school_names(merge),
            "administrations": _administration_titles(merge),
        },
    )


def _figures(merge: PlaceMerge) -> list[tuple[str, str]]:
    """Return labels and numbers."""
    report = merge.report
    if not report:
        return []
    figures = [_figure(report["people"], PEOPLE_MOVE)]
    if merge.kind == PlaceMerge.Kind.DISTRICTS:
        figures += [
            _figure(report["pairs"], PEOPLE_TWICE),
            (_("of these started with one record"), _rounded(report["one_started"])),
            (_("of these started with both records"), _rounded(report["both_started"])),
            _figure(len(report["merged_schools"]), SCHOOLS_TWICE),
            _figure(report["moved_schools"], SCHOOLS_MOVE),
        ]
    return [
        *figures,
        _figure(report["staff"], ROLES_MOVE),
        _figure(report["open_codes"], OPEN_CODES_MOVE),
    ]


def _figure(number: int, label: StrOrPromise) -> tuple[str, str]:
    return label % {"number": number}, f"{number:,}"


def _rounded(number: int) -> str:
    """Hide among how few people somebody has started."""
    fewest = CardSet.MIN_DRAWN
    return (
        _("fewer than %(fewest)s") % {"fewest": fewest}
        if 0 < number < fewest
        else f"{number:,}"
    )


def _administration_titles(merge: PlaceMerge) -> list[str]:
    names = merge.report.get("administrations", ())
    rows = Administration.objects.filter(name__in=names).order_by("-opens_at", "pk")
    rows = rows.select_related("published__survey").defer(
        "published__definition", "published__survey__source"
    )
    return [administration.title for administration in rows]


def _school_names(merge: PlaceMerge) -> list[tuple[str, str]]:
    """Return the pairs of schools that become one, as far as both still exist."""
    pairs = merge.report.get("merged_schools", ())[:MOST_SHOWN]
    if merge.kind == PlaceMerge.Kind.SCHOOLS:
        return []
    schools = School.objects.in_bulk([pk for pair in pairs for pk in pair])
    return [
        (f"{schools[duplicate].name} ({schools[duplicate].code})", schools[target].name)
        for duplicate, target in pairs
        if duplicate in schools and target in schools
    ]
