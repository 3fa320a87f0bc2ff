"""`provisioning/stack`: every server of a real installation, on this machine."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Sequence
from pathlib import Path

from provisioning.commands import (
    ROOT,
    Refusal,
    Stopped,
    print_table,
    run_command,
    step,
    wait_until,
)
from provisioning.environment import PYTHON
from provisioning.installation.promotion import promote
from provisioning.installation.stack_folder import environment_of, stack_folder
from provisioning.installation.status import print_status
from provisioning.installation.supervisor import PATIENCE, Supervisor
from provisioning.installation.up import (
    PORTS,
    keep_options,
    merge_options,
    refuse_other_owner,
    up,
    variables_of,
)
from provisioning.processes import wait_until_gone

# Programs that accept requests stop first, then the servers that they use.
STOP_ORDER = (
    {"nginx"},
    {"taking", "console", "worker", "long_worker", "beat"},
    {"primary", "replica", "pgbouncer", "memcached", "redis", "rabbitmq", "logs"},
    {"epmd"},
)


def main() -> int:
    if sys.argv[1:2] == ["manage"]:
        return run_manage(stack_folder(), sys.argv[2:])
    options = parser().parse_args()
    folder = stack_folder()
    match options.command:
        case "up":
            return up(folder, merge_options(folder, options))
        case "down":
            return down(folder)
        case "status":
            return print_status(folder)
        case "logs":
            return print_logs(folder, options.program, options.follow)
        case "reload":
            return reload(folder)
        case "promote":
            lost = promote(
                folder,
                although_it_serves=options.although_it_serves,
                although_it_lags=options.although_it_lags,
            )
            place = f"lie in {lost}" if lost.exists() else "are gone"
            print(f"The replica is the primary now; the old one's data {place}")
            return 0
    return rebuild(folder, options)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="provisioning/stack",
        description="Every server of a real installation on this machine: nginx,"
        " gunicorn, pgbouncer, PostgreSQL with a replica, Memcached, Redis, RabbitMQ"
        " and Celery under one supervisor. Data, logs and configuration lie in"
        " .stack, or in the folder that GROUNDSWELL_STACK names.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text in {
        "up": "start it; where it runs, bring in what changed",
        "rebuild": "put it aside with its data, build it anew, and measure it again",
    }.items():
        command = commands.add_parser(name, help=help_text, allow_abbrev=False)
        command.add_argument(
            "--port",
            type=_first_port,
            help="of nginx, instead of 8080; the next ones are for the monitoring"
            " and for RabbitMQ; kept for the next time, until --port= forgets it",
        )
        command.add_argument(
            "--set",
            action="append",
            type=_setting,
            default=[],
            metavar="NAME=VALUE",
            help="a variable of provisioning/ansible, such as commit_delay=1000;"
            " kept for the next time, until --set=NAME= forgets it",
        )
    commands.add_parser("down", help="stop it; the data stay")
    commands.add_parser("status", help="what runs, since when, with how much memory")
    logs = commands.add_parser("logs", help="the last lines of each program's log")
    logs.add_argument("program", nargs="?", help="of this one only")
    logs.add_argument("-f", dest="follow", action="store_true", help="and what follows")
    promotion = commands.add_parser(
        "promote", help="make the replica the new primary", allow_abbrev=False
    )
    promotion.add_argument(
        "--although-it-serves", action="store_true", help="the primary still runs"
    )
    promotion.add_argument(
        "--although-it-lags",
        action="store_true",
        help="the replica's last transaction is old; later ones are lost",
    )
    commands.add_parser("reload", help="restart the workers without losing a request")
    commands.add_parser("manage", help="manage.py with the stack's environment")
    return parser


def _first_port(text: str) -> int:
    """Return the first of the stack's ports; 0 (the usual ones) for an empty text."""
    last = 65536 - len(PORTS)
    if text and (not text.isdecimal() or not 1 <= int(text) <= last):
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {last}")
    return int(text or 0)


def _setting(text: str) -> tuple[str, str]:
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
        for groups in STOP_ORDER:
            _stop_groups(supervisor, groups)
        pid = supervisor.calls.getPID()
        supervisor.calls.shutdown()
        if not wait_until_gone([pid], seconds=PATIENCE):
            raise Refusal(f"The supervisor (process {pid}) does not end")
    print(f"Stopped; the data stay in {folder}")
    return 0


