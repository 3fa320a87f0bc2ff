"""What a page save must look like before anybody reads its answers."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import UnreadablePostError

from survey.taking.storage import ALL

# X-Groundswell-Respondent. From META, because `request.headers` would turn all
# of a request's headers into a mapping first.
PERSON = "HTTP_X_GROUNDSWELL_RESPONDENT"
# Fifty answers of the longest text in a four-byte script; a page has about five.
LARGEST_BODY = 1_000_000
# Revisions are microseconds; one far ahead of the clock would shut out every
# later save of the same person.
FARTHEST_AHEAD = 24 * 60 * 60 * 1_000_000


class BadRequest(Exception):
    """Answered with `status` and ``{"error": key}``."""

    def __init__(self, status: int, key: str) -> None:
        super().__init__(key)
        self.status = status
        self.key = key


REQUIRED = {"revision", "answers"}
KNOWN = REQUIRED | {"seen", "base"}


@dataclass(frozen=True, slots=True)
class Save:
    """`seen` and `base` as in `saving.save_page`."""

    revision: int
    answers: Mapping[str, object]
    seen: int = ALL
    base: int = 0


def check_origin(request: HttpRequest) -> None:
    """Refuse what another site's page could send in this browser's name.

    A JSON body and a header of our own make a browser ask first, and the
    origin is compared: together they do what a CSRF token does.
    """
    origin = request.META.get("HTTP_ORIGIN", "")
    if origin != f"{request.scheme}://{request.get_host()}" and not any(
        origin == trusted for trusted in settings.CSRF_TRUSTED_ORIGINS
    ):
        raise BadRequest(403, "origin")
    if request.META.get("HTTP_SEC_FETCH_SITE", "same-origin") != "same-origin":
        raise BadRequest(403, "origin")
    if PERSON not in request.META:
        raise BadRequest(403, "origin")
    if request.content_type != "application/json":
        raise BadRequest(415, "json")


def read_save(request: HttpRequest) -> Save:
    """Raises BadRequest."""
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
            raise BadRequest(413, "too_large")
        return save_in(request.body)
    except RequestDataTooBig:
        raise BadRequest(413, "too_large") from None
    # The browser hung up; nobody is there to read this.
    except UnreadablePostError:
        raise BadRequest(400, "body") from None


def save_in(body: bytes) -> Save:
    """Raises BadRequest."""
    try:
        content = DECODER.decode(body.decode())
    # A body nested a thousand deep ends the parser's recursion.
    except (ValueError, RecursionError):
        raise BadRequest(422, "body") from None
    if not isinstance(content, dict) or not REQUIRED <= content.keys() <= KNOWN:
        raise BadRequest(422, "body")
    if not isinstance(content["answers"], dict):
        raise BadRequest(422, "body")
    latest = time.time_ns() // 1000 + FARTHEST_AHEAD
    for name in content.keys() - {"answers"}:
        number = content[name]
        if type(number) is not int or not 0 <= number < latest:
            raise BadRequest(422, "revision")
    if not content["revision"]:
        raise BadRequest(422, "revision")
    return Save(**content)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


DECODER = json.JSONDecoder(parse_constant=_refuse)


def wants_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept", "") == "application/json"
