"""Report crashes to Sentry, without anything that people typed.

For processes whose settings name a DSN; others do not import this module. A log
handler sends what is logged as an error with its exception: failed requests, tasks
and jobs. The event is made here, of an allow list: types of exceptions; file, line
and function of each frame; the version; and the route or task. No message, because
PostgreSQL's quote the row; no variables, bodies, addresses, cookies or breadcrumbs.

sentry-sdk only sends: without its integrations it sees no request and no statement.
"""

from __future__ import annotations

import atexit
import logging
import time
from collections import deque
from traceback import walk_tb
from typing import Any

from sentry_sdk import Client

from settings.monitoring.logs import MOST_FRAMES, causes_of, short_path, trace_of

# Of one process, in a minute: an outage fails every request, and a few tell as much.
MOST_EVENTS = 10
# What is sent of an event; the library adds names of hosts, packages and more.
SENT = (
    *("event_id", "timestamp", "platform", "level"),
    *("release", "transaction", "exception"),
)
# A failure to send must not be sent.
OF_THE_SENDER = ("sentry_sdk", "urllib3")


class ErrorTracker(logging.Handler):
    """Send an event for each exception that is logged as an error."""

    def __init__(self, dsn: str, release: str) -> None:
        super().__init__(logging.ERROR)
        self.sent_at: deque[float] = deque(maxlen=MOST_EVENTS)
        self.client = Client(
            dsn=dsn,
            release=release,
            before_send=keep_allowed,
            default_integrations=False,
            auto_enabling_integrations=False,
            include_local_variables=False,
            include_source_context=False,
            send_client_reports=False,
            auto_session_tracking=False,
            max_breadcrumbs=0,
            # Otherwise variables of the environment would choose them.
            environment="production",
            server_name="",
            spotlight=False,
            shutdown_timeout=1,
        )
        atexit.register(self.client.close)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue an event. A thread of the library sends it."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None or record.name.startswith(OF_THE_SENDER):
            return
        now = time.monotonic()
        if len(self.sent_at) == MOST_EVENTS and now - self.sent_at[0] < 60:
            return
        self.sent_at.append(now)
        try:
            trace = trace_of(record)
            self.client.capture_event(
                {
                    "level": "error",
                    "transaction": (trace.view or trace.task) if trace else "",
                    "exception": {"values": describe(error)},
                }
            )
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        # The default implementation prints the message's arguments.
        pass


def describe(error: BaseException) -> list[dict[str, Any]]:
    """Return the exception and its causes, the first cause first."""
    return [
        {
            "type": type(cause).__qualname__,
            "module": type(cause).__module__,
            "stacktrace": {
                "frames": [
                    {
                        "filename": short_path(frame.f_code.co_filename),
                        "function": frame.f_code.co_name,
                        "lineno": line,
                    }
                    for frame, line in walk_tb(cause.__traceback__)
                ][-MOST_FRAMES:]
            },
        }
        for cause in reversed(causes_of(error))
    ]


def keep_allowed(event: Any, hint: Any) -> Any:
    return {name: event[name] for name in SENT if name in event}
