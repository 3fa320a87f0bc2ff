"""The project's WSGI application, with an address that resets it between tests.

Starting a server takes seconds, so tests share one. When the database is
emptied after a test, none of its requests may still be running, and the
process must not have cached any of its rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.core.signals import request_finished, request_started

from settings.wsgi import application as project

RESET = "/reset/"
# Seconds. No request of a test takes longer.
LONGEST_WAIT = 10
# Seconds. Requests that arrived at the same time have started by then.
SETTLING_TIME = 0.03

_changed = threading.Condition()
_running = 0


def count_started(**_: object) -> None:
    global _running
    with _changed:
        _running += 1


def count_finished(**_: object) -> None:
    global _running
    with _changed:
        _running -= 1
        _changed.notify_all()


request_started.connect(count_started)
request_finished.connect(count_finished)


def wait_until_idle() -> bool:
    """Wait until no request runs, and none starts a moment later."""
    with _changed:
        while _changed.wait_for(lambda: _running == 0, LONGEST_WAIT):
            if not _changed.wait_for(lambda: _running, SETTLING_TIME):
                return True
    return False


def clear_caches() -> None:
    # Importable only after django.setup().
    from django.core.cache import cache

    from survey.taking.places import forget_place_of_state
    from survey.taking.published import forget_published
    from survey.taking.resume_cookie import forget_digests

    forget_published()
    forget_digests()
    forget_place_of_state()
    cache.clear()


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    if environ["PATH_INFO"] != RESET:
        return project(environ, start_response)
    if wait_until_idle():
        clear_caches()
        status = "204 No Content"
    else:
        status = "503 Service Unavailable"
    start_response(status, [("Content-Length", "0")])
    return [b""]
