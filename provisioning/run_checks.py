"""Run every static check: `provisioning/check`."""

from __future__ import annotations

import base64
import os
import secrets
import subprocess
import time
from pathlib import Path

from provisioning.commands import ROOT, command_parser
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    prepare_environment,
)


def static_checks() -> dict[str, list[str | Path]]:
    """Return the command of each check."""
    programs = PYTHON.parent
    templates = sorted((ROOT / "templates").rglob("*.html"))
    manage = (PYTHON, "manage.py")
    return {
        "ruff check": [programs / "ruff", "check"],
        "ruff format": [programs / "ruff", "format", "--check"],
        "djade": [programs / "djade", "--check", "--target-version", "5.2", *templates],
        "mypy": [PYTHON, "-m", "mypy", "."],
        "imports": [programs / "lint-imports"],
        "names": [PYTHON, "-m", "provisioning.variable_names"],
        "migrations": [
            *manage,
            *("makemigrations", "--check", "--settings", "settings.test"),
        ],
        "deploy": [
            *manage,
            *("check", "--deploy", "--fail-level", "WARNING"),
            *("--settings", "settings.stack"),
        ],
    }


def main() -> int:
    command_parser(
        "Checks formatting, lint rules, types, migrations and the settings"
        " for production. Runs no test and starts no server."
    ).parse_args()
    prepare_environment(PRODUCTION, TESTS, STACK)
    # The stack has no default for its secrets. These protect nothing.
    key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    environment = {
        **os.environ,
        "GROUNDSWELL_SECRET_KEY": secrets.token_urlsafe(64),
        "GROUNDSWELL_ACCESS_CODE_KEYS": f"1={key}",
        "GROUNDSWELL_TIME_ZONE": "America/Chicago",
    }
    checks = static_checks()
    started = time.monotonic()
    # All at once: mypy takes longer than the others together.
    running = {
        name: subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, command in checks.items()
    }
    failed = []
    for name, process in running.items():
        output, _ = process.communicate()
        print(f"{name:<12} {'failed' if process.returncode else 'passed'}", flush=True)
        if process.returncode:
            failed.append(name)
        # The check of names says which bounds can be lowered.
        if process.returncode or (name == "names" and output):
            print(output, flush=True)
    seconds = time.monotonic() - started
    if failed:
        print(f"Failed: {', '.join(failed)} ({seconds:.0f} s)")
        return 1
    print(f"All {len(checks)} static checks passed ({seconds:.0f} s)")
    return 0
