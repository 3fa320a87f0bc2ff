"""`provisioning/faults`, once there is an environment to run it in."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import psycopg2

from provisioning.commands import (
    ROOT,
    Refusal,
    output_of,
    reason,
    run_command,
    step,
)
from provisioning.fault_injection.arguments import KNOWN, arguments
from provisioning.fault_injection.controls import Controlled, controls, run_controls
from provisioning.fault_injection.crowds import rehearse
from provisioning.fault_injection.disk_full import MARK, Wall
from provisioning.fault_injection.failover import Losing
from provisioning.fault_injection.faults import FAULTS, QUICK, Site, drawn
from provisioning.fault_injection.overload import RESPONDENTS, Overload
from provisioning.fault_injection.report import Report
from provisioning.fault_injection.run import Orders, Run
from provisioning.fault_injection.stack import Home
from provisioning.load.real_people import refuse_real_people


def main() -> int:
    options = arguments()
    seed = options.seed if options.seed is not None else secrets.randbelow(10**9)
    print(f"Seed {seed}", flush=True)
    report = Report(seed)
    if options.overload:
        return _on_a_stack(options, lambda home, folder: _overload(home, folder, seed))
    if not options.controls_only:
        _on_a_stack(options, lambda home, folder: _break(home, folder, options, report))
    _control(seed, report)
    report.print()
    return report.status


def _on_a_stack(options: argparse.Namespace, act: Callable[[Home, Path], int]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="groundswell-", dir="/tmp"))  # noqa: S108
    try:
        # Servers under a user of their own have to reach their home in it.
        folder.chmod(0o755)
        with _stack(options, folder) as home:
            return act(home, folder)
    finally:
        if options.keep:
            print(f"Logs are kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _break(
    home: Home, folder: Path, options: argparse.Namespace, report: Report
) -> int:
    site = _site(home, report.seed)
    orders = _orders(options, site, report.seed)
    promise = _promise(options)
    losing = Losing(promise) if promise != "none" else None
    run = Run(site, folder, orders, losing)
    report.add_run(orders, run.run())
    return report.status


def _overload(home: Home, folder: Path, seed: int) -> int:
    rehearsal = rehearse(home, folder, respondents=RESPONDENTS)
    found = Overload(home, rehearsal, seed).run()
    shortcomings, void = found.shortcomings(), found.why_void()
    for shortcoming in shortcomings:
        print(f"Not as required: {shortcoming}")
    verdict = "NOT as required" if shortcomings else "Every requirement holds"
    print(f"Void: {void}" if void else verdict)
    print(json.dumps({"seed": seed, **found.described(), "missed": shortcomings}))
    if void:
        return 2
    return 1 if shortcomings else 0


def _promise(options: argparse.Namespace) -> str:
    return options.promise or ("none" if options.quick or options.only else "A2")


def _orders(options: argparse.Namespace, site: Site, seed: int) -> Orders:
    quick = options.quick
    wanted = options.only or list(QUICK if quick else KNOWN)
    prevented = {
        fault.name: fault.prevented(site)
        for fault in FAULTS
        if fault.name in wanted and fault.prevented(site)
    }
    names = [name for name in wanted if name not in prevented]
    if not names:
        raise Refusal(f"{wanted[0]} can't be done here: {prevented[wanted[0]]}")
    count = options.faults or (len(names) if quick or options.only else 60)
    return Orders(
        seed=seed,
        faults=drawn(Random(seed), names, count),  # noqa: S311
        saves=options.saves or (5_000 if quick else 1_000 if options.only else 200_000),
        minutes=options.minutes or 30,
        rate=options.rate or (250 if quick else 350),
        window=2.0 if quick else 5.0,
        calm=1.0 if quick else 3.0,
        warm=6.0 if quick else 15.0,
        respondents=1_500 if quick else 8_000,
        # Three seconds' saves on two busy cores tell no 10 % apart.
        slower=2.0 if quick or options.only else 1.1,
        prevented=prevented,
    )


def _site(home: Home, seed: int) -> Site:
    log = home.folder / "data" / "primary" / "pg_wal"
    can_mount = bool(os.environ.get(MARK))
    return Site(
        home=home,
        random=Random(seed),  # noqa: S311
        lose_replies=lambda is_on: None,
        wall=Wall(log) if can_mount else None,
        why_no_wall="it needs a file system of its own, which only root may mount",
    )


# The stack


@contextlib.contextmanager
def _stack(options: argparse.Namespace, folder: Path) -> Iterator[Home]:
    if options.home:
        # Its servers see no file system that this command mounts.
        os.environ.pop(MARK, None)
        with contextlib.closing(Home(Path(options.home))) as home:
            _refuse_real_people(home)
            yield home
        return
    path = folder / "stack"
    command = str(ROOT / "provisioning" / "stack")
    environment = {**os.environ, "GROUNDSWELL_STACK": str(path)}
    with _guarded(command, folder, environment, keep=options.keep):
        with step("Starting a stack"):
            output_of(
                [command, "up", f"--port={options.port}"],
                failing="The stack does not start",
                env=environment,
            )
        with contextlib.closing(Home(path)) as home:
            yield home


def _refuse_real_people(home: Home) -> None:
    try:
        refuse_real_people(home.ask, consequence="their servers would be broken")
    except psycopg2.Error as error:
        said = reason(str(error))
        raise Refusal(f"Whether real people answer, nobody can say: {said}") from None


@contextlib.contextmanager
def _guarded(
    command: str, folder: Path, environment: dict[str, str], *, keep: bool
) -> Iterator[None]:
    """The stack goes when this command does, even where it is killed."""
    ends = 'read -r _; "$0" down >/dev/null 2>&1 && rm -rf "$1"'
    guard = subprocess.Popen(
        ["sh", "-c", "exit 0" if keep else ends, command, folder],
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        yield
    finally:
        assert guard.stdin is not None  # noqa: S101
        guard.stdin.close()
        if not keep:
            with step("Removing the stack"):
                guard.wait()


# The negative controls


def _control(seed: int, report: Report) -> None:
    print("Negative controls: with a protection taken away, the checker must object")
    for control in run_controls(seed, controls()):
        report.controlled.append(control)
        print(_line(control), flush=True)


def _line(control: Controlled) -> str:
    verdict = "as required" if control.as_required else "NOT as required"
    return (
        f"  {control.name:<38} {control.count} {control.found:>6}, with it"
        f" {control.twin}: {verdict} ({control.seconds:.1f} s)"
    )


if __name__ == "__main__":
    sys.exit(run_command("provisioning/faults", main))
