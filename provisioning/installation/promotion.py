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
from collections.abc import Callable
from pathlib import Path

from provisioning.commands import Refusal, output_of, step
from provisioning.installation.home import Supervisor
from provisioning.installation.packages import postgresql_programs

PRIMARY, REPLICA = 5432, 5433
# The supervisor does not start it again by itself.
GONE = ("STOPPED", "FATAL")
PATIENCE = 60.0
# Seconds since the last transaction that the replica has from a dead primary.
OLDEST = 60

# A copy under way streams as well, but is no standby.
STREAMING = (
    "SELECT count(*) > 0 FROM pg_stat_replication"
    " WHERE state = 'streaming' AND application_name <> 'pg_basebackup'"
)
AGE = (
    "SELECT ceil(extract(epoch FROM clock_timestamp()"
    " - pg_last_xact_replay_timestamp()))"
)
# An export may hold back what has yet to be replayed for half an hour.
END_SESSIONS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
# By the configuration's files, without what was set by hand or from here.
CONFIGURED = (
    "SELECT setting FROM pg_file_settings"
    " WHERE name = 'synchronous_standby_names'"
    " AND sourcefile NOT LIKE '%postgresql.auto.conf' ORDER BY seqno DESC LIMIT 1"
)


def promote(
    home: Path,
    *,
    although_it_serves: bool = False,
    although_it_lags: bool = False,
    run: Path | None = None,
) -> Path:
    """Where the old primary's data lie now, or would lie.

    Refuses while the primary serves, unless told otherwise: then it is ended
    first, in order, and loses nothing. Refuses a replica that is behind, which
    of a dead primary only the age of its last transaction tells. One that was
    promoted already, by a call that did not end well, is put in its place.
    `run` is the folder of the sockets, where it is not the home's own.
    """
    with contextlib.closing(Supervisor(home, run=run)) as supervisor:
        run = run or home / "run"
        _refuse(supervisor, run, although_it_serves)
        if _follows(run):
            _refuse_lag(run, although_it_lags)
            _promote(supervisor, run)
        return _take_over(supervisor, home, run)


def _refuse(supervisor: Supervisor, run: Path, although_it_serves: bool) -> None:
    if not supervisor.is_running():
        raise Refusal("Nothing is running; start it with provisioning/stack up")
    if not _answers(run, REPLICA):
        raise Refusal("The replica does not answer, so it can't take over")
    serves = _answers(run, PRIMARY)
    ended = not serves and _state(supervisor, "primary") in GONE
    if not _follows(run) and not ended:
        # Two primaries: the saves of one of them would be lost.
        raise Refusal("What answers as the replica is a primary already")
    if serves and not although_it_serves:
        raise Refusal("The primary still serves")


def _refuse_lag(run: Path, although_it_lags: bool) -> None:
    if _answers(run, PRIMARY):
        if _said(run, PRIMARY, STREAMING) != "t":
            raise Refusal("The replica does not follow the primary, and lacks saves")
        return
    age = _ask(run, REPLICA, AGE)
    known = f"{int(age):,} s old" if age else "of unknown age"
    print(f"The replica's last transaction is {known}.", flush=True)
    if (not age or int(age) > OLDEST) and not although_it_lags:
        raise Refusal(
            f"That may be more than {OLDEST} s behind: what was saved later would be"
            " lost. If nobody saved, or nothing better is left: --although-it-lags"
        )


def _promote(supervisor: Supervisor, run: Path) -> None:
    with step("Ending the old primary"):
        _stop(supervisor, "primary")
        if _answers(run, PRIMARY):
            raise Refusal("The primary still serves, and not under the supervisor")
    with step("Promoting the replica"):
        # It has no standby yet, and would wait for one with every save.
        _ask(run, REPLICA, "ALTER SYSTEM SET synchronous_standby_names = ''")
        _ask(run, REPLICA, "SELECT pg_reload_conf()")
        _ask(run, REPLICA, END_SESSIONS)
        # It only warns where that takes too long.
        if _ask(run, REPLICA, f"SELECT pg_promote(true, {PATIENCE:.0f})") != "t":
            raise Refusal(
                f"The replica was not promoted within {PATIENCE:.0f} s, and no data"
                " were moved; try again, and see provisioning/stack logs replica"
            )


def _take_over(supervisor: Supervisor, home: Path, run: Path) -> Path:
    lost = home / "data" / f"lost-{time.strftime('%Y%m%d-%H%M%S')}"
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
    _wait_for_standbys_again(run)
    return lost


def _wait_for_standbys_again(run: Path) -> None:
    """Commits wait as configured (A2), once there is somebody to wait for."""
    if _ask(run, PRIMARY, CONFIGURED):
        with step("Waiting until the new replica follows"):
            follows = _becomes_true(lambda: _said(run, PRIMARY, STREAMING) == "t")
        if not follows:
            print(
                "Commits do NOT wait for a replica yet. Once it follows, run:\n"
                f"  psql -h {run} -p {PRIMARY} -U postgres -c 'ALTER SYSTEM RESET"
                " synchronous_standby_names' -c 'SELECT pg_reload_conf()'",
                flush=True,
            )
            return
    _ask(run, PRIMARY, "ALTER SYSTEM RESET synchronous_standby_names")
    _ask(run, PRIMARY, "SELECT pg_reload_conf()")


def _exchange_folders(data: Path, lost: Path) -> None:
    if (data / "primary").exists():
        (data / "primary").rename(lost)
    (data / "replica").rename(data / "primary")


def _stop(supervisor: Supervisor, program: str) -> None:
    """Also one that has died: it is not to be started again a moment later."""

    def is_gone() -> bool:
        with contextlib.suppress(xmlrpc.client.Fault):
            supervisor.calls.stopProcess(program)
        return _state(supervisor, program) in GONE

    if not _becomes_true(is_gone):
        raise Refusal(f"{program} can't be stopped")


def _state(supervisor: Supervisor, program: str) -> str:
    return str(supervisor.calls.getProcessInfo(program)["statename"])


def _wait_until_it_answers(run: Path) -> None:
    is_primary = "SELECT NOT pg_is_in_recovery()"
    if not _becomes_true(lambda: _said(run, PRIMARY, is_primary) == "t"):
        raise Refusal(
            "The new primary does not start; see provisioning/stack logs primary"
        )


def _becomes_true(happens: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if happens():
            return True
        time.sleep(0.1)
    return False


def _answers(run: Path, port: int) -> bool:
    return _said(run, port, "SELECT 1") == "1"


def _follows(run: Path) -> bool:
    # Where it says nothing this raises: a standby must not pass for promoted.
    return _ask(run, REPLICA, "SELECT pg_is_in_recovery()") == "t"


def _said(run: Path, port: int, question: str) -> str:
    """Nothing, where nobody answers."""
    with contextlib.suppress(Refusal):
        return _ask(run, port, question)
    return ""


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
