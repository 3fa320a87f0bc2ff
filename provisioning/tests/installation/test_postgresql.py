from __future__ import annotations

from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.installation import postgresql


def installed(monkeypatch, folder: Path, *versions: int) -> None:
    for version in versions:
        programs = folder / str(version) / "bin"
        programs.mkdir(parents=True)
        (programs / "postgres").touch()
    monkeypatch.setattr(postgresql, "Path", lambda _: folder)


def test_the_oldest_supported_version_is_used(tmp_path, monkeypatch):
    installed(monkeypatch, tmp_path, 17, 13, 16)
    assert postgresql.postgresql_programs() == tmp_path / "16" / "bin"


def test_an_older_version_is_not_enough(tmp_path, monkeypatch):
    installed(monkeypatch, tmp_path, 14)
    with pytest.raises(Refusal, match="PostgreSQL 15 or newer is missing"):
        postgresql.postgresql_programs()


def test_rows_are_split_into_columns(monkeypatch):
    calls = []

    def output_of(command, **options):
        calls.append((command, options["input_text"]))
        return "1\ttwo\u2028lines\n\n3\t\n"

    monkeypatch.setattr(postgresql, "output_of", output_of)
    rows = postgresql.run_sql("SELECT 1", run=Path("/run/x"), port=6432)
    assert rows == [["1", "two\u2028lines"], ["3", ""]]
    [(command, statements)] = calls
    assert {"--host=/run/x", "--port=6432", "--set=ON_ERROR_STOP=1"} <= set(command)
    assert statements == "SELECT 1"


def test_a_server_that_does_not_answer_is_a_refusal(tmp_path):
    with pytest.raises(Refusal, match="^PostgreSQL refuses: "):
        postgresql.run_sql("SELECT 1", run=tmp_path)


def test_a_server_that_does_not_start_says_why(tmp_path, monkeypatch):
    """As it starts, it also refuses the connections that look whether it is there."""
    server = tmp_path / "postgres"
    server.write_text(
        "#!/bin/sh\necho 'FATAL:  the files are another version'\n"
        "echo 'FATAL:  the database system is starting up'\nexit 1\n"
    )
    ready = tmp_path / "pg_isready"
    ready.write_text("#!/bin/sh\nexit 2\n")
    for program in (server, ready):
        program.chmod(0o755)
    with (
        pytest.raises(Refusal, match="does not start: the files are another version"),
        postgresql.running_server(
            tmp_path, run=tmp_path, log=tmp_path / "log", programs=tmp_path
        ),
    ):
        pass
