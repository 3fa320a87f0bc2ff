from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from provisioning import processes
from provisioning.commands import wait_until
from provisioning.processes import (
    ProcessStat,
    children_of,
    command_line,
    descendants_of,
    is_alive,
    memory_mb,
    peak_mb,
    start_process,
    stat_of,
    stop_process,
    wait_until_gone,
)

WAIT = "import time; print('ready', flush=True); time.sleep(60)"
SLEEP = [sys.executable, "-c", WAIT]
# Ignores SIGTERM, as does the child that it starts.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork():
    print("ready", flush=True)
time.sleep(60)
"""


# Its child uses processor time; its own is little.
MASTER = """
import os, time
if os.fork():
    os.wait()
else:
    while time.process_time() < 0.3:
        pass
    print("ready", flush=True)
time.sleep(60)
"""


# Starting and stopping


@pytest.fixture
def started():
    """Start commands that print "ready", and end what is left of them."""
    processes = []

    def start(command):
        process = start_process(command, output=subprocess.PIPE)
        processes.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def test_a_stopped_process_has_ended(started):
    process = started(SLEEP)
    assert is_alive(process.pid)
    stop_process(process)
    assert process.returncode == -signal.SIGTERM
    assert not is_alive(process.pid)


def test_stopping_an_ended_process_does_nothing():
    process = start_process([sys.executable, "-c", ""])
    process.wait()
    stop_process(process)
    assert process.returncode == 0


def test_a_stubborn_process_is_killed_with_its_session(started):
    process = started([sys.executable, "-c", STUBBORN])
    [child] = children_of(process.pid)
    stop_process(process, seconds=0.2)
    assert process.returncode == -signal.SIGKILL
    assert wait_until_gone([child])


def test_processes_are_stopped_together(started):
    both = [started(SLEEP), started(SLEEP)]
    stop_process(*both)
    assert [process.returncode for process in both] == [-signal.SIGTERM] * 2


def test_a_process_ends_with_its_killed_parent():
    program = f"""
import subprocess
from provisioning.processes import start_process
process = start_process({SLEEP!r}, output=subprocess.DEVNULL)
print(process.pid, flush=True)
process.wait()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    assert wait_until_gone([child])


def test_errors_go_to_the_output():
    program = "import sys; print('error', file=sys.stderr)"
    process = start_process([sys.executable, "-c", program], output=subprocess.PIPE)
    assert process.communicate()[0] == b"error\n"


def test_waiting_for_a_living_process_ends_in_time():
    assert not wait_until_gone([os.getpid()], seconds=0.05)


def test_a_zombie_is_not_alive():
    process = subprocess.Popen([sys.executable, "-c", ""])
    assert wait_until(lambda: not is_alive(process.pid), seconds=10)
    assert process.wait() == 0


# One process and its relatives


def test_a_name_may_contain_parentheses():
    line = "7 (a) (b c) S 3 " + " ".join(str(n) for n in range(5, 53))
    stat = ProcessStat(line)
    assert (stat.name, stat.state, stat.parent) == ("a) (b c", "S", 3)
    assert stat.cpu == (14 + 15 + 16 + 17) / processes.TICKS
    assert stat.started == 22 / processes.TICKS


def test_an_ended_process_has_no_stat():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert stat_of(process.pid) is None
    assert command_line(process.pid) == ""


def test_the_command_line_is_one_text(started):
    # Its output shows that it has replaced the fork of this process.
    process = started(SLEEP)
    assert command_line(process.pid).startswith(f"{sys.executable} -c import time")


def test_descendants_are_found_at_any_depth(started):
    program = f"import subprocess; subprocess.run({SLEEP!r})"
    process = started([sys.executable, "-c", program])
    [child] = descendants_of(process.pid)
    assert descendants_of(child) == []
    descendants = descendants_of(os.getpid())
    assert descendants.index(process.pid) < descendants.index(child)


# Memory


