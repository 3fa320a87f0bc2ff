"""Ansible as the commands call it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, reason
from provisioning.environment import PYTHON

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
