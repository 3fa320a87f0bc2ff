"""A task's lines carry the id of the request that sent it."""

from __future__ import annotations

from typing import Any

from celery import signals
from django.conf import settings
from django.utils.log import configure_logging

from settings.monitoring import logs


@signals.before_task_publish.connect
def _send_along(headers: dict[str, Any] | None = None, **_: Any) -> None:
    trace = logs.current()
    if trace is not None and headers is not None:
        headers["request_id"] = trace.request_id


@signals.task_prerun.connect
def _begin(task: Any = None, **_: Any) -> None:
    logs.begin(str(task.request.get("request_id", ""))).task = task.name


@signals.task_postrun.connect
def _end(**_: Any) -> None:
    logs.end()


@signals.setup_logging.connect
def _as_everywhere(**_: Any) -> None:
    # Celery sets logging up by itself unless somebody else does.
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
