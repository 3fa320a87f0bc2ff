"""Style sheets and scripts as they are served: joined, named by content, compressed.

Also a command of its own, in an environment that has the settings' variables:
`python -m provisioning.installation.static_files FOLDER`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from provisioning.commands import ROOT, output_of, run_command
from provisioning.environment import PRODUCTION, PYTHON


def main() -> int:
    folder = Path(sys.argv[1])
    if static_changed(folder):
        collect_static(folder, os.environ)
    return 0


def collect_static(
    folder: Path, environment: Mapping[str, str], *, anew: bool = False
) -> None:
    """Into `folder`, which is the environment's static root.

    What is there stays, for browsers that opened a page before, unless `anew`.
    """
    if anew:
        shutil.rmtree(folder, ignore_errors=True)
    for command in (["collectstatic", "--no-input"], ["compress"]):
        output_of(
            [PYTHON, ROOT / "manage.py", *command, "--verbosity=0"],
            failing=f"manage.py {command[0]} failed",
            env=environment,
        )
    # The bundles came after what collectstatic compressed beforehand.
    output_of(
        [PYTHON, "-m", "whitenoise.compress", "--quiet", folder / "CACHE"],
        failing="whitenoise can't compress the bundles",
    )
    _stamp(folder).write_text(_digest())


def static_changed(folder: Path) -> bool:
    stamp = _stamp(folder)
    return not stamp.exists() or stamp.read_text() != _digest()


def _stamp(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.stamp")


def _digest() -> str:
    """Of everything that decides what is served under /static/."""
    digest = hashlib.sha256(PRODUCTION.read_bytes())
    for folder in ("settings", "static", "templates"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(run_command("provisioning.installation.static_files", main))
