"""`provisioning/run agreement`: compare the Rasch model with an independent program.

The last line is JSON. Exits 1 if a threshold, a person measure or a fit statistic
differs from eRm's by more than allowed, or if simulated thresholds are not found.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import (
    ROOT,
    Refusal,
    command_parser,
    output_of,
    print_table,
    step,
)
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    manage,
    prepare_environment,
)
from provisioning.prove.r_packages import prepare_r

HERE = Path(__file__).parent
DATA_SETS = HERE / "data_sets"
R_PACKAGES = (
    *("r-cran-erm", "r-cran-psychotools", "r-cran-psychtools"),
    *("r-cran-survey", "r-cran-sandwich", "r-cran-metafor"),
)
SCRIPTS = ("make_data_sets.R", "make_diagnostics.R", "make_second_opinions.R")

# In logits; for fit statistics in mean squares.
MOST_DIFFERENCE = 0.02
MOST_BIAS = 0.02
# Of groups, residuals, clusters and weights: R's figures are rounded.
MOST_OF_DIAGNOSTICS = 0.0005
COVERAGE = (0.93, 0.97)
COMPARED = ("threshold", "person", "fit")
MODELS = {"RM": "partial_credit", "PCM": "partial_credit", "RSM": "rating_scale"}


@dataclass(frozen=True)
class Difference:
    """The largest differences in one data set."""

    name: str
    model: str
    people: int
    items: int
    threshold: float
    person: float
    fit: float


def main() -> int:
    options = parse_options()
    prepare_environment(PRODUCTION)
    with tempfile.TemporaryDirectory() as folder:
        data_sets = DATA_SETS
        if options.with_r:
            data_sets = Path(folder, "data_sets")
            make_data_sets(data_sets)
        of_diagnostics = compare_diagnostics(data_sets)
        differences = [
            compare(data_set, Path(folder, data_set.name))
            for data_set in sorted(data_sets.iterdir())
        ]
    print_table(
        ("data set", "model", "people", "items", *COMPARED),
        (
            (
                *(each.name, each.model, each.people, each.items),
                *(f"{getattr(each, name):.5f}" for name in COMPARED),
            )
            for each in differences
        ),
    )
    most = {name: max(getattr(each, name) for each in differences) for name in COMPARED}
    figures: dict[str, Any] = {
        "data_sets": len(differences),
        **{f"max_{name}_difference": value for name, value in most.items()},
        "diagnostics": of_diagnostics,
        "max_diagnostics_difference": max(of_diagnostics.values()),
        **recover(options.simulations),
    }
    figures["passed"] = (
        max(most.values()) <= MOST_DIFFERENCE
        and figures["max_diagnostics_difference"] <= MOST_OF_DIAGNOSTICS
        and figures["simulated_bias"] <= MOST_BIAS
        and COVERAGE[0] <= figures["simulated_coverage"] <= COVERAGE[1]
    )
    figures["diagnostics"] = {n: f"{each:.1e}" for n, each in of_diagnostics.items()}
    print(json.dumps({name: rounded(value) for name, value in figures.items()}))
    return 0 if figures["passed"] else 1


def parse_options() -> argparse.Namespace:
    parser = command_parser(
        "Estimates thresholds, person measures and fit of the data sets"
        " beside it, and compares them with what eRm, an independent program,"
        " estimated from the same answers; and differences of groups, residuals,"
        " errors of clusters and weights with R's; and with psychotools and metafor how"
        " groups and schools differ. Then simulates"
        " answers and looks for bias, and for how often 95 % intervals hold the true"
        f" thresholds. Exits 1 beyond {MOST_DIFFERENCE} logits.",
        simulations=(200, "of surveys"),
    )
    parser.add_argument(
        "--with-r",
        action="store_true",
        help="make the data sets and eRm's estimates again, which installs R (root)"
        " and takes half an hour",
    )
    return parser.parse_args()


def make_data_sets(folder: Path) -> None:
    prepare_r(R_PACKAGES)
    with step("Making data sets and estimating with eRm"):
        for script in SCRIPTS:
            output_of(["Rscript", HERE / script, folder], failing="R failed")


def compare_diagnostics(data_sets: Path) -> dict[str, float]:
    """Return the largest differences of diagnostics, by what they are of."""
    with step("Comparing groups, residuals, clusters and weights"):
        output = output_of(
            [
                *(PYTHON, "-m", "provisioning.prove.rasch_agreement.diagnostics"),
                str(data_sets),
            ],
            failing="The comparison failed",
            cwd=ROOT,
        )
    differences: dict[str, float] = json.loads(output)
    return differences


def compare(data_set: Path, folder: Path) -> Difference:
    """Return the largest differences between eRm's estimates and ours."""
    folder.mkdir()
    with gzip.open(data_set / "answers.csv.gz", "rt") as file:
        text = file.read()
    answers = folder / "answers.csv"
    answers.write_text(text)
    items = text.partition("\n")[0].split(",")
    model = (data_set / "model.txt").read_text().strip()
    with step(data_set.name):
        manage(
            *("estimate_measures", str(answers)),
            *("--items", ",".join(items), "--output", str(folder / "estimates")),
            *("--model", MODELS[model]),
            environment=os.environ,
        )
    ours = {path.stem: read(path) for path in (folder / "estimates").iterdir()}
    theirs = {
        name: read(data_set / f"{name}.csv.gz")
        for name in ("thresholds", "items", "persons")
    }
    people = [
        (mine["mle"], reference["mle"])
        for mine, reference in zip(ours["persons"], theirs["persons"], strict=True)
        if reference["is_extrapolated"] == "0"
    ]
    return Difference(
        name=data_set.name,
        model=model,
        people=len(ours["persons"]),
        items=len(items),
        threshold=largest(columns(ours, theirs, "thresholds", "threshold")),
        person=largest(people),
        fit=max(
            largest(columns(ours, theirs, "items", name))
            for name in ("infit", "outfit")
        ),
    )


def read(path: Path) -> list[dict[str, str]]:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return list(csv.DictReader(io.StringIO(content.decode())))


def columns(
    ours: dict[str, list[dict[str, str]]],
    theirs: dict[str, list[dict[str, str]]],
    table: str,
    column: str,
) -> list[tuple[str, str]]:
    """Pair a column's values in rows of the same item and step."""
    pairs = []
    for mine, reference in zip(ours[table], theirs[table], strict=True):
        if (mine["item"], mine.get("step")) != (
            reference["item"],
            reference.get("step"),
        ):
            raise Refusal(f"{table}.csv has other rows than eRm's: {mine}, {reference}")
        pairs.append((mine[column], reference[column]))
    return pairs


def largest(pairs: Iterable[tuple[str, str]]) -> float:
    # A blank on one side only is a difference that no limit allows.
    return max(
        float("inf")
        if not mine or not reference
        else abs(float(mine) - float(reference))
        for mine, reference in pairs
        if mine or reference
    )


def rounded(value: object) -> object:
    """Return a number for JSON, which knows no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return round(value, 5) if isinstance(value, float) else value


def recover(simulations: int) -> dict[str, float]:
    with step(f"Simulating {simulations} surveys"):
        output = output_of(
            [
                *(PYTHON, "-m", "provisioning.prove.rasch_agreement.recovery"),
                str(simulations),
            ],
            failing="The simulation failed",
            cwd=ROOT,
        )
    figures: dict[str, float] = json.loads(output)
    return figures
