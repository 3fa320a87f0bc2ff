"""Exports in the console: request one, watch its job, download the files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import AuditEntry
from accounts.permissions import Capability, Permissions
from reports.console.exports.forms import ExportForm
from reports.console.exports.panel_form import PanelForm
from reports.console.exports.return_form import ReturnForm
from reports.exports.requests import ProjectRefused, request_export
from reports.models.exports import IDENTITIES, Export, exports_visible_to
from reports.models.panels import PanelProject
from survey.models import Administration
from survey.work.requested_files import (
    QuotaExceeded,
    delete_file,
    own_file_or_404,
    send,
)

# Fields of an export, and what the names of their downloads end with.
CODEBOOKS = {
    "codebook_name": "codebook",
    "codebook_table_name": "codebook",
    "documents_name": "documents",
}
# A download of a district's archive, in the audit log.
DISCLOSE = "download data for a district"


class ExportListFilter(forms.Form):
    whose = forms.ChoiceField(
        label=gettext_lazy("Show"),
        choices=[
            ("", gettext_lazy("My exports")),
            ("all", gettext_lazy("All exports")),
        ],
        required=False,
    )


@needs(Capability.SEE_RESPONSES)
@require_safe
def export_list(request: StaffRequest) -> HttpResponse:
    exports = exports_visible_to(request.permissions, request.user.pk)
    sees_all = request.permissions.places(Capability.SEE_AUDIT).state
    show_all = sees_all and request.GET.get("whose") == "all"
    if not show_all:
        exports = exports.filter(by=request.user)
    listing = Listing(
        request,
        # A search may find both administrations of an export.
        _with_related(exports).distinct(),
        search=(
            "pk",
            "administrations__name",
            "administrations__published__survey__title",
            "by__email",
        ),
        sorts={
            "newest": ("-created_at", "-pk"),
            "asked": ("created_at",),
            "rows": ("rows",),
        },
    )
    context = {
        "show_all": show_all,
        "may_return": may_return(request.permissions),
        "may_approve": request.permissions.has(Capability.MANAGE_PROJECTS),
        "filter_form": ExportListFilter(request.GET) if sees_all else (),
    }
    return listing.render("reports/export_list.html", context)


@needs(Capability.SEE_RESPONSES)
def export_new(request: StaffRequest) -> HttpResponse:
    form = partial(
        ExportForm, permissions=request.permissions, initial=chosen_in_address(request)
    )
    return show_form(request, form)


@needs(Capability.SEE_RESPONSES)
def export_panel(request: StaffRequest) -> HttpResponse:
    form = partial(
        PanelForm,
        permissions=request.permissions,
        user=request.user,
        initial=chosen_in_address(request),
    )
    return show_form(request, form)


def chosen_in_address(request: StaffRequest) -> dict[str, object]:
    """Return the administrations of the page that led here."""
    return {"administrations": request.GET.getlist("administrations")}


def show_form(
    request: StaffRequest,
    make_form: Callable[..., ExportForm],
    project: PanelProject | None = None,
) -> HttpResponse:
    """Show the form, or its size for htmx, or request the export.

    `project` is an approved project, of which the export will be.
    """
    if request.method == "POST":
        form = make_form(request.POST)
        if form.is_valid():
            try:
                export = request_export(
                    administrations=form.chosen(),
                    by=request.user,
                    project=project or form.cleaned_data.get("project", ""),
                    request=request,
                    **form.choices,
                )
            except (QuotaExceeded, ProjectRefused) as refused:
                form.add_error(None, str(refused))
            else:
                return redirect("export_detail", export.pk)
    elif request.htmx:
        # The choices changed: show the size of what they would export.
        form = make_form(request.GET)
        context = {
            "form": form,
            "size": form.size(),
            "part": True,
            "project": project,
        }
        return render(request, "reports/_export_size.html", context)
    else:
        form = make_form()
    size = form.size() if form.is_bound else None
    context = {"form": form, "size": size, "project": project}
    return render(request, "reports/export_new.html", context)


def may_return(permissions: Permissions) -> bool:
    """Test if the user sees names and answers of a whole district."""
    places = permissions.places(*IDENTITIES)
    return places.state or bool(places.districts)


@needs(Capability.SEE_RESPONSES)
def export_return(request: StaffRequest) -> HttpResponse:
    """Request the archive of a district; the answer alone shows its password."""
    if not may_return(request.permissions):
        raise Http404
    form = ReturnForm(
        request.POST if request.method == "POST" else None,
        permissions=request.permissions,
        initial=chosen_in_address(request),
    )
    if form.is_valid():
        try:
            export = request_export(
                administrations=form.chosen(),
                by=request.user,
                request=request,
                **form.choices,
            )
        except QuotaExceeded as refused:
            form.add_error(None, str(refused))
        else:
            if not form.password:
                return redirect("export_detail", export.pk)
            context = {"export": export, "password": form.password}
            return render(request, "reports/export_password.html", context)
    return render(request, "reports/export_return.html", {"form": form})


@needs(Capability.SEE_RESPONSES)
@require_safe
def export_detail(request: StaffRequest, pk: int) -> HttpResponse:
    # From the primary: the worker may have finished a moment ago.
    exports = exports_visible_to(request.permissions, request.user.pk)
    export = get_object_or_404(_with_related(exports.using(DEFAULT_DB_ALIAS)), pk=pk)
    is_own = export.by_id == request.user.pk
    context = {
        "export": export,
        "job": export.job,
        "is_own": is_own,
        "can_download": is_own and export.is_allowed(request.permissions),
        "file_name": file_name(export),
        "downloads": downloads_of(export) if export.is_return else (),
    }
    return render(request, "reports/export_detail.html", context)


@needs(Capability.SEE_RESPONSES)
@require_GET
def export_download(request: StaffRequest, pk: int) -> HttpResponseBase:
    export = _own_export_or_404(request, pk)
    # Without the last suffix, which that of the stored file adds.
    name = file_name(export).rpartition(".")[0]
    return send(export, request, action=_download_action(export), as_name=name)


def _download_action(export: Export) -> str:
    if export.is_return:
        return DISCLOSE
    return "download key table" if export.is_key_table else "download export"


def downloads_of(export: Export) -> QuerySet[AuditEntry]:
    """Return the downloads of the archive of a district; each is a disclosure."""
    entries = AuditEntry.objects.using(DEFAULT_DB_ALIAS)
    return entries.filter(
        kind=export._meta.label_lower, subject_id=export.pk, action=DISCLOSE
    ).order_by("at", "pk")


@needs(Capability.SEE_RESPONSES)
@require_GET
def export_codebook(request: StaffRequest, pk: int) -> HttpResponseBase:
    export = _own_export_or_404(request, pk)
    return _send_codebook(request, export, "codebook_name")


@needs(Capability.SEE_RESPONSES)
@require_GET
def export_codebook_table(request: StaffRequest, pk: int) -> HttpResponseBase:
    export = _own_export_or_404(request, pk)
    return _send_codebook(request, export, "codebook_table_name")


@needs(Capability.SEE_RESPONSES)
@require_GET
def export_documents(request: StaffRequest, pk: int) -> HttpResponseBase:
    export = _own_export_or_404(request, pk)
    return _send_codebook(request, export, "documents_name")


def _send_codebook(
    request: StaffRequest, export: Export, field: str
) -> HttpResponseBase:
    # An older export has fewer, and a technical report none.
    if not getattr(export, field):
        raise Http404
    name = f"{export.stem}-{CODEBOOKS[field]}"
    return send(export, request, action="download codebook", as_name=name, field=field)


@needs(Capability.SEE_RESPONSES)
@require_POST
def export_delete(request: StaffRequest, pk: int) -> HttpResponse:
    exports = Export.objects.using(DEFAULT_DB_ALIAS).filter(by=request.user)
    export = get_object_or_404(exports.exclude(file_name=""), pk=pk)
    delete_file(export, by=request.user, request=request)
    messages.success(request, _("File deleted. The record of this export is kept."))
    return redirect("export_detail", pk)


def _with_related(exports: QuerySet[Export]) -> QuerySet[Export]:
    """Select everything that pages show of exports, in 1 more statement."""
    administrations = Administration.objects.select_related("published__survey")
    heavy = ("published__definition", "published__survey__source")
    return exports.select_related(
        "by", "job", "district", "school", "project"
    ).prefetch_related(Prefetch("administrations", administrations.defer(*heavy)))


def _own_export_or_404(request: StaffRequest, pk: int) -> Export:
    exports = Export.objects.select_related("district", "project")
    exports = exports.prefetch_related("administrations")
    permissions = request.permissions
    return own_file_or_404(
        exports, request, pk, is_allowed=lambda export: export.is_allowed(permissions)
    )


def file_name(export: Export) -> str:
    """Return the name under which browsers save the file."""
    return export.stem + export.suffix
