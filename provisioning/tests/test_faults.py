"""`provisioning/faults`: what it draws, what it demands, whom it leaves alone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from contextlib import closing
from dataclasses import replace
from random import Random

import psycopg2
import pytest

from provisioning import processes
from provisioning.commands import Refusal
from provisioning.fault_injection.arguments import KNOWN
from provisioning.fault_injection.controls import Controlled
from provisioning.fault_injection.failover import Losing
from provisioning.fault_injection.faults import FAULTS, QUICK, drawn
from provisioning.fault_injection.report import Report
from provisioning.fault_injection.run import Fired, Orders, Outcome
from provisioning.fault_injection.stack import Home
from provisioning.fault_injection.verdict import FORBIDDEN, Finding, Verdict
from provisioning.installation.promotion import promote
from provisioning.installation.servers import private_servers
from provisioning.installation.supervisor import Supervisor
from provisioning.tests.conftest import run

pytestmark = pytest.mark.once

ORDERS = Orders(
    seed=1,
    faults=[],
    saves=100,
    minutes=1,
    rate=100,
    window=2,
    calm=1,
    warm=1,
    respondents=10,
    slower=1.1,
    prevented={},
)
CONTROL = Controlled("a row deleted", "lost", 1, 0, 100, 1.0, True)


def good():
    fired = [Fired(f"fault {n}", recovered=1.0) for n in range(10)]
    outcome = Outcome(Verdict([], acknowledged=100, attempts=120), fired)
    report = Report(1)
    report.add_run(ORDERS, outcome)
    report.controlled.append(CONTROL)
    return report, outcome


def test_a_good_run_holds(capsys):
    report, _ = good()
    report.print()
    assert report.status == 0
    said = capsys.readouterr().out
    assert "Every requirement holds" in said
    assert said.splitlines()[-1].startswith('{"seed": 1, "N": 100, "K": 10,')


@pytest.mark.parametrize("count", FORBIDDEN)
def test_one_finding_is_enough_to_fail(count):
    report, outcome = good()
    outcome.verdict = Verdict([Finding(count, 1, 1)], 100, 120)
    assert report.status == 1
    assert report.shortcomings() == [f"{count} 1"]


def test_what_was_recovered_is_no_failure():
    report, outcome = good()
    outcome.verdict = Verdict([Finding("recovered", 1, 1)], 100, 120)
    assert report.status == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda outcome: setattr(outcome, "verdict", None),
        lambda outcome: setattr(outcome, "why_void", "a driver died"),
        lambda outcome: [setattr(one, "missed", "x") for one in outcome.fired[:2]],
    ],
    ids=["no final read", "dead drivers", "eight of ten faults"],
)
def test_a_run_that_proves_nothing_is_void_and_not_green(change, capsys):
    report, outcome = good()
    change(outcome)
    assert report.status == 2
    report.print()
    assert "Void: " in capsys.readouterr().out


def test_nine_of_ten_faults_are_enough():
    report, outcome = good()
    outcome.fired[0].missed = "it was not running"
    assert report.status == 0


@pytest.mark.parametrize(
    "fired",
    [
        Fired("x", recovered=None),
        Fired("x", recovered=10.1),
        Fired("x", recovered=0.0, unharmed=True, failures=Counter({"cut": 1})),
    ],
)
def test_a_fault_that_went_badly_fails_the_run(fired):
    report, outcome = good()
    outcome.fired.append(fired)
    assert report.status == 1


def test_a_save_that_was_sent_again_at_once_does_not():
    report, outcome = good()
    failures = Counter({"resent": 3})
    outcome.fired.append(Fired("x", recovered=0.0, unharmed=True, failures=failures))
    assert report.status == 0


@pytest.mark.parametrize(("ratio", "status"), [(1.09, 0), (1.2, 1)])
def test_without_a_helper_saves_stay_fast(ratio, status):
    report, outcome = good()
    outcome.fired.append(Fired("x", recovered=0.0, helper="redis", ratio=ratio))
    assert report.status == status


def test_too_few_saves_prove_too_little():
    report, outcome = good()
    outcome.verdict = Verdict([], acknowledged=99, attempts=120)
    assert report.status == 1


def test_a_control_that_stays_content_fails_the_run():
    report, _ = good()
    report.controlled.append(replace(CONTROL, found=0, as_required=False))
    assert report.status == 1


@pytest.mark.parametrize(
    ("promise", "lost", "recovered", "status"),
    [
        ("A2", 0, 20.0, 0),
        ("A2", 1, 20.0, 1),
        ("A1", 3, 20.0, 0),
        ("A2", 0, 61.0, 1),
        ("A1", 0, None, 1),
    ],
)
def test_losing_the_primary(promise, lost, recovered, status):
    report, outcome = good()
    outcome.losing = Losing(promise, began=1.0, recovered=recovered, lost=lost)
    assert report.status == status


def test_only_what_the_old_primary_acknowledged_goes_with_it():
    losing = Losing("A1", began=100.0, ended=110.0)
    lost = [Finding("lost", 1, 1, moment) for moment in (99.0, 105.0, 111.0)]
    assert [losing.explains(one) for one in lost] == [False, True, False]
    assert not losing.explains(Finding("crossed", 1, 1))


# What is drawn


def test_every_fault_has_words():
    assert [fault.name for fault in FAULTS] == list(KNOWN)
    assert set(QUICK) <= set(KNOWN)
    assert len(QUICK) >= 8


def test_sixty_draws_are_every_fault_thrice():
    names = [fault.name for fault in drawn(Random(7), list(KNOWN), 60)]
    assert Counter(names) == dict.fromkeys(KNOWN, 3)


def test_the_seed_decides_the_order():
    def order(seed):
        return [fault.name for fault in drawn(Random(seed), list(KNOWN), 60)]

    assert order(7) == order(7)
    assert order(7) != order(8)


# Whom it leaves alone


def test_a_process_of_somebody_else_is_not_signalled():
    home = Home.__new__(Home)
    with subprocess.Popen(["sleep", "60"]) as other:
        with subprocess.Popen(["sh", "-c", "sleep 60 & wait"]) as supervisor:
            home.supervisor_pid = supervisor.pid
            while not processes.descendants_of(supervisor.pid):
                pass
            own = processes.descendants_of(supervisor.pid)
            home.signal([other.pid, os.getpid(), *own], signal.SIGKILL)
            assert processes.wait_until_gone(own)
        assert other.poll() is None
        other.kill()


def test_a_home_without_a_stack_is_refused(tmp_path):
    with pytest.raises(Refusal, match="No stack runs in"):
        Home(tmp_path)


@pytest.mark.parametrize("option", ["--help", "--list"])
def test_it_explains_itself_on_a_bare_machine(bare_checkout, option):
    done = run(bare_checkout, "faults", option)
    assert (done.returncode, done.stderr) == (0, "")
    assert "replies are cut off" in done.stdout or "usage:" in done.stdout
    assert not (bare_checkout / ".venv").exists()


# The replica takes over


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


def test_the_replica_takes_the_place_of_a_primary_that_is_lost():
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
