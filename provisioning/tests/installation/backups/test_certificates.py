"""Make, renew and watch the certificates of pgBackRest's servers."""

from __future__ import annotations

import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from provisioning.commands import listen
from provisioning.installation.backups.operations import first_end
from provisioning.installation.environment import ROLES

MAKE = ROLES / "common/files/make_certificates.sh"
HOST = "127.0.0.1"
DAY = 86400


def made(folder: Path, *hosts: str) -> list[str]:
    """Make certificates; return the hosts that got a new one."""
    command = ["sh", MAKE, folder, folder, "groundswell-backup", "730", *hosts]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Make a folder with the host's certificate, as the role does."""
    folder = tmp_path_factory.mktemp("certificates")
    assert made(folder, HOST) == [HOST]
    for kind in ("pem", "key"):
        (folder / f"certificate.{kind}").symlink_to(folder / f"{HOST}.{kind}")
    return folder


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Serve TLS to clients with a certificate of the same authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{HOST}.pem", folder / f"{HOST}.key")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with listen(0) as listener:

        def answer() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with context.wrap_socket(connection, server_side=True) as encrypted:
                    encrypted.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"{HOST}:{listener.getsockname()[1]}"
        thread.join()


def test_a_certificate_lasts_two_years_and_is_renewed_in_the_last_half_year(tmp_path):
    assert made(tmp_path, "10.0.0.11", "10.0.0.12") == ["10.0.0.11", "10.0.0.12"]
    authority = (tmp_path / "ca.pem").read_text()
    assert made(tmp_path, "10.0.0.11", "10.0.0.13") == ["10.0.0.13"]
    old = tmp_path / "10.0.0.11.pem"
    sign = f"openssl x509 -in {old} -signkey {tmp_path}/10.0.0.11.key -days 179"
    subprocess.run([*sign.split(), "-out", old], check=True, capture_output=True)
    assert made(tmp_path, "10.0.0.11", "10.0.0.12") == ["10.0.0.11"]
    assert (tmp_path / "ca.pem").read_text() == authority
    verify = ["openssl", "verify", "-CAfile", tmp_path / "ca.pem", old]
    subprocess.run(verify, check=True, capture_output=True)


def test_the_first_end_is_that_of_what_the_servers_show(folder):
    with server(folder) as address:
        # Nobody listens on the second one: it is left out.
        end = first_end(folder, [address, f"{HOST}:1"])
    assert end == pytest.approx(time.time() + 730 * DAY, abs=DAY)
    assert first_end(folder, [f"{HOST}:1"]) is None


def test_a_certificate_of_another_authority_has_ended(folder, tmp_path):
    made(tmp_path, HOST)
    with server(tmp_path) as address:
        assert first_end(folder, [address]) == 0
