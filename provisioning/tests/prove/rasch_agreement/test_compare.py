"""`provisioning/run agreement` with two of the stored data sets: R is not needed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from provisioning.installation.environment import manage as estimate
from provisioning.prove.rasch_agreement import compare

SMALLEST = ("public_rsmdat", "two_categories")
ESTIMATED = ("thresholds", "persons", "items")
RECOVERED = {
    "simulations": 200,
    "simulated_bias": 0.004,
    "simulated_bias_error": 0.003,
    "simulated_coverage": 0.95,
}


@pytest.fixture(scope="module")
def estimate_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Estimate each data set once: tests change only what eRm estimated."""
    folder = tmp_path_factory.mktemp("estimates")

    def manage(*arguments: str, environment: Mapping[str, str]) -> str:
        output = Path(arguments[arguments.index("--output") + 1])
        known = folder / output.parent.name
        if known.exists():
            shutil.copytree(known, output)
            return ""
        printed = estimate(*arguments, environment=environment)
        shutil.copytree(output, known)
        return printed

    return manage


@pytest.fixture
def data_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, estimate_once: Callable[..., str]
) -> Path:
    folder = tmp_path / "data_sets"
    for name in SMALLEST:
        shutil.copytree(compare.DATA_SETS / name, folder / name)
    monkeypatch.setattr(compare, "DATA_SETS", folder)
    monkeypatch.setattr(compare, "manage", estimate_once)
    return folder


@pytest.fixture
def agreement(data_sets, monkeypatch, capsys):
    """Run the command; return its exit status and what its last line says."""

    def run(**recovered: float) -> tuple[int, dict]:
        monkeypatch.setattr(sys, "argv", ["agreement"])
        recovery = {**RECOVERED, **recovered}
        monkeypatch.setattr(compare, "recover", lambda simulations: recovery)
        status = compare.main()
        return status, strict_json(capsys.readouterr().out.splitlines()[-1])

    return run


def strict_json(line: str) -> dict:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(line, parse_constant=refuse)


def change(path: Path, column: str, value: str) -> None:
    """Change the first row of one of eRm's tables."""
    rows = list(
        csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode()))
    )
    rows[0][column] = value
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(gzip.compress(file.getvalue().encode()))


@pytest.mark.slow
def test_estimates_like_those_of_erm_pass(agreement):
    status, figures = agreement()
    assert status == 0
    assert figures["passed"] is True
    assert figures["data_sets"] == len(SMALLEST)
    for name in ("threshold", "person", "fit", "diagnostics"):
        assert 0 <= figures[f"max_{name}_difference"] < 0.001
    assert {name: figures[name] for name in RECOVERED} == RECOVERED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "column", "value", "figure"),
    [
        ("thresholds", "threshold", "0.5", "max_threshold_difference"),
        ("persons", "mle", "0.5", "max_person_difference"),
        ("items", "infit", "2.5", "max_fit_difference"),
        ("dif", "error", "0.5", "max_diagnostics_difference"),
        ("q3", "q3", "0.5", "max_diagnostics_difference"),
        ("psychotools", "error", "0.5", "max_diagnostics_difference"),
        ("metafor", "value", "9.5", "max_diagnostics_difference"),
        ("estimates", "value", "1.5", "max_diagnostics_difference"),
    ],
)
def test_another_estimate_ends_with_1(
    agreement, data_sets, table, column, value, figure
):
    name = "public_rsmdat" if table in ESTIMATED else "two_categories"
    change(data_sets / name / f"{table}.csv.gz", column, value)
    status, figures = agreement()
    assert (status, figures["passed"]) == (1, False)
    assert figures[figure] > compare.MOST_DIFFERENCE


@pytest.mark.slow
def test_an_estimate_on_one_side_only_ends_with_1(agreement, data_sets):
    change(data_sets / "public_rsmdat" / "items.csv.gz", "outfit", "")
    status, figures = agreement()
    assert (status, figures["passed"]) == (1, False)
    # No number is large enough, and JSON has no infinity.
    assert figures["max_fit_difference"] is None


@pytest.mark.parametrize(
    "recovered",
    [
        {"simulated_bias": 0.03},
        {"simulated_coverage": 0.91},
        {"simulated_coverage": 0.99},
    ],
)
def test_thresholds_that_are_not_found_again_end_with_1(
    agreement, monkeypatch, recovered
):
    same = compare.Difference("same", "PCM", 100, 5, 0.0, 0.0, 0.0)
    monkeypatch.setattr(compare, "compare", lambda data_set, folder: same)
    assert agreement()[0] == 0
    status, figures = agreement(**recovered)
    assert (status, figures["passed"]) == (1, False)


@pytest.mark.slow
def test_simulations_report_bias_and_coverage():
    figures = compare.recover(20)
    assert figures.keys() == RECOVERED.keys()
    assert figures["simulations"] == 20
    assert 0 < figures["simulated_bias"] < 5 * figures["simulated_bias_error"]
    assert 0.9 < figures["simulated_coverage"] < 1
