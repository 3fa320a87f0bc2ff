"""Asks every server how it is, each over a connection of its own.

All at once and each for half a second at most, also when one takes the
connection and then says nothing (a stopped process does just that). Answers
name kinds of errors and never their texts, which have addresses in them.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from select import select
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.memcached import BaseMemcachedCache
from django.db import connections

from settings.monitoring.metrics import Sample

PATIENCE = 0.5
# A conversation of several turns, each in time, may not take longer.
ALTOGETHER = 1.0
# A replica further behind than this is called degraded.
LAG_ALLOWED = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    # None: not set up here, or nobody could say.
    ok: bool | None
    detail: str
    ms: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    # Where in the log a server of PostgreSQL is, and its newest transaction's age.
    position: int | None = None
    age: float | None = None


Question = Callable[[], Answer]
NOT_SET_UP = Answer(None, "not set up here")


def ask_dependencies() -> dict[str, Answer]:
    """An answer of each, in the order in which they matter."""
    answers = _ask(
        {
            "primary": _primary,
            "replica": _replica,
            "memcached": _memcached,
            "redis": _redis,
            "rabbitmq": _rabbitmq,
        }
    )
    answers["replica"] = _with_lag(answers["primary"], answers["replica"])
    answers["worker"] = _worker(answers["rabbitmq"])
    return answers


def statistics() -> list[Sample]:
    """What /metrics shows of the servers; nothing of those that do not answer."""
    with ThreadPoolExecutor(1) as aside:
        more = aside.submit(
            _ask, {"commits": _commits, "pools": _pools, "sockets": _sockets}
        )
        answers = ask_dependencies()
    samples: list[Sample] = [
        ("up", float(answer.ok), (name,))
        for name, answer in answers.items()
        if answer.ok is not None
    ]
    for answer in (*answers.values(), *more.result().values()):
        samples += answer.samples
    return samples


def _ask(questions: Mapping[str, Question]) -> dict[str, Answer]:
    pool = ThreadPoolExecutor(len(questions))
    futures = {name: pool.submit(_timed, ask) for name, ask in questions.items()}
    wait(futures.values(), timeout=ALTOGETHER)
    # Whoever is still talking has timeouts of its own.
    pool.shutdown(wait=False, cancel_futures=True)
    return {name: _result(future) for name, future in futures.items()}


def _result(future: Future[Answer]) -> Answer:
    if future.done():
        return future.result()
    return Answer(False, f"no answer within {ALTOGETHER:g} s", ALTOGETHER * 1000)


def _timed(ask: Question) -> Answer:
    started = time.perf_counter()
    try:
        answer = ask()
    # Whatever a client library raises: the server did not answer.
    except Exception as error:
        answer = Answer(False, _kind_of(error))
    return replace(answer, ms=round((time.perf_counter() - started) * 1000, 1))


def _kind_of(error: Exception) -> str:
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return f"no answer within {PATIENCE:g} s"
    return type(error).__name__


# PostgreSQL

ROLE = "SELECT pg_is_in_recovery()"
POSITION = "SELECT pg_current_wal_lsn() - '0/0'"
REPLAYED = """
SELECT pg_last_wal_replay_lsn() - '0/0',
       extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
"""
COMMITS = """
SELECT d.xact_commit, w.wal_sync
FROM pg_stat_database d, pg_stat_wal w
WHERE d.datname = current_database()
"""


def _primary() -> Answer:
    if connections["default"].vendor != "postgresql":
        return _sqlite()
    with closing(_PostgreSQL("default")) as server:
        if server.row(ROLE)[0]:
            return Answer(False, "answers, but takes no writes")
        return Answer(True, "takes writes", position=int(server.row(POSITION)[0]))


def _sqlite() -> Answer:
    with closing(connections["default"].copy()) as database:
        database.cursor().execute("SELECT 1")
    return Answer(True, "SQLite")


def _replica() -> Answer:
    if "replica" not in settings.DATABASES or not _is_postgresql("replica"):
        return NOT_SET_UP
    with closing(_PostgreSQL("replica")) as server:
        if not server.row(ROLE)[0]:
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


def _with_lag(primary: Answer, replica: Answer) -> Answer:
    """The replica's answer, with how far it is behind.

    A replica that has everything is 0 s behind, however long ago the last
    transaction was. While the primary is away nobody knows what is missing.
    """
    if replica.position is None or primary.position is None:
        return replica
    missing = max(0, primary.position - replica.position)
    age = (replica.age or 0.0) if missing else 0.0
    return replace(
        replica,
        ok=age <= LAG_ALLOWED,
        detail=f"{age:.1f} s and {missing} bytes behind",
        samples=[
            ("replica_lag_seconds", age, ()),
            ("replica_lag_bytes", float(missing), ()),
        ],
    )


def _commits() -> Answer:
    if not _is_postgresql("default"):
        return NOT_SET_UP
    with closing(_PostgreSQL("default")) as server:
        commits, syncs = server.row(COMMITS)
    samples: list[Sample] = [
        ("commits_total", float(commits), ()),
        ("wal_syncs_total", float(syncs), ()),
    ]
    return Answer(True, "counted", samples=samples)


POOLS = {
    "cl_active": "pool_clients_active",
    "cl_waiting": "pool_clients_waiting",
    "sv_active": "pool_servers_active",
    "sv_idle": "pool_servers_idle",
    "maxwait": "pool_wait_seconds",
}


def _pools() -> Answer:
    """pgbouncer's own figures, where it lets this role ask (`stats_users`)."""
    if not _is_postgresql("default"):
        return NOT_SET_UP
    with closing(_PostgreSQL("default", dbname="pgbouncer")) as server:
        rows = server.rows("SHOW POOLS")
    samples: list[Sample] = [
        (name, float(row[column]), (f"{row['database']}/{row['user']}",))
        for row in rows
        if row["database"] != "pgbouncer"
        for column, name in POOLS.items()
    ]
    return Answer(True, "shown", samples=samples)


