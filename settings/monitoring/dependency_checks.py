"""Check every server that the application depends on, all at the same time.

Each check uses its own connection and takes half a second at most, even if a
server accepts the connection and never answers, as a stopped process does.
Results name the type of an error and never its text, which contains addresses.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from select import select
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.memcached import BaseMemcachedCache
from django.db import connections

from settings.monitoring.answers import NOT_SET_UP, TIMEOUT, Answer, Sample
from settings.monitoring.backups import read_backups
from settings.monitoring.durability_check import check_durability
from settings.monitoring.hosts import (
    read_certificate,
    read_connection_table,
    read_disk,
)
from settings.monitoring.job_queues import read_jobs

# Seconds for a check of several questions.
TOTAL_TIMEOUT = 1.0
# Seconds behind from which on a replica counts as degraded.
MAX_LAG = 30.0


Check = Callable[[], Answer]


def ask_dependencies() -> dict[str, Answer]:
    """Check all servers, and return their answers by importance."""
    answers = run_checks(
        {
            "primary": check_primary,
            "durability": check_durability,
            "replica": check_replica,
            "memcached": check_memcached,
            "redis": check_redis,
            "messages": check_messages,
            "rabbitmq": check_rabbitmq,
        }
    )
    answers["replica"] = add_lag(answers["primary"], answers["replica"])
    answers["worker"] = worker_answer(answers["rabbitmq"])
    return answers


def statistics() -> list[Sample]:
    """Return the figures of all servers that answer, for /metrics."""
    figures: dict[str, Check] = {
        "commits": read_commits,
        "pools": read_pools,
        "sockets": read_sockets,
        "jobs": read_jobs,
        "backups": read_backups,
        "disk": read_disk,
        "connection table": read_connection_table,
        "certificate": read_certificate,
    }
    with ThreadPoolExecutor(1) as executor:
        more = executor.submit(run_checks, figures)
        answers = ask_dependencies()
    samples: list[Sample] = [
        ("up", float(answer.ok), (name,))
        for name, answer in answers.items()
        if answer.ok is not None
    ]
    for answer in (*answers.values(), *more.result().values()):
        samples += answer.samples
    return samples


def run_checks(checks: Mapping[str, Check]) -> dict[str, Answer]:
    """Run checks in parallel threads, for TOTAL_TIMEOUT at most."""
    pool = ThreadPoolExecutor(len(checks))
    futures = {name: pool.submit(run_check, check) for name, check in checks.items()}
    wait(futures.values(), timeout=TOTAL_TIMEOUT)
    # Checks that still run end by their own timeouts.
    pool.shutdown(wait=False, cancel_futures=True)
    late = Answer(False, f"no answer within {TOTAL_TIMEOUT:g} s", TOTAL_TIMEOUT * 1000)
    return {
        name: future.result() if future.done() else late
        for name, future in futures.items()
    }


def run_check(check: Check) -> Answer:
    """Run one check. Any error means that the server did not answer."""
    started = time.perf_counter()
    try:
        answer = check()
    except Exception as error:
        kind = type(error).__name__
        if isinstance(error, TimeoutError) or "Timeout" in kind:
            kind = f"no answer within {TIMEOUT:g} s"
        answer = Answer(False, kind)
    return replace(answer, ms=round((time.perf_counter() - started) * 1000, 1))


IS_REPLICA = "SELECT pg_is_in_recovery()"
POSITION = "SELECT pg_current_wal_lsn() - '0/0'"
REPLAYED = """
SELECT pg_last_wal_replay_lsn() - '0/0',
       extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
