"""What is broken, and how it is mended again."""

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
from provisioning.commands import ROOT, Refusal
from provisioning.fault_injection.disk_full import Wall
from provisioning.fault_injection.stack import Home


@dataclass
class Site:
    """Where the faults happen."""

    home: Home
    random: Random
    # Cuts replies between the browsers and nginx while it is told to.
    lose_replies: Callable[[bool], None]
    # The file system of the log, where this run may make one; else the reason.
    wall: Wall | None = None
    why_no_wall: str = ""
    noted: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    name: str
    inject: Callable[[Site], None]
    heal: Callable[[Site], None] = lambda site: None
    # Seconds from the one to the other, drawn from between these.
    lasts: tuple[float, float] = (0.0, 0.0)
    # Recovery is counted from its end, as of a process that was stopped.
    from_its_end: bool = False
    limit: float = 10.0
    # A helper without which saves are to be as fast as with it.
    helper: str = ""
    # A deployment: not one save may fail.
    unharmed: bool = False
    prepare: Callable[[Site], None] = lambda site: None
    undo: Callable[[Site], None] = lambda site: None
    # Why it can't be done here; empty if it can.
    prevented: Callable[[Site], str] = lambda site: ""


# Killed: the supervisor starts them again


def kill_worker(site: Site) -> None:
    master = site.random.choice(site.home.pids("taking"))
    workers = processes.children_of(master)
    site.home.signal([site.random.choice(workers)], signal.SIGKILL)


def kill_master(site: Site) -> None:
    master = site.random.choice(site.home.pids("taking"))
    site.home.signal([master], signal.SIGKILL)


def killed(program: str) -> Callable[[Site], None]:
    def kill(site: Site) -> None:
        pids = site.home.tree(program)
        if not pids:
            raise NotFired(f"{program} was not running")
        site.home.kill_together(pids)

    return kill


def kill_backend(site: Site) -> None:
    """PostgreSQL then ends all of them, and recovers from its log."""
    backends = [
        pid
        for pid in site.home.tree("primary")
        if processes.command_line(pid).startswith("postgres: taking ")
    ]
    if not backends:
        raise NotFired("No backend served the taking pool")
    site.home.signal([site.random.choice(backends)], signal.SIGKILL)


# Hung: alive, and silent


def hung(program: str) -> Callable[[Site], None]:
    def stop(site: Site) -> None:
        site.noted[program] = site.home.tree(program)
        site.home.signal(site.noted[program], signal.SIGSTOP)

    return stop


def continued(program: str) -> Callable[[Site], None]:
    def go_on(site: Site) -> None:
        site.home.signal(site.noted.pop(program, []), signal.SIGCONT)

    return go_on


# Down: stopped for a while, so that breakers open


def down(program: str) -> Callable[[Site], None]:
    return lambda site: site.home.stop(program)


def up(program: str) -> Callable[[Site], None]:
    def start(site: Site) -> None:
        site.home.start(program)
        site.home.wait_for(program)

    return start


# Deployments


def reload_workers(site: Site) -> None:
    done = subprocess.run(
        [str(ROOT / "provisioning" / "stack"), "reload"],
        env={**os.environ, "GROUNDSWELL_STACK": str(site.home.folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise NotFired(f"provisioning/stack reload failed: {done.stderr.strip()}")


def reload_nginx(site: Site) -> None:
    site.home.signal(site.home.pids("nginx"), signal.SIGHUP)


# The disk of the log is full


def fill_wall(site: Site) -> None:
    assert site.wall is not None  # noqa: S101
    site.wall.close()
    before = _postmaster_start(site.home)
    deadline = time.monotonic() + 15
    with contextlib.suppress(psycopg2.Error):
        while time.monotonic() < deadline:
            # Segments that were kept for later use are used up first.
            site.home.ask("SELECT pg_switch_wal()")
            time.sleep(0.05)
    if _postmaster_start(site.home) == before:
        raise NotFired("PostgreSQL did not notice that the log's disk was full")


def _postmaster_start(home: Home) -> str:
    try:
        return str(
            home.ask(
                "SELECT max(backend_start) FROM pg_stat_activity"
                " WHERE backend_type = 'checkpointer'"
            )
        )
    except psycopg2.Error:
        return ""


def empty_wall(site: Site) -> None:
    assert site.wall is not None  # noqa: S101
    site.wall.open()
    if site.home.has_given_up("primary"):
        site.home.start("primary")


def build_wall(site: Site) -> None:
    assert site.wall is not None  # noqa: S101
    _with_primary_stopped(site, site.wall.build)


def tear_wall_down(site: Site) -> None:
    assert site.wall is not None  # noqa: S101
    _with_primary_stopped(site, site.wall.tear_down)


def _with_primary_stopped(site: Site, act: Callable[[], None]) -> None:
    site.home.stop("primary")
    try:
        act()
    finally:
        site.home.start("primary")
        wait_for_database(site.home)


def wait_for_database(home: Home, *, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(psycopg2.Error):
            home.ask("SELECT 1")
            return
        time.sleep(0.1)
    raise Refusal("PostgreSQL did not come back")


class NotFired(Exception):
    """The fault could not be brought about; the run has one less of them."""


SHORT = (2.0, 5.0)
# Long enough for a breaker to open, and for a median after it.
LONG = (6.0, 8.0)


def _hung(program: str) -> Fault:
    return Fault(
        f"{program}-hung",
        hung(program),
        continued(program),
        lasts=SHORT,
        from_its_end=True,
    )


def _down(program: str) -> Fault:
    return Fault(
        f"{program}-down", down(program), up(program), lasts=LONG, helper=program
    )


# What each of them is, `arguments.KNOWN` says.
FAULTS = [
    Fault("worker-killed", kill_worker),
    Fault("master-killed", kill_master),
    Fault("pgbouncer-killed", killed("pgbouncer")),
    Fault("backend-killed", kill_backend),
    Fault("postgresql-killed", killed("primary")),
    _hung("pgbouncer"),
    _hung("replica"),
    _hung("redis"),
    _hung("memcached"),
    Fault("redis-wiped", killed("redis")),
    Fault("memcached-wiped", killed("memcached")),
    Fault("rabbitmq-killed", killed("rabbitmq")),
    _down("redis"),
    _down("memcached"),
    _down("replica"),
    _down("rabbitmq"),
    Fault(
        "replies-lost",
        lambda site: site.lose_replies(True),
        lambda site: site.lose_replies(False),
        lasts=SHORT,
        from_its_end=True,
    ),
    Fault(
        "log-disk-full",
        fill_wall,
        empty_wall,
        lasts=SHORT,
        from_its_end=True,
        prepare=build_wall,
        undo=tear_wall_down,
        prevented=lambda site: "" if site.wall else site.why_no_wall,
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


def drawn(random: Random, names: list[str], count: int) -> list[Fault]:
    """Every one of them in each round, in an order that the seed decides."""
    by_name = {fault.name: fault for fault in FAULTS}
    found: list[Fault] = []
    while len(found) < count:
        found += [by_name[name] for name in random.sample(names, len(names))]
    return found[:count]
