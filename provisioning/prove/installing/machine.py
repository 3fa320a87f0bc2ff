"""A machine with a fresh Debian or Ubuntu: made by debootstrap, run by systemd-nspawn.

systemd is its process 1, and it can be restarted. It shares this machine's kernel, and
has a network of its own, out of which slirp4netns leads without changing the network
of this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from provisioning.commands import (
    Refusal,
    listen,
    output_of,
    reason,
    step,
    wait_until,
)
from provisioning.installation.debian_roots import SUITES, mirror_of
from provisioning.processes import children_of, start_process, stop_process

# Of slirp4netns: its DNS server, and this machine as the other one sees it.
NAME_SERVER = "10.0.2.3"
HOST = "10.0.2.2"
PROGRAMS = ("debootstrap", "systemd-nspawn", "slirp4netns", "ip", "nsenter")
GROUPS = Path("/sys/fs/cgroup")
# What an administrator's image has besides.
PACKAGES = "systemd,systemd-sysv,dbus,ca-certificates,python3,iproute2,procps,openssl"
BOOT_SECONDS = 120
# The servers may take five minutes; see roles/common/templates/units.
STOP_SECONDS = 400
# The status with which nspawn ends when its machine wants to start anew.
RESTARTS = 133
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
}


@dataclass(frozen=True, slots=True)
class Mirror:
    """Where apt gets the packages of a distribution from."""

    packages: str
    security: str
    components: str = "main"

    @classmethod
    def of_this_machine(cls, folder: Path = Path("/etc/apt")) -> Mirror:
        paths = [
            folder / "sources.list",
            *sorted((folder / "sources.list.d").glob("*")),
        ]
        text = "\n".join(
            path.read_text()
            for path in paths
            if path.suffix in (".list", ".sources") and path.is_file()
        )
        lines = re.findall(r"^(?:deb |URIs: *)(?:\[.*?\] )?(\S+)", text, re.MULTILINE)
        addresses = [line for line in lines if "debian" in line]
        packages = [each for each in addresses if "security" not in each]
        security = [each for each in addresses if "security" in each]
        if not packages:
            raise Refusal(f"{folder} names no mirror of Debian's packages")
        return cls(packages[0], (security or [""])[0])

    @classmethod
    def of_suite(cls, suite: str, address: str | None = None) -> Mirror:
        """Return the mirror at an address, or else what this machine's apt has."""
        if SUITES[suite][0] == "Ubuntu":
            packages = address or mirror_of("Ubuntu")
            return cls(packages, packages, "main universe")
        return cls(address, "") if address else cls.of_this_machine()

    def sources(self, suite: str) -> str:
        pockets = [(self.packages, suite), (self.packages, f"{suite}-updates")]
        if self.security:
            pockets.append((self.security, f"{suite}-security"))
        return "".join(
            f"deb {address} {pocket} {self.components}\n" for address, pocket in pockets
        )


def make_root(root: Path, suite: str, mirror: Mirror, *more: str) -> None:
    """Make a folder with a fresh system, and more of its packages."""
    distribution = SUITES.get(suite, ("Debian", 0))[0]
    options = [f"--include={','.join([PACKAGES, *more])}"]
    if distribution == "Ubuntu":
        # Debian has neither Ubuntu's keys nor, for a release younger than its own,
        # the name of the script that is the same for all of Ubuntu's.
        options += ["--components=main,universe", "--no-check-gpg"]
    with step(f"Making a fresh {distribution} {suite}"):
        output_of(
            # What it mounts there ends with it, however it ends.
            [
                "unshare",
                "--mount",
                "debootstrap",
                *options,
                suite,
                root,
                mirror.packages,
                *(["gutsy"] if distribution == "Ubuntu" else []),
            ],
            failing="debootstrap fails",
            cwd=Path("/"),
        )
    texts = {
        "etc/apt/sources.list": mirror.sources(suite),
        "etc/hostname": "drill\n",
        "etc/hosts": "127.0.0.1 localhost drill\n",
        "etc/resolv.conf": f"nameserver {NAME_SERVER}\n",
    }
    for name, text in texts.items():
        (root / name).unlink(missing_ok=True)
        (root / name).write_text(text)
    # What this machine needs to reach its package registries, that one needs too.
    authorities = Path("/usr/local/share/ca-certificates")
    shutil.copytree(
        authorities, root / authorities.relative_to("/"), dirs_exist_ok=True
    )
    if Path("/etc/pip.conf").exists():
        shutil.copy("/etc/pip.conf", root / "etc")
    output_of(
        ["chroot", root, "update-ca-certificates"],
        failing="update-ca-certificates fails",
        cwd=Path("/"),
    )


