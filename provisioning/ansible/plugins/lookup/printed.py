"""`lookup('printed', command, ...)`: what a management command prints, as a list."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

MANAGE = Path(__file__).parents[4] / "manage.py"


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[list[str]]:
        # Once in each run of the playbook, in its own folder: several hosts and files
        # need the same, and to start Django takes seconds.
        answer = Path(constants.DEFAULT_LOCAL_TMP, "-".join(["printed", *terms]))
        if not answer.exists():
            unfinished = answer.with_name(f"{answer.name}.{os.getpid()}")
            unfinished.write_text(printed_by(terms))
            unfinished.rename(answer)
        return [answer.read_text().splitlines()]


def printed_by(terms: list[str]) -> str:
    # Settings that need no server, and leave nothing behind. Checks load all pages.
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, MANAGE, *terms, "--skip-checks"],
            env={
                "PATH": os.environ["PATH"],
                "GROUNDSWELL_DATA": folder,
                "DJANGO_SETTINGS_MODULE": "settings.embedded",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise AnsibleError(f"manage.py {terms[0]} fails: {done.stderr}")
    return done.stdout