"""
COMMITS = """
SELECT d.xact_commit, w.wal_sync, extract(epoch FROM clock_timestamp())
FROM pg_stat_database d, pg_stat_wal w
WHERE d.datname = current_database()
"""


def check_primary() -> Answer:
    if connections["default"].vendor != "postgresql":
        with closing(connections["default"].copy()) as database:
            database.cursor().execute("SELECT 1")
        return Answer(True, "SQLite")
    with closing(PostgreSQLProbe("default")) as server:
        if server.row(IS_REPLICA)[0]:
            return Answer(False, "answers, but takes no writes")
        return Answer(True, "takes writes", position=int(server.row(POSITION)[0]))


def check_replica() -> Answer:
    if "replica" not in settings.DATABASES or not _is_postgresql("replica"):
        return NOT_SET_UP
    with closing(PostgreSQLProbe("replica")) as server:
        if not server.row(IS_REPLICA)[0]:
            return Answer(False, "answers, but is not a replica")
        position, age = server.row(REPLAYED)
    return Answer(
        True,
        "replays",
        position=int(position),
        age=None if age is None else float(age),
    )


def _is_postgresql(alias: str) -> bool:
    return connections[alias].vendor == "postgresql"


def add_lag(primary: Answer, replica: Answer) -> Answer:
    """Add to the replica's answer how far it is behind.

    A replica that has everything is 0 s behind, however old the last
    transaction is. While the primary is down, the lag is unknown.
    """
    if replica.position is None or primary.position is None:
        return replica
    missing = max(0, primary.position - replica.position)
    age = (replica.age or 0.0) if missing else 0.0
    return replace(
        replica,
        ok=age <= MAX_LAG,
        detail=f"{age:.1f} s and {missing} bytes behind",
        samples=[
            ("replica_lag_seconds", age, ()),
            ("replica_lag_bytes", float(missing), ()),
        ],
    )


def read_commits() -> Answer:
    if not _is_postgresql("default"):
        return NOT_SET_UP
    with closing(PostgreSQLProbe("default")) as server:
        commits, syncs, clock = server.row(COMMITS)
    samples: list[Sample] = [
        ("commits_total", float(commits), ()),
        ("wal_syncs_total", float(syncs), ()),
        ("clock_offset_seconds", time.time() - float(clock), ()),
    ]
    return Answer(True, "counted", samples=samples)


POOLS = {
    "cl_active": "pool_clients_active",
    "cl_waiting": "pool_clients_waiting",
    "sv_active": "pool_servers_active",
    "sv_idle": "pool_servers_idle",
    "maxwait": "pool_wait_seconds",
}


def read_pools() -> Answer:
    """Read pgbouncer's figures, if `stats_users` allows it."""
    if not _is_postgresql("default"):
        return NOT_SET_UP
    with closing(PostgreSQLProbe("default", dbname="pgbouncer")) as server:
        rows = server.rows("SHOW POOLS")
    samples: list[Sample] = [
        (name, float(row[column]), (f"{row['database']}/{row['user']}",))
        for row in rows
        if row["database"] != "pgbouncer"
        for column, name in POOLS.items()
    ]
    return Answer(True, "shown", samples=samples)


