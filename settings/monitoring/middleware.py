"""Trace and count every request, and serve the monitoring pages.

This middleware comes first, so that the monitoring pages work by address, over
plain HTTP, without a session, and while everything behind it is down.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from settings.monitoring import logs, stores
from settings.monitoring.metrics import count_stores, observed

log = logging.getLogger(__name__)

View = Callable[[HttpRequest], HttpResponse]
# Seconds after which a request is logged as slow.
SLOW = 1.0


class MonitoringMiddleware:
    """Trace one request. Costs at most 20 µs, and 2 µs for each statement."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response
        # Imported here, because the respondents' pool does not need /readyz.
        self.pages: Mapping[str, View] = {
            path: import_string(name) for path, name in settings.MONITORING.items()
        }

    def __call__(self, request: HttpRequest) -> HttpResponse:
        page = self.pages.get(request.path_info)
        if page is not None:
            return page(request)
        trace = logs.begin(request.META.get("HTTP_X_REQUEST_ID", ""))
        request.META[logs.KEY] = trace
        stores.begin(trace)
        try:
            response = self.get_response(request)
            response.headers["X-Request-ID"] = trace.request_id
            finished(
                trace,
                response.status_code,
                method=request.method or "",
                outcome=getattr(response, "outcome", ""),
            )
        finally:
            stores.finish()
            logs.end()
        return response

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: Any
    ) -> None:
        match = request.resolver_match
        if match is not None:
            request.META[logs.KEY].view = match.view_name


def finished(
    trace: logs.Trace, status: int, *, method: str, outcome: str, weight: int = 1
) -> None:
    """Count a request, and log a slow one.

    `weight` is of how many requests the time in stores was measured in one.
    """
    seconds = time.perf_counter() - trace.started
    try:
        observed(trace.view, seconds, status, method=method, outcome=outcome)
        count_stores(trace.view, trace.stores or {}, weight)
    except Exception:
        # The response is valid and must not be replaced by an error.
        log.exception("not counted")
    if seconds > SLOW:
        waits = {
            f"{store}_ms": round(waited * 1000, 1)
            for store, waited in (trace.stores or {}).items()
        }
        log.warning("slow", extra={"status": status, **waits})
