"""Everything on one machine, in one process: for trying it, for one school."""

from __future__ import annotations

from pathlib import Path

from settings.base import *  # noqa: F403
from settings.base import BASE_DIR, env
from settings.secrets_file import load_secrets

DATA_DIR = Path(env.str("GROUNDSWELL_DATA", default=str(BASE_DIR / ".demo")))
DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)

_secrets = load_secrets(DATA_DIR / "secrets.json")
SECRET_KEY = env.str("GROUNDSWELL_SECRET_KEY", default=_secrets.secret_key)
ACCESS_CODE_KEYS = _secrets.access_code_keys

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATA_DIR / "groundswell.sqlite3",
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            # A writer queues at BEGIN instead of failing at its first write.
            "transaction_mode": "IMMEDIATE",
            "timeout": 5,
            # FULL: WAL's default would lose the last pages with the power.
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                "PRAGMA foreign_keys=ON"
            ),
        },
    }
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SESSION_ENGINE = "django.contrib.sessions.backends.db"
CELERY_TASK_ALWAYS_EAGER = True

# The demo is served without TLS, on loopback.
SESSION_COOKIE_SECURE = False
CSRF_COOKIE_SECURE = False
