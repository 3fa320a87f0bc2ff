"""Log one JSON object per line, without anything that people typed.

This formats the standard library's logging, which Django, gunicorn and Celery
use anyway. A line contains only what is known to be harmless:

- the constant text of a message, with numbers filled in and other values left
  out;
- the fields in FIELDS, given as `extra`;
- an error's type, SQLSTATE, constraint, files and lines, but never its message,
  because PostgreSQL's messages quote the row.

Paths and query strings are not logged. `view` and `request_id` identify the
request in nginx's log.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import responses
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any
from uuid import uuid4

ROOT = f"{Path(__file__).resolve().parent.parent.parent}/"
OURS = ("accounts", "survey", "reports", "settings", "provisioning")
# Of a slow request: how long it waited for each store.
STORE_FIELDS = tuple(
    f"{name}_ms"
    for name in ("primary", "replica", "redis", "memcached", "rabbitmq", "files")
)
FIELDS = ("view", "status", "ms", "outcome", "dependency", "count", *STORE_FIELDS)
HARMLESS = re.compile(r"[A-Za-z][A-Za-z_.:]{0,60}")
WITHHELD = "(text withheld)"
# nginx's $request_id has 32 digits.
REQUEST_ID = re.compile(r"[0-9a-f]{16,32}")
MOST_FRAMES = 40

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "settings.monitoring.logs.JsonFormatter"}},
    "handlers": {
        "lines": {"()": "settings.monitoring.logs.Lines", "formatter": "json"}
    },
    "root": {"handlers": ["lines"], "level": "WARNING"},
    "loggers": {
        # Without Django's own handlers, one of which e-mails whole requests.
        "django": {"handlers": [], "level": "WARNING", "propagate": True},
        "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
        # Refused requests are counted by nginx and the metrics; 5xx are logged.
        "django.request": {"level": "ERROR"},
        # Its DEBUG lines are statements with their parameters.
        "django.db.backends": {"level": "WARNING"},
        "celery": {"level": "INFO"},
        **{name: {"level": "INFO"} for name in OURS},
    },
}


def logging_with(dsn: str, version: str) -> dict[str, Any]:
    """Return the settings of logging, with reports of crashes if there is a DSN."""
    if not dsn:
        return LOGGING
    tracker = {
        "()": "settings.monitoring.error_tracking.ErrorTracker",
        "dsn": dsn,
        "release": f"groundswell@{version}",
    }
    return LOGGING | {
        "handlers": LOGGING["handlers"] | {"tracker": tracker},
        "root": LOGGING["root"] | {"handlers": ["lines", "tracker"]},
    }


@dataclass(slots=True)
class Trace:
    """The request or task that log lines belong to."""

    request_id: str
    started: float
    view: str = ""
    task: str = ""
    # Seconds by store, while they are measured; see `stores`.
    stores: dict[str, float] | None = None


# Key of the trace in request.META, because Django logs a 5xx after the middleware
# has ended the trace.
KEY = "groundswell.trace"
_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def begin(given: str = "") -> Trace:
    """Start the trace of a request or task, with the given id if it is valid."""
    request_id = given if REQUEST_ID.fullmatch(given) else uuid4().hex
    trace = Trace(request_id, time.perf_counter())
    _current.set(trace)
    return trace


def end() -> None:
    _current.set(None)


def current() -> Trace | None:
    return _current.get()


class Lines(logging.StreamHandler):
    """Write to stderr, where supervisord and log collectors read."""

    def handleError(self, record: logging.LogRecord) -> None:
        # The default implementation prints the message's arguments.
        pass


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event": _event(record),
            "at": f"{short_path(record.pathname)}:{record.lineno}",
            **_trace_fields(record),
            **{
                name: value
                for name in FIELDS
                if isinstance(value := record.__dict__.get(name), (int, float))
                or (isinstance(value, str) and HARMLESS.fullmatch(value))
            },
        }
        if record.exc_info and record.exc_info[1]:
            line["error"] = _describe_error(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def _event(record: logging.LogRecord) -> str:
    status = getattr(record, "status_code", None)
    if isinstance(status, int):
        return responses.get(status, "response")
    if not isinstance(record.msg, str):
        return WITHHELD
    if record.args:
        try:
            return record.msg % harmless_arguments(record)
        except (TypeError, ValueError, KeyError):
            return record.msg
    # A text without placeholders may have been formatted from anything, except
    # for what gunicorn and Celery log about themselves at INFO.
    constant = record.levelno <= logging.INFO or record.name.split(".")[0] in OURS
    return record.msg if constant else WITHHELD


class Hidden:
    """Replace a value that must not be logged."""

    def __str__(self) -> str:
        return "…"

    __repr__ = __str__


HIDDEN = Hidden()


def harmless_arguments(record: logging.LogRecord) -> Any:
    if isinstance(record.args, Mapping):
        # Celery's names and ids of tasks are harmless too.
        allowed = ("name", "id") if record.name.startswith("celery.") else ()
        return {
            key: value if key in allowed or isinstance(value, (int, float)) else HIDDEN
            for key, value in record.args.items()
        }
    return tuple(
        value if isinstance(value, (int, float)) else HIDDEN
        for value in record.args or ()
    )


def trace_of(record: logging.LogRecord) -> Trace | None:
    meta = getattr(getattr(record, "request", None), "META", {})
    return meta.get(KEY) or _current.get()


def _trace_fields(record: logging.LogRecord) -> dict[str, Any]:
    trace = trace_of(record)
    if trace is None:
        return {}
    fields = {
        "request_id": trace.request_id,
        "view": trace.view,
        "task": trace.task,
        "status": getattr(record, "status_code", None),
        "ms": round((time.perf_counter() - trace.started) * 1000, 1),
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _describe_error(error: BaseException) -> dict[str, Any]:
    causes = causes_of(error)
    described: dict[str, Any] = {"type": _type_of(error)}
    if causes[1:]:
        described["causes"] = [
            " ".join([_type_of(cause), *_stack(cause.__traceback__)[-1:]])
            for cause in causes[1:]
        ]
    for cause in causes:
        # Attributes of psycopg2's errors, and of sqlite3's.
        state = getattr(cause, "pgcode", None)
        state = state or getattr(cause, "sqlite_errorname", None)
        diagnosis = getattr(cause, "diag", None)
        constraint = getattr(diagnosis, "constraint_name", None)
        described |= {"sqlstate": state} if state else {}
        described |= {"constraint": constraint} if constraint else {}
    described["stack"] = _stack(error.__traceback__)
    return described


def causes_of(error: BaseException | None) -> list[BaseException]:
    causes: list[BaseException] = []
    while error is not None and error not in causes and len(causes) < 6:
        causes.append(error)
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)
    return causes


def _type_of(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _stack(traceback: TracebackType | None) -> list[str]:
    frames = [
        f"{short_path(frame.f_code.co_filename)}:{line} {frame.f_code.co_name}"
        for frame, line in walk_tb(traceback)
    ]
    return frames[-MOST_FRAMES:]


def short_path(path: str) -> str:
    return path.rpartition("/site-packages/")[2].removeprefix(ROOT)
