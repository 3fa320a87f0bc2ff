"""Which options `provisioning/install` takes, keeps and refuses."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from provisioning.commands import Refusal
from provisioning.installation.environment import ROLES
from provisioning.installation.server import checks
from provisioning.installation.server.checks import (
    backup_variables,
    busy_ports,
    certificate_problems,
    option_problems,
    system_problem,
)
from provisioning.installation.server.install import variables_of
from provisioning.installation.server.options import (
    ACME,
    CertificateFiles,
    InstallOptions,
    keep,
    merge,
    parse,
)

BOOKWORM = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
GOOD = {"host": "survey.example.org", "email": "it@example.org"}


def given(*arguments):
    return parse(arguments)[0]


def problems(**options):
    return list(option_problems(InstallOptions(**{**GOOD, **options})))


def test_options_are_kept_until_they_are_changed(tmp_path):
    file = tmp_path / "installation.json"
    first = merge(
        given(
            *("--host", "survey.example.org", "--email", "it@example.org"),
            *("--mail", "smtp://mail.example.org", "--set", "commit_delay=9"),
        ),
        own_certificate=False,
        file=file,
    )
    assert first.acme == ACME
    keep(first, file)
    # It holds the mail server's password.
    assert file.stat().st_mode & 0o777 == 0o600
    second = merge(given(), own_certificate=False, file=file)
    assert second == first
    changed = merge(
        given("--mail", "smtp://other.example.org", "--set", "commit_delay="),
        own_certificate=False,
        file=file,
    )
    assert (changed.host, changed.mail) == (first.host, "smtp://other.example.org")
    assert changed.settings == {}


def test_an_own_certificate_ends_the_authoritys_and_the_other_way_round(tmp_path):
    file = tmp_path / "installation.json"
    keep(merge(given(), own_certificate=True, file=file), file)
    assert merge(given(), own_certificate=False, file=file).acme == ""
    files = merge(given("--acme", ACME), own_certificate=False, file=file)
    assert files.acme == ACME


@pytest.mark.parametrize(
    "arguments",
    [
        ("--certificate", "a.pem"),
        ("--key", "a.key"),
        ("--certificate", "a.pem", "--key", "a.key", "--acme", ACME),
    ],
)
def test_a_certificate_needs_its_key_and_no_authority(arguments):
    with pytest.raises(Refusal):
        parse(arguments)


def test_files_are_those_of_the_callers_folder(monkeypatch):
    monkeypatch.setenv("CALLER_FOLDER", "/home/maya")
    _, files = parse(["--certificate", "a.pem", "--key", "/etc/b.key"])
    assert files == CertificateFiles(Path("/home/maya/a.pem"), Path("/etc/b.key"))


def test_engineers_come_through_a_tunnel_under_the_name_of_their_own_machine():
    variables = variables_of(InstallOptions(**GOOD, time_zone="America/Chicago"))
    # Links begin with the first one.
    assert variables["allowed_hosts"] == ["survey.example.org", "localhost"]


def test_an_unreadable_file_of_options_is_named(tmp_path):
    file = tmp_path / "installation.json"
    file.write_text(json.dumps({"hosts": "x"}))
    with pytest.raises(Refusal, match="installation.json can't be read"):
        merge(given(), own_certificate=False, file=file)


def test_good_options_have_no_problem():
    assert problems() == []
    assert problems(time_zone="America/Chicago", mail="smtp://localhost") == []


def test_missing_options_are_named():
    assert problems(host="", email="") == ["--host is missing", "--email is missing"]


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("https://survey.example.org", "has a scheme"),
        ("192.0.2.1", "is an address"),
        ("[2001:db8::1]", "is an address"),
        (".example.org", "stands for many names"),
        ("survey", "is no full name"),
        ("survey.example.org:443", "has a port"),
        ("survey_1.example.org", "is not the name of a host"),
        ("survey.example.org/x", "is not the name of a host"),
        ("survey.example.org'; rm", "is not the name of a host"),
    ],
)
def test_bad_hosts(host, words):
    [problem] = problems(host=host)
    assert problem.startswith("--host: ")
    assert words in problem


@pytest.mark.parametrize("email", ["it", "it@example", "a b@example.org", "a@b@c.org"])
def test_bad_addresses(email):
    assert problems(email=email) == ["--email: is no e-mail address"]


@pytest.mark.parametrize(
    "mail",
    [
        "mail.example.org",
        "http://mail.example.org",
        "smtp://",
        "smtp+tls://user:pass/word@mail.example.org:587",
        "smtp://mail.example.org:port",
        "smtp://mail.example.org:0",
        "smtp://user:pass'word@mail.example.org",
        "filemail:relative",
    ],
)
def test_bad_mail_servers(mail):
    [problem] = problems(mail=mail)
    assert problem.startswith("--mail: ")


def test_bad_zones_authorities_and_places():
    assert "is it America/Chicago?" in problems(time_zone="america/chicago")[0]
    assert "begins with https://" in problems(acme="http://example.org")[0]
    assert problems(backup="relative") == [
        "--backup: write a folder, ssh://HOST?from=ADDRESS or s3://KEY:SECRET@HOST/BUCKET"
    ]
    assert "is no place" in problems(backup="ftp://example.org/x")[0]
    assert "?from=" in problems(backup="ssh://10.0.0.7")[0]
    assert "?region=REGION" in problems(backup="s3://s3.example.org/bucket")[0]


def test_places_of_backups_are_variables_of_the_role():
    written = (ROLES / "backup/defaults/main.yml").read_text()
    places = {
        "/mnt/disk": {"backup_folder": "/mnt/disk"},
        "ssh://keeper@10.0.0.7/srv/b?from=10.0.0.5": {
            "backup_repository": "host",
            "backup_host": "10.0.0.7",
            "backup_address": "10.0.0.5",
            "backup_host_login": "keeper@10.0.0.7",
            "backup_host_folder": "/srv/b",
        },
        "s3://key:se%2Fcret@s3.example.org/bucket?region=eu": {
            "backup_repository": "s3",
            "backup_s3_endpoint": "s3.example.org",
            "backup_s3_bucket": "bucket",
            "backup_s3_key": "key",
            "backup_s3_key_secret": "se/cret",
            "backup_s3_region": "eu",
        },
    }
    for place, variables in places.items():
        assert backup_variables(place) == (variables, "")
        for name in set(variables) - {"backup_repository"}:
            assert f"\n{name}:" in written


def test_other_systems_are_refused_by_their_name():
    assert system_problem(BOOKWORM) == ""
    for name, version in (("debian", "13"), ("ubuntu", "24.04")):
        assert system_problem(f'ID={name}\nVERSION_ID="{version}"\n') == ""
    assert system_problem('ID=ubuntu\nVERSION_ID="22.04"\n')
    unknown = system_problem('ID=fedora\nPRETTY_NAME="Fedora 41"\nVERSION_ID=41\n')
    assert unknown.startswith("this is Fedora 41; supported: debian 12")
    assert "an unknown system" in system_problem("")


def test_another_users_call_is_refused(monkeypatch):
    monkeypatch.setattr(checks.os, "geteuid", lambda: 1000)
    problems = list(checks.machine_problems(BOOKWORM, is_running=True))
    assert problems[0] == "only root can install it: begin with sudo"


def test_a_full_disk_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "DISK_GB", 1 << 40)
    monkeypatch.setattr(checks, "HOME", tmp_path / "home")
    problems = list(checks.machine_problems(BOOKWORM, is_running=True))
    assert f"GB left, and needs {1 << 40}" in problems[-1]


def test_a_taken_port_is_named(monkeypatch):
    class Taken:
        def setsockopt(self, *arguments):
            pass

        def bind(self, address):
            if address[1] == 80:
                raise OSError("taken")

        def listen(self):
            pass

        def close(self):
            pass

    monkeypatch.setattr(checks.socket, "socket", Taken)
    assert list(busy_ports()) == ["port 80 is taken by another program (ss -ltnp)"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    script = ROLES / "common/files/make_certificates.sh"
    for host in ("survey.example.org", "other.example.org"):
        command = ["sh", script, folder, folder, "test", "365", host]
        subprocess.run(command, check=True, capture_output=True)
    # Of another kind of key.
    sign(folder / "rsa", ends=datetime.now(UTC) + timedelta(days=9))
    sign(folder / "ended", ends=datetime.now(UTC) - timedelta(days=1))
    return folder


def sign(path, *, ends):
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    names = x509.SubjectAlternativeName([x509.DNSName("survey.example.org")])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), serial_number=1)
        .not_valid_before(ends - timedelta(days=9))
        .not_valid_after(ends)
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    path.with_suffix(".pem").write_bytes(signed.public_bytes(pem))
    path.with_suffix(".key").write_bytes(
        key.private_bytes(
            pem,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


@pytest.mark.parametrize(
    ("certificate", "key", "problem"),
    [
        ("survey.example.org.pem", "survey.example.org.key", ""),
        ("rsa.pem", "rsa.key", ""),
        ("none.pem", "rsa.key", "--certificate: there is no file"),
        ("rsa.pem", "none.key", "--key: there is no file"),
        ("survey.example.org.pem", "other.example.org.key", "does not belong to"),
        ("survey.example.org.pem", "rsa.key", "does not belong to"),
        ("rsa.key", "rsa.key", "no certificate and key as PEM"),
        ("other.example.org.pem", "other.example.org.key", "Hostname mismatch"),
    ],
)
def test_certificates_are_read_as_browsers_do(certificates, certificate, key, problem):
    files = CertificateFiles(certificates / certificate, certificates / key)
    printed = list(certificate_problems(files, "survey.example.org"))
    assert len(printed) == bool(problem)
    assert problem in "".join(printed)


def test_an_ended_certificate_is_refused(certificates):
    files = CertificateFiles(certificates / "ended.pem", certificates / "ended.key")
    [problem] = certificate_problems(files, "survey.example.org")
    assert problem == "--certificate: certificate has expired"
