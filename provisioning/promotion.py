"""The replica takes the place of a primary that is lost. Standard library only.

Its data folder becomes the primary's, so that names, ports and pools stay as
they are, and the replica's program copies its new primary by itself. What is
left of the old one is kept under another name: a primary that came back would
take saves that nobody reads.
"""

from __future__ import annotations

import contextlib
import os
import time
import xmlrpc.client
from pathlib import Path

from provisioning.commands import Refusal, output_of, step
from provisioning.home import Supervisor
from provisioning.packages import postgresql_programs

PRIMARY, REPLICA = 5432, 5433
PATIENCE = 60.0


def promote(
    home: Path, *, although_it_serves: bool = False, run: Path | None = None
) -> Path:
    """Where the old primary's data lie now, or would lie.

    Refuses while the primary serves, unless told otherwise: then it is ended
    first, in order, and loses nothing. `run` is the folder of the sockets,
    where it is not the home's own.
    """
    with contextlib.closing(Supervisor(home, run=run)) as supervisor:
        _refuse(supervisor, run or home / "run", although_it_serves)
        return _take_over(supervisor, home, run or home / "run")


def _refuse(supervisor: Supervisor, run: Path, although_it_serves: bool) -> None:
    if not supervisor.is_running():
        raise Refusal("Nothing is running; start it with provisioning/stack up")
    if not _answers(run, REPLICA):
        raise Refusal("The replica does not answer, so it can't take over")
    if _ask(run, REPLICA, "SELECT pg_is_in_recovery()") != "t":
        raise Refusal("What answers as the replica is a primary already")
    if _answers(run, PRIMARY) and not although_it_serves:
        raise Refusal("The primary still serves")


def _take_over(supervisor: Supervisor, home: Path, run: Path) -> Path:
    lost = home / "data" / f"lost-{time.strftime('%Y%m%d-%H%M%S')}"
    with step("Ending the old primary"):
        _stop(supervisor, "primary")
    with step("Promoting the replica"):
        # It has no standby yet, and would wait for one with every save.
        _ask(run, REPLICA, "ALTER SYSTEM SET synchronous_standby_names = ''")
        _ask(run, REPLICA, "SELECT pg_reload_conf()")
        _ask(run, REPLICA, f"SELECT pg_promote(true, {PATIENCE:.0f})")
    with step("Putting it in the primary's place"):
        _stop(supervisor, "replica")
        _exchange_folders(home / "data", lost)
        supervisor.calls.startProcess("primary", False)
        _wait_until_it_answers(run)
    with step("Following it with a new replica"):
        # Roles and database are there; what is missing is the replica's slot.
        output_of(
            ["sh", home / "etc" / "primary" / "prepare"],
            failing="The new primary can't be prepared",
        )
        supervisor.calls.startProcess("replica", False)
    return lost


def _exchange_folders(data: Path, lost: Path) -> None:
    if (data / "primary").exists():
        (data / "primary").rename(lost)
    (data / "replica").rename(data / "primary")


def _stop(supervisor: Supervisor, program: str) -> None:
    """Also one that has died: it is not to be started again a moment later."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(xmlrpc.client.Fault):
            supervisor.calls.stopProcess(program)
        state = supervisor.calls.getProcessInfo(program)["statename"]
        if state in ("STOPPED", "FATAL"):
            return
        time.sleep(0.1)
    raise Refusal(f"{program} can't be stopped")


def _wait_until_it_answers(run: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if _answers(run, PRIMARY):
            return
        time.sleep(0.1)
    raise Refusal("The new primary does not start; see provisioning/stack logs primary")


def _answers(run: Path, port: int) -> bool:
    with contextlib.suppress(Refusal):
        return _ask(run, port, "SELECT 1") == "1"
    return False


def _ask(run: Path, port: int, question: str) -> str:
    where = f"--host={run} --port={port} --username=postgres"
    plain = "--no-psqlrc --quiet --tuples-only --no-align --dbname=postgres"
    return output_of(
        [
            postgresql_programs() / "psql",
            *f"{where} {plain}".split(),
            "--set=ON_ERROR_STOP=1",
            f"--command={question}",
        ],
        failing="PostgreSQL refused",
        env={**os.environ, "PGCONNECT_TIMEOUT": "3"},
    ).strip()
