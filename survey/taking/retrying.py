"""When the database is away: once more, and then later."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import (
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
)
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from survey.taking.published import SurveyNotFound
from survey.taking.wire import wants_json

View = Callable[..., HttpResponse]

log = logging.getLogger(__name__)

# What a server says to a write that is no primary (any more).
READ_ONLY = "25006"


def retried(view: View) -> View:
    """Send a statement again over a fresh connection, once.

    The pool may have closed a kept connection, and asking before each save
    whether it lives would cost a round trip. Sending a page twice is safe:
    its revision makes the second a retry. A database that is away or slow is
    503, and the browser keeps the answers and comes again.
    """

    @wraps(view)
    def retried(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            try:
                return view(request, *args, **kwargs)
            except (OperationalError, InterfaceError):
                if not _connection_was_lost():
                    raise
                return view(request, *args, **kwargs)
        except (OperationalError, InterfaceError):
            log.warning("database", exc_info=True)
            return come_again(request, "database")
        except InternalError as error:
            if getattr(error.__cause__, "pgcode", None) != READ_ONLY:
                raise
            # After a failover: the next connection leads to the new primary.
            log.warning("database", exc_info=True)
            connection.close()
            return come_again(request, "database")
        except SurveyNotFound:
            # A survey that is being taken exists; who does not find it is not
            # up to date.
            log.warning("survey", exc_info=True)
            return come_again(request, "survey")
        except ConnectionError:
            return come_again(request, "sessions")

    return retried


def come_again(request: HttpRequest, key: str) -> HttpResponse:
    is_program = wants_json(request) or request.content_type == "application/json"
    response = (
        JsonResponse({"error": key}, status=503)
        if is_program
        else render(request, "503.html", status=503)
    )
    # Spread, so that a school does not come back in the same second.
    response["Retry-After"] = str(random.randint(1, 5))  # noqa: S311
    return response


def _connection_was_lost() -> bool:
    lost = connection.connection is None or bool(
        getattr(connection.connection, "closed", False)
    )
    if lost:
        connection.close()
    return lost
