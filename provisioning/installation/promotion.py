"""Promote the replica after the loss of the primary.

Its data folder becomes the primary's, so that names, ports and pools stay as
they are, and the replica's program copies its new primary by itself. The old
primary's data are kept under another name: a primary that came back would
accept saves that nothing reads.
"""

from __future__ import annotations

import contextlib
import time
import xmlrpc.client
from pathlib import Path

from provisioning.commands import Refusal, output_of, step, wait_until
from provisioning.installation.postgresql import run_sql
from provisioning.installation.supervisor import PATIENCE, Supervisor

PRIMARY, REPLICA = 5432, 5433
# States in which the supervisor does not start a program again.
ENDED = ("STOPPED", "FATAL")
# Seconds between a dead primary's last write and the replica's last transaction.
OLDEST = 60

IN_RECOVERY = "SELECT pg_is_in_recovery()"
# A copy under way streams as well, but is no standby.
STREAMING = (
    "SELECT count(*) > 0 FROM pg_stat_replication"
    " WHERE state = 'streaming' AND application_name <> 'pg_basebackup'"
)
LAG = (
    "SELECT greatest(0, ceil(extract(epoch FROM {ended}"
    " - pg_last_xact_replay_timestamp())))"
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
    folder: Path,
    *,
    although_it_serves: bool = False,
    although_it_lags: bool = False,
    run: Path | None = None,
) -> int:
    """Make the replica the primary, and print where the old one's data are.

    Refuses while the primary serves; with `although_it_serves` it is stopped
    first, in order, and loses nothing. Refuses a replica that is behind; if the
    primary is dead, the last write to its log shows that. Finishes a promotion
    that was interrupted. `run` is the folder of the sockets, where it is not the
    stack's own.
    """
    with contextlib.closing(Supervisor(folder, run=run)) as supervisor:
        run = run or folder / "run"
        refuse_impossible(supervisor, run, although_it_serves)
        if ask(run, REPLICA, IN_RECOVERY) == "t":
            refuse_lag(run, folder / "data" / "primary", although_it_lags)
            promote_replica(supervisor, run)
        lost = _replace_primary(supervisor, folder, run)
    place = f"lie in {lost}" if lost.exists() else "are gone"
    print(f"The replica is the primary now; the old one's data {place}")
    return 0


def refuse_impossible(
    supervisor: Supervisor, run: Path, although_it_serves: bool
) -> None:
    supervisor.refuse_unless_running()
    if not answers(run, REPLICA):
        raise Refusal("The replica does not answer, so it can't take over")
    serves = answers(run, PRIMARY)
    ended = not serves and _state(supervisor, "primary") in ENDED
    # Raises without an answer: a standby must not pass for promoted.
    if ask(run, REPLICA, IN_RECOVERY) != "t" and not ended:
        # Two primaries: the saves of one of them would be lost.
        raise Refusal("What answers as the replica is a primary already")
    if serves and not although_it_serves:
        raise Refusal("The primary still serves")


def refuse_lag(run: Path, data: Path, although_it_lags: bool) -> None:
    if answers(run, PRIMARY):
        if not answers(run, PRIMARY, STREAMING):
            raise Refusal("The replica does not follow the primary, and lacks saves")
        return
    written = None
    with contextlib.suppress(OSError, ValueError):
        written = max(file.stat().st_mtime for file in (data / "pg_wal").iterdir())
    # Where nothing is left of the primary, its death may have been just now.
    ended = "clock_timestamp()" if written is None else f"to_timestamp({written})"
    lag = ask(run, REPLICA, LAG.format(ended=ended))
    until = "now" if written is None else "the primary's last write"
    known = f"{int(lag):,} s before {until}" if lag else "of unknown age"
    print(f"The replica's last transaction is {known}.", flush=True)
    if (not lag or int(lag) > OLDEST) and not although_it_lags:
        raise Refusal(
            f"The replica may be more than {OLDEST} s behind: later saves would be"
            " lost. If nobody saved, or nothing better is left: --although-it-lags"
        )


def promote_replica(supervisor: Supervisor, run: Path) -> None:
    with step("Ending the old primary"):
        stop_program(supervisor, "primary")
        if answers(run, PRIMARY):
            raise Refusal("The primary still serves, and not under the supervisor")
    with step("Promoting the replica"):
        # It has no standby yet, and would wait for one with every save.
        ask(run, REPLICA, "ALTER SYSTEM SET synchronous_standby_names = ''")
        ask(run, REPLICA, "SELECT pg_reload_conf()")
        ask(run, REPLICA, END_SESSIONS)
        # pg_promote only warns when it takes too long.
        if ask(run, REPLICA, f"SELECT pg_promote(true, {PATIENCE})") != "t":
            raise Refusal(
                f"The replica was not promoted within {PATIENCE} s, and no data"
                " were moved; try again, and see provisioning/stack logs replica"
            )


def _replace_primary(supervisor: Supervisor, folder: Path, run: Path) -> Path:
    data = folder / "data"
    lost = data / f"lost-{time.strftime('%Y%m%d-%H%M%S')}"
    with step("Putting it in the primary's place"):
        stop_program(supervisor, "replica")
        if (data / "primary").exists():
            (data / "primary").rename(lost)
        (data / "replica").rename(data / "primary")
        supervisor.calls.startProcess("primary", False)
        is_primary = "SELECT NOT pg_is_in_recovery()"
        if not wait_until(lambda: answers(run, PRIMARY, is_primary), seconds=PATIENCE):
            raise Refusal(
                "The new primary does not start; see provisioning/stack logs primary"
            )
    with step("Following it with a new replica"):
        # Roles and database are there; only the replica's slot is missing.
        output_of(
            ["sh", folder / "etc" / "primary" / "prepare"],
            failing="The new primary can't be prepared",
        )
        supervisor.calls.startProcess("replica", False)
    # Commits wait for a standby again, if so configured, once there is one.
    if ask(run, PRIMARY, CONFIGURED):
        with step("Waiting until the new replica follows"):
            follows = wait_until(
                lambda: answers(run, PRIMARY, STREAMING), seconds=PATIENCE
            )
        if not follows:
            print(
                "Commits do NOT wait for a replica yet. Once it follows, run:\n"
                f"  psql -h {run} -p {PRIMARY} -U postgres -c 'ALTER SYSTEM RESET"
                " synchronous_standby_names' -c 'SELECT pg_reload_conf()'",
                flush=True,
            )
            return lost
    ask(run, PRIMARY, "ALTER SYSTEM RESET synchronous_standby_names")
    ask(run, PRIMARY, "SELECT pg_reload_conf()")
    return lost


def stop_program(supervisor: Supervisor, program: str) -> None:
    """Stop a program, also one that has died and would be started again."""

    def has_stopped() -> bool:
        with contextlib.suppress(xmlrpc.client.Fault):
            supervisor.calls.stopProcess(program)
        return _state(supervisor, program) in ENDED

    if not wait_until(has_stopped, seconds=PATIENCE):
        raise Refusal(f"{program} can't be stopped")


def _state(supervisor: Supervisor, program: str) -> str:
    return str(supervisor.calls.getProcessInfo(program)["statename"])


def answers(run: Path, port: int, query: str = "SELECT true") -> bool:
    """Return whether the server answers, and answers yes."""
    with contextlib.suppress(Refusal):
        return ask(run, port, query) == "t"
    return False


def ask(run: Path, port: int, query: str) -> str:
    rows = run_sql(query, run=run, port=port, database="postgres")
    return rows[0][0] if rows else ""
