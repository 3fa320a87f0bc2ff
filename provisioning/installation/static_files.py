"""Collect style sheets and scripts: joined, named by content, compressed.

Also a command, in an environment that has the settings' variables:
`python -m provisioning provisioning.installation.static_files release FOLDER`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from provisioning.commands import ROOT, output_of, step
from provisioning.in_django import arguments_for
from provisioning.installation.environment import PRODUCTION, PYTHON


def main() -> int:
    collect_static(Path(sys.argv[1]), os.environ)
    return 0


def collect_static(
    folder: Path, environment: Mapping[str, str], *, replace: bool = False
) -> None:
    """Collect into `folder`, the environment's static root, unless nothing changed.

    Older files stay for browsers that have an older page open; with `replace`
    they are deleted.
    """
    # Inside: only the folder belongs to the user who collects.
    stamp = folder / ".stamp"
    digest = digest_of("settings", "static", "templates")
    if stamp.exists() and stamp.read_text() == digest:
        return
    with step("Joining style sheets and scripts"):
        if replace:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        collect_files(environment)
        stamp.write_text(digest)


def collect_files(environment: Mapping[str, str]) -> None:
    output_of(
        [PYTHON, *arguments_for("installation.static_files.collect_in_django")],
        failing="The static files can't be collected",
        env=environment,
    )


def collect_in_django() -> None:
    from django.conf import settings
    from django.core.management import call_command
    from whitenoise.compress import main as compress

    call_command("collectstatic", interactive=False, verbosity=0)
    call_command("compress", verbosity=0)
    # collectstatic compresses files; the bundles were written after it.
    compress(["--quiet", f"{settings.STATIC_ROOT}/CACHE"])


def digest_of(*folders: str) -> str:
    """Return a digest of the requirements and of these folders, without tests."""
    digest = hashlib.sha256(PRODUCTION.read_bytes())
    for path in sorted(path for each in folders for path in (ROOT / each).rglob("*")):
        name = path.relative_to(ROOT)
        if path.is_file() and path.suffix != ".pyc" and "tests" not in name.parts:
            digest.update(f"{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()
