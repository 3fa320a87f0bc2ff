"""Save one page: check the request, validate the answers, store them, reply.

Two callers share it and add only what carries the reply: the view
`survey_change_page`, and `fast_path`, which answers before Django's handler.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import UnreadablePostError
from django.utils import timezone

from survey.taking.published import Published
from survey.taking.refusals import refusal
from survey.taking.session import RespondentSession
from survey.taking.storage import Outcome, save_page
from survey.taking.unavailable import ServiceUnavailable
from survey.taking.validation import check_page

# X-Groundswell-Respondent, the tag of the respondent whose answers these are.
# Read from META, because `request.headers` would first convert all of a
# request's headers into a mapping.
RESPONDENT_HEADER = "HTTP_X_GROUNDSWELL_RESPONDENT"
# Fifty answers of the longest text in a four-byte script; a page has about five.
LARGEST_BODY = 1_000_000
# Revisions are microseconds; one far ahead of the clock would shut out every
# later save of the same respondent.
FARTHEST_AHEAD = 24 * 60 * 60 * 1_000_000
# Rows of a page whose revisions differ; far more than a page has items.
MOST_SHOWN = 1000

REQUIRED_KEYS = {"revision", "answers"}
ALLOWED_KEYS = REQUIRED_KEYS | {"seen", "shown"}

REFUSALS = {
    Outcome.SUPERSEDED: (409, "superseded"),
    Outcome.FINISHED: (409, "finished"),
    Outcome.DECLINED: (409, "declined"),
    Outcome.WITHDRAWN: (409, "withdrawn"),
    Outcome.CLOSED: (409, "closed"),
    Outcome.REISSUED: (401, "reissued"),
}


class BadRequest(Exception):
    """Answered with `status` and `refusal(key)`."""

    def __init__(self, status: int, key: str) -> None:
        super().__init__(key)
        self.status = status
        self.key = key


@dataclass(frozen=True, slots=True)
class PageSave:
    """The body of a save. The last two say what its tab has seen: see `save_page`."""

    revision: int
    answers: Mapping[str, object]
    seen: int | None = None
    shown: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class PageReply:
    """`content` is sent as JSON; `outcome` is only counted in the metrics."""

    status: int
    content: Mapping[str, object]
    outcome: str = ""


def is_own_origin(request: HttpRequest, origin: str) -> bool:
    return (
        origin == f"{request.scheme}://{request.get_host()}"
        or origin in settings.CSRF_TRUSTED_ORIGINS
    )


def check_origin(request: HttpRequest) -> None:
    """Refuse requests that a page of another site can make. Raises BadRequest.

    A JSON body and a custom header make a browser ask for permission first,
    and the origin is compared: together they replace a CSRF token.
    """
    if not is_own_origin(request, request.META.get("HTTP_ORIGIN", "")):
        raise BadRequest(403, "origin")
    if request.META.get("HTTP_SEC_FETCH_SITE", "same-origin") != "same-origin":
        raise BadRequest(403, "origin")
    if RESPONDENT_HEADER not in request.META:
        raise BadRequest(403, "origin")
    if request.content_type != "application/json":
        raise BadRequest(415, "json")


def read_page_save(request: HttpRequest) -> PageSave:
    """Read and decode the request's body. Raises BadRequest."""
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
            raise BadRequest(413, "too_large")
        return decode_page_save(request.body)
    except RequestDataTooBig:
        raise BadRequest(413, "too_large") from None
    # The browser hung up, so this reply will not be read.
    except UnreadablePostError:
        raise BadRequest(400, "body") from None


def decode_page_save(body: bytes) -> PageSave:
    """Raises BadRequest unless the body has the shape of a save."""
    try:
        content = JSON.decode(body.decode())
    # A body nested a thousand deep ends in a RecursionError.
    except (ValueError, RecursionError):
        raise BadRequest(422, "body") from None
    if (
        not isinstance(content, dict)
        or not REQUIRED_KEYS <= content.keys() <= ALLOWED_KEYS
        or not isinstance(content["answers"], dict)
    ):
        raise BadRequest(422, "body")
    shown = content.get("shown", [])
    if not isinstance(shown, list) or len(shown) > MOST_SHOWN:
        raise BadRequest(422, "revision")
    latest = time.time_ns() // 1000 + FARTHEST_AHEAD
    numbers = [content[name] for name in content.keys() - {"answers", "shown"}]
    for number in numbers + shown:
        if type(number) is not int or not 0 <= number < latest:
            raise BadRequest(422, "revision")
    if not content["revision"]:
        raise BadRequest(422, "revision")
    return PageSave(**content)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


# Python's decoder accepts NaN and Infinity, which are not JSON.
JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def process_page(
    session: RespondentSession, published: Published, n: int, save: PageSave
) -> PageReply:
    """Validate and store page `n`. 1 statement; 2 when refused.

    Raises BadRequest and ServiceUnavailable.
    """
    if not 1 <= n <= len(published.answerable):
        raise BadRequest(404, "page")
    # Only a page with rules of its own needs the time.
    now = timezone.localtime() if published.ruled[n - 1] else None
    rows, problems = check_page(
        published,
        n,
        save.answers,
        today=now.date().isoformat() if now else "",
        now=now.isoformat(timespec="seconds") if now else "",
        language=session.language,
    )
    if problems:
        return PageReply(422, refusal("answers", items=problems), "invalid")
    receipt = save_page(
        administration_id=session.administration_id,
        respondent_id=session.respondent_id,
        issue=session.issue,
        revision=save.revision,
        rows=rows,
        seen=save.seen,
        shown=save.shown,
    )
    if receipt.outcome is Outcome.UNCERTAIN:
        raise ServiceUnavailable("again")
    if receipt.saved_at is None:
        status, error = REFUSALS[receipt.outcome]
        return PageReply(status, refusal(error), receipt.outcome.value)
    at = receipt.saved_at.isoformat(timespec="seconds")
    content = {"saved": len(rows), "revision": save.revision, "at": at}
    if receipt.retried:
        return PageReply(200, content, "retried")
    return PageReply(200, content, "resumed" if session.resumed else "saved")
