"""Processor seconds of each server, read from /proc.

A server is whoever listens at its socket, and their children. What children
used that have ended is counted by their parents.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
LISTENING_TCP = "0A"

# Group -> its sockets in home/run; nginx listens at a port.
SOCKETS: Mapping[str, tuple[str, ...]] = {
    "gunicorn taking": ("taking.sock",),
    "gunicorn console": ("console.sock",),
    "pgbouncer": (".s.PGSQL.6432",),
    "PostgreSQL": (".s.PGSQL.5432",),
    "replica": (".s.PGSQL.5433",),
    "Redis": ("redis.sock",),
    "Memcached": ("memcached.sock",),
}


def groups(run: Path, port: int) -> dict[str, set[int]]:
    """Group -> process ids of those who listen (their children come later)."""
    unix = _unix_inodes(run)
    wanted = {
        group: {unix[name] for name in names if name in unix}
        for group, names in SOCKETS.items()
    }
    wanted["nginx"] = _tcp_inodes(port)
    holders = _holders(set().union(*wanted.values()))
    found = {
        group: set().union(*(holders.get(inode, set()) for inode in inodes))
        for group, inodes in wanted.items()
    }
    held = Counter(pid for pids in found.values() for pid in pids)
    # A supervisor holds the sockets of several, and everybody is its child.
    return {
        group: own
        for group, pids in found.items()
        if (own := {pid for pid in pids if held[pid] == 1})
    }


def cpu_seconds(found: Mapping[str, Iterable[int]]) -> dict[str, float]:
    """What each group has used so far, all its children included."""
    table = _table()
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in table.items():
        children.setdefault(parent, []).append(pid)
    return {
        group: _of_group(set(listeners), table, children)
        for group, listeners in found.items()
    }


def machine_seconds() -> float:
    """What all processes together have used, the kernel's own work included."""
    fields = [int(one) for one in _first_line("/proc/stat").split()[1:]]
    user, nice, system, _, _, irq, softirq = fields[:7]
    return (user + nice + system + irq + softirq) / TICKS


def _of_group(
    listeners: set[int],
    table: Mapping[int, tuple[int, int, int]],
    children: Mapping[int, list[int]],
) -> float:
    together, waiting = set(), list(listeners)
    while waiting:
        pid = waiting.pop()
        if pid not in together:
            together.add(pid)
            waiting += children.get(pid, [])
    ticks = 0
    for pid in together & table.keys():
        _, own, of_ended_children = table[pid]
        ticks += own + of_ended_children
    return ticks / TICKS


def _table() -> dict[int, tuple[int, int, int]]:
    """Process id -> parent, ticks of its own, ticks of its ended children."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            # The name, in brackets, may hold anything.
            fields = text[text.rindex(")") + 2 :].split()
            numbers = [int(fields[at]) for at in (1, 11, 12, 13, 14)]
            parent, user, system, children_user, children_system = numbers
            found[int(entry)] = (
                parent,
                user + system,
                children_user + children_system,
            )
    return found


def _unix_inodes(run: Path) -> dict[str, str]:
    """Name of a listening socket in `run` -> inode."""
    folder, found = str(run.resolve()), {}
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        # 0x10000: it accepts connections; those accepted have its path too.
        if len(fields) == 8 and int(fields[3], 16) & 0x10000:
            parent, _, name = fields[7].rpartition("/")
            if os.path.realpath(parent) == folder:
                found[name] = fields[6]
    return found


def _tcp_inodes(port: int) -> set[str]:
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENING_TCP and int(fields[1].split(":")[1], 16) == port:
            found.add(fields[9])
    return found


def _holders(inodes: set[str]) -> dict[str, set[int]]:
    """Inode -> processes that have it open."""
    found: dict[str, set[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            for inode in _sockets_of(entry) & inodes:
                found.setdefault(inode, set()).add(int(entry))
    return found


def _sockets_of(pid: str) -> set[str]:
    found = set()
    # It may end, or close one of them, while it is looked at.
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                link = os.readlink(f"/proc/{pid}/fd/{number}")
                found.add(link.removeprefix("socket:[").removesuffix("]"))
    return found


def _first_line(path: str) -> str:
    with open(path) as file:
        return file.readline()
