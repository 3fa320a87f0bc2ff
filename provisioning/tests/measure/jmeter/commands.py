from __future__ import annotations

import os
import subprocess

from provisioning.commands import ROOT
from settings.tests.patience import patience


def run_jmeter_command(
    name: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "jmeter" / name, *arguments],
        cwd="/",
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience(60),
    )
