from __future__ import annotations

from provisioning.measure.benchmarks.compare_revisions import (
    packages_of,
    ratios_of_medians,
)


def test_ratios_compare_medians():
    here = [{"saves_per_s": speed, "failed": 0} for speed in (100.0, 300.0, 110.0)]
    there = [{"saves_per_s": speed, "failed": 0} for speed in (100.0, 100.0, 10.0)]
    assert ratios_of_medians(here, there) == {"saves_per_s": 1.1}


def test_a_figure_of_zero_has_no_ratio():
    here, there = [{"failed": 3.0, "mix": 1.0}], [{"failed": 0.0, "mix": 2.0}]
    assert ratios_of_medians(here, there) == {"mix": 0.5}


def test_packages_are_shared_only_between_equal_requirements(tmp_path):
    for name in ("one", "two"):
        folder = tmp_path / name / "provisioning" / "installation"
        folder.mkdir(parents=True)
        (tmp_path / name / "requirements.txt").write_text("django\n")
        stack = folder / "requirements-stack.txt"
        stack.write_text("supervisor\n")
        (folder / "environment.py").write_text("")
    assert packages_of(tmp_path / "one") == packages_of(tmp_path / "two")
    stack.write_text("supervisor==4\n")
    assert packages_of(tmp_path / "one") != packages_of(tmp_path / "two")
