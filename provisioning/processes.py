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
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from provisioning.commands import wait_until

TICKS = os.sysconf("SC_CLK_TCK")

# prctl(2)
SET_PARENT_DEATH_SIGNAL = 1
SET_CHILD_SUBREAPER = 36


# Starting and stopping


def end_with_parent(number: int) -> Callable[[], None]:
    """Return a `preexec_fn` that makes a process get this signal after its parent.

    The kernel sends it however the parent ends, even if it is killed.
    """
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
        # Without any of root's other groups.
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        preexec_fn=end_with_parent(parent_signal),
    )


def stop_process(*processes: subprocess.Popen[bytes], seconds: float = 10.0) -> None:
    """Terminate these processes together, wait for them, then kill what is left.

    A process that leads a session is killed with all of its session's group.
    """
    for process in processes:
        process.terminate()
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
    left = list(pids)
    return wait_until(lambda: not any(map(is_alive, left)), seconds=seconds, pause=0.02)


def adopt_orphans() -> None:
    """Make this process the parent of what its children leave behind."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1)


def end_orphans() -> None:
    """Kill adopted processes, such as the browser of an interrupted test."""
    # The children of those that end here are adopted next.
    while orphans := children_of(os.getpid()):
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


# One process and its relatives


class ProcessStat:
    """A process's line in /proc/<pid>/stat; times in seconds."""

    __slots__ = ("ended_cpu", "name", "own_cpu", "parent", "started", "state")

    def __init__(self, line: str) -> None:
        # The name is in parentheses, and may contain spaces and parentheses.
        self.name = line[line.index("(") + 1 : line.rindex(")")]
        fields = line[line.rindex(")") + 2 :].split()
        self.state = fields[0]
        self.parent = int(fields[1])
        self.own_cpu = sum(map(int, fields[11:13])) / TICKS
        # Of its children that have ended, and of theirs: gunicorn's workers end
        # after some thousand requests.
        self.ended_cpu = sum(map(int, fields[13:15])) / TICKS
        # Since the machine started; to 10 ms.
        self.started = int(fields[19]) / TICKS

    @property
    def cpu(self) -> float:
        return self.own_cpu + self.ended_cpu


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
    children: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread may end in between.
        with suppress(OSError):
            children += map(int, thread.read_text().split())
    return children


def descendants_of(
    pid: int, stats: Mapping[int, ProcessStat] | None = None
) -> list[int]:
    """Return all processes below this one, parents before their children."""
    stats = stats or all_stats()
    family = [pid]
    for parent in family:
        family += [child for child, stat in stats.items() if stat.parent == parent]
    return family[1:]


# Memory and processor time


def memory_mb(pid: int) -> float:
    """Return a process's proportional set size, in MB; 0 where it has ended.

    A page shared by several processes is divided by their number.
    """
    return _megabytes(pid, "smaps_rollup", "Pss:")


def peak_mb(pid: int) -> float:
    """Return the largest resident set of a process so far; 0 where it has ended.

    A shared page counts in full.
    """
    return _megabytes(pid, "status", "VmHWM:")


def _megabytes(pid: int, file: str, name: str) -> float:
    with suppress(OSError, IndexError):
        text = Path(f"/proc/{pid}/{file}").read_text()
        return int(text.partition(name)[2].split()[0]) / 1024
    return 0.0


def machine_cpu_seconds() -> float:
    """Return the time that all processes and the kernel itself have used."""
    fields = Path("/proc/stat").read_text().split()[1:8]
    user, nice, system, _, _, irq, softirq = map(int, fields)
    return (user + nice + system + irq + softirq) / TICKS


def cpu_seconds_by_group(groups: Mapping[str, Iterable[int]]) -> dict[str, float]:
    """Return the time used by each group of processes and all below them."""
    stats, used = all_stats(), {}
    for group, pids in groups.items():
        members = {each for pid in pids for each in [pid, *descendants_of(pid, stats)]}
        used[group] = sum(stats[pid].cpu for pid in members & stats.keys())
    return used


def stats_by_program() -> dict[int, ProcessStat]:
    """Return all processes, named by their programs."""
    stats = all_stats()
    for pid, stat in stats.items():
        arguments = command_line(pid).split()
        if not arguments:
            stat.name = "kernel"
        elif stat.name.startswith("python") and "-m" in arguments[:-1]:
            stat.name, *words = arguments[arguments.index("-m") + 1 :]
            # A command of this folder is named by its module.
            if stat.name == "provisioning" and words:
                stat.name = words[0]
    return stats


def cpu_used_by_program(
    before: Mapping[int, ProcessStat], after: Mapping[int, ProcessStat]
) -> dict[str, float]:
    """Compare two results of `stats_by_program`, busiest program first.

    What children used before, who ended in between, is no use of their parent: the
    kernel adds all of a worker's life to its master's time when it ends. Programs
    below a twentieth of the whole are left out.
    """
    ended = {
        pid: stat
        for pid, stat in before.items()
        if pid not in after or after[pid].started != stat.started
    }
    spent: dict[str, float] = defaultdict(float)
    for pid, stat in after.items():
        known = None if pid in ended else before.get(pid)
        spent[stat.name] += stat.own_cpu - (known.own_cpu if known else 0.0)
        # The first process also gets those whose parent has ended.
        if pid == 1:
            continue
        parents = {pid: stat, **ended}
        children = [ended[each] for each in descendants_of(pid, parents)]
        used = stat.ended_cpu - (known.ended_cpu if known else 0.0)
        used -= sum(child.cpu for child in children)
        for name in (names := [child.name for child in children] or [stat.name]):
            spent[name] += max(0.0, used) / len(names)
    least = max(0.01, sum(spent.values()) / 20)
    return {
        name: round(spent[name], 1)
        for name in sorted(spent, key=lambda name: -spent[name])
        if spent[name] >= least
    }
