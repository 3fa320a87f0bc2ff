"""Ordinary page saves by a short way, the rest by Django's.

Half of all requests are page saves, and nearly all of those are in order. They
pass by Django's handler, its request and its response, which cost more than
what they carry. Whatever is not in order goes Django's way, from the start and
before anything is written: the two have no rules of their own, and a test
holds their replies to the same headers.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.client import responses
from importlib import import_module
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import connection
from django.http import parse_cookie

from settings.monitoring import logs  # noqa: TID251
from settings.monitoring.middleware import finished  # noqa: TID251
from survey.taking.page_save import PageReply, process_page
from survey.taking.published import published_already
from survey.taking.save_request import LARGEST_BODY, PERSON, BadRequest, save_in
from survey.taking.security_headers import security_headers
from survey.taking.session import taking_in
from survey.taking.unavailable import ServiceUnavailable, done_or_later, seconds_later

log = logging.getLogger(__name__)

PAGE = re.compile(r"/take/pages/([0-9]{1,9})/", re.ASCII)
# What a browser's own page sends, beside its origin.
ORDINARY = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": "application/json"}
SITE = "same-origin"
# Names by which one installation is known to its browsers.
MOST_FRONTS = 100

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class FallBackToDjango(Exception):
    """Django's handler is to answer this."""


@dataclass(frozen=True, slots=True)
class OriginHeaders:
    """What the same host, asked in the same scheme, has in common."""

    origin: str
    headers: list[tuple[str, str]]


class FastPath:
    def __init__(self) -> None:
        self.django = WSGIHandler()
        self.sessions = import_module(settings.SESSION_ENGINE).SessionStore
        self.fronts: dict[tuple[str | None, ...], OriginHeaders] = {}
        proxy = settings.SECURE_PROXY_SSL_HEADER
        self.scheme_header = proxy[0] if proxy else "wsgi.url_scheme"

    def __call__(
        self, environ: Environ, start_response: StartResponse
    ) -> Iterable[bytes]:
        page = PAGE.fullmatch(environ["PATH_INFO"])
        if page is None or environ.get("SCRIPT_NAME"):
            return self.django(environ, start_response)
        trace = logs.begin(environ.get("HTTP_X_REQUEST_ID", ""))
        trace.view = "survey_change_page"
        try:
            front = self._front(environ)
            turned = self._turn(environ, front, int(page[1]))
            finished(trace, turned.status, method="POST", outcome=turned.outcome)
        except (FallBackToDjango, BadRequest):
            return self.django(environ, start_response)
        except Exception:
            # If it is a defect of this way alone, Django's goes well, and
            # nobody would hear of it but by this line.
            log.exception("short way")
            return self.django(environ, start_response)
        finally:
            logs.end()
        body = json.dumps(turned.content).encode()
        headers = [
            *front.headers,
            ("X-Request-ID", trace.request_id),
            ("Content-Length", str(len(body))),
        ]
        if turned.status == 503:
            headers.append(("Retry-After", seconds_later()))
        start_response(f"{turned.status} {responses[turned.status]}", headers)
        return [body]

    def _turn(self, environ: Environ, front: OriginHeaders, n: int) -> PageReply:
        """Raises NotOrdinary and BadRequest."""
        if (
            any(environ.get(name) != value for name, value in ORDINARY.items())
            or environ.get("HTTP_ORIGIN") != front.origin
            or environ.get("HTTP_SEC_FETCH_SITE", SITE) != SITE
        ):
            raise FallBackToDjango
        # As Django does before each request; it asks whether the connection
        # lives after an error only.
        if connection.errors_occurred:
            connection.close_if_unusable_or_obsolete()
        body = _body(environ)
        try:
            return done_or_later(lambda: self._save(environ, n, body))
        except ServiceUnavailable as later:
            return PageReply(503, {"error": later.key})

    def _save(self, environ: Environ, n: int, body: bytes) -> PageReply:
        cookies = parse_cookie(environ.get("HTTP_COOKIE", ""))
        store = self.sessions(cookies.get(settings.SESSION_COOKIE_NAME))
        taking = taking_in(store, cookies)
        # The cookie of a session that has gone is taken back by its middleware.
        if taking is None or store.session_key is None:
            raise FallBackToDjango
        if environ.get(PERSON) != taking.tag:
            raise FallBackToDjango
        published = published_already(taking.digest)
        if published is None:
            raise FallBackToDjango
        return process_page(taking, published, n, save_in(body))

    def _front(self, environ: Environ) -> OriginHeaders:
        key = (environ.get("HTTP_HOST"), environ.get(self.scheme_header))
        found = self.fronts.get(key)
        if found is None:
            found = _front_of(WSGIRequest(environ))
            if len(self.fronts) < MOST_FRONTS:
                self.fronts[key] = found
        return found


def _front_of(request: WSGIRequest) -> OriginHeaders:
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise FallBackToDjango
    try:
        origin = f"{request.scheme}://{request.get_host()}"
    except DisallowedHost:
        raise FallBackToDjango from None
    always = {"Content-Type": "application/json", "Vary": "Cookie"}
    headers = {**always, **security_headers(secure=request.is_secure())}
    return OriginHeaders(origin, list(headers.items()))


def _body(environ: Environ) -> bytes:
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if not 0 < length <= LARGEST_BODY:
            raise FallBackToDjango
        body = environ["wsgi.input"].read(length)
    # No number, or a browser that hung up.
    except (ValueError, OSError):
        raise FallBackToDjango from None
    # For Django's way, should it have to answer after all.
    environ["wsgi.input"] = BytesIO(body)
    return body