class _PostgreSQL:
    """One connection that keeps time at every step.

    libpq's own connect_timeout is two seconds at least, and nothing bounds
    its wait for an answer.
    """

    def __init__(self, alias: str, **other: str) -> None:
        import psycopg2

        self.deadline = time.monotonic() + PATIENCE
        known = connections[alias].get_connection_params()
        self.connection = psycopg2.connect(**{**known, **other, "async_": True})
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


# Helpers


def _memcached() -> Answer:
    if not isinstance(caches["default"], BaseMemcachedCache):
        return NOT_SET_UP
    from pymemcache import Client

    hits = misses = 0
    servers = _listed(settings.CACHES["default"]["LOCATION"])
    for server in servers:
        client = Client(server, connect_timeout=PATIENCE, timeout=PATIENCE)
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


def _listed(location: str | list[str]) -> list[str]:
    return [location] if isinstance(location, str) else list(location)


def _redis() -> Answer:
    if "sessions" not in settings.CACHES:
        return NOT_SET_UP
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    client = Redis.from_url(
        _listed(settings.CACHES["sessions"]["LOCATION"])[0],
        socket_connect_timeout=PATIENCE,
        socket_timeout=PATIENCE,
        # The client's own is to try for seconds.
        retry=Retry(NoBackoff(), 0),
    )
    with closing(client):
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


def _rabbitmq() -> Answer:
    """The queues and who listens, asked as a client and without a plug-in."""
    broker = getattr(settings, "CELERY_BROKER_URL", "")
    if not broker:
        return NOT_SET_UP
    from kombu import Connection

    patience = {"read_timeout": PATIENCE, "write_timeout": PATIENCE}
    link = Connection(
        broker,
        connect_timeout=PATIENCE,
        transport_options=patience,
    ).transport.establish_connection()
    with closing(link):
        samples = [sample for queue in _queue_names() for sample in _queue(link, queue)]
    waiting = sum(value for name, value, _ in samples if name == "queue_messages")
    return Answer(True, f"{waiting:.0f} tasks wait", samples=samples)


def _queue_names() -> list[str]:
    from settings.celery import app

    return list(app.amqp.queues)


def _queue(link: Any, name: str) -> list[Sample]:
    from amqp.exceptions import NotFound

    channel = link.channel()
    try:
        _, messages, consumers = channel.queue_declare(name, passive=True)
    except NotFound:
        # No worker has ever listened, and nothing was ever sent.
        messages = consumers = 0
    else:
        channel.close()
    return [
        ("queue_messages", float(messages), (name,)),
        ("queue_consumers", float(consumers), (name,)),
    ]


def _worker(rabbitmq: Answer) -> Answer:
    """Whether somebody listens, as RabbitMQ knows it.

    A worker that died is missed at once, one that hangs when its heartbeats
    stay out: after one to two minutes.
    """
    if not rabbitmq.ok:
        return Answer(
            None, "only RabbitMQ knows" if rabbitmq.ok is False else "not set up here"
        )
    idle = [
        labels[0]
        for name, value, labels in rabbitmq.samples
        if name == "queue_consumers" and not value
    ]
    if idle:
        return Answer(False, f"nobody listens to {', '.join(idle)}")
    return Answer(True, "listens to every queue")


def _sockets() -> Answer:
    """How many requests wait at gunicorn's sockets; only the kernel knows."""
    samples: list[Sample] = []
    listening = subprocess.run(
        ["ss", "--listening", "--unix", "--numeric", "--no-header"],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    for line in listening.stdout.splitlines():
        _, _, waiting, backlog, path, *_ = line.split()
        if path in settings.MONITORED_SOCKETS:
            name = (Path(path).stem,)
            samples.append(("listen_queue", float(waiting), name))
            samples.append(("listen_backlog", float(backlog), name))
    return Answer(True, "seen", samples=samples)
