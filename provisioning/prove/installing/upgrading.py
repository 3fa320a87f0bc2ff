"""Upgrade the drill's machine to made-up releases under load, and go back."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from provisioning.commands import Refusal, reason, step, wait_until
from provisioning.installation.environment import PYTHON
from provisioning.installation.server.options import HOME
from provisioning.installation.server.versions import version_in
from provisioning.processes import start_process, stop_process
from provisioning.prove.installing.machine import Machine
from provisioning.prove.installing.releases import Releases, next_versions

COMMANDS = f"{HOME}/current/provisioning"
REPOSITORY = "/root/releases"
# How the name of the code begins that was installed first, which is in no git.
FIRST = "files-"
RESPONDENTS = 2000
# Of the load alone, before something happens to the servers and after it.
CALM = 5


def drill_upgrades(
    machine: Machine, releases: Releases, name: str, answer: Callable[[], int]
) -> dict[str, Any]:
    """Return the figures of all upgrades and ways back; `answer` saves some pages."""
    first = version_in(releases.repository)
    second, third = next_versions(first)
    releases.add(second, oldest=first)
    releases.add(third, oldest=third)
    refusals = refused(machine, releases, second)
    with load(machine, name) as figures:
        upgraded = upgrade_interrupted(machine, second)
        rolled_back = roll_back(machine)
    archive = releases.archive(third, machine.root / "root")
    source = f"--from=/root/{archive.name}"
    refusals["a site to close"] = refusal(
        *(machine, "upgrade", third, source, "--during-survey"), words="--close-site"
    )
    closing = upgrade(machine, third, source, "--close-site")
    answer()
    restored = restore(machine)
    answer()
    return {
        "upgraded": {
            "seconds": upgraded,
            "killed_while_migrating": True,
            "with_closed_site_seconds": closing,
            "refused": refusals,
        },
        "lost_requests": figures["failed"],
        "load": figures,
        "rolled_back": {"seconds": rolled_back, "by_restore": restored},
    }


def refused(machine: Machine, releases: Releases, version: str) -> dict[str, str]:
    """Try what is refused; return what each refusal says."""
    source = f"--from={REPOSITORY}"
    unsigned = f"{version[:-1]}9"
    releases.git("tag", "--annotate", "--message", "none", f"v{unsigned}")
    tries = {
        "a survey day": ([version, source], "This is no time for it"),
        "no signature": ([unsigned, source, "--during-survey"], "has no signature"),
    }
    refusals = {
        name: refusal(machine, "upgrade", *arguments, words=words)
        for name, (arguments, words) in tries.items()
    }
    return {**refusals, "no way back": refusal(machine, "rollback", words="No release")}


def refusal(machine: Machine, command: str, *arguments: str, words: str) -> str:
    """Return a refusal; raise Refusal if there was none with these words."""
    done = machine.call(f"{COMMANDS}/{command}", *arguments)
    line = (done.stderr.decode().strip().splitlines() or [""])[-1]
    if done.returncode != 1 or words not in line:
        raise Refusal(f"{command} {' '.join(arguments)} was not refused: {line}")
    return line


@contextmanager
def load(machine: Machine, name: str) -> Iterator[dict[str, Any]]:
    """Answer surveys meanwhile; add figures to what it yields, at the end."""
    stack = f"{COMMANDS}/stack"
    codes = "/srv/groundswell/files/codes.txt"
    with step("Opening a rehearsal"):
        described = machine.run(
            *(stack, "manage", "open_rehearsal", "--json", f"--codes={codes}"),
            f"--respondents={RESPONDENTS}",
        )
    known = {
        "survey": json.loads(described),
        "codes": machine.run("cat", codes).split(),
    }
    file = machine.folder / "load.json"
    file.write_text(json.dumps(known))
    process = start_process(
        [
            *("ip", "netns", "exec", machine.name, str(PYTHON), "-m"),
            *("provisioning.prove.installing.load", f"https://{name}/", str(file)),
        ],
        output=subprocess.PIPE,
    )
    figures: dict[str, Any] = {}
    try:
        time.sleep(CALM)
        yield figures
        time.sleep(CALM)
        process.terminate()
        printed, _ = process.communicate(timeout=60)
        figures.update(json.loads(printed.splitlines()[-1]))
    finally:
        stop_process(process)


def upgrade(machine: Machine, version: str, *options: str) -> int:
    """Upgrade; return the seconds it took."""
    began = time.monotonic()
    with step(f"Upgrading to {version}"):
        machine.run(f"{COMMANDS}/upgrade", version, *options, "--during-survey")
    serves(machine, version)
    return round(time.monotonic() - began)


def serves(machine: Machine, version: str) -> None:
    served = machine.run("readlink", f"{HOME}/current").strip().rpartition("/")[2]
    if not served.startswith(version):
        raise Refusal(f"{served} serves, and not {version}")


def roll_back(machine: Machine) -> int:
    """Go back with the database as it is; return the seconds it took."""
    began = time.monotonic()
    with step("Rolling back"):
        machine.run(f"{COMMANDS}/rollback", "--yes")
    serves(machine, FIRST)
    return round(time.monotonic() - began)


def upgrade_interrupted(machine: Machine, version: str) -> int:
    """Kill an upgrade while it migrates, and go on; return the seconds of both."""
    began = time.monotonic()
    with step(f"Upgrading to {version}, killed while it migrates"):
        machine.run(
            *("systemd-run", "--unit=upgrade", f"{COMMANDS}/upgrade", version),
            *(f"--from={REPOSITORY}", "--during-survey"),
        )
        wait_until(
            lambda: migrates(machine) or not is_active(machine),
            seconds=1800,
            pause=0.05,
        )
        if not is_active(machine):
            log = machine.call("journalctl", "--unit=upgrade", "--output=cat")
            raise Refusal(
                f"It ended before its migrations: {reason(log.stdout.decode())}"
            )
        machine.run("systemctl", "kill", "--signal=KILL", "upgrade")
    serves(machine, FIRST)
    with step("Going on"):
        machine.run(f"{COMMANDS}/upgrade")
    serves(machine, version)
    return round(time.monotonic() - began)


def migrates(machine: Machine) -> bool:
    return machine.call("pgrep", "--full", "manage.py migrate").returncode == 0


def is_active(machine: Machine) -> bool:
    return machine.call("systemctl", "is-active", "upgrade").returncode == 0


def restore(machine: Machine) -> dict[str, Any]:
    """Go back by a restore; check that it loses what it says, and nothing else."""
    before = responses(machine)
    asked = refusal(machine, "rollback", "--yes", words="add --restore")
    began = time.monotonic()
    with step("Rolling back by a restore"):
        printed = machine.run(f"{COMMANDS}/rollback", "--yes", "--restore")
    serves(machine, FIRST)
    [lost] = re.findall(r"([\d,]+) answers$", printed, re.M)[:1]
    number = int(lost.replace(",", ""))
    left = responses(machine)
    if not number or left != before - number:
        raise Refusal(f"{before} answers were there and {number} lost; {left} are left")
    return {
        "seconds": round(time.monotonic() - began),
        "lost_answers": number,
        "asked": asked,
    }


def responses(machine: Machine) -> int:
    query = "SELECT count(*) FROM survey_response"
    psql = f"psql -h {HOME}/run -U postgres -d groundswell -Atc '{query}'"
    return int(machine.run("sh", "-c", psql))
