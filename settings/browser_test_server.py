"""Configure the server for browser tests: a test database, bundled static files."""

from __future__ import annotations

from settings import base
from settings.base import env
from settings.test import *  # noqa: F403
from settings.test import DATABASES

DATABASES["default"]["NAME"] = env.str("GROUNDSWELL_TEST_DATABASE", default="unused")
# As in the stack, where each process has a role of its own.
DATABASES["default"]["USER"] = env.str(
    "GROUNDSWELL_DATABASE_USER", default="groundswell"
)
if _reports := env.str("GROUNDSWELL_REPORTS_USER", default=""):
    DATABASES["reports"] = {
        **DATABASES["default"],
        "USER": _reports,
        "DISABLE_SERVER_SIDE_CURSORS": False,
    }
# The replica is reached directly, without pgbouncer.
if _replica := env.str("GROUNDSWELL_TEST_REPLICA", default=""):
    DATABASES["replica"] = {
        **DATABASES["default"],
        "ENGINE": "survey.database.replica",
        "PORT": _replica,
    }
    # Workers count and calculate there, as in the stack.
    DATABASES["reports"] = {
        **DATABASES["default"],
        "PORT": _replica,
        "DISABLE_SERVER_SIDE_CURSORS": False,
    }

# Bundles are compressed all the same. To compress the other files, most of which
# belong to Django's admin, takes seconds.
_MANIFEST = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
STORAGES = {**base.STORAGES, "staticfiles": {"BACKEND": _MANIFEST}}
COMPRESS_ENABLED = True
COMPRESS_OFFLINE = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_USE_FINDERS = False

SESSION_COOKIE_SECURE = False
CSRF_COOKIE_SECURE = False
