"""Logs: one JSON object a line, and nothing of what people typed in it.

The standard library's logging with a formatter of our own, because Django,
gunicorn and Celery log by it anyway. A line is made of what is known to be
harmless, instead of being cleaned of what is not:

- the constant text of a message, with numbers filled in and other values
  left out;
- fields of FIELDS, given as `extra`;
- an error's type, SQLSTATE, constraint, and files and lines, but never its
  message: PostgreSQL's quotes the row.

Paths and query strings are not written; `view` and `request_id` find the
request in nginx's log.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
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
FIELDS = ("view", "status", "ms", "outcome", "dependency", "count")
HARMLESS = re.compile(r"[A-Za-z][A-Za-z_.:]{0,60}")
WITHHELD = "(text withheld)"
# nginx's $request_id is 32 of them.
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
        # Without Django's own handlers, one of which mails whole requests.
        "django": {"handlers": [], "level": "WARNING", "propagate": True},
        "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
        # nginx and the metrics count what is refused; 5xx are written.
        "django.request": {"level": "ERROR"},
        # Its DEBUG lines are statements with their parameters.
        "django.db.backends": {"level": "WARNING"},
        "celery": {"level": "INFO"},
        **{name: {"level": "INFO"} for name in OURS},
    },
}


# The request or task that a line belongs to


@dataclass(slots=True)
class Trace:
    request_id: str
    started: float
    view: str = ""
    task: str = ""


# Where a request carries its trace once the middleware has ended it: Django
# logs a 5xx after its middleware.
KEY = "groundswell.trace"
_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def begin(given: str = "") -> Trace:
    """Start a request or a task, under the id it was given if that is one."""
    request_id = given if REQUEST_ID.fullmatch(given) else uuid4().hex
    trace = Trace(request_id, time.perf_counter())
    _current.set(trace)
    return trace


def end() -> None:
    _current.set(None)


def current() -> Trace | None:
    return _current.get()


# Writing


class Lines(logging.StreamHandler):
    """To stderr, where supervisord and a fleet's collector find them."""

    def handleError(self, record: logging.LogRecord) -> None:
        # The library's own prints the message's arguments.
        pass


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event": _event(record),
            "at": f"{_short(record.pathname)}:{record.lineno}",
            **_where(record),
            **_fields(record),
        }
        if record.exc_info and record.exc_info[1]:
            line["error"] = _error(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def _event(record: logging.LogRecord) -> str:
    status = getattr(record, "status_code", None)
    if isinstance(status, int):
        return responses.get(status, "response")
    if not isinstance(record.msg, str):
        return WITHHELD
    if record.args:
        return _filled(record)
    # A text without places may have been put together from anything. What
    # gunicorn and Celery say of their own doings, at INFO, is not.
    constant = record.levelno <= logging.INFO or record.name.split(".")[0] in OURS
    return record.msg if constant else WITHHELD


class _Hidden:
    def __str__(self) -> str:
        return "…"

    __repr__ = __str__


HIDDEN = _Hidden()


def _filled(record: logging.LogRecord) -> str:
    try:
        return record.msg % _harmless_arguments(record)
    except (TypeError, ValueError, KeyError):
        return record.msg


def _harmless_arguments(record: logging.LogRecord) -> Any:
    if isinstance(record.args, Mapping):
        # Celery's names and ids of tasks.
        named = ("name", "id") if record.name.startswith("celery.") else ()
        return {
            key: value if key in named or isinstance(value, (int, float)) else HIDDEN
            for key, value in record.args.items()
        }
    return tuple(
        value if isinstance(value, (int, float)) else HIDDEN
        for value in record.args or ()
    )


def _where(record: logging.LogRecord) -> dict[str, Any]:
    meta = getattr(getattr(record, "request", None), "META", {})
    trace = meta.get(KEY) or _current.get()
    if trace is None:
        return {}
    found = {
        "request_id": trace.request_id,
        "view": trace.view,
        "task": trace.task,
        "status": getattr(record, "status_code", None),
        "ms": round((time.perf_counter() - trace.started) * 1000, 1),
    }
    return {name: value for name, value in found.items() if value not in ("", None)}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {
        name: value
        for name in FIELDS
        if isinstance(value := record.__dict__.get(name), (int, float))
        or (isinstance(value, str) and HARMLESS.fullmatch(value))
    }


# Errors


def _error(error: BaseException) -> dict[str, Any]:
    causes = list(_chain(error))
    described: dict[str, Any] = {"type": _type_of(error)}
    if causes[1:]:
        described["causes"] = [
            " ".join([_type_of(cause), *_stack(cause.__traceback__)[-1:]])
            for cause in causes[1:]
        ]
    for cause in causes:
        described.update(_said_by_the_database(cause))
    described["stack"] = _stack(error.__traceback__)
    return described


def _said_by_the_database(error: BaseException) -> dict[str, str]:
    said = {
        # psycopg2's, then sqlite3's.
        "sqlstate": getattr(error, "pgcode", None)
        or getattr(error, "sqlite_errorname", None),
        "constraint": getattr(getattr(error, "diag", None), "constraint_name", None),
    }
    return {name: value for name, value in said.items() if value}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen and len(seen) < 6:
        seen.add(id(error))
        yield error
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)


def _type_of(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _stack(traceback: TracebackType | None) -> list[str]:
    frames = [
        f"{_short(frame.f_code.co_filename)}:{line} {frame.f_code.co_name}"
        for frame, line in walk_tb(traceback)
    ]
    return frames[-MOST_FRAMES:]


def _short(path: str) -> str:
    return path.rpartition("/site-packages/")[2].removeprefix(ROOT)
