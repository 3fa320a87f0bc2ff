"""The pages to change, close, reopen and remove an administration."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.models import District
from accounts.permissions import Capability as C
from survey.console.administrations.forms import (
    ChangeAdministrationForm,
    CloseAdministrationForm,
    RemoveAdministrationForm,
    ReopenAdministrationForm,
    show_errors,
)
from survey.console.administrations.printed_dates import (
    printed_cards,
    printed_window,
    warn_about_old_dates,
)
from survey.fieldwork.administrations import (
    change_administration,
    close_administration,
    count_progress,
    format_moment,
    reopen_administration,
)
from survey.fieldwork.administrations.queries import own_administration_or_404
from survey.fieldwork.administrations.removal import (
    count_removed,
    reason_not_to_remove,
    remove_administration,
)
from survey.models import Administration

# A form that is sent with this finds places or surveys; nothing is saved yet.
AGAIN = "again"


@needs(C.MANAGE_SURVEYS)
def administration_change(request: StaffRequest, pk: int) -> HttpResponse:
    permissions = request.permissions
    administration = own_administration_or_404(permissions, pk)
    form = ChangeAdministrationForm(
        request.POST or None, permissions=permissions, administration=administration
    )
    if form.is_bound and AGAIN in request.POST:
        form.skip_validation()
    elif form.is_bound and form.is_valid():
        shown_before = printed_window(administration)
        try:
            changed = change_administration(
                administration=administration,
                to=form.plan(),
                seen=form.cleaned_data["seen"],
                confirmed=form.cleaned_data["confirmed"].strip(),
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(
                request, _("%(title)s was changed.") % {"title": changed.title}
            )
            warn_about_old_dates(request, changed, shown_before=shown_before)
            return redirect("administration_detail", pk)
    context = {
        "form": form,
        "administration": administration,
        "printed": printed_cards(administration),
        "everywhere": _everywhere(administration.district),
    }
    return render(request, "survey/console/administration_change.html", context)


def _everywhere(owner: District | None) -> str:
    if owner is None:
        return _("all schools of the state")
    return _("all schools of %(district)s") % {"district": owner}


@needs(C.MANAGE_SURVEYS)
def administration_close(request: StaffRequest, pk: int) -> HttpResponse:
    administration = own_administration_or_404(
        request.permissions, pk, with_modules=True
    )
    initial = {"seen": administration.changes}
    form = CloseAdministrationForm(request.POST or None, initial=initial)
    if form.is_bound and form.is_valid():
        try:
            close_administration(
                administration=administration,
                seen=form.cleaned_data["seen"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(
                request, _("%(title)s is closed.") % {"title": administration.title}
            )
            return redirect("administration_detail", pk)
    context = {
        "form": form,
        "administration": administration,
        "progress": count_progress(administration),
    }
    return render(request, "survey/console/administration_close.html", context)


@needs(C.MANAGE_SURVEYS)
def administration_reopen(request: StaffRequest, pk: int) -> HttpResponse:
    administration = own_administration_or_404(request.permissions, pk)
    initial = {"seen": administration.changes}
    form = ReopenAdministrationForm(request.POST or None, initial=initial)
    if form.is_bound and form.is_valid():
        shown_before = printed_window(administration)
        try:
            reopened = reopen_administration(
                administration=administration,
                closes_at=form.cleaned_data["closes_at"],
                seen=form.cleaned_data["seen"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(
                request,
                _("%(title)s is open again, until %(closes_at)s.")
                % {
                    "title": administration.title,
                    "closes_at": format_moment(reopened.closes_at),
                },
            )
            warn_about_old_dates(request, reopened, shown_before=shown_before)
            return redirect("administration_detail", pk)
    context = {
        "form": form,
        "administration": administration,
        "printed": printed_cards(administration),
        "progress": count_progress(administration),
    }
    return render(request, "survey/console/administration_reopen.html", context)


@needs(C.MANAGE_SURVEYS)
def administration_remove(request: StaffRequest, pk: int) -> HttpResponse:
    administration = own_administration_or_404(
        request.permissions, pk, with_modules=True
    )
    form = RemoveAdministrationForm(request.POST or None, administration=administration)
    if form.is_bound and form.is_valid():
        try:
            remove_administration(
                administration=administration,
                seen=form.cleaned_data["seen"],
                confirmed=form.cleaned_data["confirmed"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            show_errors(form, error)
        except Administration.DoesNotExist:
            raise Http404 from None
        else:
            messages.success(
                request, _("%(title)s was removed.") % {"title": administration.title}
            )
            return redirect("administration_list")
    reason = reason_not_to_remove(administration)
    context = {
        "form": form,
        "administration": administration,
        "reason": reason,
        "removed": None if reason else count_removed(administration),
    }
    return render(request, "survey/console/administration_remove.html", context)
