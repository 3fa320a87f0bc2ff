"""End a request that takes too long, without ending the requests beside it.

gunicorn's timeout kills a worker with all its requests, and only where a worker
has one thread: there a request that never ends keeps the worker from reporting to
its master. This is for workers with threads; the respondents' pool has the other
kind.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

log = logging.getLogger(__name__)

# A body of 300 MB, the largest that nginx admits, gets 30 seconds more: nginx
# waits a minute for the reply.
BYTES_PER_SECOND = 10_000_000
# Seconds between two looks at the requests.
PAUSE = 0.5
# Seconds after which a request that could not be interrupted costs the worker.
GRACE = 5

_interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc


class RequestTooLong(BaseException):
    """Raised between two instructions of a request; no `except Exception` hides it."""


class TimeLimitMiddleware:
    """Answer 503 for a request that takes too long. Costs 1 µs."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.watchdog = watchdog

    def __call__(self, request: HttpRequest) -> HttpResponse:
        self.watchdog.begin(seconds_for(request))
        try:
            try:
                return self.get_response(request)
            finally:
                self.watchdog.end()
        except RequestTooLong:
            # If it was raised before the end.
            self.watchdog.end()
            log.exception("a request took too long and was ended")
            # It may have stopped between any two steps, with a lock held.
            self.watchdog.retire()
            if "json" in request.headers.get("Accept", ""):
                return JsonResponse({"error": "too_long"}, status=503)
            return render(request, "503_too_long.html", status=503)


def seconds_for(request: HttpRequest) -> float:
    try:
        size = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        size = 0
    return float(settings.REQUEST_SECONDS + size / BYTES_PER_SECOND)


class Watchdog:
    """Raise RequestTooLong in the threads of this process whose time is over."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # By the thread that works on the request.
        self.deadlines: dict[int, float] = {}
        self.interrupted: set[int] = set()
        self.thread: threading.Thread | None = None

    def begin(self, seconds: float) -> None:
        with self.lock:
            self.deadlines[threading.get_ident()] = time.monotonic() + seconds
            # Not before the first request: a fork would not take it along.
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(target=self.watch, daemon=True)
                self.thread.start()

    def end(self) -> None:
        """Forget this thread's request; nothing is raised in it any more."""
        thread = threading.get_ident()
        with self.lock:
            self.deadlines.pop(thread, None)
            if thread in self.interrupted:
                self.interrupted.remove(thread)
                _interrupt(ctypes.c_ulong(thread), None)

    def watch(self) -> None:
        while True:
            time.sleep(PAUSE)
            now = time.monotonic()
            with self.lock:
                for thread, deadline in self.deadlines.items():
                    if now > deadline and thread not in self.interrupted:
                        self.interrupted.add(thread)
                        raised = ctypes.py_object(RequestTooLong)
                        _interrupt(ctypes.c_ulong(thread), raised)
                oldest = min(self.deadlines.values(), default=now)
            if now > oldest + GRACE:
                log.error("a request can't be ended, so its worker is")
                self.retire()
                return

    def retire(self) -> None:
        """Let gunicorn replace this worker, once its other requests are answered."""
        if os.environ.get("SERVER_SOFTWARE", "").startswith("gunicorn"):
            os.kill(os.getpid(), signal.SIGTERM)


# One for all applications of a process: each client of a test makes one.
watchdog = Watchdog()
