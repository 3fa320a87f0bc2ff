from __future__ import annotations

import pytest

from provisioning.installation import static_files


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    for name in ("settings", "static", "templates", "survey/tests"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("django\n")
    monkeypatch.setattr(static_files, "ROOT", tmp_path)
    monkeypatch.setattr(static_files, "PRODUCTION", tmp_path / "requirements.txt")
    return tmp_path


def test_a_changed_style_sheet_changes_the_digest(checkout):
    before = static_files.digest_of("static")
    (checkout / "static" / "page.css").write_text("a {}")
    after = static_files.digest_of("static")
    assert after != before
    (checkout / "static" / "page.css").rename(checkout / "static" / "other.css")
    assert static_files.digest_of("static") not in (before, after)


def test_other_requirements_change_the_digest(checkout):
    before = static_files.digest_of("static")
    (checkout / "requirements.txt").write_text("django==6\n")
    assert static_files.digest_of("static") != before


def test_compiled_files_and_tests_do_not_count(checkout):
    before = static_files.digest_of("survey")
    (checkout / "survey" / "models.pyc").write_bytes(b"x")
    (checkout / "survey" / "tests" / "test_models.py").write_text("x")
    assert static_files.digest_of("survey") == before
    (checkout / "survey" / "models.py").write_text("x")
    assert static_files.digest_of("survey") != before


@pytest.fixture
def calls(monkeypatch):
    """The environments in which files were collected."""
    calls = []
    monkeypatch.setattr(static_files, "collect_files", calls.append)
    return calls


def test_static_files_are_collected_once_for_each_change(checkout, calls):
    folder = checkout / "collected"
    for _ in range(2):
        static_files.collect_static(folder, {"A": "1"})
        assert calls == [{"A": "1"}]
    (checkout / "templates" / "page.html").write_text("x")
    static_files.collect_static(folder, {})
    assert calls == [{"A": "1"}, {}]


def test_older_files_stay_unless_replaced(checkout, calls):
    folder = checkout / "collected"
    folder.mkdir()
    (folder / "old.css").touch()
    static_files.collect_static(folder, {})
    assert (folder / "old.css").exists()
    (checkout / "templates" / "page.html").write_text("x")
    static_files.collect_static(folder, {}, replace=True)
    assert not (folder / "old.css").exists()
