"""For the tests: SQLite, or the stack's servers where the script started them.

`provisioning/test` sets GROUNDSWELL_TEST_SERVERS to the folder of the
servers' sockets for its second run.
"""

from __future__ import annotations

from settings.base import *  # noqa: F403
from settings.base import env

SECRET_KEY = "only-for-tests-" + "x" * 50
ACCESS_CODE_KEYS = {1: "first-key-for-tests", 2: "second-key-for-tests"}
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
COMPRESS_OFFLINE = False
COMPRESS_ENABLED = False
CELERY_TASK_ALWAYS_EAGER = True

SERVERS = env.str("GROUNDSWELL_TEST_SERVERS", default="")

if SERVERS:
    from settings.stack import CACHES, DATABASES, SESSION_CACHE_ALIAS, SESSION_ENGINE
else:
    DATABASES = {
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    }
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    SESSION_ENGINE = "django.contrib.sessions.backends.db"
