"""Who has just written reads the primary: the replica may not have it yet.

django-balancer's state and rules, with a middleware of our own. Its
thread-locals leaked from one asynchronous request into another, and a worker
outside of requests was pinned by its first write for ever.

A replica is read inside of requests only. A command or a task often begins
with a row that was written a moment ago; what wants the replica there, a
report or an export, names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from asgiref.local import Local
from balancer import pinning
from celery.signals import task_prerun
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from survey.database.replica import health

pinning._locals = Local()

COOKIE = "wrote"
SECONDS = 5
# Longer than a taking view waits: lists and searches take their time.
PATIENCE = 4.0

_serving: ContextVar[bool] = ContextVar("serving", default=False)


def may_read_replica() -> bool:
    return _serving.get() and not pinning.thread_is_pinned()


def forget() -> None:
    pinning.clear_db_write()
    pinning.unpin_thread()


@contextmanager
def serving(*, pinned: bool) -> Iterator[None]:
    """One request, which knows nothing of the last one's writes."""
    forget()
    if pinned:
        pinning.pin_thread()
    token = _serving.set(True)
    try:
        with health.patient(PATIENCE):
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
def _begin_task(**about: Any) -> None:
    # An eager task runs inside of a request, whose writes still count.
    if not _serving.get():
        forget()
