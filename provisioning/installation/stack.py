"""Run every server of a real installation on this machine, under one supervisor.

nginx, gunicorn, pgbouncer, PostgreSQL with a replica, Memcached, Redis, RabbitMQ and
Celery. Data, logs and configuration are in .stack, or in the folder that
GROUNDSWELL_STACK names.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from provisioning.commands import (
    ROOT,
    Refusal,
    Stopped,
    command_parser,
    positive_integer,
    print_table,
    step,
    wait_until,
)
from provisioning.installation.backups.cluster import (
    add_cluster_options,
    restore_cluster,
    restore_point,
)
from provisioning.installation.backups.operations import (
    add_backup_options,
    add_restore_options,
    backup,
    restore,
)
from provisioning.installation.environment import PYTHON
from provisioning.installation.promotion import promote
from provisioning.installation.stack_folder import (
    addresses_of,
    environment_of,
    stack_folder,
)
from provisioning.installation.supervisor import PATIENCE, Supervisor, workers_of
from provisioning.installation.up import (
    PORTS,
    keep_options,
    merge_options,
    readiness,
    refuse_installed,
    refuse_other_owner,
    up,
    variables_of,
)
from provisioning.installation.upgrades.operation import (
    add_upgrade_options,
    upgrade_postgresql,
)
from provisioning.processes import descendants_of, memory_mb, wait_until_gone


def print_status(folder: Path) -> int:
    supervisor = Supervisor(folder)
    if not supervisor.is_running():
        print("Nothing is running; start it with provisioning/stack up")
        return 1
    programs, rows, total = supervisor.programs(), [], 0.0
    for program in programs:
        pid, state = program["pid"], program["statename"].lower()
        megabytes = sum(map(memory_mb, [pid, *descendants_of(pid)])) if pid else 0.0
        uptime = timedelta(seconds=program["now"] - program["start"] if pid else 0)
        rows.append((program["name"], state, pid, uptime, f"{megabytes:.0f}"))
        total += megabytes
    print_table(("program", "state", "pid", "up", "MB"), rows)
    print()
    for pool in ("taking", "console"):
        print(pool_line(pool, list(workers_of(programs, pool).values())))
    addresses = addresses_of(folder)
    print(users_line(separates=bool(addresses.get("separates"))))
    print(promise_line(has_replica=bool(addresses.get("has_replica", True))))
    print("", *readiness_lines(readiness(addresses["monitoring"])), "", sep="\n")
    print(addresses["address"])
    down = supervisor.not_running()
    verdict = f"not running: {', '.join(down)}" if down else "all running"
    print(f"{len(programs)} programs, {total:.0f} MB, {verdict}")
    return 1 if down else 0


def pool_line(pool: str, workers: Sequence[float]) -> str:
    if not workers:
        return f"{pool}: no workers"
    return (
        f"{pool}: {len(workers)} workers of {min(workers):.0f} to"
        f" {max(workers):.0f} MB, {sum(workers):.0f} MB together"
    )


def users_line(*, separates: bool) -> str:
    if separates:
        return "users: a system user for each program"
    return "users: one system user for all programs; run as root to separate them"


def promise_line(*, has_replica: bool) -> str:
    promise = (
        "promise: A1, saved means flushed on the primary; if it is lost for good, so"
    )
    if has_replica:
        return f"{promise} is what the replica had not received"
    return f"{promise} is what the last backup lacks: there is no replica"


def readiness_lines(state: dict[str, Any]) -> list[str]:
    if not state:
        return ["/readyz does not answer"]
    lines = [
        f"{name:<12}{'ok' if check['ok'] else 'AWAY':<6}{check['detail']}"
        for name, check in state.get("checks", {}).items()
    ]
    return [*lines, *state.get("degraded", [])]


def main() -> int:
    if sys.argv[1:2] == ["manage"]:
        return subprocess.run(
            [PYTHON, ROOT / "manage.py", *sys.argv[2:]],
            cwd=ROOT,
            env={**os.environ, **environment_of(stack_folder(), "manage")},
            # What it writes into shared folders, their group may read.
            umask=0o007,
        ).returncode
    arguments = vars(parser().parse_args())
    run: Callable[..., int] = arguments.pop("run")
    return run(stack_folder(), **arguments)


def parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    commands = {}
    for name, run, help_text in (
        ("up", up, "Start every server, or bring in what has changed."),
        ("rebuild", rebuild, "Put the data aside, start anew, and measure again."),
        ("down", down, "Stop every server; the data stay."),
        ("status", print_status, "List the programs, their uptime and memory."),
        ("logs", print_logs, "Print the last lines of each program's log."),
        ("promote", promote, "Make the replica the new primary."),
        ("reload", reload, "Restart the workers without losing a request."),
        ("backup", backup, "Back up the database and uploaded files, or the keys."),
        ("restore", restore, "Build a new stack beside this one, as of any second."),
        (
            "restore_point",
            restore_point,
            "Make a point that all nodes of a cluster share.",
        ),
        (
            "restore_cluster",
            restore_cluster,
            "Restore all nodes of a cluster to such a point, beside this one.",
        ),
        (
            "upgrade_postgresql",
            upgrade_postgresql,
            "Upgrade the database to another version, or rehearse it on a copy.",
        ),
        ("manage", None, "Run manage.py with the stack's environment."),
    ):
        commands[name] = subparsers.add_parser(
            name, help=help_text, description=help_text, allow_abbrev=False
        )
        commands[name].set_defaults(run=run)
    for name in ("up", "rebuild"):
        add_port_option(commands[name])
    for name in ("up", "rebuild", "restore"):
        add_setting_options(commands[name])
    add_backup_options(commands["backup"])
    add_restore_options(commands["restore"])
    add_cluster_options(commands["restore_cluster"])
    add_upgrade_options(commands["upgrade_postgresql"])
    add = commands["logs"].add_argument
    add("program", nargs="?", help="Print this program's only.")
    add("-f", dest="follow", action="store_true", help="Print new lines as they come.")
    add = commands["promote"].add_argument
    for flag, help_text in (
        ("--although-it-serves", "Stop a primary that still runs."),
        ("--although-it-lags", "Lose what an old replica has not received."),
    ):
        add(flag, action="store_true", help=help_text)
    return parser


def add_port_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=lambda text: positive_integer(text, 65536 - len(PORTS)) if text else 0,
        help="The first of six ports, kept for the next time; empty: the usual ones,"
        " with nginx on 8080.",
    )


def add_setting_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--time-zone",
        type=lambda text: ("time_zone", text),
        action="append",
        default=[],
        dest="settings",
        metavar="ZONE",
        help="The state's time zone, such as America/Chicago, kept for the next time;"
        " empty: this machine's.",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=setting,
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help="A variable of provisioning/ansible, such as commit_delay=1000, kept for"
        " the next time; empty: its usual value.",
    )


def setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return name, value


def down(folder: Path) -> int:
    supervisor = Supervisor(folder)
    if not supervisor.is_running():
        print("Nothing is running.")
        return 0
    with step("Stopping every program"):
        pid = supervisor.calls.getPID()
        # The supervisor waits for one after another, and each takes seconds.
        for program in supervisor.programs():
            if program["name"].endswith("worker") and program["pid"]:
                name = f"{program['group']}:{program['name']}"
                supervisor.calls.stopProcess(name, False)
        # By their priorities: what accepts requests first, PostgreSQL last.
        supervisor.calls.shutdown()
        if not wait_until_gone([pid], seconds=5 * PATIENCE):
            raise Refusal(f"The supervisor (process {pid}) does not end")
    print(f"Stopped; the data stay in {folder}")
    return 0


def print_logs(folder: Path, *, program: str | None, follow: bool) -> int:
    logs = sorted((folder / "log").glob(f"{program or ''}*.log"))
    logs += sorted((folder / "log").glob(f"{program or '*'}/*.log"))
    if not logs:
        raise Refusal(f"There is no log of {program or 'anything'} in {folder / 'log'}")
    lines = ["-n", "40" if program else "10", *(["-F"] if follow else [])]
    with suppress(Stopped):
        subprocess.run(["tail", *lines, *logs])
    return 0


def reload(folder: Path) -> int:
    """Restart each gunicorn while its twin accepts; then reload nginx's files.

    Both share one socket, which the supervisor holds: new connections wait in
    its queue until one of them accepts. A request under way is finished.
    """
    supervisor = Supervisor(folder)
    supervisor.refuse_unless_running()
    masters = [*supervisor.programs("taking"), *supervisor.programs("console")]
    for master in masters:
        name = f"{master['group']}:{master['name']}"
        # Each worker writes this file when it is ready.
        ready = folder / "run" / "ready" / master["name"]
        with step(f"Restarting {master['name']}"):
            supervisor.calls.stopProcess(name)
            ready.unlink(missing_ok=True)
            supervisor.calls.startProcess(name, False)
            if not wait_until(ready.exists, seconds=PATIENCE):
                raise Refusal(
                    f"{master['name']} does not come back; the other master serves"
                    " alone"
                )
    with step("Reloading nginx"):
        supervisor.calls.signalProcess("nginx", "HUP")
    print(f"{len(masters)} masters restarted, each while its twin served")
    return 0


def rebuild(
    folder: Path, *, port: int | None, settings: Sequence[tuple[str, str]]
) -> int:
    """Build the stack anew, and compare its benchmark with the one before."""
    refuse_installed(folder)
    before = _last_benchmark()
    merged = merge_options(folder, port, settings)
    refuse_other_owner(folder, str(variables_of(folder, merged)["server_user"]))
    refuse_unmovable(folder)
    down(folder)
    if folder.exists():
        put_aside(folder)
        # Also for the next try, should this one fail.
        keep_options(folder, merged)
    up(folder, port=merged.port, settings=list(merged.settings.items()))
    bench = ROOT / "provisioning" / "bench"
    status = subprocess.run([bench, "--home", folder]).returncode
    print()
    rows = []
    for name, figure in _last_benchmark().items():
        old = before.get(name)
        rows.append((name, old or "-", figure, f"{figure / old:.2f}" if old else ""))
    print_table(("", "before", "rebuilt", "ratio"), rows)
    return status


def refuse_unmovable(folder: Path) -> None:
    """A renamed link would leave the data where the next stack writes."""
    if folder.is_symlink() or folder.is_mount():
        kind = "a symbolic link" if folder.is_symlink() else "a mount point"
        raise Refusal(
            f"{folder} is {kind}, so it can't be put aside; let GROUNDSWELL_STACK name"
            " a folder inside it"
        )


def put_aside(folder: Path) -> None:
    # Never deleted from here: if the new stack does not start, this is the
    # only copy of all answers.
    stamp = time.strftime("%Y%m%d-%H%M%S")
    former = folder.with_name(f"{folder.name}.before-{stamp}")
    with step("Putting the former one aside"):
        folder.rename(former)
    print(f"Its data stay in {former}; rm -r {former} deletes them.", flush=True)


def _last_benchmark() -> dict[str, float]:
    """Return the figures of the last provisioning/bench, which keeps them in .bench."""
    with suppress(OSError, ValueError):
        result = json.loads((ROOT / ".bench" / "latest.json").read_text())
        return {name: it for name, it in result.items() if type(it) in (int, float)}
    return {}
