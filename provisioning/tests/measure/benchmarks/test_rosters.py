from __future__ import annotations

import sys

import pytest

from provisioning.measure.benchmarks import rosters


def result(**changes):
    report = dict.fromkeys(("changed", "moved", "withdrawn", "unchanged"), 0)
    report |= {"rows": 100_000, "added": 99_999, "rejected": 1}
    usual = {"state": "applied", "message": "", "report": report, "peak_mb": 400}
    return {**usual, "seconds": {"check": 10.0, "apply": 5.0}, **changes}


def test_the_slower_job_decides_the_rate():
    assert rosters.rows_per_second(result()) == 10_000


def test_the_promise_is_rows_a_second_and_memory(capsys):
    assert rosters.print_results({"first": (10**6, result())})
    assert not rosters.print_results({"first": (10**6, result(peak_mb=401))})
    slow = result(seconds={"check": 10.1, "apply": 5.0})
    assert not rosters.print_results({"first": (10**6, slow)})
    assert "99,999 added, 1 rejected" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["--rows=0", "--changed=0", "--changed=101"])
def test_impossible_sizes_are_refused(monkeypatch, wrong):
    monkeypatch.setattr(sys, "argv", ["rosters", wrong])
    with pytest.raises(SystemExit):
        rosters.parse_options()
