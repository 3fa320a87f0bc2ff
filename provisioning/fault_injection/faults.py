"""Inject faults into a running stack, and heal them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from provisioning import processes
from provisioning.commands import ROOT, Refusal, output_of, wait_until
from provisioning.fault_injection.disk_full import LogDisk
from provisioning.fault_injection.load_processes import LoadProcesses
from provisioning.fault_injection.stack import RunningStack

# A crash restarts the checkpointer, like all other processes.
LAST_START = """
SELECT max(backend_start)::text FROM pg_stat_activity
WHERE backend_type = 'checkpointer'
"""


class NotInjected(Exception):
    """The fault could not be injected; the run has one fault less."""


@dataclass
class FaultContext:
    """The stack that faults are injected into."""

    stack: RunningStack
    random: Random
    # The simulated respondents, while a run is under way.
    load: LoadProcesses | None = None
    # Since when replies to some of them are lost.
    lost_since: float = 0.0
    # The file system of PostgreSQL's log, where this run may mount one.
    log_disk: LogDisk | None = None


Action = Callable[[FaultContext], None]


@dataclass(frozen=True)
class Fault:
    name: str
    description: str
    inject: Action
    heal: Action = lambda context: None
    # Seconds from one to the other are drawn from between these.
    lasts: tuple[float, float] = (0.0, 0.0)
    # Recovery counts from the fault's end, as for a process that was stopped.
    from_its_end: bool = False
    # A helper without which saves have to be as fast as with it.
    helper: str = ""
    # A deployment: no save may fail.
    unharmed: bool = False
    # Part of a quick run.
    quick: bool = False
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
    try:
        output_of(
            [ROOT / "provisioning" / "stack", "reload"],
            failing="provisioning/stack reload failed",
            env={**os.environ, "GROUNDSWELL_STACK": str(context.stack.folder)},
        )
    except Refusal as refusal:
        raise NotInjected(str(refusal)) from None


def reload_nginx(context: FaultContext) -> None:
    context.stack.signal(context.stack.pids("nginx"), signal.SIGHUP)


# Lose replies between browsers and nginx


def lose_replies(context: FaultContext) -> None:
    assert context.load is not None  # noqa: S101
    context.lost_since = time.time()
    context.load.lose_replies(True)


def pass_replies(context: FaultContext) -> None:
    assert context.load is not None  # noqa: S101
    context.load.lose_replies(False)
    found = context.load.read_logs().between(context.lost_since, time.time())
    if not any(attempt.reply == "cut" for attempt in found):
        raise NotInjected("No reply was lost")


# Fill the disk of PostgreSQL's log


def log_disk(context: FaultContext) -> LogDisk:
    assert context.log_disk is not None, "This fault is prevented"  # noqa: S101
    return context.log_disk


def fill_log_disk(context: FaultContext) -> None:
    stack, has_noticed = context.stack, True
    log_disk(context).fill()
    # A server that does not answer has noticed.
    with contextlib.suppress(Refusal):
        before = stack.query(LAST_START)

        def has_restarted() -> bool:
            # Segments that were kept for later use are used up first.
            stack.query("SELECT pg_switch_wal()")
            return bool(stack.query(LAST_START) != before)

        has_noticed = wait_until(has_restarted, seconds=15)
    if not has_noticed:
        raise NotInjected("PostgreSQL did not notice that the log's disk was full")


def empty_log_disk(context: FaultContext) -> None:
    log_disk(context).empty()
    if context.stack.has_given_up("primary"):
        context.stack.start("primary")


def without_primary(act: Callable[[LogDisk], None]) -> Action:
    def stop_and_act(context: FaultContext) -> None:
        context.stack.stop("primary")
        try:
            act(log_disk(context))
        finally:
            context.stack.start("primary")
            context.stack.wait_for_database()

    return stop_and_act


SHORT = (2.0, 5.0)
# Long enough for a breaker to open, and for a median after it.
LONG = (6.0, 8.0)


def hung(program: str, name: str, *, quick: bool = False) -> Fault:
    """Suspend a program, so that it is alive but silent."""

    def suspend(context: FaultContext) -> None:
        context.stack.signal(context.stack.tree(program), signal.SIGSTOP)

    def resume(context: FaultContext) -> None:
        context.stack.signal(context.stack.tree(program), signal.SIGCONT)

    return Fault(
        f"{program}-hung",
        f"{name} is silent for 2 to 5 s (SIGSTOP)",
        suspend,
        resume,
        lasts=SHORT,
        from_its_end=True,
        quick=quick,
    )


def down(program: str, name: str) -> Fault:
    """Stop a helper for so long that breakers open."""

    def stop(context: FaultContext) -> None:
        context.stack.stop(program)

    def start(context: FaultContext) -> None:
        context.stack.start(program)
        context.stack.wait_for(program)

    description = f"{name} is down for 6 to 8 s; saves go on as fast as before"
    return Fault(
        f"{program}-down", description, stop, start, lasts=LONG, helper=program
    )


def deployment(name: str, description: str, inject: Action) -> Fault:
    description += ": no save may fail"
    return Fault(
        name, description, inject, from_its_end=True, unharmed=True, quick=True
    )


# The seed draws from this order.
FAULTS = [
    Fault("worker-killed", "kill -9 of a gunicorn worker", kill_worker, quick=True),
    Fault("master-killed", "kill -9 of a gunicorn master", kill_master, quick=True),
    Fault("pgbouncer-killed", "kill -9 of pgbouncer", kill("pgbouncer"), quick=True),
    Fault(
        "backend-killed",
        "kill -9 of one PostgreSQL backend: all of them restart",
        kill_backend,
        quick=True,
    ),
    Fault(
        "postgresql-killed",
        "kill -9 of the primary, postmaster and children at once",
        kill("primary"),
        quick=True,
    ),
    hung("pgbouncer", "pgbouncer"),
    hung("replica", "the replica"),
    hung("redis", "Redis"),
    hung("memcached", "Memcached", quick=True),
    Fault("redis-wiped", "kill -9 of Redis", kill("redis"), quick=True),
    Fault("memcached-wiped", "kill -9 of Memcached", kill("memcached")),
    Fault("rabbitmq-killed", "kill -9 of RabbitMQ", kill("rabbitmq")),
    down("redis", "Redis"),
    down("memcached", "Memcached"),
    down("replica", "the replica"),
    down("rabbitmq", "RabbitMQ"),
    Fault(
        "replies-lost",
        "replies are cut off after their requests passed, 2 to 5 s",
        lose_replies,
        pass_replies,
        lasts=SHORT,
        from_its_end=True,
        quick=True,
    ),
    Fault(
        "log-disk-full",
        "no space for PostgreSQL's log, 2 to 5 s (root only)",
        fill_log_disk,
        empty_log_disk,
        lasts=SHORT,
        from_its_end=True,
        prepare=without_primary(LogDisk.mount),
        undo=without_primary(LogDisk.unmount),
        prevented=lambda context: (
            ""
            if context.log_disk
            else "it needs a file system of its own, which only root may mount"
        ),
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
