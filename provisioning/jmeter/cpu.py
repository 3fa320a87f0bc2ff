"""Whose the processor was: seconds by program, between two looks at /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def look() -> dict[int, tuple[str, float]]:
    """Process id -> its program and the seconds it has used so far.

    With those of its children that have ended: gunicorn's workers do so after
    some thousand requests.
    """
    seen = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        # The name stands in brackets, and may have spaces and brackets in it.
        name = _program(path, text[text.index("(") + 1 : text.rindex(")")])
        fields = text[text.rindex(")") + 2 :].split()
        seen[int(path.parent.name)] = (
            name,
            sum(int(field) for field in fields[11:15]) / TICKS,
        )
    return seen


def _program(stat: Path, name: str) -> str:
    """Without a command line it is the kernel's; of a Python, its module."""
    try:
        words = stat.with_name("cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return name
    if not words:
        return "kernel"
    arguments = words.split("\0")
    if name.startswith("python") and "-m" in arguments[:-1]:
        return arguments[arguments.index("-m") + 1]
    return name


def used(
    before: dict[int, tuple[str, float]], after: dict[int, tuple[str, float]]
) -> dict[str, float]:
    """Seconds by program, the busiest first; those of a twentieth or more."""
    spent: dict[str, float] = defaultdict(float)
    for pid, (name, seconds) in after.items():
        known, earlier = before.get(pid, (name, 0.0))
        spent[name] += seconds - (earlier if known == name else 0.0)
    # What has ended since then counts in full for whoever it was a child of.
    for pid in before.keys() - after.keys():
        name, seconds = before[pid]
        spent[name] -= seconds
    least = max(0.01, sum(spent.values()) / 20)
    return {
        name: round(seconds, 1)
        for name, seconds in sorted(spent.items(), key=lambda one: -one[1])
        if seconds >= least
    }
