"""Approved research projects in the console: approve one, make its files, end it."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability
from reports.console.exports.panel_form import ProjectForm
from reports.console.exports.project_forms import KeyTableForm, ProjectApprovalForm
from reports.console.exports.views import chosen_in_address, show_form
from reports.exports.approved_projects import (
    approve_project,
    approved_projects,
    end_project,
)
from reports.exports.requests import ProjectRefused, request_export
from reports.models.exports import KEY_TABLE
from reports.models.panels import PanelProject
from survey.work.requested_files import QuotaExceeded


@needs(Capability.MANAGE_PROJECTS)
@require_safe
def project_list(request: StaffRequest) -> HttpResponse:
    listing = Listing(
        request,
        approved_projects().select_related("by"),
        search=("name", "people", "approval_number"),
        sorts={
            "end": ("ended_at", "ends_on", "pk"),
            "newest": ("-created_at", "-pk"),
        },
    )
    return listing.render("reports/project_list.html", {})


@needs(Capability.MANAGE_PROJECTS)
def project_new(request: StaffRequest) -> HttpResponse:
    form = ProjectApprovalForm(
        request.POST if request.method == "POST" else None, user=request.user
    )
    if form.is_valid():
        project = approve_project(**form.cleaned_data, by=request.user, request=request)
        messages.success(request, _("Project approved. You can now make its files."))
        return redirect("project_detail", project.pk)
    return render(request, "reports/project_new.html", {"form": form})


@needs(Capability.MANAGE_PROJECTS)
@require_safe
def project_detail(request: StaffRequest, pk: int) -> HttpResponse:
    project = _project_or_404(pk)
    exports = project.exports.select_related("by", "job")
    context = {"project": project, "exports": exports.order_by("-created_at", "-pk")}
    return render(request, "reports/project_detail.html", context)


@needs(Capability.MANAGE_PROJECTS)
def project_file(request: StaffRequest, pk: int) -> HttpResponse:
    """Request a file of responses with project keys in place of IDs."""
    project = _running_project_or_404(pk)
    form = partial(
        ProjectForm,
        permissions=request.permissions,
        user=request.user,
        project=project,
        initial=chosen_in_address(request),
    )
    return show_form(request, form, project=project)


@needs(Capability.MANAGE_PROJECTS)
def project_keys(request: StaffRequest, pk: int) -> HttpResponse:
    """Request the key table of the people in the project's files."""
    project = _running_project_or_404(pk)
    first = project.exports.filter(is_panel=True).order_by("pk").first()
    if first is None:
        return render(request, "reports/project_keys.html", {"project": project})
    form = KeyTableForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            export = request_export(
                # All files of a project have the same rounds and places.
                administrations=list(first.administrations.all()),
                by=request.user,
                project=project,
                request=request,
                format=KEY_TABLE,
                identities=True,
                reason=form.cleaned_data["reason"],
                places=first.places,
            )
        except (QuotaExceeded, ProjectRefused) as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("export_detail", export.pk)
    context = {"form": form, "project": project}
    return render(request, "reports/project_keys.html", context)


@needs(Capability.MANAGE_PROJECTS)
@require_POST
def project_end(request: StaffRequest, pk: int) -> HttpResponse:
    project = _project_or_404(pk)
    end_project(project, by=request.user, request=request)
    messages.success(
        request, _("Project ended. Its key was destroyed and its files were deleted.")
    )
    return redirect("project_detail", pk)


def _project_or_404(pk: int) -> PanelProject:
    return get_object_or_404(approved_projects().select_related("by"), pk=pk)


def _running_project_or_404(pk: int) -> PanelProject:
    project = _project_or_404(pk)
    if project.is_over:
        raise Http404
    return project
