"""`provisioning/bench --quick` measures a stack; these tests need none."""

from __future__ import annotations

import json

import pytest

from provisioning.commands import ROOT, Refusal
from provisioning.measure.benchmarks import bench
from provisioning.tests.conftest import run


@pytest.mark.parametrize("command", ["bench", "measure_results"])
def test_commands_have_a_help_text(command):
    done = run(ROOT, command, "--help")
    assert done.returncode == 0
    assert f"usage: provisioning/{command}" in done.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "provisioning/stack up"),
        (["--seconds=0.1"], "at least 1"),
        (["--address=http://example.org"], "There is no stack"),
    ],
)
def test_bench_refuses_with_one_line(tmp_path, options, reason):
    # In a folder that other users can't enter, root's stack would be elsewhere.
    tmp_path.chmod(0o755)
    done = run(ROOT, "bench", f"--home={tmp_path / 'none'}", *options)
    assert done.returncode == 1
    assert done.stderr.startswith("provisioning/bench: ")
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


@pytest.mark.parametrize("wrong", ["--pages=0", "--rate=1 --growth=1", "--seconds=x"])
def test_bench_checks_its_options(wrong):
    assert run(ROOT, "bench", *wrong.split()).returncode == 2


def options(*words: str):
    return bench.parser().parse_args(words)


def test_a_rate_is_measured_longer_and_after_a_longer_warm_up():
    assert (bench.size_of(options()).seconds, bench.size_of(options()).warm) == (10, 2)
    size = bench.size_of(options("--rate=100"))
    assert (size.seconds, size.warm) == (60, 5)
    assert bench.size_of(options("--rate=100", "--seconds=30")).seconds == 30


def test_comparisons_try_fewer_connections():
    assert bench.size_of(options("--against=HEAD")).connections == (16, 32)
    assert bench.size_of(options("--growth=1")).connections == (16, 32)
    assert bench.size_of(options("--quick")) == bench.QUICK


def test_a_part_lasts_at_least_a_second():
    with pytest.raises(Refusal, match="at least 1"):
        bench.size_of(options("--seconds=0.5"))


def test_the_load_engine_is_no_server():
    cpu = {"nginx": 10.04, "load engine": 50.0, "rest of the machine": 9.0, "Redis": 1}
    assert bench.cpu_of_servers(cpu) == 11.0


@pytest.mark.parametrize(
    ("words", "kind"),
    [((), "latest"), (("--quick",), "quick"), (("--soak=9",), "soak")],
)
def test_results_are_kept_by_kind(tmp_path, monkeypatch, words, kind):
    monkeypatch.setattr(bench, "RESULTS", tmp_path / ".bench")
    output = tmp_path / "mine.json"
    bench.keep_result({"mix_per_s": 1.5}, options(*words, f"--output={output}"))
    results = sorted((tmp_path / ".bench").iterdir(), key=lambda path: len(path.name))
    latest, dated = results
    assert latest.name == f"{kind}.json"
    assert dated.name.startswith(f"{kind}-")
    for path in (latest, dated, output):
        assert json.loads(path.read_text()) == {"mix_per_s": 1.5}


@pytest.mark.parametrize(
    ("speed", "cost", "held"),
    [(0.9, 1.1, True), (0.89, 1.0, False), (1.0, 1.11, False)],
)
def test_stored_answers_make_saves_neither_slow_nor_expensive(speed, cost, held):
    ratios = {"saves_per_s": speed, "cpu_us_per_save": cost}
    assert bench.growth_held(ratios) is held
