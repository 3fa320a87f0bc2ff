"""Run the Ansible playbook that writes and starts every server."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from provisioning.commands import ROOT, Refusal, reason, step
from provisioning.installation.environment import PYTHON
from provisioning.processes import start_process

ANSIBLE = ROOT / "provisioning" / "ansible"
HERE = ANSIBLE / "inventories" / "here"
THIS_MACHINE = f"--inventory={HERE}"


def playbook_command(
    *options: str, variables: dict[str, object], book: str = "site.yml"
) -> list[str]:
    ansible = str(PYTHON.with_name("ansible-playbook"))
    path = str(ANSIBLE / book)
    return [ansible, path, *options, "--extra-vars", json.dumps(variables)]


def ansible_environment(folder: Path) -> dict[str, str]:
    """Return variables that keep Ansible apart from the caller's own set-up."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ANSIBLE_", "GROUNDSWELL_", "DJANGO_"))
    }
    return {
        **inherited,
        # Ansible insists on UTF-8.
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "cache" / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
    }


def run_playbook(
    folder: Path,
    variables: dict[str, object],
    *options: str,
    quietly: bool = False,
    inventories: Sequence[Path] = (HERE,),
) -> None:
    """Run the playbook for this machine; print a line for each play."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder / "provisioning.log"
    # A failed task may quote a password.
    log.touch(mode=0o600)
    log.chmod(0o600)
    process = start_process(
        playbook_command(
            *(f"--inventory={path}" for path in inventories),
            *options,
            variables=variables,
        ),
        output=subprocess.PIPE,
        cwd=ANSIBLE,
        env=ansible_environment(folder),
        new_session=False,
    )
    assert process.stdout is not None  # noqa: S101
    lines, play = [], ""
    with (
        process,
        io.TextIOWrapper(process.stdout, "utf-8", errors="replace") as output,
        log.open("w") as file,
        ExitStack() as current_step,
    ):
        for line in output:
            file.write(line)
            lines.append(line)
            if line.startswith("PLAY "):
                current_step.close()
                play = line.partition("[")[2].partition("]")[0]
            # A play without tasks for this machine gets no line.
            elif line.startswith("TASK [") and play and not quietly:
                current_step.enter_context(step(play))
                play = ""
    if process.returncode:
        more = "" if quietly else f" (more in {log})"
        raise Refusal(why_failed(lines) + more)


def why_failed(lines: Sequence[str]) -> str:
    task = "Ansible"
    for line in lines:
        if line.startswith(("TASK [", "RUNNING HANDLER [")):
            task = line.partition("[")[2].partition("]")[0]
        if line.startswith(("fatal:", "failed:")):
            _, arrow, details = line.partition("=> ")
            message = (details if arrow else line).strip()
            with suppress(ValueError):
                result = json.loads(details)
                output = result.get("stderr") or result.get("stdout")
                message = reason(str(output or result.get("msg")))
            return f"{task}: {message}"
    errors = [line for line in lines if line.startswith("[ERROR]")]
    return (errors or lines or ["ansible-playbook does not start"])[-1].strip()
