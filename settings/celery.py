"""Define the Celery application, for `celery --app settings worker`."""

from __future__ import annotations

from celery import Celery

from settings.monitoring import tasks  # noqa: F401

app = Celery("groundswell")
# By name, so that the settings are read when the first task is sent. Commands
# that send no tasks do not read them.
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