@dataclass
class Machine:
    """A running machine; `folder` has its root and its console's log."""

    folder: Path
    # 0: as much as this machine has.
    memory_mb: int = 0
    cores: int = 0
    name: str = field(default_factory=lambda: f"gs-drill-{os.getpid()}")
    network: subprocess.Popen[bytes] = field(init=False)
    container: subprocess.Popen[bytes] = field(init=False)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def namespace(self) -> Path:
        return Path("/run/netns") / self.name

    def start(self) -> None:
        output_of(["ip", "netns", "add", self.name], failing="ip netns fails")
        self.in_network("ip", "link", "set", "lo", "up")
        network = ["slirp4netns", "--configure", "--netns-type=path"]
        self.network = self.start_process(*network, str(self.namespace), "tap0")
        self.boot()

    def boot(self) -> None:
        self.power_on()
        self.wait_for_boot()

    def power_on(self) -> None:
        limits = ["taskset", "-c", f"0-{self.cores - 1}"] if self.cores else []
        self.container = self.start_process(
            *self.in_groups(),
            *limits,
            *("systemd-nspawn", f"--directory={self.root}", "--boot"),
            *(f"--machine={self.name}", *self.mounts()),
            *("--register=no", "--keep-unit", "--console=pipe"),
            *("--resolv-conf=off", "--timezone=off", "--link-journal=no"),
            # For its firewall.
            "--capability=CAP_NET_ADMIN",
            f"--network-namespace-path={self.namespace}",
        )

    def wait_for_boot(self) -> None:
        if not wait_until(self.is_up, seconds=BOOT_SECONDS, pause=0.5):
            raise Refusal(f"It does not start; see {self.folder}/console.log")

    def start_process(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / "console.log").open("ab") as log:
            return start_process(command, output=log, cwd=self.folder)

    def mounts(self) -> list[str]:
        """Return options for what it has besides its root."""
        return []

    @property
    def groups(self) -> list[Path]:
        """Return its control groups: in one, two systemds end each other's services."""
        kinds = ["systemd", "unified", *(["memory"] if self.memory_mb else [])]
        return [GROUPS / kind / self.name for kind in kinds if (GROUPS / kind).is_dir()]

    def in_groups(self) -> list[str]:
        """Return a command that runs another one in groups of this machine."""
        if self.memory_mb and not (GROUPS / "memory").is_dir():
            raise Refusal("Memory can be limited by cgroups of version 1 only")
        for group in self.groups:
            group.mkdir(exist_ok=True)
            if group.parent.name == "memory":
                limit = str(self.memory_mb << 20)
                (group / "memory.limit_in_bytes").write_text(limit)
        enter = "".join(f"echo $$ >{group}/cgroup.procs; " for group in self.groups)
        return ["sh", "-c", f'{enter}exec "$@"', "sh"]

    def remove_groups(self) -> None:
        for group in self.groups:
            for path in sorted([group, *group.rglob("*/")], reverse=True):
                with suppress(OSError):
                    path.rmdir()

    def memory_peak_mb(self) -> int:
        group = GROUPS / "memory" / self.name
        return int((group / "memory.max_usage_in_bytes").read_text()) >> 20

    @property
    def leader(self) -> int:
        """Return its process 1, or 0 while there is none."""
        with suppress(IndexError):
            return children_of(self.container.pid)[0]
        return 0

    def processes(self) -> list[subprocess.Popen[bytes]]:
        return [self.network, self.container]

    def is_up(self) -> bool:
        for process in self.processes():
            if process.poll() is not None:
                raise Refusal(f"The machine ended; see {self.folder}/console.log")
        if not self.leader:
            return False
        state = self.call("systemctl", "is-system-running").stdout.decode().strip()
        return state in ("running", "degraded")

    def call(
        self, *command: str, input_bytes: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command there, as root."""
        entered = ["nsenter", f"--target={self.leader}"]
        entered += ["--mount", "--uts", "--ipc", "--net", "--pid"]
        return subprocess.run(
            [*entered, "--", "sh", "-c", 'cd /root && exec "$@"', "sh", *command],
            input=input_bytes,
            capture_output=True,
            env=ENVIRONMENT,
        )

    def run(self, *command: str, input_bytes: bytes = b"") -> str:
        """Return what a command prints; raise Refusal with its reason if it fails."""
        done = self.call(*command, input_bytes=input_bytes)
        printed = done.stdout.decode(errors="replace")
        if done.returncode:
            with (self.folder / "failed.log").open("ab") as log:
                log.write(
                    shlex.join(command).encode() + b"\n" + done.stdout + done.stderr
                )
            errors = done.stderr.decode(errors="replace") or printed
            raise Refusal(f"{command[0]} fails there: {reason(errors)}")
        return printed

    def in_network(self, *command: str) -> str:
        return output_of(
            ["ip", "netns", "exec", self.name, *command], failing=f"{command[0]} fails"
        )

    def reboot(self) -> None:
        """Restart it, and wait until systemd has started everything."""
        self.call("systemctl", "reboot")
        # A real machine would begin anew by itself; nspawn leaves that to its caller.
        if self.container.wait(timeout=STOP_SECONDS) != RESTARTS:
            raise Refusal(f"The machine ended; see {self.folder}/console.log")
        self.boot()

    def stop(self) -> None:
        if hasattr(self, "container"):
            if self.leader:
                self.call("systemctl", "poweroff")
            with suppress(subprocess.TimeoutExpired):
                self.container.wait(timeout=STOP_SECONDS)
            stop_process(self.container)
        if hasattr(self, "network"):
            stop_process(self.network)
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True)
        self.remove_groups()


def free_port() -> int:
    with closing(listen(0)) as probe:
        port: int = probe.getsockname()[1]
        return port
