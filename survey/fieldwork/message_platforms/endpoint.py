"""Answer message platforms: GET /messages/<platform>/<person>.json.

Both the view and the fast path of the respondents' pool call `answer`.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from dataclasses import dataclass, field

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from settings.monitoring.metrics import count_message  # noqa: TID251
from survey.fieldwork.message_platforms.directory import (
    Platform,
    find_platform,
    find_window,
)
from survey.fieldwork.message_platforms.fallback import (
    Found,
    TooManyReads,
    read_and_fill,
    read_person,
)
from survey.fieldwork.message_platforms.hooks import send_finished
from survey.fieldwork.message_platforms.person_keys import respondent_of
from survey.fieldwork.message_platforms.replies import (
    Content,
    is_readable_by,
    reply_about,
)
from survey.fieldwork.message_platforms.statistics import count_call
from survey.fieldwork.message_platforms.store import Field, message_store, read_hash
from survey.taking.unavailable import seconds_until_retry

log = logging.getLogger(__name__)

ADDRESS = re.compile(r"/messages/([0-9]{1,18})/([A-Za-z0-9_-]{1,64})\.json", re.ASCII)
SCHEME = "bearer "
# A random key is 43 characters; nothing longer is hashed.
LONGEST_KEY = 200
UNAUTHORIZED: Content = {
    "error": "unauthorized",
    "message": "Send a valid API key in the header Authorization: Bearer KEY.",
}
NOT_FOUND: Content = {
    "error": "not_found",
    "message": "This platform has no such person.",
}
PARAMETERS: Content = {
    "error": "parameters",
    "message": "This address takes no parameters. Send the API key in the header"
    " Authorization: Bearer KEY. A key that was sent in an address may have been"
    " logged on its way: replace it.",
}
UNAVAILABLE: Content = {"error": "unavailable", "message": "Ask again in some seconds."}
# Compared where there is no platform, so that it takes as long.
_NO_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    content: Content
    headers: dict[str, str] = field(default_factory=dict)


def answer(platform_id: int, person: str, authorization: str, query: str) -> Reply:
    """Answer one request. 1 command in Redis and no statement where it has the hash.

    A person whom Redis lacks costs 3 commands and 1 statement.
    """
    if query:
        return Reply(400, PARAMETERS)
    started = time.perf_counter()
    try:
        platform = find_platform(platform_id)
        if not _is_authorized(platform, authorization):
            count_message(0, "unauthorized")
            return Reply(401, UNAUTHORIZED, {"WWW-Authenticate": "Bearer"})
        assert platform is not None  # noqa: S101
        reply, outcome = _look_up(platform, person)
        send_finished()
    except (ConnectionError, TooManyReads, DatabaseError, InterfaceError) as error:
        if not isinstance(error, ConnectionError | TooManyReads):
            log.warning("The database is down or slow.", exc_info=True)
        outcome = "unavailable"
        reply = Reply(503, UNAVAILABLE, {"Retry-After": seconds_until_retry()})
    count_call(platform_id, outcome, time.perf_counter() - started)
    return reply


def _is_authorized(platform: Platform | None, authorization: str) -> bool:
    # The name of a scheme has no case (RFC 9110, 11.1).
    given = authorization[len(SCHEME) :]
    if authorization[: len(SCHEME)].lower() != SCHEME or len(given) > LONGEST_KEY:
        return False
    digest = hashlib.sha256(given.encode()).digest()
    known = platform.digests if platform else ()
    # All are compared, however many there are and whichever is right.
    matches = [
        hmac.compare_digest(digest, each) for each in (*known, _NO_DIGEST, _NO_DIGEST)
    ]
    return any(matches[: len(known)])


def _look_up(platform: Platform, person: str) -> tuple[Reply, str]:
    """Return the reply, and where it came from. Raises what `answer` catches."""
    respondent_id = respondent_of(platform.secret, person)
    # A key that was not handed out costs nothing.
    if respondent_id is None:
        return Reply(404, NOT_FOUND), "unknown"
    store, outcome = message_store(), "hit"
    entry: Found | None = None
    if store is None:
        entry, outcome = read_person(respondent_id), "miss"
    else:
        fields = read_hash(store, respondent_id)
        if Field.ADMINISTRATION in fields:
            window = find_window(store, int(fields[Field.ADMINISTRATION]))
            entry = Found(fields, window) if window else None
        if entry is None:
            entry, outcome = read_and_fill(store, respondent_id), "miss"
            if entry is not None:
                # Who has finished may have been noted here before the replica.
                entry = Found({**entry.fields, **fields}, entry.window)
    if entry is None or not is_readable_by(platform, entry.fields):
        return Reply(404, NOT_FOUND), "unknown"
    return Reply(200, reply_about(respondent_id, *entry)), outcome


@csrf_exempt
@require_safe
def message_person(request: HttpRequest, platform: int, person: str) -> HttpResponse:
    """Tell a message platform what it may write to one person."""
    reply = answer(
        platform,
        person,
        request.headers.get("Authorization", ""),
        request.META.get("QUERY_STRING", ""),
    )
    response = JsonResponse(reply.content, status=reply.status)
    response.headers["Cache-Control"] = "no-store"
    for name, value in reply.headers.items():
        response.headers[name] = value
    return response
