"""Retry a request once after a lost database connection, then answer 503."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.db import (
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
)
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from survey.database.primary import primary
from survey.taking.places import known_place_of_state
from survey.taking.published import SurveyNotFound

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

# SQLSTATE of a write on a server that is not the primary (any more).
READ_ONLY = "25006"
# Of PostgreSQL's warnings about a commit that stopped waiting for its standby:
# it reports success, and the standby may not have it.
UNREPLICATED = "wait for synchronous replication"


class ServiceUnavailable(Exception):
    """Answered with 503 and ``{"error": key}``; the browser keeps its answers."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def retry_once(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Run a view with `run_with_retry`, and answer 503 where that fails."""

    @wraps(view)
    def wrapper(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        try:
            return run_with_retry(lambda: view(request, *args, **kwargs))
        except ServiceUnavailable as unavailable:
            return unavailable_response(request, unavailable.key)

    return wrapper


def run_with_retry(act: Callable[[], T]) -> T:
    """Call `act`; if the database connection was lost, reconnect and call it again.

    The pool may have closed a kept connection, and checking before each save
    would cost a round trip. Sending a page twice is safe: its revision makes
    the second a repetition. Raises ServiceUnavailable while the database is
    down or slow, and where a commit has not waited for its standby.
    """
    try:
        try:
            result = act()
        except (OperationalError, InterfaceError):
            if not _connection_was_lost():
                raise
            result = act()
    except (OperationalError, InterfaceError):
        log.warning("The database is down or slow.", exc_info=True)
        raise ServiceUnavailable("database") from None
    except InternalError as error:
        if getattr(error.__cause__, "pgcode", None) != READ_ONLY:
            raise
        # After a failover: the next connection leads to the new primary.
        log.warning("The database is read-only.", exc_info=True)
        connection.close()
        raise ServiceUnavailable("database") from None
    except SurveyNotFound:
        # A survey that is being taken exists: this server is behind.
        log.warning("A published survey is missing.", exc_info=True)
        raise ServiceUnavailable("survey") from None
    except ConnectionError:
        raise ServiceUnavailable("sessions") from None
    # The driver keeps a connection's notices in a list, which is empty but for
    # warnings: looking at it costs a tenth of a microsecond.
    notices = getattr(primary().connection, "notices", None)
    if notices:
        was_cancelled = any(UNREPLICATED in notice for notice in notices)
        notices.clear()
        if was_cancelled:
            log.warning("A commit has stopped waiting for its standby.")
            raise ServiceUnavailable("database")
    return result


def _connection_was_lost() -> bool:
    lost = connection.connection is None or bool(
        getattr(connection.connection, "closed", False)
    )
    if lost:
        connection.close()
    return lost


def unavailable_response(request: HttpRequest, key: str) -> HttpResponse:
    """Answer 503 as JSON to a script, else with a page that reloads itself."""
    retry_after = seconds_until_retry()
    asks_for_code = request.path == "/" or request.path.startswith("/open/")
    context = {"state_place": known_place_of_state()}
    response: HttpResponse
    if wants_json(request) or request.content_type == "application/json":
        response = JsonResponse({"error": key}, status=503)
    elif asks_for_code and request.method == "POST":
        # No reload: the form with the code would be empty.
        response = render(request, "503_code.html", context, status=503)
    else:
        # The same choice as nginx makes (roles/web): only the page for people
        # without a session says that they wait in line.
        template = "503.html" if asks_for_code else "503_inside.html"
        response = render(request, template, context, status=503)
        response["Refresh"] = retry_after
    response["Retry-After"] = retry_after
    return response


def seconds_until_retry() -> str:
    # Random, so that a whole school does not come back in the same second.
    return str(random.randint(1, 5))  # noqa: S311


def wants_json(request: HttpRequest) -> bool:
    # `request.headers` would first convert all of them into a mapping.
    return bool(request.META.get("HTTP_ACCEPT") == "application/json")
