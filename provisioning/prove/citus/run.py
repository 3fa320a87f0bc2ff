"""Run the product on PostgreSQL with Citus: a coordinator and two workers.

One primary with people at work is migrated to the cluster; what was reported as saved
is read back. A control switches too early and has to lose answers. Then page saves are
counted on the nodes, their processor time is compared with that of the one primary, a
shard is moved while its people answer, and each operation of the product is tried.
Everything is private and removed afterwards.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from provisioning.commands import (
    command_parser,
    conclude,
    print_table,
    step,
)
from provisioning.measure.benchmarks.stack import Application, private_application
from provisioning.measure.benchmarks.timed_requests import log_in, send_requests, served
from provisioning.processes import cpu_seconds_by_group
from provisioning.prove.citus.build import build_citus, find_archive
from provisioning.prove.citus.drill import (
    Migrated,
    Moved,
    lose_under_load,
    migrated_under_load,
    move_shard_under_load,
)
from provisioning.prove.citus.nodes import Node
from provisioning.prove.citus.operations import (
    Operation,
    as_process,
    respondent_operations,
    staff_operations,
)
from provisioning.prove.fault_injection.verdict import Verdict

EPILOG = """\
The last line is one JSON object. Exit status: 0 if each page save is one task on one
shard, neither the migration nor moving a shard lost anything, the control lost answers
and every operation works; 1 otherwise. docs/decisions/0118-citus-layout.md explains
the layout of the tables.
"""
SIZE = ("--pages=4", "--items=5")
# An export of fewer than ten people is refused.
TOGETHER = 10
WARM_UP = 12
# Statements that the application's role sent to the workers; those inside of a
# function are not top-level.
TASKS = """
SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s
JOIN pg_roles r ON r.oid = s.userid
WHERE r.rolname = 'groundswell' AND s.toplevel
"""


class Saves(NamedTuple):
    per_second: float
    # Processor µs of each server's processes for each save.
    cpu: Mapping[str, float]
    # Statements that the workers got for each save.
    tasks: float

    @property
    def total(self) -> float:
        return sum(self.cpu.values())


def main() -> int:
    parser = command_parser(
        __doc__,
        EPILOG,
        saves=(2000, "to measure"),
        rate=(25, "saves a second meanwhile"),
        moves=(6, "of a shard"),
        respondents=(400, "who answer"),
    )
    archive = "archive of Citus's source (vendor beside this checkout)"
    parser.add_argument("--citus", type=Path, help=archive)
    parser.add_argument("--seed", type=int, default=os.getpid(), help="of the answers")
    options = parser.parse_args()
    programs = build_citus(find_archive(options.citus))
    with private_application() as application, ExitStack() as stack:
        people = ("--name=measured", f"--respondents={TOGETHER + 1}")
        rehearsal, codes = application.open_rehearsal(*people, *SIZE)
        application.collect_static()
        with step("Saving pages on one primary"):
            primary = application.run / "data" / "primary" / "postmaster.pid"
            pids = {"primary": [int(primary.read_text().split()[0])]}
            single = time_saves(application, rehearsal, codes, pids, options.saves)
        with step("Loading the demonstration, for the console's pages"):
            application.manage("load_demo")
        cluster, migrated = stack.enter_context(
            migrated_under_load(application, programs, options)
        )
        with step("Saving pages on three nodes"):
            nodes = {"coordinator": cluster.coordinator}
            nodes |= {f"worker {n}": each for n, each in enumerate(cluster.workers, 1)}
            saves = time_saves(
                cluster.application,
                rehearsal,
                codes,
                {name: [node.process.pid] for name, node in nodes.items()},
                options.saves,
                workers=cluster.workers,
            )
        moved = move_shard_under_load(cluster, options)
        with served(as_process(cluster.application, "taking")) as target:
            operations = [*respondent_operations(rehearsal, codes[-1], target)]
        operations += staff_operations(cluster.application)
        print_table(
            ("operation", "works"),
            [(each.name, each.problem or "yes") for each in operations],
        )
    print("Control: switching without the last changes")
    with private_application() as application:
        control = lose_under_load(application, programs, options)
    figures = _figures(options, single, saves, migrated, moved, control)
    return conclude(figures, missed_requirements(figures, operations))


def _figures(
    options: argparse.Namespace,
    single: Saves,
    saves: Saves,
    migrated: Migrated,
    moved: Moved,
    control: Verdict,
) -> dict[str, Any]:
    lost, lost_in_moves = migrated.verdict.count("lost"), moved.verdict.count("lost")
    return {
        "nodes": 3,
        "tasks_per_save": saves.tasks,
        "saves_per_s": round(saves.per_second, 1),
        "lost_in_migration": lost,
        "acknowledged_in_migration": migrated.verdict.acknowledged,
        "other_forbidden": len(migrated.verdict.forbidden()) - lost,
        "seconds_paused": round(migrated.paused, 1),
        "moves": options.moves,
        "lost_in_moves": lost_in_moves,
        "acknowledged_in_moves": moved.verdict.acknowledged,
        "other_forbidden_in_moves": len(moved.verdict.forbidden()) - lost_in_moves,
        "seconds_of_a_move": round(statistics.median(moved.seconds), 1),
        "longest_wait_in_moves_s": round(moved.longest_wait, 2),
        "lost_in_control": control.count("lost"),
        "saves_per_s_of_one_primary": round(single.per_second, 1),
        "cpu_us_per_save": {k: round(v) for k, v in saves.cpu.items()},
        "cpu_us_per_save_of_one_primary": round(single.total),
        "cpu_ratio": round(saves.total / single.total, 2),
        "seed": options.seed,
    }


def time_saves(
    application: Application,
    rehearsal: Mapping[str, Any],
    codes: Sequence[str],
    pids: Mapping[str, Sequence[int]],
    count: int,
    workers: Sequence[Node] = (),
) -> Saves:
    """Save pages of some people at once, after a warm-up that is not measured."""
    with served(application) as target:
        people = log_in(rehearsal, codes[:TOGETHER], target)
        send_requests(target, [islice(each, WARM_UP) for each in people])
        for worker in workers:
            worker.sql("SELECT pg_stat_statements_reset()")
        before = cpu_seconds_by_group(pids)
        number = count // TOGETHER
        replies = send_requests(target, [islice(each, number) for each in people])
        after = cpu_seconds_by_group(pids)
        tasks = sum(int(worker.sql(TASKS)[0][0]) for worker in workers)
    seconds = max(each.answered for each in replies) - min(
        each.sent for each in replies
    )
    used = {name: (after[name] - before[name]) / len(replies) * 1e6 for name in pids}
    return Saves(len(replies) / seconds, used, tasks / len(replies))


def missed_requirements(
    figures: Mapping[str, Any], operations: Sequence[Operation]
) -> list[str]:
    problems = [f"{each.name}: {each.problem}" for each in operations if each.problem]
    if figures["tasks_per_save"] != 1:
        problems.append(f"a page save is {figures['tasks_per_save']} tasks")
    if figures["lost_in_migration"] or figures["other_forbidden"]:
        problems.append("the migration lost or changed answers")
    if figures["lost_in_moves"] or figures["other_forbidden_in_moves"]:
        problems.append("moving a shard lost or changed answers")
    if not figures["lost_in_control"]:
        problems.append("the control lost nothing, so the comparison proves nothing")
    return problems
