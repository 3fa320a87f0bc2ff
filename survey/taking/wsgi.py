"""The taking pool's entry: page saves by a short way, the rest by Django's.

Half of all requests are page saves. Django's handler finds the view, sends
signals for what this pool does not use, and closes what it does not open: a
quarter of the time that Python takes for a save. Here the same view stands
behind the same middleware, without that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import django
from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch, resolve
from django.utils.log import log_response
from django.utils.module_loading import import_string

from settings.plain_bodies import plain_bodies_only  # noqa: TID251

PAGE = re.compile(r"/take/pages/([0-9]{1,9})/", re.ASCII)
# What these do, a save does itself: it compares the host with its origin, has
# its slash and its length, and needs no token. A test holds the replies of
# both ways to the same headers.
SPARED = {
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
}

Environ = dict[str, Any]
Chain = Callable[[HttpRequest], HttpResponse]


class TakingApplication:
    def __init__(self) -> None:
        self.django = WSGIHandler()
        self.match = resolve("/take/pages/1/", settings.ROOT_URLCONF)
        self.chain = self._chain()

    def __call__(
        self, environ: Environ, start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        page = PAGE.fullmatch(environ["PATH_INFO"])
        if page is None or environ.get("SCRIPT_NAME"):
            return self.django(environ, start_response)
        # As Django does before each request; it asks whether the connection
        # lives after an error only.
        if connection.errors_occurred:
            connection.close_if_unusable_or_obsolete()
        request = WSGIRequest(environ)
        request.resolver_match = self._match(int(page[1]))
        response = self.chain(request)
        return _sent(request, response, start_response)

    def _match(self, n: int) -> ResolverMatch:
        known = self.match
        return ResolverMatch(known.func, (), {"n": n}, known.url_name)

    def _chain(self) -> Chain:
        viewers: list[Callable[..., Any]] = []

        def view(request: HttpRequest) -> HttpResponse:
            match = request.resolver_match
            assert match is not None  # noqa: S101
            for viewer in viewers:
                viewer(request, match.func, match.args, match.kwargs)
            return match.func(request, **match.kwargs)

        chain: Any = convert_exception_to_response(view)
        for name in reversed(settings.MIDDLEWARE):
            if name not in SPARED:
                middleware = import_string(name)(chain)
                if hasattr(middleware, "process_view"):
                    viewers.insert(0, middleware.process_view)
                chain = convert_exception_to_response(middleware)
        return chain


def _sent(
    request: HttpRequest, response: HttpResponse, start_response: Callable[..., Any]
) -> Iterable[bytes]:
    if response.status_code >= 400:
        log_response(
            "%s: %s",
            response.reason_phrase,
            request.path,
            response=response,
            request=request,
        )
    response.headers["Content-Length"] = str(len(response.content))
    cookies = [("Set-Cookie", one.OutputString()) for one in response.cookies.values()]
    start_response(
        f"{response.status_code} {response.reason_phrase}",
        [*response.items(), *cookies],
    )
    return [response.content]


django.setup(set_prefix=False)
application = plain_bodies_only(TakingApplication())
