from __future__ import annotations

from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.installation import postgresql


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Return a function that names the distribution and installs versions."""

    def install(release: str, *versions: int) -> Path:
        for version in versions:
            programs = tmp_path / str(version) / "bin"
            programs.mkdir(parents=True)
            (programs / "postgres").touch()
        name, _, number = release.partition(" ")
        monkeypatch.setattr(
            postgresql.platform,
            "freedesktop_os_release",
            lambda: {"ID": name, **({"VERSION_ID": number} if number else {})},
        )
        monkeypatch.setattr(postgresql, "INSTALLED", tmp_path)
        return tmp_path

    return install


@pytest.mark.parametrize(
    ("release", "version"), [("debian 12", 15), ("ubuntu 24.04", 16), ("debian 13", 17)]
)
def test_the_version_is_the_distributions(installed, release, version):
    folder = installed(release, 18, 17, 16, 15)
    assert postgresql.postgresql_version() == version
    assert postgresql.postgresql_programs() == folder / str(version) / "bin"


@pytest.mark.parametrize("release", ["debian", "ubuntu 26.04", "debian 12"])
def test_elsewhere_the_oldest_supported_version_is_used(installed, release):
    """Debian's testing has no number; another registry may have other versions."""
    folder = installed(release, 17, 13, 16)
    assert postgresql.postgresql_programs() == folder / "16" / "bin"


def test_data_stay_on_their_version(installed, tmp_path):
    """After an upgrade of the distribution, until they are upgraded themselves."""
    folder = installed("debian 13", 15, 17)
    data, none = tmp_path / "data", tmp_path / "none"
    data.mkdir()
    (data / "PG_VERSION").write_text("15\n")
    assert postgresql.postgresql_version(none, data) == 15
    assert postgresql.postgresql_programs(none, data) == folder / "15" / "bin"
    assert postgresql.postgresql_programs(none) == folder / "17" / "bin"


def test_data_of_a_version_that_is_missing_are_refused(installed, tmp_path):
    installed("debian 13", 17)
    (tmp_path / "PG_VERSION").write_text("15\n")
    with pytest.raises(Refusal, match="15 is missing .apt-get install postgresql-15"):
        postgresql.postgresql_programs(tmp_path)


def test_an_older_version_is_not_enough(installed):
    installed("debian 11", 13)
    with pytest.raises(Refusal, match="PostgreSQL 15 or newer is missing"):
        postgresql.postgresql_programs()
    installed("debian 13", 14)
    with pytest.raises(Refusal, match="PostgreSQL 17 is missing"):
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
