"""Error pages for staff. Respondents get error pages of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseServerError,
)
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.utils.module_loading import import_string
from django.views import csrf, defaults

from accounts.access import anyone

# These templates use no context, because they also appear when Django fails.
FOLDER = "console/errors"
# Seconds, about as long as a standby needs to take over.
RETRY_AFTER = 15


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return HttpResponseBadRequest(_page(_template(request, "400.html")))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    name = _template(request, "403.html")
    return defaults.permission_denied(request, exception, name)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return defaults.page_not_found(request, exception, _template(request, "404.html"))


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 503 in the console while the database or storage is away or too busy."""
    # Called while the exception is handled.
    error = sys.exc_info()[1]
    if _is_for_staff(request) and isinstance(error, (OperationalError, InterfaceError)):
        # What is away says so: the database, unless it names a page.
        page = _page(f"{FOLDER}/{getattr(error, 'page', '503.html')}")
        return HttpResponse(page, status=503, headers={"Retry-After": RETRY_AFTER})
    return HttpResponseServerError(_page(_template(request, "500.html")))


@anyone
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return csrf.csrf_failure(request, reason, _template(request, "403_csrf.html"))


class MethodNotAllowedMiddleware:
    """Answer GET for an address that only takes forms with a page that leads back.

    After a login, for instance, where the session ended before a button was pressed.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if (
            response.status_code != HTTPStatus.METHOD_NOT_ALLOWED
            or request.method != "GET"
            or not _is_for_staff(request)
        ):
            return response
        context = {"page": page_around(request.path_info)}
        text = render_to_string(f"{FOLDER}/405.html", context)
        headers = {"Allow": response["Allow"]}
        return HttpResponse(text, status=response.status_code, headers=headers)


def page_around(path: str) -> str:
    """Return the address of the nearest page above `path`."""
    parts = path.strip("/").split("/")
    for count in range(len(parts) - 1, 0, -1):
        address = f"/{'/'.join(parts[:count])}/"
        with suppress(Resolver404):
            resolve(address)
            return address
    return "/"


def _page(template: str) -> str:
    """Render a page with what this process knows of the state, without the database.

    Django's own views give no context: a template logs each name that it misses, with
    the exception and the data in it.
    """
    known_place = import_string(settings.KNOWN_PLACE_OF_STATE)
    return render_to_string(template, {"state_place": known_place()})


def _template(request: HttpRequest, name: str) -> str:
    return f"{FOLDER}/{name}" if _is_for_staff(request) else name


def _is_for_staff(request: HttpRequest) -> bool:
    return request.path_info.startswith(tuple(settings.STAFF_ADDRESSES))
