"""Answer ordinary page saves before Django's handler, and pass on the rest.

And message platforms, by `survey.fieldwork.message_platforms.fast_path`.

Half of all requests are page saves, and nearly all of those are ordinary.
Django's handler, request and response cost more than the save itself, so these
skip them. Any other request goes to Django before anything is written. Both
paths apply the same rules, because both call `page_save.process_page`; a test
compares their replies header by header.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import responses
from importlib import import_module
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import parse_cookie

from settings.monitoring import logs, stores  # noqa: TID251
from settings.monitoring.middleware import finished  # noqa: TID251
from survey.database.primary import primary
from survey.fieldwork.message_platforms.fast_path import answer_directly
from survey.taking.page_save import (
    LARGEST_BODY,
    RESPONDENT_HEADER,
    BadRequest,
    PageReply,
    decode_page_save,
    process_page,
)
from survey.taking.published import published_in_memory
from survey.taking.security_headers import security_headers
from survey.taking.session import read_session
from survey.taking.unavailable import (
    ServiceUnavailable,
    run_with_retry,
    seconds_until_retry,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)

PAGE = re.compile(r"/take/pages/([0-9]{1,9})/", re.ASCII)
SAME_SITE = "same-origin"
# Host names under which one installation is known to its browsers.
MOST_ORIGINS = 100


class FallBackToDjango(Exception):
    """Pass the request on to Django's handler."""


@dataclass(frozen=True, slots=True)
class OriginHeaders:
    """What all replies to one host and scheme share."""

    origin: str
    headers: list[tuple[str, str]]


class FastPath:
    """The WSGI application of the respondents' pool."""

    def __init__(self) -> None:
        self.django = WSGIHandler()
        self.sessions = import_module(settings.RESPONDENT_SESSION_ENGINE).SessionStore
        self.saves = count()
        self.origins: dict[tuple[str | None, ...], OriginHeaders] = {}
        proxy = settings.SECURE_PROXY_SSL_HEADER
        self.scheme_header = proxy[0] if proxy else "wsgi.url_scheme"

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        page = PAGE.fullmatch(environ["PATH_INFO"])
        if page is None or environ.get("SCRIPT_NAME"):
            if environ["PATH_INFO"].startswith("/messages/"):
                return self._message(environ, start_response)
            return self.django(environ, start_response)
        trace = logs.begin(environ.get("HTTP_X_REQUEST_ID", ""))
        trace.view = "survey_change_page"
        if next(self.saves) % stores.SAMPLED == 0:
            stores.begin(trace)
        try:
            origin_headers = self._origin_headers(environ)
            reply = self._reply(environ, origin_headers.origin, int(page[1]))
            finished(
                trace,
                reply.status,
                method="POST",
                outcome=reply.outcome,
                weight=stores.SAMPLED,
            )
        except (FallBackToDjango, BadRequest):
            return self.django(environ, start_response)
        except Exception:
            # Django answers well if only this path has a defect, and then
            # this line is the only sign of it.
            log.exception("The fast path failed; Django answers.")
            return self.django(environ, start_response)
        finally:
            if trace.stores is not None:
                stores.finish()
            logs.end()
        body = json.dumps(reply.content).encode()
        headers = [
            *origin_headers.headers,
            ("X-Request-ID", trace.request_id),
            ("Content-Length", str(len(body))),
        ]
        if reply.status == 503:
            headers.append(("Retry-After", seconds_until_retry()))
        start_response(f"{reply.status} {responses[reply.status]}", headers)
        return [body]

    def _message(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer a message platform; see `survey.fieldwork.message_platforms`."""
        try:
            common = self._origin_headers(environ).headers
            headers = [header for header in common if header[0] != "Vary"]
            answer = answer_directly(environ, start_response, headers)
        except FallBackToDjango:
            answer = None
        except Exception:
            log.exception("The fast path failed; Django answers.")
            answer = None
        return self.django(environ, start_response) if answer is None else answer

    def _origin_headers(self, environ: WSGIEnvironment) -> OriginHeaders:
        key = (environ.get("HTTP_HOST"), environ.get(self.scheme_header))
        cached = self.origins.get(key)
        if cached is not None:
            return cached
        request = WSGIRequest(environ)
        if settings.SECURE_SSL_REDIRECT and not request.is_secure():
            raise FallBackToDjango
        try:
            origin = f"{request.scheme}://{request.get_host()}"
        except DisallowedHost:
            raise FallBackToDjango from None
        headers = {
            "Content-Type": "application/json",
            "Vary": "Cookie",
            **security_headers(secure=request.is_secure()),
        }
        cached = OriginHeaders(origin, list(headers.items()))
        if len(self.origins) < MOST_ORIGINS:
            self.origins[key] = cached
        return cached

    def _reply(self, environ: WSGIEnvironment, origin: str, n: int) -> PageReply:
        """Raises FallBackToDjango and BadRequest."""
        if (
            environ.get("REQUEST_METHOD") != "POST"
            or environ.get("CONTENT_TYPE") != "application/json"
            or environ.get("HTTP_ORIGIN") != origin
            or environ.get("HTTP_SEC_FETCH_SITE", SAME_SITE) != SAME_SITE
        ):
            raise FallBackToDjango
        # Django does the same before each request; only after an error does
        # it check whether the connection is alive.
        connection = primary()
        if connection.errors_occurred:
            connection.close_if_unusable_or_obsolete()
        try:
            length = int(environ.get("CONTENT_LENGTH") or 0)
            if not 0 < length <= LARGEST_BODY:
                raise FallBackToDjango
            body = environ["wsgi.input"].read(length)
        # The length is no number, or the browser hung up.
        except (ValueError, OSError):
            raise FallBackToDjango from None
        # For Django, in case it has to answer after all.
        environ["wsgi.input"] = BytesIO(body)
        try:
            return run_with_retry(lambda: self._save(environ, n, body))
        except ServiceUnavailable as unavailable:
            return PageReply(503, {"error": unavailable.key})

    def _save(self, environ: WSGIEnvironment, n: int, body: bytes) -> PageReply:
        """1 session read and 1 statement; 2 when refused."""
        cookies = parse_cookie(environ.get("HTTP_COOKIE", ""))
        store = self.sessions(cookies.get(settings.SESSION_COOKIE_NAME))
        session = read_session(store, cookies)
        # Without a session key, Django's middleware deletes the stale cookie.
        if session is None or store.session_key is None:
            raise FallBackToDjango
        if session.needs_extension():
            raise FallBackToDjango
        if environ.get(RESPONDENT_HEADER) != session.tag:
            raise FallBackToDjango
        published = published_in_memory(session.digest)
        if published is None:
            raise FallBackToDjango
        return process_page(session, published, n, decode_page_save(body))
