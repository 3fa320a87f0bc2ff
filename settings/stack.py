"""Configure the stack: nginx, PostgreSQL, Memcached, Redis and RabbitMQ."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from stat import S_ISGID
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from settings import servers
from settings.base import *  # noqa: F403
from settings.base import (
    ACCESS_CODE_DIGEST_KEYS,
    ACCESS_CODE_KEYS,
    ALLOWED_HOSTS,
    FILES_FOLDER,
    PRIVATE_FILES,
    SECRET_KEY,
    SENTRY_DSN,
    STORAGES,
    TIME_ZONE,
    VERSION,
    env,
)
from settings.bucket import storage_of_bucket
from settings.monitoring.logs import logging_with

for _name, _value in (
    ("GROUNDSWELL_SECRET_KEY", SECRET_KEY),
    ("GROUNDSWELL_ACCESS_CODE_KEYS", ACCESS_CODE_KEYS or ACCESS_CODE_DIGEST_KEYS),
    ("GROUNDSWELL_TIME_ZONE", TIME_ZONE),
):
    if not _value:
        raise ImproperlyConfigured(f"Set {_name}: the stack has no default for it.")

LOGGING = logging_with(SENTRY_DSN, VERSION)

# Of the authority that signed the servers' certificates; empty on a single machine,
# whose servers have unix sockets.
_ca = env.str("GROUNDSWELL_CA", default="")
DATABASES = {
    "default": servers.postgresql(
        host=env.str("GROUNDSWELL_DATABASE_HOST", default="/var/run/postgresql"),
        port=env.int("GROUNDSWELL_DATABASE_PORT", default=6432),
        name=env.str("GROUNDSWELL_DATABASE_NAME", default="groundswell"),
        user=env.str("GROUNDSWELL_DATABASE_USER", default="groundswell"),
        password=env.str("GROUNDSWELL_DATABASE_PASSWORD", default=""),
        ca=_ca,
    )
    # Otherwise the first request of each of the console's threads would fail after
    # pgbouncer was restarted. Celery connects anew for each task, and the
    # respondents' pool, which repeats a statement instead, does without.
    | {"CONN_HEALTH_CHECKS": True}
}
if _replica := env.str("GROUNDSWELL_REPLICA_HOST", default=""):
    DATABASES["replica"] = servers.postgresql(
        host=_replica,
        port=env.int("GROUNDSWELL_REPLICA_PORT", default=6432),
        name=env.str("GROUNDSWELL_REPLICA_NAME", default="groundswell"),
        user=env.str("GROUNDSWELL_REPLICA_USER", default="groundswell"),
        password=env.str("GROUNDSWELL_REPLICA_PASSWORD", default=""),
    ) | {
        # Falls back to the primary when the replica fails.
        "ENGINE": "survey.database.replica",
        "OPTIONS": {"connect_timeout": 1},
        "TEST": {"MIRROR": "default"},
    }

# Exports and roll-ups in the workers read through a separate pgbouncer pool with
# its own role (see survey.database.replica.reports). The pool leads to the
# replica, or to the primary where there is no replica. Their server-side cursors
# must stay within one transaction, because pgbouncer gives the connection to
# another client after it.
if _reports := env.str("GROUNDSWELL_REPORTS_HOST", default=""):
    DATABASES["reports"] = servers.postgresql(
        host=_reports,
        port=env.int("GROUNDSWELL_REPORTS_PORT", default=6432),
        name=env.str("GROUNDSWELL_REPORTS_NAME", default="reports"),
        user=env.str("GROUNDSWELL_REPORTS_USER", default="reports"),
        password=env.str("GROUNDSWELL_REPORTS_PASSWORD", default=""),
        ca=_ca,
    ) | {"DISABLE_SERVER_SIDE_CURSORS": False, "TEST": {"MIRROR": "default"}}

# Settings of django-balancer. Reads that may be stale are distributed over
# DATABASE_POOL by weight.
DATABASE_ROUTERS = ["survey.database.routers.ForcedReadRouter"]
MASTER_DATABASE = "default"
DATABASE_POOL = {"replica" if "replica" in DATABASES else "default": 1}
# Before any middleware that reads the database.
MIDDLEWARE = ["survey.database.pinning.PinningMiddleware", *MIDDLEWARE]  # noqa: F405

# Outermost, so that /healthz answers when nothing else works.
MIDDLEWARE = ["settings.monitoring.middleware.MonitoringMiddleware", *MIDDLEWARE]

CACHES = servers.caches(
    memcached=env.list("GROUNDSWELL_MEMCACHED", default=["127.0.0.1:11211"]),
    redis=env.str("GROUNDSWELL_REDIS", default="redis://127.0.0.1:6379/0"),
    messages_redis=env.str(
        "GROUNDSWELL_MESSAGES_REDIS", default="redis://127.0.0.1:6379/1"
    ),
    ca=_ca,
)
RESPONDENT_SESSION_ENGINE = servers.RESPONDENT_SESSION_ENGINE
SESSION_CACHE_ALIAS = servers.SESSION_CACHE_ALIAS

# On the same disk as the private files, so that storing an upload only renames
# the file.
_incoming = Path(FILES_FOLDER) / "incoming"
# False as well for the user who migrates and may not enter the folder.
if os.path.isdir(_incoming):
    FILE_UPLOAD_TEMP_DIR = str(_incoming)
# Where the console and the workers are two users, the folder is their group's.
if os.path.isdir(FILES_FOLDER) and os.stat(FILES_FOLDER).st_mode & S_ISGID:
    PRIVATE_FILES["OPTIONS"] |= {
        "file_permissions_mode": 0o640,
        "directory_permissions_mode": 0o2770,
    }

# s3://KEY:SECRET@HOST/BUCKET?region=REGION; see bucket.py.
if FILES_BUCKET := env.str("GROUNDSWELL_FILES_BUCKET", default=""):
    STORAGES = {**STORAGES, "private": storage_of_bucket(FILES_BUCKET)}

# nginx terminates TLS, and removes this header from browsers' requests.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Turned off only for load tests on the loopback interface.
_tls = env.bool("GROUNDSWELL_TLS", default=True)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _tls
# Browsers accept these names only from this host and over TLS, so no other host of
# the domain can set them.
if _tls:
    SESSION_COOKIE_NAME = "__Host-sessionid"
    CSRF_COOKIE_NAME = "__Host-csrftoken"
PUBLIC_ADDRESS = env.str(
    "GROUNDSWELL_URL",
    default=f"{'https' if _tls else 'http'}://{ALLOWED_HOSTS[0].lstrip('.')}",
).rstrip("/")
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if _tls else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = _tls
# W021 asks for HSTS preloading, which only the owner of the whole domain (a
# state, for example) may request.
SILENCED_SYSTEM_CHECKS = ["security.W021"]

# Empty on a small machine, whose one worker looks into the table of jobs.
CELERY_BROKER_URL = env.str(
    "GROUNDSWELL_BROKER", default="amqp://guest:guest@127.0.0.1:5672//"
)
JOBS_BY_MESSAGE = bool(CELERY_BROKER_URL)
if _ca:
    CELERY_BROKER_USE_SSL = {
        "ca_certs": _ca,
        "cert_reqs": ssl.CERT_REQUIRED,
        # Without it, any host's certificate would do.
        "server_hostname": urlsplit(CELERY_BROKER_URL).hostname,
    }
# A user who starts a job waits this long for an unresponsive broker. The job is
# already stored by then, and its message is sent later.
CELERY_BROKER_CONNECTION_TIMEOUT = 2
# A task whose worker dies runs again; all tasks are idempotent.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Progress is stored in the database; waiting for a result store that is down
# would block.
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_max": 0.2,
}
