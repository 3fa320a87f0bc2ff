from __future__ import annotations

import pytest

from provisioning.installation import packages


@pytest.fixture
def roles(tmp_path, monkeypatch):
    for role in packages.STACK_ROLES:
        (tmp_path / role).mkdir()
        (tmp_path / role / "packages.txt").write_text("")
    monkeypatch.setattr(packages, "ROLES", tmp_path)
    return tmp_path


def test_a_package_is_missing_without_its_program(roles):
    (roles / "web" / "packages.txt").write_text("coreutils ls\nnone no-such-program\n")
    assert packages.missing_packages() == ["none"]


def test_a_package_may_be_recognised_by_a_file(roles):
    (roles / "web" / "tzdata").touch()
    listed = f"tzdata {roles}/web/tz*\nnone {roles}/web/none*\n"
    (roles / "web" / "packages.txt").write_text(listed)
    assert packages.missing_packages() == ["none"]


def test_the_tests_need_a_browser_as_well(roles, monkeypatch):
    monkeypatch.setattr(packages, "path_of_program", lambda name: "")
    assert packages.missing_packages() == []
    assert packages.missing_packages(browser=True) == ["chromium"]