def _stop_groups(supervisor: Supervisor, groups: set[str]) -> None:
    """Stop all programs of these groups at once, then wait for the last one."""

    for program in supervisor.programs():
        if program["group"] in groups:
            # A program may end by itself in between.
            with contextlib.suppress(xmlrpc.client.Fault):
                name = f"{program['group']}:{program['name']}"
                supervisor.calls.stopProcess(name, False)

    def have_stopped() -> bool:
        programs = supervisor.programs()
        return not any(each["pid"] for each in programs if each["group"] in groups)

    wait_until(have_stopped, seconds=PATIENCE)


def print_logs(folder: Path, program: str | None, follow: bool) -> int:
    logs = sorted((folder / "log").glob(f"{program or ''}*.log"))
    logs += sorted((folder / "log").glob(f"{program or '*'}/*.log"))
    if not logs:
        raise Refusal(f"There is no log of {program or 'anything'} in {folder / 'log'}")
    command = ["tail", "-n", "40" if program else "10", *(["-F"] if follow else [])]
    with contextlib.suppress(Stopped):
        subprocess.run([*command, *logs], check=False)
    return 0


def reload(folder: Path) -> int:
    """Restart each gunicorn while its twin accepts; then reload nginx's files.

    Both share one socket, which the supervisor holds: new connections wait in
    its queue until one of them accepts. A request under way is finished.
    """
    supervisor = Supervisor(folder)
    supervisor.refuse_unless_running()
    masters = [
        program
        for program in supervisor.programs()
        if program["group"] in ("taking", "console")
    ]
    for program in masters:
        name = f"{program['group']}:{program['name']}"
        # Each worker writes its master's process id there when it is ready.
        ready = folder / "run" / f"{program['name']}.ready"

        def is_ready(name: str = name, ready: Path = ready) -> bool:
            pid = supervisor.calls.getProcessInfo(name)["pid"]
            return bool(pid and ready.exists() and ready.read_text() == str(pid))

        with step(f"Restarting {program['name']}"):
            supervisor.calls.stopProcess(name)
            supervisor.calls.startProcess(name, False)
            if not wait_until(is_ready, seconds=PATIENCE):
                raise Refusal(
                    f"{program['name']} does not come back; the other master serves"
                    " alone"
                )
    with step("Reloading nginx"):
        supervisor.calls.signalProcess("nginx", "HUP")
    print(f"{len(masters)} masters restarted, each while its twin served")
    return 0


def rebuild(folder: Path, options: argparse.Namespace) -> int:
    """Build the stack anew, and compare its benchmark with the one before."""
    before = _last_benchmark()
    merged = merge_options(folder, options)
    refuse_other_owner(folder, str(variables_of(folder, merged)["server_user"]))
    refuse_unmovable(folder)
    down(folder)
    if folder.exists():
        put_aside(folder)
        # Also for the next try, should this one fail.
        keep_options(folder, merged)
    up(folder, merged)
    bench = ROOT / "provisioning" / "bench"
    if not bench.exists():
        return 0
    status = subprocess.run([bench, "--home", folder], check=False).returncode
    print()
    rows = []
    for name, figure in _last_benchmark().items():
        if isinstance(figure, int | float) and not isinstance(figure, bool):
            old = before.get(name)
            ratio = (
                f"{figure / old:.2f}" if isinstance(old, int | float) and old else ""
            )
            rows.append((name, old or "-", figure, ratio))
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


def _last_benchmark() -> dict[str, object]:
    """Return the last result of provisioning/bench, which it keeps in .bench."""
    result: dict[str, object] = {}
    with contextlib.suppress(OSError, ValueError):
        result = json.loads((ROOT / ".bench" / "latest.json").read_text())
    return result


def run_manage(folder: Path, arguments: Sequence[str]) -> int:
    environment = {**os.environ, **environment_of(folder, "manage")}
    try:
        return subprocess.run(
            [PYTHON, ROOT / "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            check=False,
        ).returncode
    except Stopped as stopped:
        return 128 + stopped.number


if __name__ == "__main__":
    sys.exit(run_command("provisioning/stack", main))
