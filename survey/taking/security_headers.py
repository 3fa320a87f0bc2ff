"""Add the security headers of Django and django-csp, computed once at start.

And those by which nobody stores a page of one person.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from csp.middleware import CSPMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.cache import add_never_cache_headers
from django.utils.http import http_date

P = ParamSpec("P")

SOURCES = (CSPMiddleware, SecurityMiddleware, XFrameOptionsMiddleware)


class SecurityHeaders(SecurityMiddleware):
    """Replace the middleware in `SOURCES`, whose headers never differ here.

    The headers come from that middleware itself, so the settings remain the
    one place that defines them, and no request builds the same policy again.
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
    response = HttpResponse()
    request = _Request("https" if secure else "http")
    for source in SOURCES:
        middleware = source(lambda _: bare)
        response = cast(HttpResponse, middleware.process_response(request, response))
    return {name: value for name, value in response.items() if name not in bare.headers}


def never_cache(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Do the same as Django's decorator of this name, which parses what it writes."""

    @wraps(view)
    def wrapper(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if "Cache-Control" in response.headers or "Expires" in response.headers:
            add_never_cache_headers(response)
        else:
            response.headers["Expires"] = http_date()
            response.headers["Cache-Control"] = NEVER_CACHED
        return response

    return wrapper


def _never_cached() -> str:
    response = HttpResponse()
    add_never_cache_headers(response)
    return response.headers["Cache-Control"]


NEVER_CACHED = _never_cached()
