"""Configure the worker pool that serves only the respondents' views."""

from __future__ import annotations

from settings.stack import *  # noqa: F403
from settings.stack import CACHES, DATABASES, INSTALLED_APPS, SILENCED_SYSTEM_CHECKS

# Respondents have no user account, and nginx serves their static files.
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
# SecurityHeaders above replaces Django's SecurityMiddleware (W001) and
# XFrameOptionsMiddleware (W002).
SILENCED_SYSTEM_CHECKS = [*SILENCED_SYSTEM_CHECKS, "security.W001", "security.W002"]

# The check would add a statement to each page save; see
# survey.taking.unavailable.run_with_retry.
DATABASES["default"]["CONN_HEALTH_CHECKS"] = False

# This pool has a secret key of its own and so cannot read what other pools have
# signed. Under the same names they would overwrite one another's entries.
CACHES = {**CACHES, "default": {**CACHES["default"], "KEY_PREFIX": "taking"}}

ROOT_URLCONF = "survey.urls"
AUTHENTICATION_BACKENDS = []
LOADS_TASKS = False
# The staff view for CSRF failures needs code that this pool does not load.
CSRF_FAILURE_VIEW = "django.views.csrf.csrf_failure"
WSGI_APPLICATION = "survey.taking.wsgi.application"
# The console's pool answers /readyz, and its /metrics includes the counters of
# this pool. It asks here whether this pool's commits are flushed.
MONITORING = {
    "/healthz": "settings.monitoring.health.healthz",
    "/durability": "settings.monitoring.durability.durability",
}
