"""Answer message platforms before Django's handler, and pass on the rest.

As `survey.taking.fast_path` does for page saves. Both ways call `endpoint.answer`;
a test compares their replies header by header.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from http.client import responses
from typing import TYPE_CHECKING

from django.db import connection

from settings.monitoring import logs  # noqa: TID251
from settings.monitoring.middleware import finished  # noqa: TID251
from survey.fieldwork.message_platforms.endpoint import ADDRESS, answer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def answer_directly(
    environ: WSGIEnvironment,
    start_response: StartResponse,
    common_headers: list[tuple[str, str]],
) -> Iterable[bytes] | None:
    """Answer an ordinary GET, or return None for Django to answer."""
    asked = ADDRESS.fullmatch(environ["PATH_INFO"])
    if asked is None or environ.get("REQUEST_METHOD") != "GET":
        return None
    # As Django does before each request.
    if connection.errors_occurred:
        connection.close_if_unusable_or_obsolete()
    trace = logs.begin(environ.get("HTTP_X_REQUEST_ID", ""))
    trace.view = "message_person"
    try:
        reply = answer(
            int(asked[1]),
            asked[2],
            environ.get("HTTP_AUTHORIZATION", ""),
            environ.get("QUERY_STRING", ""),
        )
        finished(trace, reply.status, method="GET", outcome="")
    finally:
        logs.end()
    body = json.dumps(reply.content).encode()
    headers = [
        *common_headers,
        ("Cache-Control", "no-store"),
        *reply.headers.items(),
        ("X-Request-ID", trace.request_id),
        ("Content-Length", str(len(body))),
    ]
    start_response(f"{reply.status} {responses[reply.status]}", headers)
    return [body]
