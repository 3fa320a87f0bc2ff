"""Inject faults into a running stack, and heal them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import psycopg2

from provisioning import processes
from provisioning.commands import ROOT
from provisioning.fault_injection.disk_full import LogDisk
from provisioning.fault_injection.stack import RunningStack


class NotInjected(Exception):
    """The fault could not be injected; the run has one fault less."""


@dataclass
class FaultContext:
    """The stack that faults are injected into."""

    stack: RunningStack
    random: Random
    # Starts or stops cutting off replies between browsers and nginx.
    lose_replies: Callable[[bool], None]
    # The file system of PostgreSQL's log, where this run may mount one.
    log_disk: LogDisk | None = None
    suspended: dict[str, list[int]] = field(default_factory=dict)


Action = Callable[[FaultContext], None]


@dataclass(frozen=True)
class Fault:
    name: str
    inject: Action
    heal: Action = lambda context: None
    # Seconds from one to the other are drawn from between these.
    lasts: tuple[float, float] = (0.0, 0.0)
    # Recovery counts from the fault's end, as for a process that was stopped.
    from_its_end: bool = False
    limit: float = 10.0
    # A helper without which saves have to be as fast as with it.
    helper: str = ""
    # A deployment: no save may fail.
    unharmed: bool = False
    prepare: Action = lambda context: None
    undo: Action = lambda context: None
    # Why it can't be injected here; empty if it can.
    prevented: Callable[[FaultContext], str] = lambda context: ""


# Kill processes, which the supervisor starts again


def kill_worker(context: FaultContext) -> None:
    master = context.random.choice(context.stack.pids("taking"))
    worker = context.random.choice(processes.children_of(master))
    context.stack.signal([worker], signal.SIGKILL)


def kill_master(context: FaultContext) -> None:
    master = context.random.choice(context.stack.pids("taking"))
    context.stack.signal([master], signal.SIGKILL)


def kill(program: str) -> Action:
    def inject(context: FaultContext) -> None:
        pids = context.stack.tree(program)
        if not pids:
            raise NotInjected(f"{program} was not running")
        context.stack.kill_together(pids)

    return inject


def kill_backend(context: FaultContext) -> None:
    """Kill one backend. PostgreSQL ends all others, and recovers from its log."""
    backends = [
        pid
        for pid in context.stack.tree("primary")
        if processes.command_line(pid).startswith("postgres: taking ")
    ]
    if not backends:
        raise NotInjected("No backend served the taking pool")
    context.stack.signal([context.random.choice(backends)], signal.SIGKILL)


# Deploy


def reload_workers(context: FaultContext) -> None:
    done = subprocess.run(
        [str(ROOT / "provisioning" / "stack"), "reload"],
        env={**os.environ, "GROUNDSWELL_STACK": str(context.stack.folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise NotInjected(f"provisioning/stack reload failed: {done.stderr.strip()}")


def reload_nginx(context: FaultContext) -> None:
    context.stack.signal(context.stack.pids("nginx"), signal.SIGHUP)


# Fill the disk of PostgreSQL's log


def fill_log_disk(context: FaultContext) -> None:
    assert context.log_disk is not None  # noqa: S101
    stack = context.stack

    def last_start() -> str:
        with contextlib.suppress(psycopg2.Error):
            return str(
                stack.query(
                    "SELECT max(backend_start) FROM pg_stat_activity"
                    " WHERE backend_type = 'checkpointer'"
                )
            )
        return ""

    context.log_disk.fill()
    before = last_start()
    deadline = time.monotonic() + 15
    with contextlib.suppress(psycopg2.Error):
        while time.monotonic() < deadline:
            # Segments that were kept for later use are used up first.
            stack.query("SELECT pg_switch_wal()")
            time.sleep(0.05)
    if last_start() == before:
        raise NotInjected("PostgreSQL did not notice that the log's disk was full")


def empty_log_disk(context: FaultContext) -> None:
    assert context.log_disk is not None  # noqa: S101
    context.log_disk.empty()
    if context.stack.has_given_up("primary"):
        context.stack.start("primary")


def mount_log_disk(context: FaultContext) -> None:
    assert context.log_disk is not None  # noqa: S101
    _with_primary_stopped(context.stack, context.log_disk.mount)


def unmount_log_disk(context: FaultContext) -> None:
    assert context.log_disk is not None  # noqa: S101
    _with_primary_stopped(context.stack, context.log_disk.unmount)


def _with_primary_stopped(stack: RunningStack, act: Callable[[], None]) -> None:
    stack.stop("primary")
    try:
        act()
    finally:
        stack.start("primary")
        stack.wait_for_database()


SHORT = (2.0, 5.0)
# Long enough for a breaker to open, and for a median after it.
LONG = (6.0, 8.0)


def hung(program: str) -> Fault:
    """Suspend a program, so that it is alive but silent."""

    def suspend(context: FaultContext) -> None:
        context.suspended[program] = context.stack.tree(program)
        context.stack.signal(context.suspended[program], signal.SIGSTOP)

    def resume(context: FaultContext) -> None:
        context.stack.signal(context.suspended.pop(program, []), signal.SIGCONT)

    return Fault(f"{program}-hung", suspend, resume, lasts=SHORT, from_its_end=True)


def down(program: str) -> Fault:
    """Stop a helper for so long that breakers open."""

    def start(context: FaultContext) -> None:
        context.stack.start(program)
        context.stack.wait_for(program)

    return Fault(
        f"{program}-down",
        lambda context: context.stack.stop(program),
        start,
        lasts=LONG,
        helper=program,
    )


# `arguments.FAULTS` describes them.
FAULTS = [
    Fault("worker-killed", kill_worker),
    Fault("master-killed", kill_master),
    Fault("pgbouncer-killed", kill("pgbouncer")),
    Fault("backend-killed", kill_backend),
    Fault("postgresql-killed", kill("primary")),
    *map(hung, ("pgbouncer", "replica", "redis", "memcached")),
    Fault("redis-wiped", kill("redis")),
    Fault("memcached-wiped", kill("memcached")),
    Fault("rabbitmq-killed", kill("rabbitmq")),
    *map(down, ("redis", "memcached", "replica", "rabbitmq")),
    Fault(
        "replies-lost",
        lambda context: context.lose_replies(True),
        lambda context: context.lose_replies(False),
        lasts=SHORT,
        from_its_end=True,
    ),
    Fault(
        "log-disk-full",
        fill_log_disk,
        empty_log_disk,
        lasts=SHORT,
        from_its_end=True,
        prepare=mount_log_disk,
        undo=unmount_log_disk,
        prevented=lambda context: (
            ""
            if context.log_disk
            else "it needs a file system of its own, which only root may mount"
        ),
    ),
    Fault("workers-restarted", reload_workers, from_its_end=True, unharmed=True),
    Fault("nginx-reloaded", reload_nginx, from_its_end=True, unharmed=True),
]

QUICK = (
    "worker-killed",
    "master-killed",
    "pgbouncer-killed",
    "backend-killed",
    "postgresql-killed",
    "redis-wiped",
    "memcached-hung",
    "replies-lost",
    "workers-restarted",
    "nginx-reloaded",
)


def draw_faults(random: Random, names: list[str], count: int) -> list[Fault]:
    """Return every fault once in each round, in an order drawn from the seed."""
    by_name = {fault.name: fault for fault in FAULTS}
    drawn: list[Fault] = []
    while len(drawn) < count:
        drawn += [by_name[name] for name in random.sample(names, len(names))]
    return drawn[:count]
