"""The first page of the console."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.access import staff
from accounts.console.navigation import entries_for


@staff
@require_safe
def console_home(request: HttpRequest) -> HttpResponse:
    permissions = request.permissions  # type: ignore[attr-defined]
    return render(
        request,
        "console/home.html",
        {
            "entries": entries_for(permissions),
            "memberships": permissions.memberships,
        },
    )
