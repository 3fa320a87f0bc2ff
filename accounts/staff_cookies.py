"""Staff have cookies of their own, beside a respondent's.

Whoever tries a survey in the browser in which the console is open would be
logged out of it by the respondent's login, which replaces session and CSRF
token; and a respondent must never sit down in a session of staff.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

PREFIX = "staff_"


class StaffDoorMiddleware:
    """Under the staff's addresses, cookies go by another name."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.names = (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(tuple(settings.STAFF_ADDRESSES)):
            return self.get_response(request)
        for name in self.names:
            request.COOKIES.pop(name, None)
            if PREFIX + name in request.COOKIES:
                request.COOKIES[name] = request.COOKIES[PREFIX + name]
        response = self.get_response(request)
        for name in self.names:
            if name in response.cookies:
                cookie = response.cookies.pop(name)
                cookie.set(PREFIX + name, cookie.value, cookie.coded_value)
                response.cookies[PREFIX + name] = cookie
        return response
