"""Make restore points of a Citus cluster, and restore all of its nodes to one.

Each node has its own backups and its own log. A restore point is written into the logs
of all nodes while no transaction commits on several of them, so nodes that are
restored to it agree. docs/decisions/0178-citus-fleet.md says why.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, Stopped, caller_path, step
from provisioning.installation.backups.operations import read_host
from provisioning.installation.backups.repository import Backup, Repository
from provisioning.installation.backups.restoring import (
    backup_before,
    restored_database,
)
from provisioning.installation.postgresql import run_sql
from provisioning.installation.stack_folder import stack_folder

TIME = "%Y-%m-%dT%H:%M:%SZ"
# The log of each node is archived up to the point.
SWITCH_LOGS = """
SELECT count(*) FROM run_command_on_all_nodes('SELECT pg_switch_wal()') WHERE success
"""
NODES = "SELECT count(*) FROM pg_dist_node WHERE noderole = 'primary' AND isactive"
# Beside those of a restored database. A restored node calls none of those that serve
# until it was told where the restored ones are.
SETTINGS = """\
shared_preload_libraries = 'citus,pg_stat_statements'
max_connections = 200
max_prepared_transactions = 1000
max_locks_per_transaction = 4096
max_worker_processes = 32
wal_level = logical
citus.recover_2pc_interval = -1
citus.distributed_deadlock_detection_factor = -1
citus.enable_statistics_collection = off
citus.local_hostname = '{run}'
"""
MOVE_NODE = """
SET citus.enable_metadata_sync = off;
UPDATE pg_dist_node SET nodename = '{run}', nodeport = 5432 WHERE groupid = {node};
"""
# For /metrics and the engineers' page, which would be full of older ones.
RECORD = """
INSERT INTO survey_backuprun (kind, ok, started_at, ended_at, details)
VALUES ('point', true, now(), now(), '{{"name": "{name}"}}');
DELETE FROM survey_backuprun
WHERE kind = 'point' AND ended_at < now() - interval '1 day';
"""
PREPARED = "SELECT count(*) FROM pg_prepared_xacts"


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--point", required=True, metavar="NAME", help="What restore_point has printed."
    )
    add(
        "--to",
        type=caller_path,
        required=True,
        metavar="FOLDER",
        help="A new or an empty folder.",
    )
    only = (
        "Only this node; 0 is the coordinator. To set up a lost fleet's host with it."
    )
    add("--node", type=int, metavar="N", help=only)


def make_restore_point(run: Path, port: int = 5432, *, host: str = "") -> str:
    """Write one point into the logs of all nodes; return its name.

    A name is never used twice: a node whose log has it twice stops at the first one.
    """
    name = f"{datetime.now(UTC):{TIME}}-{host or socket.gethostname()}"
    run_sql(
        f"SELECT citus_create_restore_point('{name}')",  # noqa: S608
        run=run,
        port=port,
        failing="No restore point was made",
    )
    (switched,), (nodes,) = run_sql(SWITCH_LOGS + ";" + NODES, run=run, port=port)
    if switched != nodes:
        raise Refusal(f"{name}: only {switched} of {nodes} nodes archive it at once")
    return name


def restore_point(folder: Path) -> int:
    """Make and record a restore point where this host is the coordinator's primary."""
    host = read_cluster_host(folder)
    run, port = folder / "run", host["primary_port"]
    if run_sql("SELECT pg_is_in_recovery()", run=run, port=port) == [["t"]]:
        print("This host is a standby: the coordinator's primary makes the points")
        return 0
    name = make_restore_point(run, port)
    print(name, flush=True)
    failing = "It was made, but not recorded"
    run_sql(RECORD.format(name=name), run=run, port=port, failing=failing)
    return 0


def read_cluster_host(folder: Path) -> dict[str, Any]:
    """Return what the role `backup` wrote on a host of a cluster."""
    host = read_host(folder)
    if len(host["stanzas"]) < 2:
        raise Refusal(
            f"The database of {folder} is no cluster: provisioning/stack restore --at"
            " restores it to any second, without points"
        )
    return host


