"""Settings for the tests: PostgreSQL and its helpers, or SQLite without them.

`provisioning/test` starts a set of servers for each of its processes, and puts
the folders of their sockets into GROUNDSWELL_TEST_SERVERS, separated by colons.
"""

from __future__ import annotations

import os

from settings import servers
from settings.base import *  # noqa: F403
from settings.base import BASE_DIR, env
from settings.sqlite import sqlite_database

SECRET_KEY = LISTS_KEY = "only-for-tests-" + "x" * 50
ACCESS_CODE_KEYS = {1: "first-key-for-tests", 2: "second-key-for-tests"}
FEED_KEYS = ["only-for-tests-" + "f" * 32]
CERTIFICATE_KEYS = ["only-for-tests-" + "c" * 32]
# The servers that tests start. Tests of what is refused empty the list.
FEED_NETWORKS = ["127.0.0.0/8"]
TIME_ZONE = "America/Chicago"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
PUBLIC_ADDRESS = "https://survey.example.org"
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Static files are served from their sources, not from a collected copy.
COMPRESS_OFFLINE = False
COMPRESS_ENABLED = False
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
# A slow machine is no reason to end a request.
REQUEST_SECONDS = 300
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

_folders = env.str("GROUNDSWELL_TEST_SERVERS", default="").split(":")
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
SERVERS = _folders[_worker % len(_folders)]

if SERVERS:
    # All processes find a dump of the empty test database here.
    SHARED_TEST_SERVERS = _folders[0]
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
        # A busy machine may hold up Redis for longer than a page save waits for
        # it. Tests of that limit start a Redis of their own.
        redis=f"unix://{SERVERS}/redis.sock?socket_timeout=10",
        messages_redis=f"unix://{SERVERS}/redis.sock?db=1&socket_timeout=10",
    )
    RESPONDENT_SESSION_ENGINE = servers.RESPONDENT_SESSION_ENGINE
    SESSION_CACHE_ALIAS = servers.SESSION_CACHE_ALIAS
else:
    # A file, not memory, because the tests of races need several connections.
    _folder = BASE_DIR / ".test"
    _folder.mkdir(exist_ok=True)
    DATABASES = {
        "default": {
            **sqlite_database(_folder / "unused.sqlite3"),
            # Two runs in one checkout use different files.
            "TEST": {"NAME": _folder / f"test-{os.getpid()}.sqlite3"},
        }
    }
    CACHES = {
        name: {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "LOCATION": name,
        }
        for name in ("default", "lists")
    }
