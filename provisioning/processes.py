"""Start, stop and inspect processes, with the standard library only.

Commands use this before the virtual environment exists, and on load servers
that have none; so /proc is read here, and nowhere else in `provisioning`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TypedDict

TICKS = os.sysconf("SC_CLK_TCK")

# prctl(2)
SET_PARENT_DEATH_SIGNAL = 1
SET_CHILD_SUBREAPER = 36

# In /proc/net/tcp and /proc/net/unix.
TCP_LISTEN = "0A"
UNIX_ACCEPTS_CONNECTIONS = 0x10000


# Starting and stopping


class UserOptions(TypedDict, total=False):
    user: str
    group: str
    extra_groups: Iterable[str]


def as_user(user: str | None) -> UserOptions:
    """Options of `subprocess` that drop all of root's privileges for a user's."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


def end_with_parent(number: int) -> Callable[[], None]:
    """For `preexec_fn`: get this signal when the parent ends, even if killed."""
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(SET_PARENT_DEATH_SIGNAL, number)


def start_process(
    command: Sequence[str | Path],
    *,
    output: IO[str] | IO[bytes] | int | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    new_session: bool = True,
    user: str | None = None,
    parent_signal: int = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a process that ends with this one, however this one ends.

    `output` takes its standard output and its errors; without it, they go to
    the terminal. In a session of its own it doesn't get the terminal's Ctrl-C.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        cwd=cwd,
        env=env,
        pass_fds=pass_fds,
        start_new_session=new_session,
        preexec_fn=end_with_parent(parent_signal),
        **as_user(user),
    )


def stop_process(
    *processes: subprocess.Popen[bytes],
    seconds: float = 10.0,
    number: int = signal.SIGTERM,
) -> None:
    """Signal these processes together, wait for them, then kill what is left.

    A process that leads a session is killed with all of its session's group.
    """
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)
    deadline = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            if os.getpgid(process.pid) == process.pid:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()


def send_signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def kill_together(pids: Sequence[int]) -> None:
    """Kill these processes without letting one of them see another one die."""
    send_signal(pids, signal.SIGSTOP)
    send_signal(pids, signal.SIGKILL)


def wait_until_gone(pids: Iterable[int], *, seconds: float = 10.0) -> bool:
    """Return whether all of these processes ended in time."""
    deadline = time.monotonic() + seconds
    left = list(pids)
    while left := [pid for pid in left if is_alive(pid)]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def adopt_orphans() -> None:
    """Make this process the parent of what its children leave behind."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1)


def end_orphans() -> None:
    """Kill adopted processes, such as the browser of an interrupted test."""
    for _ in range(100):
        orphans = children_of(os.getpid())
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if not orphans:
            return


# One process and its relatives


class ProcessStat:
    """A process's line in /proc/<pid>/stat; times in seconds."""

    __slots__ = ("cpu", "cpu_of_ended_children", "name", "parent", "started", "state")

    def __init__(self, line: str) -> None:
        # The name is in parentheses, and may contain spaces and parentheses.
        self.name = line[line.index("(") + 1 : line.rindex(")")]
        fields = line[line.rindex(")") + 2 :].split()
        self.state = fields[0]
        self.parent = int(fields[1])
        self.cpu = (int(fields[11]) + int(fields[12])) / TICKS
        self.cpu_of_ended_children = (int(fields[13]) + int(fields[14])) / TICKS
        # Since the machine started; to 10 ms.
        self.started = int(fields[19]) / TICKS


