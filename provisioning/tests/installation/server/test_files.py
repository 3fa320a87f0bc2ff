"""The files of an installed server, of both sizes."""

from __future__ import annotations

import configparser
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioning.commands import ROOT
from provisioning.installation.environment import path_of_program
from provisioning.installation.playbook import ANSIBLE
from provisioning.installation.postgresql import postgresql_programs
from provisioning.tests.installation.rendered_files import play

SERVER = ANSIBLE / "inventories" / "server"
HOST = "survey.example.org"


def render_server(folder: Path, size: str) -> Path:
    home = folder / size
    home.mkdir()
    user = pwd.getpwuid(os.geteuid()).pw_name
    play(
        home,
        f"--inventory={SERVER / 'hosts.yml'}",
        f"--inventory={SERVER / f'{size}.yml'}",
        "--tags=files",
        home=str(home),
        checkout=f"{home}/current",
        python=f"{home}/current/.venv/bin/python",
        release_folder=f"{home}/releases/2026-11-29-abc",
        version="2026-11-29-abc",
        files_only=True,
        server_user="",
        app_user="",
        superusers=[user],
        postgresql_bin=str(postgresql_programs()),
        allowed_hosts=[HOST, "localhost"],
        time_zone="America/Chicago",
        mail_server="smtp+tls://user:mailsecret@mail.example.org:587",
        acme_authority="https://authority.example.org/dir",
        acme_email="it@example.org",
        ansible_python_interpreter=sys.executable,
    )
    return home


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def standard(folder) -> Path:
    return render_server(folder, "standard")


@pytest.fixture(scope="module")
def small(folder) -> Path:
    return render_server(folder, "small")


def programs_of(home: Path) -> set[str]:
    programs: set[str] = set()
    for ini in home.glob("etc/*/supervisor.ini"):
        written = configparser.RawConfigParser()
        written.read(ini)
        programs |= {name.rpartition(":")[2] for name in written.sections()}
    return programs


def test_a_small_machine_has_neither_replica_nor_queue(standard, small):
    left_out = programs_of(standard) - programs_of(small)
    assert left_out == {
        *("replica", "rabbitmq", "epmd", "beat"),
        *("long_worker", "scan_worker", "download_worker", "email_worker"),
    }
    assert programs_of(small) <= programs_of(standard)
    worker = (small / "etc/worker/supervisor.ini").read_text()
    assert "manage.py work\n" in worker
    assert "celery" not in worker
    for name in ("console", "worker"):
        environment = (small / f"etc/app/{name}.env").read_text()
        assert "GROUNDSWELL_BROKER=''" in environment
        assert "REPLICA" not in environment


def test_a_server_is_no_host_of_a_fleet(standard):
    described = json.loads((standard / "etc/stack.json").read_text())
    assert described["checkout_of_fleet"] == ""


def test_templates_are_completely_rendered(standard, small):
    for home in (standard, small):
        written = [path for path in (home / "etc").rglob("*") if path.is_file()]
        assert len(written) > 30
        for path in written:
            assert "{{" not in path.read_text(), path
            assert "{%" not in path.read_text(), path


def test_it_listens_with_tls_under_its_name(standard):
    written = (standard / "etc/nginx/nginx.conf").read_text()
    assert re.search(r"listen (\[::\]:443 ipv6only=off|0.0.0.0:443) ssl http2", written)
    assert re.search(r"listen (\[::\]:80 ipv6only=off|0.0.0.0:80);", written)
    assert "return 301 https://$host$request_uri;" in written
    assert f"ssl_certificate {standard}/certificate/chain.pem;" in written
    # Only what people's browsers ask for is public.
    public = [
        line
        for line in re.findall("listen (.*);", written)
        if not line.startswith(("127.0.0.1:", "unix:"))
    ]
    assert len(public) == 2
    # As the help for operators says: https://localhost:8082/engineers/.
    assert "listen 127.0.0.1:8082 ssl http2;" in written
    console = (standard / "etc/app/console.env").read_text()
    assert f"GROUNDSWELL_HOSTS='{HOST},localhost'" in console
    assert "GROUNDSWELL_TLS=on" in console
    assert f"GROUNDSWELL_URL='https://{HOST}'" in console


def test_an_authority_is_answered_over_plain_http(standard):
    written = (standard / "etc/nginx/nginx.conf").read_text()
    [plain] = re.findall(r"listen [^;]*:80\b[^;]*;.*?\n    }", written, re.DOTALL)
    assert f"root {standard}/acme;" in plain
    request = (standard / "etc/certificate/request").read_text()
    assert f"--webroot-path {standard}/acme" in request
    assert f"--domain {HOST} --server 'https://authority.example.org/dir'" in request


