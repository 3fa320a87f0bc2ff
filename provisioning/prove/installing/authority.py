"""Certificates for the drill: the owner's own, and those of an authority by ACME.

The authority is Pebble, which Let's Encrypt's authors wrote for tests. It runs on the
machine and asks its port 80, as the real one does from outside.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from provisioning.commands import ROOT, Refusal, output_of, step, wait_until
from provisioning.installation.server.options import HOME
from provisioning.prove.installing.machine import Machine

SCRIPT = ROOT / "provisioning/ansible/roles/common/files/make_certificates.sh"
PEBBLE = "github.com/letsencrypt/pebble/v2/cmd/pebble@latest"
ADDRESS = "https://localhost:14000/dir"
CONFIGURATION = {
    "pebble": {
        "listenAddress": "127.0.0.1:14000",
        "managementListenAddress": "127.0.0.1:15000",
        "certificate": "/root/pebble/localhost.pem",
        "privateKey": "/root/pebble/localhost.key",
        "httpPort": 80,
        "tlsPort": 443,
    }
}


def own_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate of an authority that no browser knows, and its key."""
    made = folder / "certificates"
    output_of(["sh", SCRIPT, made, made, "drill", "90", name], failing="openssl fails")
    return made / f"{name}.pem", made / f"{name}.key"


class Authority:
    def __init__(self, machine: Machine, name: str) -> None:
        self.machine = machine
        self.name = name

    def sign(self) -> dict[str, bool]:
        """Install with this authority; return what became of it, and of a renewal."""
        with step("Starting an authority"):
            self.start()
        before = self.served()
        with step("Installing with a certificate of the authority"):
            self.machine.run(f"{HOME}/current/provisioning/install", "--acme", ADDRESS)
        signed = self.served()
        with step("Renewing the certificate"):
            # Without a terminal it would wait for up to eight minutes.
            options = ("--force-renewal", "--no-random-sleep-on-renew", "--quiet")
            self.machine.run("certbot", "renew", *options)
            wait_until(lambda: self.served() != signed, seconds=30, pause=0.5)
        timer = self.machine.call("systemctl", "is-active", "certbot.timer")
        return {
            "signed": signed != before and "Pebble" in signed,
            "renewed": self.served() != signed and "Pebble" in self.served(),
            "renews_by_itself": timer.returncode == 0,
        }

    def start(self) -> None:
        machine = self.machine
        folder = machine.root / "root" / "pebble"
        folder.mkdir()
        go = shutil.which("go")
        if not go:
            raise Refusal("Go is missing, which installs the authority")
        output_of(
            [go, "install", PEBBLE],
            failing="go can't install Pebble",
            env={**os.environ, "GOBIN": str(folder)},
        )
        made = machine.folder / "certificates"
        output_of(
            ["sh", SCRIPT, made, made, "drill", "90", "localhost"],
            failing="openssl fails",
        )
        for path in made.glob("localhost.*"):
            shutil.copy(path, folder)
        (folder / "pebble.json").write_text(json.dumps(CONFIGURATION))
        known = machine.root / "usr/local/share/ca-certificates/drill.crt"
        shutil.copy(made / "ca.pem", known)
        machine.run("update-ca-certificates")
        machine.run("sh", "-c", f"echo 127.0.0.1 {self.name} >>/etc/hosts")
        # It would sleep at random, and refuse some requests.
        variables = ["PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0"]
        machine.run(
            "systemd-run",
            "--unit=pebble",
            *(f"--setenv={each}" for each in variables),
            *("/root/pebble/pebble", "-config", "/root/pebble/pebble.json"),
        )

    def served(self) -> str:
        """Return issuer and number of the certificate that nginx shows."""
        script = (
            f"openssl s_client -connect 127.0.0.1:443 -servername {self.name}"
            " </dev/null 2>/dev/null | openssl x509 -noout -issuer -serial"
        )
        return self.machine.run("sh", "-c", script)