def stat_of(pid: int) -> ProcessStat | None:
    try:
        return ProcessStat(Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    except (OSError, ValueError):
        return None


def all_stats() -> dict[int, ProcessStat]:
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return {pid: stat for pid in pids if (stat := stat_of(pid))}


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie holds nothing, and does not."""
    stat = stat_of(pid)
    return stat is not None and stat.state not in ("Z", "X")


def command_line(pid: int) -> str:
    """Return a process's arguments; "" for the kernel's own and for ended ones."""
    with suppress(OSError):
        content = Path(f"/proc/{pid}/cmdline").read_bytes()
        return content.replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread may end in between.
        with suppress(OSError):
            found += map(int, thread.read_text().split())
    return found


def descendants_of(pid: int) -> list[int]:
    children = children_of(pid)
    return children + [each for child in children for each in descendants_of(child)]


def is_descendant(pid: int, ancestor: int) -> bool:
    """Return whether a process is `ancestor`, or was started below it."""
    while pid > 1 and pid != ancestor:
        stat = stat_of(pid)
        pid = stat.parent if stat else 0
    return pid == ancestor


# Memory and processor time


def memory_mb(pid: int) -> float:
    """Return a process's proportional set size, in MB; 0 where it has ended.

    A page shared by several processes is divided by their number.
    """
    with suppress(OSError, IndexError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(rollup.partition("Pss:")[2].split()[0]) / 1024
    return 0.0


def memory_mb_with_descendants(pid: int) -> float:
    return sum(map(memory_mb, [pid, *descendants_of(pid)])) if pid else 0.0


def machine_cpu_seconds() -> float:
    """Return the time that all processes and the kernel itself have used."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    user, nice, system, _, _, irq, softirq = fields[:7]
    return (user + nice + system + irq + softirq) / TICKS


def cpu_seconds_by_group(groups: Mapping[str, Iterable[int]]) -> dict[str, float]:
    """Return the time used by each group of processes and all below them.

    The time of children that have ended is counted by their parents.
    """
    stats = all_stats()
    children = defaultdict(list)
    for pid, stat in stats.items():
        children[stat.parent].append(pid)
    used = {}
    for group, pids in groups.items():
        members: set[int] = set()
        waiting = list(pids)
        while waiting:
            pid = waiting.pop()
            if pid not in members:
                members.add(pid)
                waiting += children[pid]
        used[group] = sum(
            stats[pid].cpu + stats[pid].cpu_of_ended_children
            for pid in members & stats.keys()
        )
    return used


def cpu_seconds_by_process() -> dict[int, tuple[str, float]]:
    """Return each process's program and the time it has used so far.

    With that of its ended children: gunicorn's workers end after some
    thousand requests.
    """
    return {
        pid: (_program(pid, stat), stat.cpu + stat.cpu_of_ended_children)
        for pid, stat in all_stats().items()
    }


def _program(pid: int, stat: ProcessStat) -> str:
    arguments = command_line(pid).split()
    if not arguments:
        return "kernel"
    if stat.name.startswith("python") and "-m" in arguments[:-1]:
        return arguments[arguments.index("-m") + 1]
    return stat.name


def cpu_used_by_program(
    before: Mapping[int, tuple[str, float]], after: Mapping[int, tuple[str, float]]
) -> dict[str, float]:
    """Compare two results of `cpu_seconds_by_process`, busiest program first.

    Programs below a twentieth of the whole are left out.
    """
    spent: dict[str, float] = defaultdict(float)
    for pid, (name, seconds) in after.items():
        known, earlier = before.get(pid, (name, 0.0))
        spent[name] += seconds - (earlier if known == name else 0.0)
    # What ended in between was added in full to its parent's time.
    for pid in before.keys() - after.keys():
        name, seconds = before[pid]
        spent[name] -= seconds
    least = max(0.01, sum(spent.values()) / 20)
    return {
        name: round(seconds, 1)
        for name, seconds in sorted(spent.items(), key=lambda item: -item[1])
        if seconds >= least
    }


# Sockets


def listeners(
    run: Path, sockets: Mapping[str, Sequence[str]], ports: Mapping[str, int]
) -> dict[str, set[int]]:
    """Return, by group, the processes that listen at its sockets or its port.

    `sockets` are names of Unix sockets in the folder `run`.
    """
    inodes = {
        group: {inode for name, inode in _unix_sockets(run) if name in names}
        for group, names in sockets.items()
    }
    inodes |= {group: _tcp_sockets(port) for group, port in ports.items()}
    holders = _holders(set().union(*inodes.values()))
    found = {
        group: set().union(*(holders[inode] for inode in own))
        for group, own in inodes.items()
    }
    held = Counter(pid for pids in found.values() for pid in pids)
    # A supervisor holds the sockets of several groups, and is parent of all.
    own = {
        group: {pid for pid in pids if held[pid] == 1} for group, pids in found.items()
    }
    return {group: pids for group, pids in own.items() if pids}


def _unix_sockets(run: Path) -> list[tuple[str, str]]:
    """Return name and inode of each listening socket in this folder."""
    folder, found = str(run.resolve()), []
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        # Accepted connections have the path of their listener too.
        if len(fields) == 8 and int(fields[3], 16) & UNIX_ACCEPTS_CONNECTIONS:
            parent, _, name = fields[7].rpartition("/")
            if os.path.realpath(parent) == folder:
                found.append((name, fields[6]))
    return found


def _tcp_sockets(port: int) -> set[str]:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {
        fields[9]
        for fields in rows
        if fields[3] == TCP_LISTEN and int(fields[1].split(":")[1], 16) == port
    }


def _holders(inodes: set[str]) -> dict[str, set[int]]:
    """Return, by inode, the processes that have this socket open."""
    found: dict[str, set[int]] = {inode: set() for inode in inodes}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        # A process may end, or close a file, while this looks.
        with suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    link = os.readlink(f"/proc/{pid}/fd/{number}")
                    inode = link.removeprefix("socket:[").removesuffix("]")
                    if inode in found:
                        found[inode].add(int(pid))
    return found
