"""`provisioning/stack`: every server of a real installation, on this machine."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from provisioning.commands import ROOT, Refusal, Stopped, run_command
from provisioning.environment import PYTHON
from provisioning.installation.arguments import arguments
from provisioning.installation.chosen import chosen_of
from provisioning.installation.down import down
from provisioning.installation.home import environment_of, stack_home
from provisioning.installation.promotion import promote
from provisioning.installation.rebuild import rebuild
from provisioning.installation.reload import reload
from provisioning.installation.status import print_status
from provisioning.installation.up import up, variables_of


def main() -> int:
    if sys.argv[1:2] == ["manage"]:
        return _manage(stack_home(), sys.argv[2:])
    options = arguments()
    home = stack_home()
    if options.command == "up":
        chosen = chosen_of(home, options)
        return up(home, variables_of(home, chosen), chosen)
    if options.command == "down":
        return down(home)
    if options.command == "status":
        return print_status(home)
    if options.command == "logs":
        return _logs(home, options.program, options.follow)
    if options.command == "reload":
        return reload(home)
    if options.command == "promote":
        return _promote(home, options)
    return rebuild(home, options)


def _logs(home: Path, program: str | None, follow: bool) -> int:
    found = sorted((home / "log").glob(f"{program or ''}*.log"))
    found += sorted((home / "log").glob(f"{program or '*'}/*.log"))
    if not found:
        raise Refusal(f"There is no log of {program or 'anything'} in {home / 'log'}")
    command = ["tail", "-n", "40" if program else "10", *(["-F"] if follow else [])]
    with contextlib.suppress(Stopped):
        subprocess.run([*command, *found], check=False)
    return 0


def _promote(home: Path, options: argparse.Namespace) -> int:
    lost = promote(
        home,
        although_it_serves=options.although_it_serves,
        although_it_lags=options.although_it_lags,
    )
    old = f"lie in {lost}" if lost.exists() else "are gone"
    print(f"The replica is the primary now; the old one's data {old}")
    return 0


def _manage(home: Path, words: Sequence[str]) -> int:
    environment = {**os.environ, **environment_of(home, "manage")}
    try:
        return subprocess.run(
            [PYTHON, ROOT / "manage.py", *words],
            cwd=ROOT,
            env=environment,
            check=False,
        ).returncode
    except Stopped as stopped:
        return 128 + stopped.number


if __name__ == "__main__":
    sys.exit(run_command("provisioning/stack", main))
