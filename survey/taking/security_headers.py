"""Django's security headers and django-csp's, worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from csp.middleware import CSPMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

SOURCES = (CSPMiddleware, SecurityMiddleware, XFrameOptionsMiddleware)


class SecurityHeaders(SecurityMiddleware):
    """Stands for `SOURCES`, whose headers are the same on each of our pages.

    It asks those for them when it is made, so that the settings say what they
    are in one place, and nobody puts the same policy together for each reply.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        super().__init__(get_response)
        self.headers = {
            secure: security_headers(secure=secure) for secure in (False, True)
        }

    def process_response(
        self, request: HttpRequest, response: HttpResponse
    ) -> HttpResponse:
        for name, value in self.headers[request.is_secure()].items():
            response.headers.setdefault(name, value)
        return response


class _Request(HttpRequest):
    def __init__(self, scheme: str) -> None:
        super().__init__()
        self._scheme = scheme

    def _get_scheme(self) -> str:
        return self._scheme


def security_headers(*, secure: bool) -> dict[str, str]:
    bare = HttpResponse()
    response: Any = HttpResponse()
    request = _Request("https" if secure else "http")
    for source in SOURCES:
        response = source(lambda _: bare).process_response(request, response)
    return {name: value for name, value in response.items() if name not in bare.headers}