def time_of(point: str) -> datetime:
    """Return when a point was made, which is in its name."""
    try:
        text = point[: point.index("Z") + 1]
        return datetime.strptime(text, TIME).replace(tzinfo=UTC)
    except ValueError:
        raise Refusal(
            f"{point} is no restore point, such as 2026-11-30T16:15:00Z-db1"
        ) from None


def until_name(backup: Backup, point: str) -> list[str]:
    """Return pgBackRest's options for a point of all nodes."""
    return [
        *(f"--set={backup.label}", "--type=name"),
        *(f"--target={point}", "--target-action=promote"),
    ]


@contextmanager
def restored_node(
    repository: Repository, folder: Path, point: str, programs: Path | None = None
) -> Iterator[Path]:
    """Restore one node; yield the folder of its socket, port 5432.

    It accepts connections, and knows the other nodes by the addresses they had.
    """
    backup = backup_before(repository.backups(), time_of(point))
    until, further = until_name(backup, point), SETTINGS.format(run=folder / "run")
    with restored_database(
        repository, folder, until, further=further, programs=programs
    ) as run:
        yield run


@contextmanager
def restored_cluster(
    repositories: Sequence[Repository],
    folder: Path,
    points: Sequence[str],
    programs: Path | None = None,
) -> Iterator[list[Path]]:
    """Restore all nodes; yield the folders of their sockets, the coordinator's first.

    `points` has one for each node: the same for all, but in a drill.
    """
    with ExitStack() as stack:
        runs = []
        for node, (repository, point) in enumerate(
            zip(repositories, points, strict=True)
        ):
            print(f"Node {node} ({repository.stanza})", flush=True)
            place = folder / f"node-{node}"
            restored = restored_node(repository, place, point, programs)
            runs.append(stack.enter_context(restored))
        with step("Introducing the nodes, and ending prepared transactions"):
            introduce(runs)
        yield runs


def introduce(runs: Sequence[Path]) -> None:
    """Tell restored nodes where they are, and end what was prepared at the point."""
    moves = "".join(
        MOVE_NODE.format(run=run, node=node) for node, run in enumerate(runs)
    )
    for run in runs:
        run_sql(moves, run=run, failing="A restored node can't be told of the others")
    run_sql("SELECT recover_prepared_transactions()", run=runs[0])
    left = sum(int(run_sql(PREPARED, run=run)[0][0]) for run in runs)
    if left:
        raise Refusal(f"{left} prepared transactions can't be ended")


def repositories_of(folder: Path) -> list[Repository]:
    """Return the backups of all nodes, the coordinator's first."""
    host, repository = read_cluster_host(folder), Repository.of_stack(folder)
    return [replace(repository, stanza=stanza) for stanza in host["stanzas"]]


def restore_cluster(folder: Path, *, point: str, to: Path, node: int | None) -> int:
    """Restore the nodes of a cluster beside the running one; see --help."""
    home = stack_folder(str(to))
    if home.exists() and any(home.iterdir()):
        raise Refusal(f"{home} is not empty; name another folder")
    repositories = repositories_of(folder)
    if node is not None and not 0 <= node < len(repositories):
        raise Refusal(f"There are nodes 0 to {len(repositories) - 1}")
    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    try:
        if node is not None:
            place = home / f"node-{node}"
            with restored_node(repositories[node], place, point):
                print(f"Node {node} is at {point}: {place}/data/primary")
            return 0
        with restored_cluster(repositories, home, [point] * len(repositories)) as runs:
            print(f"All nodes are at {point}. The coordinator answers at {runs[0]}")
            print(
                "People who were erased after this point are there again: run manage.py"
                " replay_erasures on it before anybody is let in"
                " (docs/guides/citus.md)"
            )
            print("Ctrl-C stops them; their data stay", flush=True)
            with suppress(Stopped):
                signal.pause()
    except Refusal:
        # So that the same folder can be used again.
        shutil.rmtree(home)
        raise
    return 0
