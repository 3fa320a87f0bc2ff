"""When the database is away: once more, and then later."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.db import (
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
)
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from survey.taking.published import SurveyNotFound
from survey.taking.save_request import wants_json

View = Callable[..., HttpResponse]
T = TypeVar("T")

log = logging.getLogger(__name__)

# What a server says to a write that is no primary (any more).
READ_ONLY = "25006"


class ServiceUnavailable(Exception):
    """Not now: 503, ``{"error": key}``, and the browser keeps its answers."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def retried(view: View) -> View:
    """The view, by `done_or_later`."""

    @wraps(view)
    def retried(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return done_or_later(lambda: view(request, *args, **kwargs))
        except ServiceUnavailable as later:
            return come_again(request, later.key)

    return retried


def done_or_later(act: Callable[[], T]) -> T:
    """Send a statement again over a fresh connection, once.

    The pool may have closed a kept connection, and asking before each save
    whether it lives would cost a round trip. Sending a page twice is safe:
    its revision makes the second a retry. Raises ComeAgain where the database
    is away or slow.
    """
    try:
        try:
            return act()
        except (OperationalError, InterfaceError):
            if not _connection_was_lost():
                raise
            return act()
    except (OperationalError, InterfaceError):
        log.warning("database", exc_info=True)
        raise ServiceUnavailable("database") from None
    except InternalError as error:
        if getattr(error.__cause__, "pgcode", None) != READ_ONLY:
            raise
        # After a failover: the next connection leads to the new primary.
        log.warning("database", exc_info=True)
        connection.close()
        raise ServiceUnavailable("database") from None
    except SurveyNotFound:
        # A survey that is being taken exists; who does not find it is not up
        # to date.
        log.warning("survey", exc_info=True)
        raise ServiceUnavailable("survey") from None
    except ConnectionError:
        raise ServiceUnavailable("sessions") from None


def come_again(request: HttpRequest, key: str) -> HttpResponse:
    is_program = wants_json(request) or request.content_type == "application/json"
    response = (
        JsonResponse({"error": key}, status=503)
        if is_program
        else render(request, _page(request), status=503)
    )
    response["Retry-After"] = seconds_later()
    # A page comes again by itself, except with a form that would be empty.
    if not is_program and not _is_code(request):
        response["Refresh"] = response["Retry-After"]
    return response


def seconds_later() -> str:
    # Spread, so that a school does not come back in the same second.
    return str(random.randint(1, 5))  # noqa: S311


def _page(request: HttpRequest) -> str:
    """As roles/web has nginx choose it: nobody who is inside stands in line."""
    if _is_code(request):
        return "503_code.html"
    return "503.html" if request.path == "/" else "503_inside.html"


def _is_code(request: HttpRequest) -> bool:
    return request.path == "/" and request.method == "POST"


def _connection_was_lost() -> bool:
    lost = connection.connection is None or bool(
        getattr(connection.connection, "closed", False)
    )
    if lost:
        connection.close()
    return lost
