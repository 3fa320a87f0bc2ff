"""Keep the results of fault runs, and add them up in a report card."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, print_figures, print_table
from provisioning.prove.fault_injection.verdict import FORBIDDEN

RUNS = ROOT / "provisioning" / "measured" / "faults.json"
KEPT = ("seed", "N", "K", "planned", "attempts", "seconds", "window_seconds", "counts")


def add_run(
    path: Path, machine: Mapping[str, object], described: Mapping[str, Any]
) -> None:
    """Append a run to the file; `described` is the last line of its output."""
    runs = _read(path) if path.exists() else []
    loss = described["primary_lost"]
    run = {
        "date": datetime.now(UTC).date().isoformat(),
        **machine,
        "promise": loss["promise"] if loss else "none",
        **{name: described[name] for name in KEPT},
        # Seconds of each time; null where saving did not recover.
        "recovery": described["recovery"]["each"],
        "primary_lost": loss,
        "controls": described["controls"],
        "not_as_required": described["not_as_required"],
    }
    path.write_text(json.dumps([*runs, run], indent=1) + "\n")
    print(f"Added as run {len(runs) + 1} to {path}")


def print_card(path: Path) -> int:
    """Print what all runs prove together; return 1 if anything was lost or wrong."""
    if not path.exists():
        raise Refusal("No run was added yet: provisioning/faults --add")
    runs = _read(path)
    counts: Counter[str] = Counter()
    recoveries: dict[str, list[float | None]] = defaultdict(list)
    for run in runs:
        counts.update(run["counts"])
        for fault, seconds in run["recovery"].items():
            recoveries[fault] += seconds
        if loss := run["primary_lost"]:
            recoveries[f"primary lost ({loss['promise']})"].append(loss["recovered"])
    saves, faults = sum(run["N"] for run in runs), sum(run["K"] for run in runs)
    wrong = {name: counts[name] for name in FORBIDDEN if counts[name]}
    rows = [
        # Losing the primary under A1 is no promise.
        _row(fault, seconds, proves=not wrong and "A1" not in fault)
        for fault, seconds in sorted(recoveries.items())
    ]
    losses = [run["primary_lost"] for run in runs if run["promise"] == "A1"]
    card = {
        "runs": len(runs),
        "machines": sorted({f"{run['cpu']}, {run['cores']} cores" for run in runs}),
        "revisions": sorted({run["revision"] for run in runs}),
        "hours": round(sum(run["seconds"] for run in runs) / 3600, 2),
        "N": saves,
        "K": faults,
        **{name: counts[name] for name in (*FORBIDDEN, "recovered")},
        # None of N: with 95 % confidence, fewer than 3 of N.
        "loss_per_save_below": _bound(saves, counts["lost"]),
        "loss_per_fault_below": _bound(faults, counts["lost"]),
        "lost_with_primary_A1": (
            f"{sum(loss['lost'] for loss in losses)} of"
            f" {sum(loss['acknowledged'] for loss in losses)} saves in"
            f" {len(losses)} losses"
            if losses
            else "none"
        ),
        "runs_not_as_required": sum(bool(run["not_as_required"]) for run in runs),
    }
    print_figures(card)
    print_table(
        ("fault", "times", "median s", "longest s", "never", "risk below"), rows
    )
    print(json.dumps({**card, "faults": {row[0]: row[1:] for row in rows}}))
    return 1 if wrong else 0


def _read(path: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(path.read_text())
    return runs


def _row(
    fault: str, seconds: Sequence[float | None], proves: bool
) -> tuple[object, ...]:
    known = [each for each in seconds if each is not None]
    return (
        fault,
        len(seconds),
        round(statistics.median(known), 2) if known else "",
        round(max(known), 2) if known else "",
        len(seconds) - len(known),
        # Of a loss in one such fault.
        _bound(len(seconds), not proves),
    )


def _bound(tries: int, losses: float) -> float | None:
    """Return 3 / tries, of which none was found; None where that says nothing."""
    if losses or tries < 4:
        return None
    return float(f"{3 / tries:.2g}")
