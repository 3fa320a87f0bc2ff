"""Back up all nodes of a Citus cluster, and restore them to one restore point.

Starts a coordinator and two workers of its own with people and answers, configured by
the fleet's roles, and backs each of them up. Makes two restore points while one
transaction after another writes to all shards, and restores all nodes to the first:
each row has to be of the same transaction, and all other tables as they were. A control
restores one worker to the second point, which has to be noticed.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from provisioning.commands import (
    Refusal,
    command_parser,
    conclude,
    scratch_folder,
    step,
)
from provisioning.installation.backups.cluster import (
    make_restore_point,
    restored_cluster,
)
from provisioning.installation.backups.records import archive_log
from provisioning.installation.backups.repository import Repository
from provisioning.installation.postgresql import run_sql
from provisioning.measure.benchmarks.stack import private_application
from provisioning.prove.citus.build import build_citus, find_archive
from provisioning.prove.citus.migration import (
    Cluster,
    distribute,
    follow_primary,
    promote_after_last_change,
)
from provisioning.prove.citus.nodes import Node

EPILOG = """\
The last line is one JSON object. Exit status: 0 if all nodes were restored to the same
transaction, all tables are equal, and the control is not; 1 otherwise.
"""
PEOPLE = 200
# Rows in all shards, which each transaction changes together.
MARKS = """
CREATE TABLE restore_drill (id bigint PRIMARY KEY, transaction bigint);
SELECT create_distributed_table('restore_drill', 'id');
INSERT INTO restore_drill SELECT n, 0 FROM generate_series(1, 256) n;
"""
WRITE = "UPDATE restore_drill SET transaction = transaction + 1;"
TRANSACTIONS = "SELECT DISTINCT transaction FROM restore_drill ORDER BY transaction"
COMPARED = ("survey_respondent", "survey_coderoute", "survey_administration")
CHECKSUM = "SELECT count(*), coalesce(sum(hashtextextended({0}::text, 0)), 0) FROM {0};"
# Between the points.
PAUSE = 2.0


def main() -> int:
    parser = command_parser(__doc__, EPILOG)
    archive = "archive of Citus's source (vendor beside this checkout)"
    parser.add_argument("--citus", type=Path, help=archive)
    folder = "where the restored nodes lie during the run (/tmp)"
    parser.add_argument("--folder", type=Path, default=Path("/tmp"), help=folder)  # noqa: S108
    options = parser.parse_args()
    programs = build_citus(find_archive(options.citus))
    with running_cluster(programs) as cluster:
        result = drill(cluster, programs, options)
    return conclude(result, shortcomings_of(result))


@contextmanager
def running_cluster(programs: Path) -> Iterator[Cluster]:
    with private_application() as application, ExitStack() as stack:
        people = ("--name=restored", f"--respondents={PEOPLE}")
        application.open_rehearsal(*people, "--pages=2", "--items=5")
        with step("Starting a coordinator and two workers"):
            cluster = follow_primary(application, programs, stack)
            promote_after_last_change(application, cluster)
            distribute(cluster)
        with step("Deploying again, which changes nothing"):
            distribute(cluster)
        yield cluster


def drill(
    cluster: Cluster, programs: Path, options: argparse.Namespace
) -> dict[str, Any]:
    nodes = [cluster.coordinator, *cluster.workers]
    cluster.coordinator.sql(MARKS)
    repositories = [Repository.of_stack(node.home) for node in nodes]
    with step("Backing up each node"):
        for node, repository in zip(nodes, repositories, strict=True):
            # pgBackRest compares timelines; that of the promotion is new.
            node.sql("CHECKPOINT")
            node.call("backup/prepare", as_owner=True)
            repository.back_up("full", from_standby=False)
    # A backup that ended in this second is none that ended before the point.
    time.sleep(1)
    with writing(cluster.coordinator):
        first, seconds = timed_point(cluster.coordinator)
        time.sleep(PAUSE)
        second, _ = timed_point(cluster.coordinator)
    with step("Archiving the log of each node"):
        for node in nodes:
            archive_log(run=node.run, port=node.port)
    before = checksums(cluster.coordinator.run, cluster.coordinator.port)
    result: dict[str, Any] = {"nodes": len(nodes), "seconds_of_a_point": seconds}
    with scratch_folder(options.folder) as folder:
        began = time.monotonic()
        every = [first] * len(nodes)
        with restored_cluster(repositories, folder / "equal", every, programs) as runs:
            result["seconds_to_restore"] = round(time.monotonic() - began, 1)
            result["transactions"] = len(run_sql(TRANSACTIONS, run=runs[0]))
            result["equal"] = checksums(runs[0], 5432) == before
        print("Control: one worker at the second point", flush=True)
        mixed = [first, second, *every[2:]]
        with restored_cluster(repositories, folder / "mixed", mixed, programs) as runs:
            result["transactions_in_control"] = len(run_sql(TRANSACTIONS, run=runs[0]))
    return result


def timed_point(coordinator: Node) -> tuple[str, float]:
    began = time.monotonic()
    name = make_restore_point(coordinator.run, coordinator.port, host="drill")
    return name, round(time.monotonic() - began, 2)


@contextmanager
def writing(coordinator: Node) -> Iterator[None]:
    """Let one transaction after another write to all nodes."""
    is_over, problems = threading.Event(), []

    def write() -> None:
        try:
            while not is_over.is_set():
                coordinator.sql(WRITE)
        except Refusal as refusal:
            problems.append(refusal)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        # Some are committed before the first point.
        time.sleep(PAUSE)
        yield
        time.sleep(PAUSE)
    finally:
        is_over.set()
        thread.join()
    if problems:
        raise problems[0]


def checksums(run: Path, port: int) -> Sequence[Sequence[str]]:
    """Return the rows and a checksum of the tables that nobody changes meanwhile."""
    return run_sql("".join(map(CHECKSUM.format, COMPARED)), run=run, port=port)


def shortcomings_of(result: dict[str, Any]) -> list[str]:
    shortcomings = []
    if result["transactions"] != 1:
        shortcomings.append(f"rows are of {result['transactions']} transactions")
    if not result["equal"]:
        shortcomings.append("a table has not the rows that it had")
    if result["transactions_in_control"] < 2:
        shortcomings.append("the control was not noticed, so the drill proves nothing")
    return shortcomings
