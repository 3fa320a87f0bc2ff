"""`provisioning/faults`: which faults are drawn, and what is never touched."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from contextlib import closing
from random import Random

import psycopg2
import pytest

from provisioning import processes
from provisioning.commands import ROOT, Refusal
from provisioning.installation.environment import PYTHON
from provisioning.installation.promotion import promote
from provisioning.installation.servers import private_servers
from provisioning.installation.supervisor import Supervisor
from provisioning.prove.fault_injection.__main__ import run_options
from provisioning.prove.fault_injection.faults import (
    BY_NAME,
    FAULTS,
    NETWORK,
    NETWORK_NOW,
    FaultContext,
    LogDisk,
    NotInjected,
    draw_faults,
    part_network,
)
from provisioning.prove.fault_injection.stack import RunningStack
from provisioning.prove.fault_injection.start import OWN_MOUNTS, arguments
from provisioning.tests.conftest import run

# Which faults are drawn


QUICK = [fault.name for fault in FAULTS if fault.quick]


def test_every_fault_has_a_name_of_its_own_and_a_description():
    assert len(BY_NAME) == len(FAULTS) == 24
    assert all(fault.description for fault in FAULTS)
    assert len(QUICK) == 10


def test_seventy_two_draws_contain_every_fault_three_times():
    names = [fault.name for fault in draw_faults(Random(7), list(BY_NAME), 72)]
    assert Counter(names) == dict.fromkeys(BY_NAME, 3)


def test_the_seed_decides_the_order():
    def order(seed):
        return [fault.name for fault in draw_faults(Random(seed), list(BY_NAME), 72)]

    assert order(7) == order(7)
    assert order(7) != order(8)


def context(log_disk=None):
    return FaultContext(None, Random(1), log_disk=log_disk)


def test_a_quick_run_has_each_quick_fault_once():
    options = run_options(arguments(["--quick"]), context(), seed=7)
    assert sorted(fault.name for fault in options.faults) == sorted(QUICK)
    assert (options.saves, options.window, options.slower) == (5_000, 2.0, 2.0)


def test_a_fault_that_is_prevented_is_not_planned(tmp_path):
    # The tests have the machine's own network.
    options = run_options(arguments([]), context(), seed=7)
    assert list(options.prevented) == ["network-parted", "log-disk-full"]
    assert len(options.faults) == 72
    assert not options.prevented.keys() & {fault.name for fault in options.faults}

    options = run_options(arguments([]), context(LogDisk(tmp_path)), seed=7)
    assert list(options.prevented) == ["network-parted"]


def test_the_network_of_the_machine_is_never_parted():
    with (
        pytest.raises(NotInjected, match="a network of its own"),
        part_network(context()),
    ):
        pass


def test_a_network_of_its_own_may_be_parted_for_a_while():
    probe = "from provisioning.prove.fault_injection.faults import *; import socket"
    program = f"""{probe}
output_of(["ip", "link", "set", "lo", "up"], failing="no network")
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname(), timeout=10)
server = listener.accept()[0]
server.settimeout(0.3)
with part_network(None):
    client.sendall(b"kept")
    try:
        server.recv(4)
    except TimeoutError:
        print("silent")
server.settimeout(30)
print(server.recv(4))
"""
    unshare = [*OWN_MOUNTS, "--net"]
    if subprocess.call([*unshare, "true"], stderr=subprocess.DEVNULL):
        pytest.skip("only root may make a network")
    done = subprocess.run(
        [*unshare, PYTHON, "-c", program],
        cwd=ROOT,
        env={**os.environ, NETWORK: NETWORK_NOW},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "silent\nb'kept'\n"), done.stderr


def test_a_fault_chosen_alone_is_the_only_one():
    options = run_options(arguments(["--only=redis-hung"]), context(), seed=7)
    assert [fault.name for fault in options.faults] == ["redis-hung"]
    assert options.saves == 1_000


def test_a_fault_chosen_alone_is_refused_where_it_is_prevented():
    with pytest.raises(Refusal, match="log-disk-full can't be done here"):
        run_options(arguments(["--only=log-disk-full"]), context(), seed=7)


# What is never touched


def test_processes_outside_the_stack_are_not_signalled():
    stack = RunningStack.__new__(RunningStack)
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        with subprocess.Popen(["sh", "-c", "sleep 60 & wait"]) as supervisor:
            stack.supervisor_pid = supervisor.pid
            while not processes.descendants_of(supervisor.pid):
                pass
            stack_processes = processes.descendants_of(supervisor.pid)
            stack.signal([sleeper.pid, os.getpid(), *stack_processes], signal.SIGKILL)
            assert processes.wait_until_gone(stack_processes)
        assert sleeper.poll() is None
        sleeper.kill()


def test_a_folder_without_a_stack_is_refused(tmp_path):
    with pytest.raises(Refusal, match="No stack runs in"):
        RunningStack(tmp_path)


def test_help_and_list_work_without_an_environment(bare_checkout):
    for option, says in (("--help", "usage:"), ("--list", "replies are cut off")):
        done = run(bare_checkout, "faults", option)
        assert (done.returncode, done.stderr) == (0, "")
        assert says in done.stdout
    assert not (bare_checkout / ".venv").exists()


# Failover


def ask(folder, port, question):
    connection = psycopg2.connect(
        host=str(folder), port=port, user="postgres", dbname="groundswell"
    )
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(question)
            return cursor.fetchone()[0] if cursor.description else None
    finally:
        connection.close()


@pytest.mark.slow
def test_the_replica_replaces_a_lost_primary():
    with private_servers() as folder:
        ask(folder, 5432, "CREATE TABLE kept AS SELECT 42 AS answer")
        with pytest.raises(Refusal, match="still serves"):
            promote(folder, run=folder)
        written = ask(folder, 5432, "SELECT pg_current_wal_lsn()")
        reached = f"SELECT pg_last_wal_replay_lsn() >= '{written}'"
        while not ask(folder, 5433, reached):
            pass
        (folder / "data" / "primary").rename(folder / "data" / "gone")
        with closing(Supervisor(folder, run=folder)) as supervisor:
            pid = supervisor.calls.getProcessInfo("primary")["pid"]
        processes.kill_together([pid, *processes.descendants_of(pid)])

        promote(folder, run=folder)

        assert ask(folder, 5432, "SELECT answer FROM kept") == 42
        assert not ask(folder, 5432, "SELECT pg_is_in_recovery()")
        ask(folder, 6432, "UPDATE kept SET answer = 43")
        assert ask(folder, 5432, "SELECT answer FROM kept") == 43
