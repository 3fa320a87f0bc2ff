from __future__ import annotations

import subprocess
from contextlib import contextmanager

import pytest

from provisioning.commands import Refusal
from provisioning.installation import debian_roots

LISTED = """\
Other Repository https://packages.example.org/
Debian http://security.example.org/debian-security/
Debian http://mirror.example.org/debian/
Debian http://second.example.org/debian/
"""
DUMP = """\
Acquire "";
Acquire::http::Proxy "http://proxy.example.org:3128";
Acquire::https::CaInfo "/etc/own.pem";
Acquire::Languages:: "none";
Acquire::Check-Valid-Until "false";
"""


@pytest.fixture
def apt(monkeypatch):
    """Let apt say what a machine with a proxy and a mirror would say."""
    outputs = {"apt-get": LISTED, "apt-config": DUMP}
    monkeypatch.setattr(
        debian_roots, "output_of", lambda command, failing: outputs[command[0]]
    )


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "code.py").write_text("1\n")
    (folder / "gone.py").write_text("1\n")
    (folder / ".gitignore").write_text("ignored\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    monkeypatch.setattr(debian_roots, "ROOT", folder)
    real = debian_roots.output_of
    monkeypatch.setattr(
        debian_roots, "output_of", lambda *each, **more: real(*each, **more, cwd=folder)
    )
    return folder


def test_packages_come_from_where_this_machine_gets_them(apt):
    assert debian_roots.mirror_of("Debian") == "http://mirror.example.org/debian/"
    with pytest.raises(Refusal, match="no packages of Ubuntu.*--mirror"):
        debian_roots.mirror_of("Ubuntu")


@pytest.mark.parametrize(
    ("suite", "options", "script"),
    [
        ("trixie", [], []),
        (
            "noble",
            ["--components=main,universe"],
            ["/usr/share/debootstrap/scripts/gutsy"],
        ),
    ],
)
def test_ubuntus_universe_is_part_of_its_roots(
    tmp_path, monkeypatch, suite, options, script
):
    commands = []

    def debootstrap(command, **_options):
        commands.append(command)
        (tmp_path / f"{suite}.new/usr/sbin").mkdir(parents=True)
        return ""

    monkeypatch.setattr(debian_roots, "output_of", debootstrap)
    monkeypatch.setattr(debian_roots, "path_of_program", lambda name: name)
    monkeypatch.setattr(debian_roots, "proxies", dict)
    debian_roots.make_root(tmp_path / suite, suite, "http://mirror.example.org/")
    [command] = commands
    at = command.index(suite)
    assert command[3:at] == options
    assert command[at + 2 :] == ["http://mirror.example.org/", *script]


def test_proxies_and_certificates_of_apt_are_taken_over(apt):
    assert debian_roots.apt_settings() == [
        'Acquire::http::Proxy "http://proxy.example.org:3128";',
        'Acquire::https::CaInfo "/etc/own.pem";',
        'Acquire::Check-Valid-Until "false";',
    ]
    assert debian_roots.proxies() == {"http_proxy": "http://proxy.example.org:3128"}


def test_settings_of_pip_and_apt_are_copied(apt, tmp_path, monkeypatch):
    home, root, bundle = tmp_path / "home", tmp_path / "root", tmp_path / "bundle.pem"
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_text("[global]\n")
    (root / "etc/apt/apt.conf.d").mkdir(parents=True)
    bundle.write_text("certificate\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PIP_CERT", str(bundle))
    for _ in range(2):
        debian_roots.copy_settings(root)
    assert (root / "root/.config/pip/pip.conf").read_text() == "[global]\n"
    assert (root / bundle.relative_to("/")).read_text() == "certificate\n"
    settings = root / "etc/apt/apt.conf.d/99machine"
    assert "proxy.example.org" in settings.read_text()
    assert settings.stat().st_mode & 0o077 == 0


def test_the_checkout_is_copied_with_new_files_and_without_old_ones(checkout, tmp_path):
    root = tmp_path / "root"
    (root / "groundswell" / ".venv").mkdir(parents=True)
    (root / "groundswell" / "old").mkdir()
    (root / "groundswell" / "old.py").touch()
    (checkout / "gone.py").unlink()
    (checkout / "new.py").touch()
    (checkout / "ignored").touch()
    debian_roots.copy_checkout(root)
    names = {path.name for path in (root / "groundswell").iterdir()}
    assert names == {".gitignore", ".venv", "code.py", "new.py"}


def test_variables_about_places_stay_outside():
    outside = {"PIP_INDEX_URL": "x", "TMPDIR": "/x", "XDG_CACHE_HOME": "/x"}
    inside = debian_roots.environment_inside(outside | {"HOME": "/home/x"})
    assert inside["PIP_INDEX_URL"] == "x"
    assert inside["HOME"] == "/root"
    assert not {"TMPDIR", "XDG_CACHE_HOME"} & set(inside)


def test_only_root_makes_a_root(monkeypatch):
    monkeypatch.setattr(debian_roots.os, "geteuid", lambda: 1000)
    with (
        pytest.raises(Refusal, match="Only root"),
        debian_roots.prepared_root("trixie"),
    ):
        pass


@pytest.fixture
def entered(monkeypatch, tmp_path):
    """Return what is run, and in which roots, without making any."""
    calls = []

    @contextmanager
    def prepared_root(*options, **more):
        calls.append((*options, more))
        yield tmp_path

    def run_inside(root, command, *, alone):
        calls.append((command, alone))
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(debian_roots, "prepared_root", prepared_root)
    monkeypatch.setattr(debian_roots, "run_inside", run_inside)
    return calls


def test_chosen_tests_are_run_without_the_machines_network(entered, monkeypatch):
    monkeypatch.setattr(
        "sys.argv", ["x", "--suite=noble", "survey/tests", "-k", "late"]
    )
    assert debian_roots.main() == 3
    assert entered == [
        ("noble", None, [], {"fresh": False}),
        (["provisioning/test", "survey/tests", "-k", "late"], True),
    ]


def test_a_command_is_run_instead_of_the_tests(entered, monkeypatch):
    command = "--command=provisioning/stack up"
    monkeypatch.setattr("sys.argv", ["x", command, "--postgresql=15", "--fresh"])
    debian_roots.main()
    assert entered == [
        ("trixie", None, [15], {"fresh": True}),
        (["provisioning/stack", "up"], True),
    ]


def test_what_is_run_inside_sees_no_processes_of_the_machine(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(
        debian_roots.subprocess, "run", lambda *each, **more: calls.append((each, more))
    )
    debian_roots.run_inside(tmp_path, ["true"], alone=True)
    debian_roots.run_inside(tmp_path, ["true"], alone=False)
    [([alone], _), ([reaching], _)] = calls
    assert {"--pid", "--mount", "--kill-child"} <= set(alone) & set(reaching)
    assert "--net" in alone
    assert "--net" not in reaching


def test_an_older_postgresql_comes_from_its_own_release(apt, tmp_path, monkeypatch):
    for name in ("sources.list.d", "preferences.d"):
        (tmp_path / "etc/apt" / name).mkdir(parents=True)
    monkeypatch.setattr(
        debian_roots,
        "run_inside",
        lambda root, command, *, alone: subprocess.CompletedProcess(command, 0),
    )
    debian_roots.install_postgresql(tmp_path, 15, None)
    sources = tmp_path / "etc/apt/sources.list.d/bookworm.list"
    assert (
        sources.read_text() == "deb http://mirror.example.org/debian/ bookworm main\n"
    )
    assert "n=bookworm" in (tmp_path / "etc/apt/preferences.d/bookworm").read_text()
