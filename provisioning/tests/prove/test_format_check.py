"""`provisioning/run check_formats`, with a program in place of the tests and of R."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from provisioning.prove import format_check, r_packages

TESTS = """#!{python}
import sys
assert "-k" in sys.argv and "--fast" in sys.argv
[report] = [word[12:] for word in sys.argv if word.startswith("--junit-xml=")]
with open(report, "w") as file:
    file.write('<testsuites><testsuite {counts}/></testsuites>')
sys.exit({status})
"""


@pytest.fixture
def check(tmp_path: Path, monkeypatch, capfd):
    monkeypatch.setattr(format_check, "ROOT", tmp_path)
    monkeypatch.setattr(format_check, "prepare_r", lambda packages: None)
    monkeypatch.setattr(format_check, "output_of", lambda *_, **__: "2.5.1\n")
    monkeypatch.setattr(sys, "argv", ["check_formats"])
    (tmp_path / "provisioning").mkdir()

    def run(counts: str, status: int) -> tuple[int, dict[str, object]]:
        program = tmp_path / "provisioning" / "test"
        values = {"python": sys.executable, "counts": counts, "status": status}
        program.write_text(TESTS.format(**values))
        program.chmod(0o755)
        status = format_check.main()
        return status, json.loads(capfd.readouterr().out.splitlines()[-1])

    return run


def test_its_last_line_says_whether_haven_agrees(check):
    assert check('tests="28" failures="0" errors="0" skipped="0"', 0) == (
        0,
        {"haven": "2.5.1", "passed": 28, "failed": 0, "skipped": 0, "agrees": True},
    )


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ('tests="28" failures="1"', 1),
        ('tests="28" errors="1"', 1),
        # Without haven all tests are skipped, and pytest ends with 0.
        ('tests="28" skipped="28"', 0),
        ('tests="28" skipped="1"', 0),
        ('tests="0"', 5),
    ],
)
def test_what_was_not_compared_does_not_agree(check, counts, status):
    status, figures = check(counts, status)
    assert (status, figures["agrees"]) == (1, False)


def test_only_missing_packages_of_r_are_installed(tmp_path, monkeypatch):
    installed = []
    monkeypatch.setattr(r_packages, "INSTALLED", tmp_path)
    monkeypatch.setattr(r_packages, "install_packages", installed.append)
    (tmp_path / "r-cran-haven.list").touch()
    r_packages.prepare_r(["r-cran-haven"])
    assert installed == []
    r_packages.prepare_r(["r-cran-haven", "r-cran-erm"])
    assert installed == [["r-cran-erm"]]
