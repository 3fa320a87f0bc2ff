"""Build the images and run the compose file, with Podman or Docker.

Where no registry has the base image, Debian's `debootstrap` makes it, from where this
machine's apt gets its packages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, output_of, step, wait_until
from provisioning.installation.debian_roots import (
    CERTIFICATE_VARIABLES,
    apt_settings,
    mirror_of,
    proxies,
)
from provisioning.installation.environment import path_of_program
from provisioning.processes import start_process, stop_process

FOLDER = ROOT / "provisioning" / "containers"
CONTAINERFILE, COMPOSE = FOLDER / "Containerfile", FOLDER / "compose.yaml"
IMAGES = "localhost/groundswell"
DEBOOTSTRAPPED = f"{IMAGES}/debian:12"
HAS_SYSTEMD = Path("/run/systemd/system").is_dir()
SOURCES = """\
deb {mirror} bookworm main
deb {mirror} bookworm-updates main
deb {security} bookworm-security main
"""


def targets() -> list[str]:
    """Return the stages that are images of a kind of process: those with a CMD."""
    stages = re.split(r"^FROM \S+ AS ", CONTAINERFILE.read_text(), flags=re.MULTILINE)
    return [stage.split()[0] for stage in stages[1:] if "\nCMD [" in stage]


class Engine:
    """`podman` or `docker`, and the compose program that talks to it."""

    def __init__(self, folder: Path) -> None:
        """Choose what is here. Raises Refusal if nothing is, or no server runs."""
        self.folder = folder
        # A busy machine takes longer than docker-compose 1.29 waits.
        self.environment = {**os.environ, "COMPOSE_HTTP_TIMEOUT": "600"}
        if path_of_program("podman"):
            self.name = "podman"
            configuration = folder / "containers.conf"
            configuration.write_text(podman_settings())
            self.environment["CONTAINERS_CONF"] = str(configuration)
            if not HAS_SYSTEMD:
                # Its timers would check the health of containers.
                self.environment["DISABLE_HC_SYSTEMD"] = "true"
        elif path_of_program("docker") and self.runs("docker", "info"):
            self.name = "docker"
        else:
            raise Refusal(
                "Neither Podman nor a running Docker is here. Install with: sudo"
                " apt-get install --no-install-recommends podman netavark"
                " aardvark-dns iptables runc docker-compose"
            )
        if self.runs("docker", "compose", "version") and self.name == "docker":
            self.compose = ["docker", "compose"]
        elif path_of_program("docker-compose"):
            self.compose = ["docker-compose"]
        else:
            raise Refusal("docker-compose is missing (apt-get install docker-compose)")

    def runs(self, *command: str) -> bool:
        try:
            done = subprocess.run(command, capture_output=True, env=self.environment)
        except OSError:
            return False
        return done.returncode == 0

    def run(self, *arguments: str | Path, failing: str) -> str:
        return output_of([self.name, *arguments], failing=failing, env=self.environment)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve Docker's API, which Podman has no process for, on a socket."""
        if self.name == "docker":
            yield
            return
        path = self.folder / "podman.sock"
        address = f"unix://{path}"
        with (self.folder / "podman.log").open("wb") as log:
            server = start_process(
                ["podman", "system", "service", "--time=0", address],
                output=log,
                env=self.environment,
            )
        try:
            if not wait_until(path.exists, seconds=30):
                raise Refusal(f"Podman does not serve {path}")
            self.environment["DOCKER_HOST"] = address
            yield
        finally:
            stop_process(server, seconds=30)

    def inspect(self, name: str) -> dict[str, Any]:
        [described] = json.loads(
            self.run("inspect", name, failing=f"{name} can't be inspected")
        )
        return dict(described)

    def build(self, base: str, version: str) -> dict[str, float]:
        """Build all images; return the size of each in MB."""
        sizes = {}
        for target in targets():
            with step(f"Building {target}"):
                self.run(
                    *("build", "--network=host", "--target", target),
                    *(["--format=docker"] if self.name == "podman" else []),
                    *(
                        "--build-arg",
                        f"BASE={base}",
                        "--build-arg",
                        f"VERSION={version}",
                    ),
                    *("--tag", f"{IMAGES}/{target}:{version}"),
                    *("--file", CONTAINERFILE, ROOT),
                    failing=f"{target} can't be built",
                )
            size = self.inspect(f"{IMAGES}/{target}:{version}")["Size"]
            sizes[target] = round(size / 1e6)
        return sizes

    def bootstrap(self) -> str:
        """Make a base image with debootstrap, unless it is there; return its name."""
        if self.runs(self.name, "image", "inspect", DEBOOTSTRAPPED):
            return DEBOOTSTRAPPED
        if not path_of_program("debootstrap"):
            raise Refusal("debootstrap is missing (apt-get install debootstrap)")
        root = self.folder / "root"
        with step("Making a base image with debootstrap"):
            mirror = mirror_of("Debian")
            output_of(
                ["debootstrap", "--variant=minbase", "--include=ca-certificates"]
                + ["bookworm", str(root), mirror],
                failing="debootstrap can't make it",
                env=os.environ | proxies(),
            )
            reach_registries(root, mirror)
            archive = self.folder / "root.tar"
            left_out = [f"--exclude=./{name}/*" for name in ("proc", "sys", "dev")]
            output_of(
                ["tar", "-C", str(root), "--numeric-owner", *left_out]
                + ["-cf", str(archive), "."],
                failing="tar can't pack it",
            )
            self.run("import", archive, DEBOOTSTRAPPED, failing="It can't be imported")
            archive.unlink()
        return DEBOOTSTRAPPED

    def call_compose(
        self, *arguments: str, variables: Mapping[str, str], failing: str
    ) -> str:
        project = ["--project-name", "groundswell-trial"]
        files = ["--file", str(COMPOSE), "--file", str(self.folder / "override.yaml")]
        return output_of(
            [*self.compose, *project, *files, *arguments],
            failing=failing,
            env={**self.environment, **variables},
        )


def podman_settings() -> str:
    """Return settings that also hold where the kernel or a sandbox allows less."""
    runtime = '[engine]\nruntime="runc"\n' if shutil.which("runc") else ""
    return (
        '[containers]\ndefault_ulimits=["nofile=8192:8192","nproc=8192:8192"]\n'
        f"{runtime}"
    )


def reach_registries(root: Path, mirror: str) -> None:
    """Let builds reach registries as this machine does; for trials only."""
    security = mirror.rstrip("/") + "-security"
    sources = SOURCES.format(mirror=mirror, security=security)
    (root / "etc/apt/sources.list").write_text(sources)
    lines = "".join(f"{line}\n" for line in apt_settings())
    (root / "etc/apt/apt.conf.d/99machine").write_text(lines)
    names: Sequence[str] = [os.environ.get(name, "") for name in CERTIFICATE_VARIABLES]
    certificates = next((name for name in names if name.endswith((".crt", ".pem"))), "")
    if certificates and Path(certificates).is_file():
        shutil.copy(certificates, root / "etc/ssl/machine.crt")
        (root / "etc/pip.conf").write_text("[global]\ncert = /etc/ssl/machine.crt\n")
    (root / "etc/resolv.conf").unlink(missing_ok=True)
