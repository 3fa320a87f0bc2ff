"""Configure one machine with SQLite, for the demo or one small school."""

from __future__ import annotations

import os
from pathlib import Path

from settings import base
from settings.base import *  # noqa: F403
from settings.base import BASE_DIR, env
from settings.email_providers import SMTP
from settings.secrets_file import load_certificate_keys, load_feed_keys, load_secrets
from settings.sqlite import sqlite_database

DATA_DIR = Path(env.str("GROUNDSWELL_DATA", default=str(BASE_DIR / ".demo")))
# Other users of this machine must not read names, answers and sessions, whatever
# the permissions of the given folder.
os.umask(0o077)
DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)

_secrets = load_secrets(DATA_DIR / "secrets.json")
SECRET_KEY = env.str("GROUNDSWELL_SECRET_KEY", default=_secrets.secret_key)
ACCESS_CODE_KEYS = _secrets.access_code_keys
FEED_KEYS = base.FEED_KEYS or load_feed_keys(DATA_DIR / "feed_keys.json")
CERTIFICATE_KEYS = base.CERTIFICATE_KEYS or load_certificate_keys(
    DATA_DIR / "certificate_keys.json"
)

EMBEDDED = True
TIME_ZONE = base.TIME_ZONE or "America/Chicago"
# `provisioning/demo` turns it off and prints a notice.
SECOND_FACTOR_REQUIRED = env.bool("GROUNDSWELL_SECOND_FACTOR", default=True)

FILES_FOLDER = str(DATA_DIR / "files")
STORAGES = {
    **base.STORAGES,
    "private": {
        **base.PRIVATE_FILES,
        "OPTIONS": {**base.PRIVATE_FILES["OPTIONS"], "location": FILES_FOLDER},
    },
}

DATABASES = {"default": sqlite_database(DATA_DIR / "groundswell.sqlite3")}
# Outermost, as in the stack, so that /healthz answers when nothing else works.
MIDDLEWARE = [
    "settings.monitoring.middleware.MonitoringMiddleware",
    *base.MIDDLEWARE,
]
# Without the stack's log format, a slow request is one word on the terminal.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "loggers": {"settings.monitoring.middleware": {"level": "ERROR"}},
}

CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # Shared by the server and `manage.py work`.
    "lists": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": DATA_DIR / "lists",
    },
}
# `manage.py work` runs the jobs in a separate process.
JOBS_BY_MESSAGE = False
CELERY_TASK_ALWAYS_EAGER = True

# In the data folder, so that several users can share one checkout.
STATIC_ROOT = env.str("GROUNDSWELL_STATIC_ROOT", default=str(DATA_DIR / "collected"))

# Without a mail server, each e-mail is written to a file.
if base.EMAIL_PROVIDER == SMTP and not env.str("GROUNDSWELL_EMAIL_URL", default=""):
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = str(DATA_DIR / "mail")
PUBLIC_ADDRESS = env.str("GROUNDSWELL_URL", default="http://127.0.0.1:8000").rstrip("/")

# The demo is served on the loopback interface without TLS.
SESSION_COOKIE_SECURE = False
CSRF_COOKIE_SECURE = False
