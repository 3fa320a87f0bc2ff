"""The stack anew, measured beside the one before, whose data are put aside."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, step
from provisioning.installation.chosen import chosen_of, keep
from provisioning.installation.down import down
from provisioning.installation.up import refuse_somebody_elses, up, variables_of

BENCH = ROOT / "provisioning" / "bench"


def rebuild(home: Path, options: argparse.Namespace) -> int:
    before = _last_result()
    chosen = chosen_of(home, options)
    variables = variables_of(home, chosen)
    refuse_somebody_elses(home, str(variables["server_user"]))
    _refuse_what_cant_be_renamed(home)
    down(home)
    if home.exists():
        _put_aside(home)
        # Also for the next try, should this one fail.
        keep(home, chosen)
    up(home, variables, chosen)
    if not BENCH.exists():
        return 0
    status = subprocess.run([BENCH, "--home", home], check=False).returncode
    _print_beside(before, _last_result())
    return status


def _refuse_what_cant_be_renamed(home: Path) -> None:
    """A renamed link would leave the data where the next stack writes."""
    if home.is_symlink() or home.is_mount():
        kind = "a symbolic link" if home.is_symlink() else "a mount point"
        raise Refusal(
            f"{home} is {kind}, so it can't be put aside; let GROUNDSWELL_STACK name"
            " a folder inside it"
        )


def _put_aside(home: Path) -> None:
    # Never deleted from here: where the new one does not start, it is the only
    # copy of everybody's answers.
    former = home.with_name(f"{home.name}.before-{time.strftime('%Y%m%d-%H%M%S')}")
    with step("Putting the former one aside"):
        home.rename(former)
    print(f"Its data stay in {former}; rm -r {former} deletes them.", flush=True)


def _last_result() -> dict[str, Any]:
    """What provisioning/bench kept of its last run, outside the home."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads((ROOT / ".bench" / "latest.json").read_text())
    return {}


def _print_beside(before: dict[str, Any], after: dict[str, Any]) -> None:
    print(f"\n{'':<28}{'before':>12}{'rebuilt':>12}{'ratio':>8}")
    for name, figure in after.items():
        if isinstance(figure, int | float) and not isinstance(figure, bool):
            old = before.get(name) or 0
            ratio = f"{figure / old:.2f}" if old else ""
            print(f"{name:<28}{old or '-':>12}{figure:>12}{ratio:>8}")
