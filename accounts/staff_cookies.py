"""Give the console its own session and CSRF cookies.

A respondent's login replaces session and CSRF token. Without separate cookies,
trying a survey would log staff out of the console in the same browser, and a
respondent could end up in a staff session.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

PREFIX = "staff_"
# Browsers check cookies whose names begin with it; see settings.stack.
HOST = "__Host-"


def staff_name(name: str) -> str:
    """Return the console's name for a cookie."""
    host = HOST if name.startswith(HOST) else ""
    return host + PREFIX + name.removeprefix(HOST)


class StaffCookiesMiddleware:
    """Prefix the names of both cookies under STAFF_ADDRESSES."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.names = (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(tuple(settings.STAFF_ADDRESSES)):
            return self.get_response(request)
        for name in self.names:
            request.COOKIES.pop(name, None)
            if staff_name(name) in request.COOKIES:
                request.COOKIES[name] = request.COOKIES[staff_name(name)]
        response = self.get_response(request)
        for name in self.names:
            if name in response.cookies:
                cookie = response.cookies.pop(name)
                cookie.set(staff_name(name), cookie.value, cookie.coded_value)
                response.cookies[staff_name(name)] = cookie
        return response
