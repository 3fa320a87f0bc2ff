"""Checks of the machine: disks, memory, clock, kernel, updates, secrets, its boot."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from provisioning.installation.doctor.findings import (
    ERROR,
    NOTE,
    WARNING,
    Facts,
    Finding,
    Server,
    age,
    call,
    size,
)
from provisioning.monitoring import thresholds
from provisioning.monitoring.thresholds import DAY

DISKS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "nfs")
# A log that is rotated has less; nginx's are the largest, see `nginx_log_megabytes`.
LARGEST_LOG = 10**9
# Shares of memory and of swap.
MEMORY_FREE, SWAP_USED = 0.05, 0.5
# Days without the security updates of a day, or with a restart that is due.
UPDATES_AGE = 3
# Days before the end of a system's support.
END_IS_NEAR = 180
# Long-term support: docs/guides/supported-versions.md.
SUPPORTED_UNTIL = {
    "debian 12": "2028-06-30",
    "debian 13": "2030-06-30",
    "ubuntu 24.04": "2029-05-31",
}
SYSCTL = Path("/etc/sysctl.d/60-groundswell.conf")
# Debian's packages with the letters that the release's own fonts lack, and a file of
# each (`name_fonts` of the playbook).
FONT_FOLDER = Path("/usr/share/fonts")
FONTS = {
    "fonts-noto-core": "truetype/noto/NotoSansBengali-*",
    "fonts-noto-cjk": "opentype/noto/NotoSansCJK-*",
}


def read_disks(server: Server) -> Facts:
    mounts, seen = [], set()
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, path, kind, options, *_ = line.split(" ")
        if not kind.startswith(DISKS):
            continue
        path = path.encode().decode("unicode_escape")
        try:
            disk = os.statvfs(path)
        except OSError:
            continue
        # Containers' layers are mounts of one disk.
        figures = disk.f_blocks, disk.f_bavail, disk.f_favail
        if figures in seen or not disk.f_blocks:
            continue
        seen.add(figures)
        mounts.append(
            {
                "path": path,
                "bytes": disk.f_blocks * disk.f_frsize,
                # Without root's reserve, which the programs do not get.
                "free": disk.f_bavail * disk.f_frsize,
                "inodes": disk.f_files,
                "inodes_free": disk.f_favail,
                "is_readonly": "ro" in options.split(","),
            }
        )
    logs = [
        [str(path), path.stat().st_blocks * 512]
        for path in (server.home / "log").rglob("*")
        if path.is_file() and path.stat().st_size > LARGEST_LOG
    ]
    return {"mounts": mounts, "logs": logs}


def judge_disks(server: Server, facts: Facts) -> Iterator[Finding]:
    for mount in facts["mounts"]:
        path = mount["path"]
        if mount["is_readonly"]:
            if server.home.is_relative_to(path):
                yield Finding(
                    "disk.readonly",
                    ERROR,
                    f"The disk of {path} takes no writes, so nothing is saved",
                    "read the kernel's log (journalctl -k): the disk may be failing;"
                    " then mount it anew, or restore a backup on another machine",
                )
            continue
        if mount["free"] < thresholds.DISK_FREE * mount["bytes"]:
            yield Finding(
                "disk.space",
                ERROR,
                f"The disk of {path} has {size(mount['free'])} of"
                f" {size(mount['bytes'])} left; saving stops when it is full",
                f"see what is large: sudo du -xh {path} | sort -h | tail; delete old"
                " logs, exports and releases, or enlarge the disk. Never delete in"
                f" {server.home}/data",
            )
        if mount["inodes_free"] < thresholds.DISK_FREE * mount["inodes"]:
            yield Finding(
                "disk.inodes",
                ERROR,
                f"The disk of {path} has room for {mount['inodes_free']:,} more files,"
                f" of {mount['inodes']:,}",
                "see where many small files are: sudo du -x --inodes"
                f" {path} | sort -n | tail; delete those that no program needs",
            )
    for path, length in facts["logs"]:
        if length > LARGEST_LOG:
            yield Finding(
                "disk.logs",
                WARNING,
                f"The log {path} has grown to {size(length)}",
                f"read its last lines for what is repeated (tail {path}); empty it with"
                f" truncate -s 0 {path}. The program `logs` rotates logs: does it run?",
            )


def read_memory(server: Server) -> Facts:
    lines = Path("/proc/meminfo").read_text().splitlines()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    _, kernel = call(
        ["journalctl", "--dmesg", "--since=-24h", "--no-pager", "--output=cat"]
        + ["--grep=Out of memory: Killed process|Memory cgroup out of memory"]
    )
    killed = [line for line in kernel.splitlines() if "Killed process" in line]
    return {
        "total": kilobytes["MemTotal"] * 1024,
        "available": kilobytes["MemAvailable"] * 1024,
        "swap": kilobytes["SwapTotal"] * 1024,
        "swap_free": kilobytes["SwapFree"] * 1024,
        # "… Killed process 123 (postgres) total-vm:…"
        "killed": sorted({line.split("(")[1].split(")")[0] for line in killed}),
        "kills": len(killed),
    }


def judge_memory(server: Server, facts: Facts) -> Iterator[Finding]:
    advice = (
        "see what takes it (provisioning/stack status), restart a program that has"
        " grown, or give the machine more memory (provisioning/run capacity)"
    )
    if facts["available"] < MEMORY_FREE * facts["total"]:
        yield Finding(
            "memory.available",
            ERROR,
            f"{size(facts['available'])} of {size(facts['total'])} memory are left",
            advice,
        )
    used = facts["swap"] - facts["swap_free"]
    if facts["swap"] and used > SWAP_USED * facts["swap"]:
        yield Finding(
            "memory.swap",
            WARNING,
            f"{size(used)} of memory are on the disk (swap), which makes pages slow",
            advice,
        )
    if facts["kills"]:
        yield Finding(
            "memory.killed",
            ERROR,
            f"In the last 24 hours the kernel ended {facts['kills']} processes because"
            f" memory had run out: {', '.join(facts['killed'])}",
            advice,
        )


def read_clock(server: Server) -> Facts:
    status, tracking = call(["chronyc", "-c", "tracking"])
    fields = tracking.strip().split(",") if status == 0 else []
    zone = str(server.options.get("time_zone", ""))
    try:
        ZoneInfo(zone or "UTC")
        is_known = True
    except (OSError, ValueError, KeyError):
        is_known = False
    return {
        "is_container": is_container(),
        "problem": tracking if status else "",
        "is_synchronised": len(fields) > 13 and fields[13] != "Not synchronised",
        "offset": float(fields[4]) if len(fields) > 13 else 0.0,
        "zone": zone,
        "zone_is_known": is_known,
        "year": datetime.now(UTC).year,
    }


def judge_clock(server: Server, facts: Facts) -> Iterator[Finding]:
    network = "does a firewall outside hold back UDP port 123? Then sudo systemctl"
    if not facts["is_container"]:
        if facts["problem"]:
            yield Finding(
                "clock.program",
                WARNING,
                f"Nothing keeps the clock right: {facts['problem']}",
                "sudo systemctl enable --now chrony",
            )
        elif not facts["is_synchronised"]:
            yield Finding(
                "clock.synchronised",
                WARNING,
                "The clock is not synchronised: no time server answers",
                f"chronyc sources; {network} restart chrony",
            )
    if abs(facts["offset"]) > thresholds.CLOCK_OFFSET or facts["year"] < 2026:
        yield Finding(
            "clock.offset",
            ERROR,
            f"The clock is {age(facts['offset'])} wrong, and opens and closes surveys"
            " at the wrong time",
            "sudo chronyc makestep; what a wrong clock does:"
            " docs/decisions/0077-which-clock-decides.md",
        )
    if not facts["zone_is_known"]:
        yield Finding(
            "clock.zone",
            ERROR,
            f"This system does not know the time zone of the state, {facts['zone']}",
            "sudo apt-get install --reinstall tzdata, or"
            f" {server.command}/install --time-zone ZONE",
        )


def read_updates(server: Server) -> Facts:
    release = Path("/etc/os-release").read_text()
    pairs = [line.partition("=") for line in release.splitlines()]
    values = {name: value.strip('"') for name, _, value in pairs}
    status, simulated = call(
        ["apt-get", "-s", "-o", "Debug::NoLocking=true", "upgrade"]
    )
    lines = simulated.splitlines() if status == 0 else []
    installed = (server.home / "installation.lock", Path("/var/lib/dpkg/info"))
    stamp = Path("/var/lib/apt/periodic/unattended-upgrades-stamp")
    reboot = Path("/run/reboot-required")
    now = time.time()
    return {
        "system": f"{values.get('ID')} {values.get('VERSION_ID')}",
        "name": values.get("PRETTY_NAME", "this system"),
        "security": sum(
            line.startswith("Inst ") and "-security" in line.lower().replace(":", "-")
            for line in lines
        ),
        "since": now
        - max(path.stat().st_mtime for path in (*installed, stamp) if path.exists()),
        "reboot_since": now - reboot.stat().st_mtime if reboot.exists() else None,
        "today": date.today().isoformat(),
    }


def judge_updates(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["security"] and facts["since"] > UPDATES_AGE * DAY:
        yield Finding(
            "updates.pending",
            WARNING,
            f"{facts['security']} security updates wait; none were installed for"
            f" {age(facts['since'])}",
            "sudo unattended-upgrade -d says why; then systemctl status"
            " apt-daily-upgrade.timer",
        )
    if (facts["reboot_since"] or 0) > UPDATES_AGE * DAY:
        yield Finding(
            "updates.restart",
            WARNING,
            f"An update has needed a restart for {age(facts['reboot_since'])}",
            "sudo systemctl reboot, when few people answer: it takes a minute, and"
            " open pages are sent again",
        )
    until = SUPPORTED_UNTIL.get(facts["system"])
    if until is None:
        yield Finding(
            "updates.system",
            WARNING,
            f"{facts['name']} is not supported: nothing was tested with it",
            "docs/guides/supported-versions.md",
        )
        return
    left = (date.fromisoformat(until) - date.fromisoformat(facts["today"])).days
    if left < END_IS_NEAR:
        yield Finding(
            "updates.end",
            ERROR if left < 0 else WARNING,
            f"{facts['name']} gets {'no' if left < 0 else 'its last'} security updates"
            f" {'since' if left < 0 else 'on'} {until}",
            "plan the upgrade: docs/guides/postgresql-upgrade.md",
        )


def is_container() -> bool:
    """Return whether the kernel and its clock are those of another machine."""
    return call(["systemd-detect-virt", "--container", "--quiet"])[0] == 0


def read_kernel(server: Server) -> Facts:
    wrong: list[list[str]] = []
    if is_container():
        return {"wrong": wrong}
    for line in SYSCTL.read_text().splitlines() if SYSCTL.exists() else ():
        name, _, value = (part.strip() for part in line.partition("="))
        path = Path("/proc/sys") / name.replace(".", "/")
        if path.exists() and path.read_text().split() != value.split():
            wrong.append([name, value, path.read_text().strip()])
    return {"wrong": wrong}


def judge_kernel(server: Server, facts: Facts) -> Iterator[Finding]:
    for name, wanted, present in facts["wrong"]:
        yield Finding(
            "kernel.settings",
            WARNING,
            f"The kernel's setting {name} is {present} instead of {wanted}",
            "sudo sysctl --system; another file of /etc/sysctl.d may set it again",
        )


def read_fonts(server: Server) -> Facts:
    missing = [name for name, glob in FONTS.items() if not any(FONT_FOLDER.glob(glob))]
    return {"missing": missing}


def judge_fonts(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["missing"]:
        # The packages are large, and a state may need none of them.
        yield Finding(
            "fonts.missing",
            NOTE,
            "Reports print boxes, and login cards IDs, in place of letters such as"
            " Chinese, Korean and Bengali: their fonts are missing",
            f"sudo apt-get install {' '.join(facts['missing'])}; then restart the"
            " programs, which remember the fonts",
        )


def read_boot(server: Server) -> Facts:
    units = ["groundswell.service", "groundswell-firewall.service"]
    units += ["apt-daily.timer", "apt-daily-upgrade.timer"]
    if server.options.get("acme"):
        units.append("certbot.timer")
    states = {}
    for unit in units:
        _, shown = call(
            ["systemctl", "show", unit, "--property=UnitFileState,ActiveState"]
        )
        pairs = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        states[unit] = [pairs.get("UnitFileState", ""), pairs.get("ActiveState", "")]
    return {"units": states}


def judge_boot(server: Server, facts: Facts) -> Iterator[Finding]:
    purposes = {
        "groundswell.service": "the servers do not start after a restart",
        "groundswell-firewall.service": "after a restart no port is closed",
        "apt-daily.timer": "nothing asks for security updates",
        "apt-daily-upgrade.timer": "no security updates are installed",
        "certbot.timer": "nobody renews the certificate",
    }
    for unit, (enabled, active) in facts["units"].items():
        is_off = unit.endswith(".timer") and active != "active"
        if enabled != "enabled" or is_off:
            yield Finding(
                "boot.timer" if unit.endswith(".timer") else "boot.unit",
                WARNING,
                f"{unit} is switched off, so {purposes[unit]}",
                f"sudo systemctl enable {'--now ' if is_off else ''}{unit}",
            )


def read_secrets(server: Server) -> Facts:
    """Read owners and modes; no file is opened."""
    home, readable = server.home, []
    paths = [home / "installation.json", home / "secrets", home / "certificate"]
    for folder in paths[1:]:
        paths += sorted(folder.rglob("*")) if folder.exists() else []
    for pattern in ("app/*.env", "*/pgpass", "*/userlist.txt", "backup/*.json"):
        paths += sorted((home / "etc").glob(pattern))
    for path in paths:
        if path.exists() and not path.is_symlink():
            status = path.stat()
            # A group of servers may enter folders of them, and read no secret.
            allowed = 0o077 if not path.is_dir() else 0o066
            if stat.S_IMODE(status.st_mode) & allowed:
                readable.append([str(path), f"{stat.S_IMODE(status.st_mode):04o}"])
    return {"readable": readable}


def judge_secrets(server: Server, facts: Facts) -> Iterator[Finding]:
    for path, mode in facts["readable"]:
        yield Finding(
            "secrets.readable",
            ERROR,
            f"Other users may read the secret {path} (mode {mode})",
            f"sudo chmod go-rwx {path}; if other people have accounts here, change"
            " the secret, too",
        )


def read_backup_place(server: Server) -> Facts:
    place = str(server.options.get("backup", "")) or str(server.home / "backups")
    data = server.home / "data"
    if not place.startswith("/") or not Path(place).exists():
        return {"place": place, "same_disk": False}
    return {"place": place, "same_disk": os.stat(place).st_dev == os.stat(data).st_dev}


def judge_backup_place(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["same_disk"]:
        yield Finding(
            "backup.same_disk",
            NOTE,
            f"Backups are in {facts['place']}, on the same disk as the data, and are"
            " lost with it",
            f"{server.command}/install --backup PLACE",
        )
