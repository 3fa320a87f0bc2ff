"""The pool of workers that serves the five hot views, and nothing else."""

from __future__ import annotations

from settings.stack import *  # noqa: F403
from settings.stack import INSTALLED_APPS, SILENCED_SYSTEM_CHECKS

# Respondents have no account, and their static files come from nginx.
INSTALLED_APPS = [
    app
    for app in INSTALLED_APPS
    if app not in ("django.contrib.admin", "django.contrib.messages", "reports")
    and not app.startswith("allauth")
]
MIDDLEWARE = [
    "settings.monitoring.middleware.MonitoringMiddleware",
    "survey.taking.security_headers.SecurityHeaders",
    "survey.taking.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
]
# The first of these stands for them.
SILENCED_SYSTEM_CHECKS = [*SILENCED_SYSTEM_CHECKS, "security.W001", "security.W002"]

ROOT_URLCONF = "survey.urls"
AUTHENTICATION_BACKENDS = []
LOADS_TASKS = False
# Staff have words of their own, and code that this pool does not load.
CSRF_FAILURE_VIEW = "django.views.csrf.csrf_failure"
WSGI_APPLICATION = "survey.taking.wsgi.application"
# The other pool has time to ask the servers, and shows what both count.
MONITORING = {"/healthz": "settings.monitoring.health.healthz"}
