from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.measure.jmeter import install


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A Maven repository of one artifact and one with JMeter's configuration."""
    import zipfile

    folder = tmp_path / "maven"
    folder.mkdir()
    (folder / "ApacheJMeter-5.6.3.jar").write_bytes(b"starts JMeter")
    with zipfile.ZipFile(folder / "ApacheJMeter_config-5.6.3.jar", "w") as jar:
        jar.writestr("bin/jmeter.properties", "x=1\n")
        jar.writestr("elsewhere", "not wanted")
    listed = tmp_path / "artifacts.txt"
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
    ]
    listed.write_text("# a comment\n" + "".join(lines).replace("  A", "  x/A"))
    (folder / "x").mkdir()
    for path in list(folder.glob("*.jar")):
        path.rename(folder / "x" / path.name)
    monkeypatch.setattr(install, "ARTIFACTS", listed)
    monkeypatch.setenv("MAVEN_MIRROR", folder.as_uri())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_jmeter_is_assembled_once(repository, monkeypatch):
    home = install.prepare_jmeter()
    assert (home / "bin" / "ApacheJMeter.jar").read_bytes() == b"starts JMeter"
    assert (home / "bin" / "jmeter.properties").exists()
    assert not (home / "elsewhere").exists()
    monkeypatch.setenv("MAVEN_MIRROR", "file:///nowhere")
    assert install.prepare_jmeter() == home


def test_a_changed_artifact_is_refused(repository):
    (repository / "x" / "ApacheJMeter-5.6.3.jar").write_bytes(b"something else")
    with pytest.raises(Refusal, match="is not what artifacts.txt expects"):
        install.prepare_jmeter()
    assert not (install.cache_folder() / install.NAME).exists()


def test_each_artifact_is_listed_once():
    names = [path.rsplit("/", 1)[1] for path in install.read_artifacts()]
    assert len(names) == len(set(names))
    assert "ApacheJMeter_http-5.6.3.jar" in names


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("ApacheJMeter-5.6.3.jar", "bin/ApacheJMeter.jar"),
        ("ApacheJMeter_http-5.6.3.jar", "lib/ext/ApacheJMeter_http-5.6.3.jar"),
        ("jorphan-5.6.3.jar", "lib/jorphan-5.6.3.jar"),
    ],
)
def test_each_artifact_has_a_place_in_jmeters_folder(name, place):
    assert install.place_of(f"org/x/{name}") == place


def test_a_mirror_has_to_be_an_address(repository, monkeypatch):
    monkeypatch.setenv("MAVEN_MIRROR", "/var/mirror")
    with pytest.raises(Refusal, match="MAVEN_MIRROR is an address"):
        install.prepare_jmeter()


def test_an_unreachable_repository_is_named(repository, monkeypatch):
    monkeypatch.setenv("MAVEN_MIRROR", "file:///nowhere")
    monkeypatch.setattr(install, "TRIES", 1)
    with pytest.raises(Refusal, match="file:///nowhere/x/Apache.* can't be downloaded"):
        install.prepare_jmeter()


@pytest.mark.parametrize(
    ("output", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ("not a Java", 0)],
)
def test_javas_version_is_read_from_its_errors(monkeypatch, output, version):
    done = subprocess.CompletedProcess([], 0, "", output)
    monkeypatch.setattr(install.subprocess, "run", lambda *_, **__: done)
    assert install._version_of("java") == version
