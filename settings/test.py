"""For the tests: SQLite, or the stack's servers where the script started them.

`provisioning/test` sets GROUNDSWELL_TEST_SERVERS to the folder of the
servers' sockets for its second run.
"""

from __future__ import annotations

import os

from settings import servers
from settings.base import *  # noqa: F403
from settings.base import BASE_DIR, env
from settings.sqlite import sqlite_database

SECRET_KEY = "only-for-tests-" + "x" * 50
ACCESS_CODE_KEYS = {1: "first-key-for-tests", 2: "second-key-for-tests"}
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
PUBLIC_ADDRESS = "https://survey.example.org"
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Static files come from where they were written, not from a collected copy.
COMPRESS_OFFLINE = False
COMPRESS_ENABLED = False
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
FILES_FOLDER = str(BASE_DIR / ".test" / f"files-{os.getpid()}")
STORAGES = {
    **STORAGES,  # noqa: F405
    "private": {
        **PRIVATE_FILES,  # noqa: F405
        "OPTIONS": {**PRIVATE_FILES["OPTIONS"], "location": FILES_FOLDER},  # noqa: F405
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
CELERY_TASK_ALWAYS_EAGER = True

SERVERS = env.str("GROUNDSWELL_TEST_SERVERS", default="")

if SERVERS:
    DATABASES = {
        "default": {
            **servers.postgresql(
                host=SERVERS,
                port=6432,
                name="groundswell",
                user="groundswell",
                password="",
            ),
            "ENGINE": "settings.infrastructure.behind_pgbouncer",
        }
    }
    CACHES = servers.caches(
        memcached=[f"unix:{SERVERS}/memcached.sock"],
        redis=f"unix://{SERVERS}/redis.sock",
    )
    SESSION_ENGINE = servers.SESSION_ENGINE
    SESSION_CACHE_ALIAS = servers.SESSION_CACHE_ALIAS
else:
    # A file, not memory: the races need several real connections.
    _folder = BASE_DIR / ".test"
    _folder.mkdir(exist_ok=True)
    DATABASES = {
        "default": {
            **sqlite_database(_folder / "unused.sqlite3"),
            # Two runs at once in one checkout keep out of each other's way.
            "TEST": {"NAME": _folder / f"test-{os.getpid()}.sqlite3"},
        }
    }
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    SESSION_ENGINE = "django.contrib.sessions.backends.db"
