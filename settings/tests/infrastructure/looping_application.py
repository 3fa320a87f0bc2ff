"""An application whose views loop, for gunicorn in test_time_limit."""

from __future__ import annotations

import os
import time
from itertools import repeat

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

from settings.base import TEMPLATES

LIMIT = "settings.infrastructure.time_limit.TimeLimitMiddleware"

settings.configure(
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=[LIMIT] if os.environ["LIMITED"] == "yes" else [],
    REQUEST_SECONDS=1,
    ROOT_URLCONF=__name__,
    TEMPLATES=[{**TEMPLATES[0], "OPTIONS": {}}],
)


def loop(request: HttpRequest) -> HttpResponse:
    while True:
        try:
            sum(range(1000))
        except Exception:  # noqa: S112
            # As views do that go on with the next row.
            continue


def wait(request: HttpRequest) -> HttpResponse:
    """Wait for what never comes, without using the processor."""
    while True:
        time.sleep(0.01)


def sleep(request: HttpRequest) -> HttpResponse:
    """Block outside of Python, where no exception can be raised."""
    time.sleep(3600)
    return HttpResponse()


def stuck(request: HttpRequest) -> HttpResponse:
    """Loop outside of Python and keep its lock, so that no other thread runs."""
    sum(repeat(0))
    return HttpResponse()


def quick(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(os.getpid()))


urlpatterns = [path(view.__name__, view) for view in (loop, wait, sleep, stuck, quick)]
application = get_wsgi_application()
