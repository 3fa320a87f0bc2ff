"""Say what is wrong with this machine's server, and what to do about it.

Looks at disks, memory, clock, certificate, name, mail, database, replica, backups,
jobs, versions, updates, ports, firewall, programs, caches, nginx, secrets and kernel.
Changes nothing, reads no answers and prints no secrets. Each check runs in a process
of its own and is ended when it hangs, so that all take 30 seconds at most, also with a
full disk, without network, and while PostgreSQL is down. For an installed server call
it with sudo; for a stack as the user who started it. Ends with 0 if nothing is wrong,
1 with warnings only, 2 with errors.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, command_parser
from provisioning.installation.doctor import databases, machine, outside, services
from provisioning.installation.doctor.findings import (
    ERROR,
    NOTE,
    WARNING,
    Check,
    Finding,
    Server,
    Unavailable,
)
from provisioning.installation.server.options import HOME
from provisioning.installation.stack_folder import (
    checkout_of_fleet,
    is_installed,
    stack_folder,
)

CHECKS = (
    Check("programs", services.read_programs, services.judge_programs),
    Check("disk", machine.read_disks, machine.judge_disks),
    Check("memory", machine.read_memory, machine.judge_memory),
    Check("postgresql", databases.read_postgresql, databases.judge_postgresql),
    Check("replica", databases.read_replica, databases.judge_replica),
    Check("backups", databases.read_backups, databases.judge_backups),
    Check("work", databases.read_work, databases.judge_work),
    Check("versions", databases.read_versions, databases.judge_versions),
    Check("redis", services.read_redis, services.judge_redis),
    Check("memcached", services.read_memcached, services.judge_memcached),
    Check("queue", services.read_queue, services.judge_queue),
    Check("nginx", services.read_nginx, services.judge_nginx),
    Check("secrets", machine.read_secrets, machine.judge_secrets),
    Check("certificate", outside.read_certificate, outside.judge_certificate, True),
    Check("name", outside.read_name, outside.judge_name, True),
    Check("mail", outside.read_mail, outside.judge_mail, True),
    Check("clock", machine.read_clock, machine.judge_clock, True),
    Check("ports", services.read_ports, services.judge_ports, True),
    Check("boot", machine.read_boot, machine.judge_boot, True),
    Check("updates", machine.read_updates, machine.judge_updates, True),
    Check("kernel", machine.read_kernel, machine.judge_kernel, True),
    Check("fonts", machine.read_fonts, machine.judge_fonts, True),
    Check(
        "place of backups", machine.read_backup_place, machine.judge_backup_place, True
    ),
)
# Seconds for all checks together, and below them for each.
LIMIT = 25.0
ORDER = (ERROR, WARNING, NOTE)
STATUS = {ERROR: 2, WARNING: 1, NOTE: 0}


@dataclass(frozen=True, slots=True)
class Report:
    findings: list[Finding]
    # Checks that could not be made, with the reason.
    left_out: dict[str, str]

    @property
    def status(self) -> int:
        return max((STATUS[each.severity] for each in self.findings), default=0)


def main() -> int:
    parser = command_parser(__doc__)
    parser.add_argument(
        "--json", action="store_true", help="Print one JSON object: for programs."
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="NAME",
        help="A finding that is meant to be so, as ports.open; may be repeated.",
    )
    options = parser.parse_args()
    server = find_server()
    report = examine(server)
    report.findings[:] = [
        each for each in report.findings if each.name not in options.ignore
    ]
    if options.json:
        print(
            json.dumps(
                {
                    "status": report.status,
                    "findings": [asdict(each) for each in report.findings],
                    "left_out": report.left_out,
                }
            )
        )
    else:
        print_report(server, report)
    return report.status


def find_server() -> Server:
    """Return the installed server, or the stack of this checkout.

    Raises Refusal if there is none, on a fleet's host, and if it may not be read.
    """
    home = HOME if is_there(HOME) and not named_stack() else stack_folder()
    if not (home / "etc").is_dir():
        raise Refusal(f"There is neither a server in {HOME} nor a stack in {home}")
    if checkout_of_fleet(home):
        raise Refusal(
            "This is a host of a fleet, with a part of the servers: alerts say what is"
            " wrong with all of them (docs/guides/alerts.md)"
        )
    if is_installed(home) and os.geteuid() != 0:
        raise Refusal("Only root may look at an installed server: begin with sudo")
    return Server.at(home)


def is_there(home: Path) -> bool:
    with suppress(PermissionError):
        return is_installed(home)
    return True


def named_stack() -> bool:
    return bool(os.environ.get("GROUNDSWELL_STACK"))


def examine(
    server: Server, checks: Sequence[Check] = CHECKS, limit: float = LIMIT
) -> Report:
    """Make all checks at once, and end those that hang."""
    wanted = [
        check for check in checks if server.is_installed or not check.for_installed
    ]
    answers = in_processes(
        {check.name: make_check(check, server) for check in wanted}, limit
    )
    findings, left_out = [], {}
    for check in wanted:
        answer = answers.get(check.name)
        if answer is None:
            findings.append(late(check.name))
        elif "left_out" in answer:
            left_out[check.name] = answer["left_out"]
        else:
            findings += [Finding(**each) for each in answer["findings"]]
    findings.sort(key=lambda each: ORDER.index(each.severity))
    return Report(findings, left_out)


def late(name: str) -> Finding:
    return Finding(
        f"{name}.hangs",
        WARNING,
        f"Looking at {name} did not end: something hangs there",
        "look for it by hand: a disk or a mount of another machine that does not answer"
        " (df), or a program that takes connections and says nothing",
    )


def make_check(check: Check, server: Server) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        try:
            facts = check.read(server)
            return {"findings": [asdict(each) for each in check.judge(server, facts)]}
        except Unavailable as reason:
            return {"left_out": str(reason)}
        except Exception as error:
            # A fault of its own must not hide what other checks have to say. Without
            # its text, which may have a part of what was read, such as a password.
            text = error.strerror if isinstance(error, OSError) else None
            return {"left_out": text or f"a fault of its own, {type(error).__name__}"}

    return make


def in_processes(
    tasks: Mapping[str, Callable[[], dict[str, Any]]], limit: float
) -> dict[str, dict[str, Any]]:
    """Return the answers that came in time; kill what else still runs.

    Nobody waits for what was killed: a process that reads a disk that is away can't
    end before it answers.
    """
    sys.stdout.flush()
    names, pids, texts = {}, {}, {}
    for name, task in tasks.items():
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            run_and_exit(task, writer)
        os.close(writer)
        names[reader], pids[name], texts[name] = name, pid, b""
    deadline = time.monotonic() + limit
    answers = {}
    while names and (left := deadline - time.monotonic()) > 0:
        for reader in select.select(list(names), [], [], left)[0]:
            if part := os.read(reader, 65536):
                texts[names[reader]] += part
                continue
            name = names.pop(reader)
            os.close(reader)
            with suppress(ValueError):
                answers[name] = json.loads(texts[name])
            os.waitpid(pids.pop(name), 0)
    for pid in pids.values():
        with suppress(ProcessLookupError):
            # With the programs that it has called.
            os.killpg(pid, signal.SIGKILL)
    return answers


def run_and_exit(task: Callable[[], dict[str, Any]], writer: int) -> None:
    """Run a task in a new process, and never return."""
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        text = json.dumps(task()).encode()
        while text:
            text = text[os.write(writer, text) :]
    finally:
        os._exit(0)


def print_report(server: Server, report: Report) -> None:
    for finding in report.findings:
        print(f"{finding.severity.upper()} {finding.sentence}. [{finding.name}]")
        print(f"  What to do: {finding.action}")
    for name, reason in report.left_out.items():
        print(f"Not checked: {name} ({reason})")
    counts = {
        severity: sum(each.severity == severity for each in report.findings)
        for severity in (ERROR, WARNING)
    }
    if any(counts.values()):
        print(f"{server.home}: {counts[ERROR]} errors, {counts[WARNING]} warnings")
    else:
        print(f"{server.home}: nothing is wrong")
