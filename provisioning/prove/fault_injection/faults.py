"""Inject faults into a running stack, and heal them; lose its primary for good."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from provisioning import processes
from provisioning.commands import ROOT, Refusal, output_of, wait_until
from provisioning.installation.promotion import REPLICA, promote
from provisioning.prove.fault_injection.load_processes import LoadProcesses
from provisioning.prove.fault_injection.stack import RunningStack
from provisioning.prove.fault_injection.verdict import Finding

# Set by provisioning/faults once it runs in a mount namespace of its own.
MARK = "GROUNDSWELL_OWN_MOUNTS"
SIZE = 3 * 2**30


@dataclass
class LogDisk:
    """Mount a file system over one folder, and move its content in and out."""

    folder: Path

    def mount(self) -> None:
        with self._content_kept():
            options = f"size={SIZE},mode=0700"
            run("mount", "-t", "tmpfs", "-o", options, "tmpfs", self.folder)

    def unmount(self) -> None:
        if self.folder.is_mount():
            with self._content_kept():
                run("umount", self.folder)

    def fill(self) -> None:
        usage = os.statvfs(self.folder)
        self._resize((usage.f_blocks - usage.f_bfree) * usage.f_frsize)

    def empty(self) -> None:
        self._resize(SIZE)

    def _resize(self, size: int) -> None:
        run("mount", "-o", f"remount,size={size}", self.folder)

    @contextmanager
    def _content_kept(self) -> Iterator[None]:
        copy = self.folder.with_name(f"{self.folder.name}.apart")
        run("cp", "--archive", self.folder, copy)
        yield
        # What was there before the file system is in the way.
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        run("cp", "--archive", "--no-target-directory", copy, self.folder)
        shutil.rmtree(copy)
        os.sync()


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


# The network namespace in which provisioning/faults was called.
NETWORK = "GROUNDSWELL_NETWORK"
NETWORK_NOW = os.readlink("/proc/self/ns/net")
# Microseconds; PostgreSQL allows no more.
SLOW_FLUSH = 100_000
# A crash restarts the checkpointer, like all other processes.
LAST_START = """
SELECT max(backend_start)::text FROM pg_stat_activity
WHERE backend_type = 'checkpointer'
"""


class NotInjected(Exception):
    """The fault could not be injected; the run has one fault less."""


@dataclass
class FaultContext:
    stack: RunningStack
    random: Random
    # The file system of PostgreSQL's log, where this run may mount one.
    log_disk: LogDisk | None = None
    # The simulated respondents, while a run is under way.
    load: LoadProcesses | None = None


# Leaving the context heals the fault.
Injection = Callable[[FaultContext], AbstractContextManager[None]]


@dataclass(frozen=True)
class Fault:
    name: str
    description: str
    inject: Injection
    # Seconds until it is healed are drawn from between these.
    lasts: tuple[float, float] = (0.0, 0.0)
    # Recovery counts from the fault's end, as for a process that was stopped.
    from_its_end: bool = False
    # A helper without which saves have to be as fast as with it.
    helper: str = ""
    # A deployment: no save may fail.
    unharmed: bool = False
    # Part of a quick run.
    quick: bool = False
    # What has to be set up before the fault, and removed after the recovery.
    setup: Injection = lambda context: nullcontext()
    # Why it can't be injected here; empty if it can.
    prevented: Callable[[FaultContext], str] = lambda context: ""


# Kill processes, which the supervisor starts again


@contextmanager
def kill_worker(context: FaultContext) -> Iterator[None]:
    master = context.random.choice(context.stack.pids("taking"))
    worker = context.random.choice(processes.children_of(master))
    context.stack.signal([worker], signal.SIGKILL)
    yield


@contextmanager
def kill_master(context: FaultContext) -> Iterator[None]:
    master = context.random.choice(context.stack.pids("taking"))
    context.stack.signal([master], signal.SIGKILL)
    yield


@contextmanager
def kill(program: str, context: FaultContext) -> Iterator[None]:
    pids = context.stack.tree(program)
    if not pids:
        raise NotInjected(f"{program} was not running")
    context.stack.kill_together(pids)
    yield


@contextmanager
def kill_backend(context: FaultContext) -> Iterator[None]:
    """Kill one backend. PostgreSQL ends all others, and recovers from its log."""
    backends = [
        pid
        for pid in context.stack.tree("primary")
        if processes.command_line(pid).startswith("postgres: taking ")
    ]
    if not backends:
        raise NotInjected("No backend served the taking pool")
    context.stack.signal([context.random.choice(backends)], signal.SIGKILL)
    yield


# Slow down, part the network, deploy


@contextmanager
def slow_flushes(context: FaultContext) -> Iterator[None]:
    """Let each flush of PostgreSQL's log take longer, as on a disk that is busy."""
    stack = context.stack
    stack.query(f"ALTER SYSTEM SET commit_delay = {SLOW_FLUSH}")
    stack.query("ALTER SYSTEM SET commit_siblings = 0")
    stack.query("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        stack.query("ALTER SYSTEM RESET commit_delay")
        stack.query("ALTER SYSTEM RESET commit_siblings")
        stack.query("SELECT pg_reload_conf()")


def has_own_network() -> bool:
    """Return whether this process left the network that provisioning/faults had."""
    return os.environ.get(NETWORK, NETWORK_NOW) != NETWORK_NOW


@contextmanager
def part_network(context: FaultContext) -> Iterator[None]:
    """Deliver no packet, without closing a connection."""
    if not has_own_network():
        raise NotInjected(NO_NETWORK)
    output_of(["ip", "link", "set", "lo", "down"], failing="The network stays")
    try:
        yield
    finally:
        output_of(["ip", "link", "set", "lo", "up"], failing="No network")


@contextmanager
def reload_workers(context: FaultContext) -> Iterator[None]:
    try:
        output_of(
            [ROOT / "provisioning" / "stack", "reload"],
            failing="provisioning/stack reload failed",
            env={**os.environ, "GROUNDSWELL_STACK": str(context.stack.folder)},
        )
    except Refusal as refusal:
        raise NotInjected(str(refusal)) from None
    yield


@contextmanager
def reload_nginx(context: FaultContext) -> Iterator[None]:
    context.stack.signal(context.stack.pids("nginx"), signal.SIGHUP)
    yield


# Lose replies between browsers and nginx


@contextmanager
def lose_replies(context: FaultContext) -> Iterator[None]:
    load, began = context.load, time.time()
    assert load is not None  # noqa: S101
    load.lose_replies(True)
    try:
        yield
    finally:
        load.lose_replies(False)
    attempts = load.read_logs().between(began, time.time())
    if not any(attempt.reply == "cut" for attempt in attempts):
        raise NotInjected("No reply was lost")


# Fill the disk of PostgreSQL's log


@contextmanager
def mount_log_disk(context: FaultContext) -> Iterator[None]:
    assert context.log_disk is not None  # noqa: S101
    _act_without_primary(context.stack, context.log_disk.mount)
    try:
        yield
    finally:
        _act_without_primary(context.stack, context.log_disk.unmount)


def _act_without_primary(stack: RunningStack, act: Callable[[], None]) -> None:
    stack.stop("primary")
    try:
        act()
    finally:
        stack.start("primary")
        stack.wait_for_database()


@contextmanager
def fill_log_disk(context: FaultContext) -> Iterator[None]:
    stack, disk = context.stack, context.log_disk
    assert disk is not None  # noqa: S101
    disk.fill()
    try:
        if not _notices_full_disk(stack):
            raise NotInjected("PostgreSQL did not notice that the log's disk was full")
        yield
    finally:
        disk.empty()
        if stack.has_given_up("primary"):
            stack.start("primary")


def _notices_full_disk(stack: RunningStack) -> bool:
    # A server that does not answer has noticed.
    with contextlib.suppress(Refusal):
        before = stack.query(LAST_START)

        def has_restarted() -> bool:
            # Segments that were kept for later use are used up first.
            stack.query("SELECT pg_switch_wal()")
            return bool(stack.query(LAST_START) != before)

        return wait_until(has_restarted, seconds=15)
    return True


# The table of faults


def killed(name: str, description: str, inject: Injection, quick: bool = True) -> Fault:
    return Fault(name, f"kill -9 of {description}", inject, quick=quick)


def hung(program: str, name: str, *, quick: bool = False) -> Fault:
    """Suspend a program, so that it is alive but silent."""
    description = f"{name} is silent for 2 to 5 s"
    return lasting(f"{program}-hung", description, suspend(program), quick=quick)


def suspend(program: str) -> Injection:
    return lambda context: context.stack.suspended(program)


def down(program: str, name: str) -> Fault:
    return Fault(
        f"{program}-down",
        f"{name} is down for 6 to 8 s; saves go on as fast as before",
        lambda context: context.stack.stopped(program),
        # Long enough for a breaker to open, and for a median after it.
        lasts=(6.0, 8.0),
        helper=program,
    )


def deployment(name: str, description: str, inject: Injection) -> Fault:
    description += ": no save may fail"
    return Fault(
        name, description, inject, from_its_end=True, unharmed=True, quick=True
    )


NO_NETWORK = "it needs a network of its own, which only root may make"
NO_LOG_DISK = "it needs a file system of its own, which only root may mount"
# From whose end recovery counts.
lasting = partial(Fault, lasts=(2.0, 5.0), from_its_end=True)
# The seed draws from this order.
FAULTS = [
    killed("worker-killed", "a gunicorn worker", kill_worker),
    killed("master-killed", "a gunicorn master", kill_master),
    killed("pgbouncer-killed", "pgbouncer", partial(kill, "pgbouncer")),
    killed("backend-killed", "one PostgreSQL backend: all restart", kill_backend),
    killed("postgresql-killed", "the whole primary at once", partial(kill, "primary")),
    killed("nginx-killed", "nginx", partial(kill, "nginx"), quick=False),
    Fault(
        "primary-hung",
        # Longer than pgbouncer lets a query wait.
        "the primary is silent for 8 to 12 s",
        suspend("primary"),
        lasts=(8.0, 12.0),
        from_its_end=True,
    ),
    lasting("primary-slow", "each commit takes 0.1 s longer, 2 to 5 s", slow_flushes),
    lasting(
        "network-parted",
        "no packet arrives at or from nginx and RabbitMQ, 2 to 5 s (root only)",
        part_network,
        prevented=lambda context: "" if has_own_network() else NO_NETWORK,
    ),
    hung("pgbouncer", "pgbouncer"),
    hung("replica", "the replica"),
    hung("redis", "Redis"),
    hung("memcached", "Memcached", quick=True),
    killed("redis-wiped", "Redis", partial(kill, "redis")),
    killed("memcached-wiped", "Memcached", partial(kill, "memcached"), quick=False),
    killed("rabbitmq-killed", "RabbitMQ", partial(kill, "rabbitmq"), quick=False),
    down("redis", "Redis"),
    down("memcached", "Memcached"),
    down("replica", "the replica"),
    down("rabbitmq", "RabbitMQ"),
    lasting(
        "replies-lost",
        "replies are cut off after their requests passed, 2 to 5 s",
        lose_replies,
        quick=True,
    ),
    lasting(
        "log-disk-full",
        "no space for PostgreSQL's log, 2 to 5 s (root only)",
        fill_log_disk,
        setup=mount_log_disk,
        prevented=lambda context: "" if context.log_disk else NO_LOG_DISK,
    ),
    deployment("workers-restarted", "rolling restart of gunicorn", reload_workers),
    deployment("nginx-reloaded", "reload of nginx", reload_nginx),
]
BY_NAME = {fault.name: fault for fault in FAULTS}


def draw_faults(random: Random, names: list[str], count: int) -> list[Fault]:
    """Return every fault once in each round, in an order drawn from the seed."""
    drawn: list[Fault] = []
    while len(drawn) < count:
        drawn += [BY_NAME[name] for name in random.sample(names, len(names))]
    return drawn[:count]


# Seconds within which saving has to recover.
LIMIT = 60.0
CATCH_UP_SECONDS = 60.0


@dataclass
class PrimaryLoss:
    """The loss of the primary, and what it has cost.

    Under promise A2 a commit waits for the replica, and nothing may be lost.
    Under A1 everything that the replica had not received is lost. That is
    counted apart, by the moment of its acknowledgement.
    """

    promise: str
    # Saves acknowledged before are on the replica; those after, on the new primary.
    began: float = 0.0
    ended: float = 0.0
    recovered: float | None = None
    lost: int = 0
    acknowledged: int = 0

    def prepare(self, stack: RunningStack) -> None:
        stack.wait_for_database()
        written = stack.query("SELECT pg_current_wal_lsn()")

        def has_replayed() -> bool:
            question = f"SELECT pg_last_wal_replay_lsn() >= '{written}'"
            with contextlib.suppress(Refusal):
                return bool(stack.query(question, port=REPLICA))
            return False

        if not wait_until(has_replayed, seconds=CATCH_UP_SECONDS, pause=0.2):
            raise Refusal("The replica does not catch up with the primary")
        if self.promise == "A2":
            names = "synchronous_standby_names = 'ANY 1 (replica)'"
            stack.query(f"ALTER SYSTEM SET {names}")
            stack.query("SELECT pg_reload_conf()")
            time.sleep(1.0)
            state = stack.query("SELECT sync_state FROM pg_stat_replication")
            if state not in ("sync", "quorum"):
                raise Refusal("The replica does not become a synchronous standby")

    def inject(self, stack: RunningStack) -> None:
        data = stack.folder / "data"
        # Before the kill, so that the supervisor finds nothing to start again.
        (data / "primary").rename(data / "gone")
        stack.kill_together(stack.tree("primary"))

    def heal(self, stack: RunningStack) -> None:
        promote(stack.folder)

    def explains(self, finding: Finding) -> bool:
        return self.began <= finding.acknowledged <= self.ended

    @property
    def as_required(self) -> bool:
        if self.recovered is None or self.recovered > LIMIT:
            return False
        return self.promise == "A1" or not self.lost