class PostgreSQLProbe:
    """A connection that enforces TIMEOUT at every step.

    The shortest connect_timeout of libpq is two seconds, and it has no timeout
    for answers.
    """

    def __init__(self, alias: str, **parameters: str) -> None:
        import psycopg2

        self.deadline = time.monotonic() + TIMEOUT
        known = connections[alias].get_connection_params()
        self.connection = psycopg2.connect(**{**known, **parameters, "async_": True})
        try:
            self._wait()
        except BaseException:
            self.connection.close()
            raise

    def row(self, statement: str) -> tuple[Any, ...]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            self._wait()
            return cursor.fetchone()

    def rows(self, statement: str) -> list[dict[str, Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            self._wait()
            names = [column.name for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def close(self) -> None:
        self.connection.close()

    def _wait(self) -> None:
        from psycopg2.extensions import POLL_OK, POLL_READ

        while (state := self.connection.poll()) != POLL_OK:
            sockets = [self.connection]
            left = max(0.0, self.deadline - time.monotonic())
            reading = state == POLL_READ
            ready = select(
                sockets if reading else [], [] if reading else sockets, [], left
            )
            if not any(ready):
                raise TimeoutError


def check_memcached() -> Answer:
    if not isinstance(caches["default"], BaseMemcachedCache):
        return NOT_SET_UP
    from pymemcache import Client

    hits = misses = 0
    servers = addresses_of(settings.CACHES["default"]["LOCATION"])
    # On a fleet it is encrypted.
    tls = settings.CACHES["default"].get("OPTIONS", {}).get("tls_context")
    for server in servers:
        client = Client(
            server, connect_timeout=TIMEOUT, timeout=TIMEOUT, tls_context=tls
        )
        with closing(client):
            stats = client.stats()
        hits += int(stats[b"get_hits"])
        misses += int(stats[b"get_misses"])
    samples: list[Sample] = [
        ("cache_hits_total", float(hits), ()),
        ("cache_misses_total", float(misses), ()),
    ]
    if hits + misses:
        samples.append(("cache_hit_ratio", hits / (hits + misses), ()))
    return Answer(True, f"{len(servers)} answering", samples=samples)


def addresses_of(location: object) -> list[str]:
    return list(location) if isinstance(location, list) else [str(location)]


def check_redis() -> Answer:
    if "sessions" not in settings.CACHES:
        return NOT_SET_UP
    with closing(_redis("sessions")) as client:
        sessions = client.dbsize()
        memory = client.info("memory")
    samples: list[Sample] = [
        ("sessions", float(sessions), ()),
        ("redis_memory_bytes", float(memory["used_memory"]), ()),
        ("redis_memory_limit_bytes", float(memory["maxmemory"]), ()),
    ]
    limit = memory["maxmemory"]
    if limit and memory["used_memory"] >= limit:
        return Answer(False, "full: refuses new sessions", samples=samples)
    return Answer(True, f"{sessions} sessions", samples=samples)


def check_messages() -> Answer:
    """Read the memory of message platforms' Redis, and the last nightly check."""
    if "messages" not in settings.CACHES:
        return NOT_SET_UP
    with closing(_redis("messages")) as client:
        memory, stored = client.info("memory"), client.get("last_check")
    samples: list[Sample] = [
        ("messages_memory_bytes", float(memory["used_memory"]), ()),
        ("messages_memory_limit_bytes", float(memory["maxmemory"]), ()),
    ]
    if stored is None:
        return Answer(True, "not checked yet", samples=samples)
    check = json.loads(stored)
    samples += [
        ("messages_drift", float(check["drift"]), ()),
        ("messages_checked_timestamp_seconds", float(check["at"]), ()),
    ]
    return Answer(True, f"{check['drift']} differences", samples=samples)


def _redis(alias: str) -> Any:
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    address = addresses_of(settings.CACHES[alias]["LOCATION"])[0]
    return Redis.from_url(
        # The time-out in the address would win.
        re.sub("[?&]socket_timeout=[0-9.]+", "", address),
        socket_connect_timeout=TIMEOUT,
        socket_timeout=TIMEOUT,
        # The client's default is to retry for seconds.
        retry=Retry(NoBackoff(), 0),
    )


def check_rabbitmq() -> Answer:
    """Count messages and consumers of each queue, as a normal client."""
    broker = getattr(settings, "CELERY_BROKER_URL", "")
    if not broker:
        return NOT_SET_UP
    from amqp.exceptions import NotFound
    from kombu import Connection

    from settings.celery import app

    link = Connection(
        broker,
        ssl=getattr(settings, "CELERY_BROKER_USE_SSL", False),
        connect_timeout=TIMEOUT,
        transport_options={"read_timeout": TIMEOUT, "write_timeout": TIMEOUT},
    ).transport.establish_connection()
    samples: list[Sample] = []
    with closing(link):
        for queue in app.amqp.queues:
            channel = link.channel()
            try:
                _, messages, consumers = channel.queue_declare(queue, passive=True)
            except NotFound:
                # No worker has ever consumed, and nothing was ever sent.
                messages = consumers = 0
            else:
                channel.close()
            samples.append(("queue_messages", float(messages), (queue,)))
            samples.append(("queue_consumers", float(consumers), (queue,)))
    waiting = sum(value for name, value, _ in samples if name == "queue_messages")
    return Answer(True, f"{waiting:.0f} tasks wait", samples=samples)


def worker_answer(rabbitmq: Answer) -> Answer:
    """Tell from RabbitMQ's answer if every queue has a consumer.

    A dead worker is noticed at once. One that hangs is noticed when its
    heartbeats are missing, after one to two minutes.
    """
    if not rabbitmq.ok:
        return Answer(
            None, "only RabbitMQ knows" if rabbitmq.ok is False else "not set up here"
        )
    unattended = [
        labels[0]
        for name, value, labels in rabbitmq.samples
        if name == "queue_consumers" and not value
    ]
    if unattended:
        return Answer(False, f"no worker listens to {', '.join(unattended)}")
    return Answer(True, "listens to every queue")


def read_sockets() -> Answer:
    """Read from the kernel how many requests wait at gunicorn's sockets."""
    samples: list[Sample] = []
    listening = subprocess.run(
        ["ss", "--listening", "--unix", "--numeric", "--no-header"],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )
    for line in listening.stdout.splitlines():
        _, _, waiting, backlog, path, *_ = line.split()
        if path in settings.MONITORED_SOCKETS:
            name = (Path(path).stem,)
            samples.append(("listen_queue", float(waiting), name))
            samples.append(("listen_backlog", float(backlog), name))
    return Answer(True, "seen", samples=samples)
