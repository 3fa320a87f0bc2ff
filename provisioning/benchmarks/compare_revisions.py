"""This checkout and another revision, in turns on the same machine."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provisioning.benchmarks.phases import Size
from provisioning.benchmarks.stack import Stack, running_stack
from provisioning.commands import ROOT, Refusal, output_of, step

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
    """Runs of both and the ratios of their medians: this one to the other.

    Both stacks are up, and one is driven at a time: what the other costs while
    it stands idle, both pay. The load engine is this checkout's for both.
    Raises Refusal.
    """
    runs: dict[str, list[Figures]] = {"here": [], revision: []}
    with _worktree(revision) as checkout, _beside(stack, checkout) as other:
        for turn in range(1, TURNS + 1):
            for name, driven in (("here", stack), (revision, other)):
                runs[name].append(measure(driven, size))
                _print(f"{name}, turn {turn}", runs[name][-1])
    ratios = _ratios(runs["here"], runs[revision])
    told = ", ".join(f"{name} {ratio}" for name, ratio in ratios.items())
    print(f"here / {revision}: {told}")
    return {"revision": revision, "runs": runs, "ratios": ratios}


def _ratios(here: list[Figures], there: list[Figures]) -> dict[str, float]:
    ratios = {}
    for name in here[0]:
        one = statistics.median(run[name] for run in here)
        other = statistics.median(run[name] for run in there)
        if other:
            ratios[name] = round(one / other, 3)
    return ratios


def _print(title: str, figures: Figures) -> None:
    parts = ", ".join(f"{name} {value:,.1f}" for name, value in figures.items())
    print(f"  {title}: {parts}", flush=True)


@contextmanager
def _worktree(revision: str) -> Iterator[Path]:
    git = ["git", "-C", str(ROOT)]
    name = output_of(
        [*git, "rev-parse", "--short", "--verify", "--quiet", f"{revision}^{{commit}}"],
        failing=f"{revision} is no revision of this repository",
    ).strip()
    folder = WORKTREES / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        output_of(
            [*git, "worktree", "add", "--detach", folder, name],
            failing=f"{revision} can't be checked out",
        )
    if not (folder / "provisioning" / "stack").exists():
        raise Refusal(f"{revision} has no provisioning/stack to be started by")
    _lend_environment(folder)
    try:
        yield folder
    finally:
        output_of(
            [*git, "worktree", "remove", "--force", folder],
            failing="The worktree can't be removed",
        )


def _lend_environment(checkout: Path) -> None:
    """Its packages, where it wants the very same ones."""
    if not (checkout / ".venv").exists() and _wanted(checkout) == _wanted(ROOT):
        (checkout / ".venv").symlink_to(ROOT / ".venv")


def _wanted(checkout: Path) -> dict[str, bytes]:
    listed = [checkout / "requirements.txt"]
    listed += sorted((checkout / "provisioning").glob("requirements*.txt"))
    # How they are installed is part of it.
    listed.append(checkout / "provisioning" / "environment.py")
    return {path.name: path.read_bytes() for path in listed}


@contextmanager
def _beside(stack: Stack, checkout: Path) -> Iterator[Stack]:
    """The other revision's stack: another home, other ports, gone afterwards."""
    home = stack.home.with_name(f"{stack.home.name}-{checkout.name}")
    if isinstance(stack.target.address, str):
        raise Refusal("--against needs the address of nginx")
    port = stack.target.address[1] + PORTS_APART
    try:
        with step(f"Starting the stack of {checkout.name}"):
            _control(checkout, home, "up", f"--port={port}")
        yield running_stack(home=home, checkout=checkout)
    finally:
        _control(checkout, home, "down")
        shutil.rmtree(home, ignore_errors=True)


def _control(checkout: Path, home: Path, *arguments: str) -> None:
    output_of(
        [checkout / "provisioning" / "stack", *arguments],
        failing=f"provisioning/stack {arguments[0]} of {checkout.name} fails",
        env={**os.environ, "GROUNDSWELL_STACK": str(home)},
    )
