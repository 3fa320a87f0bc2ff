"""Exports in the console: ask for one, watch it being made, download it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts import audit
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import User
from accounts.permissions import Capability, Permissions
from reports.console.exports.forms import ExportForm
from reports.exports.requests import ask_for_export, delete_file
from reports.models.exports import Export, exports_seen_by
from survey.files import download, path_of

CONTENT_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
LONGEST_NAME = 80


class WhoseForm(forms.Form):
    whose = forms.ChoiceField(
        label="Whose", choices=[("", "Mine"), ("all", "Everybody's")], required=False
    )


@needs(Capability.SEE_RESPONSES)
@require_safe
def export_list(request: StaffRequest) -> HttpResponse:
    permissions, user = _who(request)
    seen = exports_seen_by(permissions, user.pk)
    sees_all = permissions.places(Capability.SEE_AUDIT).state
    everybody = sees_all and request.GET.get("whose") == "all"
    listing = Listing(
        request,
        # An export of two administrations that are both found is one.
        _with_names(seen if everybody else seen.filter(by=user)).distinct(),
        search=("pk", "administrations__name", "by__email"),
        sorts={
            "newest": ("-created_at", "-pk"),
            "asked": ("created_at",),
            "rows": ("rows",),
        },
    )
    return listing.render(
        "reports/export_list.html",
        {
            "everybody": everybody,
            "filter_form": WhoseForm(request.GET) if sees_all else (),
        },
    )


@needs(Capability.SEE_RESPONSES)
@require_http_methods(["GET", "HEAD", "POST"])
def export_new(request: StaffRequest) -> HttpResponse:
    permissions, user = _who(request)
    if request.method == "POST":
        form = ExportForm(request.POST, permissions=permissions)
        if form.is_valid():
            export = ask_for_export(
                administrations=form.chosen(), by=user, request=request, **form.choices
            )
            return redirect("export_detail", export.pk)
    elif request.htmx:
        # Something was chosen: how much would it be?
        form = ExportForm(request.GET, permissions=permissions)
        context = {"form": form, "size": form.size(), "part": True}
        return render(request, "reports/_export_size.html", context)
    else:
        # A link from an administration's page names it.
        asked = request.GET.getlist("administrations")
        form = ExportForm(permissions=permissions, initial={"administrations": asked})
    size = form.size() if form.is_bound else None
    return render(request, "reports/export_new.html", {"form": form, "size": size})


@needs(Capability.SEE_RESPONSES)
@require_safe
def export_detail(request: StaffRequest, pk: int) -> HttpResponse:
    permissions, user = _who(request)
    # Its worker may have ended a moment ago: as the primary has it.
    seen = exports_seen_by(permissions, user.pk).using(DEFAULT_DB_ALIAS)
    export = get_object_or_404(_with_names(seen), pk=pk)
    mine = export.by_id == user.pk
    return render(
        request,
        "reports/export_detail.html",
        {
            "export": export,
            "job": export.job,
            "mine": mine,
            "may_have": mine and export.is_for(permissions),
            "file_name": file_name(export),
        },
    )


@needs(Capability.SEE_RESPONSES)
@require_GET
def export_download(request: StaffRequest, pk: int) -> HttpResponseBase:
    export = _own_with_file(request, pk)
    return _sent(
        request,
        export,
        "download export",
        export.file_name,
        file_name(export),
        CONTENT_TYPES[export.ending],
    )


@needs(Capability.SEE_RESPONSES)
@require_GET
def export_codebook(request: StaffRequest, pk: int) -> HttpResponseBase:
    export = _own_with_file(request, pk)
    name = f"{file_name(export).removesuffix(export.ending)}-codebook.html"
    return _sent(
        request,
        export,
        "download codebook",
        export.codebook_name,
        name,
        "text/html; charset=utf-8",
    )


@needs(Capability.SEE_RESPONSES)
@require_POST
def export_delete(request: StaffRequest, pk: int) -> HttpResponse:
    _, user = _who(request)
    mine = Export.objects.using(DEFAULT_DB_ALIAS).filter(by=user).exclude(file_name="")
    export = get_object_or_404(mine, pk=pk)
    delete_file(export, by=user, request=request)
    messages.success(request, "The file is deleted. The record of it stays.")
    return redirect("export_detail", pk)


def _who(request: StaffRequest) -> tuple[Permissions, User]:
    return request.permissions, request.user


def _with_names(exports: QuerySet[Export]) -> QuerySet[Export]:
    return exports.select_related("by", "job", "district", "school").prefetch_related(
        "administrations"
    )


def _own_with_file(request: StaffRequest, pk: int) -> Export:
    """Asked at every download: roles end, and so do seven days."""
    permissions, user = _who(request)
    known = Export.objects.using(DEFAULT_DB_ALIAS).exclude(file_name="")
    mine = known.filter(by=user, expires_at__gt=timezone.now())
    export = get_object_or_404(mine.prefetch_related("administrations"), pk=pk)
    if not export.is_for(permissions) or not path_of(export.file_name).exists():
        raise Http404
    return export


def _sent(
    request: StaffRequest,
    export: Export,
    action: str,
    name: str,
    as_name: str,
    content_type: str,
) -> HttpResponseBase:
    place: dict[str, Any] = export.place_for_audit()
    with transaction.atomic():
        audit.record(
            action,
            by=export.by,
            request=request,
            subject=export,
            **place,
            after={"identities": export.identities, "sha256": export.sha256},
        )
    return download(name, as_name=as_name, content_type=content_type)


def file_name(export: Export) -> str:
    """As it is called where it is downloaded."""
    names = "-".join(sorted(one.name for one in export.administrations.all()))
    short = slugify(names)[:LONGEST_NAME].strip("-")
    return f"{short}-{export.format}-{export.pk}{export.ending}"