@pytest.mark.skipif(not path_of_program("nginx"), reason="nginx is not installed here")
def test_nginx_takes_its_configuration(standard):
    for name in ("run", "log", "certificate", "acme"):
        (standard / name).mkdir(exist_ok=True)
    script = standard / "etc/certificate/make_temporary"
    subprocess.run(["sh", script], check=True, capture_output=True)
    done = subprocess.run(
        [path_of_program("nginx"), "-t", "-c", standard / "etc/nginx/nginx.conf"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not path_of_program("systemd-analyze"), reason="no systemd here")
def test_systemd_takes_the_units(standard, tmp_path):
    units = [
        standard / "etc/units/groundswell.service",
        standard / "etc/firewall/groundswell-firewall.service",
    ]
    for unit in units:
        # Programs of this test's folder are not there, and those of Debian may be.
        text = re.sub("(?m)^(Exec\\w+)=.*$", r"\1=/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", *(tmp_path / unit.name for unit in units)],
        capture_output=True,
        text=True,
    )
    complaints = [line for line in done.stderr.splitlines() if "groundswell" in line]
    assert complaints == []


# As needrestart looks a unit up, without a rule: 1.
IS_RESTARTED = """
our %nrconf = (override_rc => {}); do $ARGV[0]; die $@ if $@;
my ($rule) = grep { $ARGV[1] =~ /$_/ } keys %{$nrconf{override_rc}};
print defined $rule ? $nrconf{override_rc}{$rule} : 1;
"""


@pytest.mark.parametrize(
    ("unit", "restarted"), [("groundswell.service", "0"), ("ssh.service", "1")]
)
def test_an_update_of_a_library_restarts_no_server(standard, unit, restarted):
    written = standard / "etc/needrestart/groundswell.conf"
    printed = subprocess.check_output(["perl", "-e", IS_RESTARTED, written, unit])
    assert printed.decode() == restarted


def test_programs_start_from_the_link_and_releases_from_their_folder(standard):
    unit = (standard / "etc/units/groundswell.service").read_text()
    assert f"ExecStart={standard}/current/.venv/bin/supervisord --nodaemon" in unit
    assert "Restart=always\n" in unit
    assert "OOMPolicy=continue\n" in unit
    release = (standard / "etc/app/release").read_text()
    new = f"{standard}/releases/2026-11-29-abc"
    at = [
        release.index(text)
        for text in (
            f"cd {new}\n",
            f"{new}/.venv/bin/python -m provisioning",
            f"env --chdir={new} {new}/.venv/bin/python {new}/manage.py migrate",
            f"ln -sfn {new} {standard}/current.new",
        )
    ]
    # The link moves last.
    assert at == sorted(at)
    assert f"cd {standard}/current " in (standard / "etc/app/run").read_text()


@pytest.mark.parametrize("chdir", [True, False])
def test_migrations_are_those_of_the_release_and_not_of_the_current_folder(
    tmp_path, chdir
):
    """With a twin: from the folder of the old code, Python reads the old code."""
    for app in ("accounts", "survey"):
        (tmp_path / app).mkdir()
        (tmp_path / app / "__init__.py").write_text("raise SystemExit('old code')")
    command = [sys.executable, ROOT / "manage.py", "showmigrations", "survey"]
    done = subprocess.run(
        ["env", f"--chdir={ROOT}", *command] if chdir else command,
        cwd=tmp_path,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.embedded",
            "GROUNDSWELL_DATA": str(tmp_path / "data"),
        },
        capture_output=True,
        text=True,
    )
    assert ("0001_tables" in done.stdout) is chdir, done.stderr
    assert ("old code" in done.stderr) is not chdir


def test_no_server_but_the_web_is_reached_from_outside(standard):
    rules = (standard / "etc/firewall/rules.nft").read_text()
    [closed] = re.findall(r"tcp dport { ([\d, ]+) } drop", rules)
    assert {"5432", "6432", "5672", "8081"} <= set(closed.split(", "))
    assert not {"22", "80", "443"} & set(closed.split(", "))


def test_security_updates_are_installed_by_themselves(standard):
    written = (standard / "etc/updates/52groundswell").read_text()
    assert 'APT::Periodic::Unattended-Upgrade "1";' in written
    assert 'Automatic-Reboot-Time "04:00";' in written