def test_shared_memory_is_counted_once(parent):
    [child] = children_of(parent)
    assert 20 < memory_mb(child) < 40
    assert 40 < memory_mb(parent) + memory_mb(child) < 70
    # The twin: each of them by itself holds all of it.
    resident = [psutil.Process(each).memory_info().rss for each in (parent, child)]
    assert sum(resident) > 80 * 2**20


def test_the_peak_counts_shared_memory_in_full_and_what_was_freed(parent):
    [child] = children_of(parent)
    assert memory_mb(child) < 40 < peak_mb(child)
    freed = "held = bytearray(80 * 2**20); held[::4096] = b'1' * 20480; del held; "
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            freed + "import sys; print(1, flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        assert memory_mb(process.pid) < 60 < 80 < peak_mb(process.pid)
        process.stdin.close()


def test_an_ended_process_has_no_memory():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert (memory_mb(gone.pid), peak_mb(gone.pid)) == (0.0, 0.0)
    assert children_of(gone.pid) == []


# Processor time


def process(
    name: str, parent: int = 1, used: int = 0, ended: int = 0, started: int = 5
):
    """Return a process that has used so many seconds."""
    fields = [str(each * processes.TICKS) for each in (used, 0, ended, 0)]
    numbers = ["0"] * 9 + fields + ["0"] * 4 + [str(started)]
    return ProcessStat(f"7 ({name}) S {parent} {' '.join(numbers)}")


def test_processor_time_is_compared_by_program():
    before = {
        1: process("nginx", used=5),
        2: process("java", used=1),
        3: process("gone"),
    }
    after = {
        1: process("nginx", used=6),
        2: process("java", used=6),
        4: process("idle"),
    }
    assert processes.cpu_used_by_program(before, after) == {"java": 5.0, "nginx": 1.0}


@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_past_of_ended_workers_is_no_use_of_their_parents(is_replaced):
    """supervisord restarts a server that has worked for 1,000 seconds before."""
    before = {
        2: process("supervisord", used=3, ended=50),
        3: process("gunicorn", parent=2, used=10, ended=600),
        4: process("gunicorn", parent=3, used=390),
    }
    # The workers used 5 seconds more, of which 2 in one that began meanwhile.
    after = {2: process("supervisord", used=4, ended=50 + 1005)}
    if is_replaced:
        # It got the number of the old one.
        after[4] = process("gunicorn", parent=2, used=7, started=9)
    used = processes.cpu_used_by_program(before, after)
    assert used == {"gunicorn": 12.0 if is_replaced else 5.0, "supervisord": 1.0}


def test_a_worker_that_ends_counts_for_its_own_program(started):
    master = started([sys.executable, "-c", MASTER])
    [worker] = children_of(master.pid)
    before = processes.stats_by_program()
    before[worker].name = "worker"
    os.kill(worker, signal.SIGTERM)
    assert wait_until(lambda: stat_of(worker) is None, seconds=10)
    after = processes.stats_by_program()
    # The twin: the kernel has added all of it to the master.
    assert after[master.pid].cpu - before[master.pid].cpu > 0.2
    master_and_worker = {pid: before[pid] for pid in (master.pid, worker)}
    used = processes.cpu_used_by_program(
        master_and_worker, {master.pid: after[master.pid]}
    )
    assert sum(used.values()) < 0.1


def test_programs_are_named_by_their_module(started):
    started([sys.executable, "-m", "timeit", "-n1", WAIT])
    names = {each.name for each in processes.stats_by_program().values()}
    assert "timeit" in names


def test_an_ended_worker_counts_for_its_master(started):
    """Its time is in the group once, before and after it has ended."""
    master = started([sys.executable, "-c", MASTER])
    groups = {"pool": [master.pid], "none": []}
    [worker] = children_of(master.pid)
    before = processes.cpu_seconds_by_group(groups)
    assert before["pool"] > 0.2
    assert before["none"] == 0.0
    os.kill(worker, signal.SIGTERM)
    assert wait_until(lambda: stat_of(worker) is None, seconds=10)
    after = processes.cpu_seconds_by_group(groups)
    assert before["pool"] <= after["pool"] < 1.5 * before["pool"]
    assert processes.machine_cpu_seconds() > after["pool"]
