"""The project as it is served, and one address more, for tests that share it.

A server needs seconds to start. One that goes on from test to test must let
go of the one before: nothing of it may still be running when the database is
emptied, nor may the process remember what was in there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.core.signals import request_finished, request_started

from settings.wsgi import application as project

BEGIN_ANEW = "/begin-anew/"
# A test that ended has nothing that could take longer.
PATIENCE = 10
# What arrived together with the question has begun by then.
MOMENT = 0.03

_changed = threading.Condition()
_running = 0


def begun(**_: object) -> None:
    global _running
    with _changed:
        _running += 1


def ended(**_: object) -> None:
    global _running
    with _changed:
        _running -= 1
        _changed.notify_all()


request_started.connect(begun)
request_finished.connect(ended)


def is_still() -> bool:
    """Waits until no request runs, and none has begun a moment later."""
    with _changed:
        while _changed.wait_for(lambda: _running == 0, PATIENCE):
            if not _changed.wait_for(lambda: _running, MOMENT):
                return True
    return False


def forget() -> None:
    # Not before the project was set up.
    from django.contrib.contenttypes.models import ContentType
    from django.core.cache import cache

    from survey.taking.published import forget_published
    from survey.taking.resume_cookie import forget_digests

    forget_published()
    forget_digests()
    cache.clear()
    ContentType.objects.clear_cache()


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    if environ["PATH_INFO"] != BEGIN_ANEW:
        return project(environ, start_response)
    if is_still():
        forget()
        status = "204 No Content"
    else:
        status = "503 Service Unavailable"
    start_response(status, [("Content-Length", "0")])
    return [b""]
