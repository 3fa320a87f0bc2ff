"""Pin a browser that has just written to the primary, which the replica may lag.

This uses django-balancer's state and rules with another middleware. Its
thread-locals leaked from one asynchronous request into another, and a worker
outside of requests stayed pinned for ever after its first write.

Only requests read a replica. Commands and tasks often start with a row that
was written a moment ago; reports and exports name the replica themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from asgiref.local import Local
from balancer import pinning
from celery.signals import task_prerun
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from survey.database.replica import health

pinning._locals = Local()

COOKIE = "wrote"
SECONDS = 5
# Seconds. Longer than in the respondents' views, because lists and searches
# take longer.
FALLBACK_TIMEOUT = 4.0

_serving: ContextVar[bool] = ContextVar("serving", default=False)


def may_read_replica() -> bool:
    return _serving.get() and not pinning.thread_is_pinned()


def forget() -> None:
    pinning.clear_db_write()
    pinning.unpin_thread()


@contextmanager
def serving(*, pinned: bool) -> Iterator[None]:
    """Handle one request without the pinning state of the one before."""
    forget()
    if pinned:
        pinning.pin_thread()
    token = _serving.set(True)
    try:
        with health.fall_back_to_primary(FALLBACK_TIMEOUT):
            yield
    finally:
        _serving.reset(token)
        forget()


class PinningMiddleware:
    """Pins a browser to the primary for some seconds after it wrote."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with serving(pinned=COOKIE in request.COOKIES):
            response = self.get_response(request)
            if pinning.db_was_written():
                response.set_cookie(
                    COOKIE,
                    "1",
                    max_age=SECONDS,
                    httponly=True,
                    samesite="Lax",
                    secure=settings.SESSION_COOKIE_SECURE,
                )
        return response


@task_prerun.connect
def _start_task(**kwargs: object) -> None:
    # An eager task runs inside a request, whose writes still count.
    if not _serving.get():
        forget()
