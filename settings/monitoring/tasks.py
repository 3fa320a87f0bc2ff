"""Log Celery tasks under the id of the request that sent them."""

from __future__ import annotations

from typing import Any

from celery import signals
from django.conf import settings
from django.utils.log import configure_logging

from settings.monitoring import logs


@signals.before_task_publish.connect
def add_request_id(headers: dict[str, Any] | None = None, **_: Any) -> None:
    trace = logs.current()
    if trace is not None and headers is not None:
        headers["request_id"] = trace.request_id


@signals.task_prerun.connect
def begin_trace(task: Any = None, **_: Any) -> None:
    logs.begin(str(task.request.get("request_id", ""))).task = task.name


@signals.task_postrun.connect
def end_trace(**_: Any) -> None:
    logs.end()


@signals.setup_logging.connect
def configure_logs(**_: Any) -> None:
    # Without this, Celery would configure logging itself.
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
