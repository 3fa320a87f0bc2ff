"""Ansible as the commands call it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from provisioning.commands import ROOT, Refusal, reason, step
from provisioning.environment import PYTHON
from provisioning.processes import end_with_parent

ANSIBLE = ROOT / "provisioning" / "ansible"


def playbook(path: Path, *options: str, variables: dict[str, Any]) -> list[str]:
    command = [str(PYTHON.with_name("ansible-playbook")), str(path), *options]
    return [*command, "--extra-vars", json.dumps(variables)]


def ansible_environment(home: Path) -> dict[str, str]:
    """Nothing of the caller's own set-up, and nothing left in his folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ANSIBLE_", "GROUNDSWELL_", "DJANGO_"))
    }
    return {
        **kept,
        # Ansible insists on UTF-8.
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "ANSIBLE_HOME": str(home / "cache" / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
    }


def play_site(home: Path, variables: dict[str, Any]) -> None:
    """Run the playbook; a line for each play, and all of it in a log."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    inventory = f"--inventory={ANSIBLE / 'inventories' / 'here'}"
    command = playbook(ANSIBLE / "site.yml", inventory, variables=variables)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=ANSIBLE,
        env=ansible_environment(home),
        preexec_fn=end_with_parent(signal.SIGTERM),
    )
    assert process.stdout is not None  # noqa: S101
    with process, (home / "provisioning.log").open("w") as log:
        said = list(_shown(process.stdout, log))
    if process.returncode:
        raise Refusal(f"{why_failed(said)} (more in {home / 'provisioning.log'})")


def _shown(output: Iterable[str], log: IO[str]) -> Iterator[str]:
    """Ansible's lines; of each play that has anything to do, a line of ours."""
    play = ""
    with contextlib.ExitStack() as showing:
        for line in output:
            log.write(line)
            if line.startswith("PLAY "):
                showing.close()
                play = line.partition("[")[2].partition("]")[0]
            elif line.startswith("TASK [") and play:
                showing.enter_context(step(play))
                play = ""
            yield line


def why_failed(said: Sequence[str]) -> str:
    """The task that failed, and its reason in one line."""
    task = "Ansible"
    for line in said:
        if line.startswith(("TASK [", "RUNNING HANDLER [")):
            task = line.partition("[")[2].partition("]")[0]
        if line.startswith(("fatal:", "failed:")):
            return f"{task}: {_message(line)}"
    errors = [line for line in said if line.startswith("[ERROR]")]
    return (errors or said or ["ansible-playbook does not start"])[-1].strip()


def _message(line: str) -> str:
    _, arrow, told = line.partition("=> ")
    with contextlib.suppress(ValueError):
        result = json.loads(told)
        said = result.get("stderr") or result.get("stdout") or result.get("msg")
        return reason(str(said))
    return (told if arrow else line).strip()
