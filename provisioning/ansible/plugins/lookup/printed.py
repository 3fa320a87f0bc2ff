"""`lookup('printed', command, ...)`: what a management command prints, as a list."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

MANAGE = Path(__file__).parents[4] / "manage.py"


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[list[str]]:
        # Settings that need no server, and leave nothing behind.
        with TemporaryDirectory() as folder:
            printed = subprocess.run(
                [sys.executable, MANAGE, *terms],
                env={
                    "PATH": os.environ["PATH"],
                    "GROUNDSWELL_DATA": folder,
                    "DJANGO_SETTINGS_MODULE": "settings.embedded",
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
                capture_output=True,
                text=True,
            )
        if printed.returncode:
            raise AnsibleError(f"manage.py {terms[0]} fails: {printed.stderr}")
        return [printed.stdout.splitlines()]
