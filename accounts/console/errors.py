"""Error pages for staff. Respondents get error pages of their own."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views import csrf, defaults

from accounts.access import anyone

# These templates use no context, because they also appear when Django fails.
FOLDER = "console/errors"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return defaults.bad_request(request, exception, _template(request, "400.html"))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    name = _template(request, "403.html")
    return defaults.permission_denied(request, exception, name)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return defaults.page_not_found(request, exception, _template(request, "404.html"))


def server_error(request: HttpRequest) -> HttpResponse:
    return defaults.server_error(request, _template(request, "500.html"))


@anyone
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return csrf.csrf_failure(request, reason, _template(request, "403_csrf.html"))


def _template(request: HttpRequest, name: str) -> str:
    is_console = request.path_info.startswith(tuple(settings.STAFF_ADDRESSES))
    return f"{FOLDER}/{name}" if is_console else name
