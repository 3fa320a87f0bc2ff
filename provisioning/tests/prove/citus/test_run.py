"""Test the requirements of `provisioning/run cluster`, and its search for Citus."""

from __future__ import annotations

import pytest

from provisioning.commands import Refusal
from provisioning.prove.citus import build
from provisioning.prove.citus.operations import Operation
from provisioning.prove.citus.run import missed_requirements

KEPT = {
    "tasks_per_save": 1,
    "lost_in_migration": 0,
    "other_forbidden": 0,
    "lost_in_moves": 0,
    "other_forbidden_in_moves": 0,
    "lost_in_control": 9,
}
WORKS = [Operation("finish", "")]


def test_a_run_that_kept_everything_misses_nothing():
    assert missed_requirements(KEPT, WORKS) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tasks_per_save", 32),
        ("lost_in_migration", 1),
        ("other_forbidden", 1),
        ("lost_in_moves", 1),
        ("other_forbidden_in_moves", 1),
        ("lost_in_control", 0),
    ],
)
def test_each_figure_is_a_requirement(name, value):
    assert len(missed_requirements({**KEPT, name: value}, WORKS)) == 1


def test_every_operation_has_to_work():
    problem = Operation("finish", "status 500")
    assert missed_requirements(KEPT, [problem]) == ["finish: status 500"]


def test_the_archive_is_named_by_an_option_the_environment_or_a_folder(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("GROUNDSWELL_CITUS", raising=False)
    monkeypatch.setattr(build, "ROOT", tmp_path / "checkout")
    assert build.find_archive() is None
    beside = tmp_path / "vendor" / build.ARCHIVE
    beside.parent.mkdir()
    beside.touch()
    assert build.find_archive() == beside
    monkeypatch.setenv("GROUNDSWELL_CITUS", "/from/environment")
    assert str(build.find_archive()) == "/from/environment"
    assert build.find_archive(tmp_path) == tmp_path


@pytest.mark.parametrize("content", [None, b"another archive"])
def test_nothing_is_built_from_another_archive(tmp_path, monkeypatch, content):
    monkeypatch.setattr(build, "cache_folder", lambda: tmp_path / "cache")
    archive = tmp_path / build.ARCHIVE
    if content is not None:
        archive.write_bytes(content)
    with pytest.raises(Refusal, match="citus-13.2.2.tar.xz"):
        build.build_citus(archive)
    assert not list((tmp_path / "cache").glob("citus-*"))
