"""Compare this checkout with another revision, in turns on the same machine."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, output_of, step
from provisioning.measure.benchmarks.phases import Size
from provisioning.measure.benchmarks.stack import Stack, running_stack

TURNS = 3
PORTS_APART = 20
WORKTREES = ROOT / ".bench" / "revisions"
Figures = dict[str, float]


def compare(
    stack: Stack,
    revision: str,
    size: Size,
    *,
    measure: Callable[[Stack, Size], Figures],
) -> dict[str, Any]:
    """Measure both and print the ratios of their medians; may raise Refusal.

    Both stacks are up, and one is driven at a time, so that both pay for the
    other one's idling. The load engine is this checkout's for both.
    """
    runs: dict[str, list[Figures]] = {"here": [], revision: []}
    with _worktree(revision) as checkout, _second_stack(stack, checkout) as second:
        for turn in range(1, TURNS + 1):
            for name, driven in (("here", stack), (revision, second)):
                figures = measure(driven, size)
                runs[name].append(figures)
                parts = ", ".join(f"{key} {it:,.1f}" for key, it in figures.items())
                print(f"  {name}, turn {turn}: {parts}", flush=True)
    ratios = ratios_of_medians(runs["here"], runs[revision])
    parts = ", ".join(f"{name} {ratio}" for name, ratio in ratios.items())
    print(f"here / {revision}: {parts}")
    return {"revision": revision, "runs": runs, "ratios": ratios}


def ratios_of_medians(here: Sequence[Figures], there: Sequence[Figures]) -> Figures:
    """Divide the medians of each figure; leave out figures that are 0 there."""
    ratios = {}
    for name in here[0]:
        divisor = statistics.median(run[name] for run in there)
        if divisor:
            median = statistics.median(run[name] for run in here)
            ratios[name] = round(median / divisor, 3)
    return ratios


@contextmanager
def _worktree(revision: str) -> Iterator[Path]:
    def git(*arguments: str | Path, failing: str) -> str:
        return output_of(["git", "-C", ROOT, *arguments], failing=failing).strip()

    name = git(
        *("rev-parse", "--short", "--verify", "--quiet", f"{revision}^{{commit}}"),
        failing=f"{revision} is no revision of this repository",
    )
    folder = WORKTREES / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        git(
            *("worktree", "add", "--detach", folder, name),
            failing=f"{revision} can't be checked out",
        )
    if not (folder / "provisioning" / "stack").exists():
        raise Refusal(f"{revision} has no provisioning/stack to be started by")
    # Share this environment if both want the same packages.
    if not (folder / ".venv").exists() and packages_of(folder) == packages_of(ROOT):
        (folder / ".venv").symlink_to(ROOT / ".venv")
    try:
        yield folder
    finally:
        git(
            *("worktree", "remove", "--force", folder),
            failing="The worktree can't be removed",
        )


def packages_of(checkout: Path) -> dict[str, bytes]:
    """Return everything that decides which packages are installed, and how."""
    files = [checkout / "requirements.txt"]
    folder = checkout / "provisioning" / "installation"
    files += [*sorted(folder.glob("requirements*.txt")), folder / "environment.py"]
    # Older revisions have them elsewhere, and get an environment of their own.
    return {path.name: path.read_bytes() for path in files if path.exists()}


@contextmanager
def _second_stack(stack: Stack, checkout: Path) -> Iterator[Stack]:
    if not stack.port:
        raise Refusal("--against needs the address of nginx")
    folder = stack.folder.with_name(f"{stack.folder.name}-{checkout.name}")

    def control(*arguments: str) -> None:
        output_of(
            [checkout / "provisioning" / "stack", *arguments],
            failing=f"provisioning/stack {arguments[0]} of {checkout.name} fails",
            env={**os.environ, "GROUNDSWELL_STACK": str(folder)},
        )

    try:
        with step(f"Starting the stack of {checkout.name}"):
            control("up", f"--port={stack.port + PORTS_APART}")
        yield running_stack(folder=folder, checkout=checkout)
    finally:
        control("down")
        shutil.rmtree(folder, ignore_errors=True)
