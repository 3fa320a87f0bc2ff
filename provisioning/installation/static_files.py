"""Collect style sheets and scripts: joined, named by content, compressed.

Also a command, in an environment that has the settings' variables:
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
from provisioning.environment import PRODUCTION, PYTHON, manage


def main() -> int:
    folder = Path(sys.argv[1])
    if static_changed(folder):
        collect_static(folder, os.environ)
    return 0


def collect_static(
    folder: Path, environment: Mapping[str, str], *, replace: bool = False
) -> None:
    """Collect into `folder`, which is the environment's static root.

    Older files stay for browsers that have an older page open; with `replace`
    they are deleted.
    """
    if replace:
        shutil.rmtree(folder, ignore_errors=True)
    manage("collectstatic", "--no-input", "--verbosity=0", environment=environment)
    manage("compress", "--verbosity=0", environment=environment)
    # collectstatic compresses files; the bundles were written after it.
    output_of(
        [PYTHON, "-m", "whitenoise.compress", "--quiet", folder / "CACHE"],
        failing="whitenoise can't compress the bundles",
    )
    _stamp(folder).write_text(_static_digest())


def static_changed(folder: Path) -> bool:
    stamp = _stamp(folder)
    return not stamp.exists() or stamp.read_text() != _static_digest()


def _stamp(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.stamp")


def _static_digest() -> str:
    return digest_of("settings", "static", "templates")


def digest_of(*folders: str, tests: bool = True) -> str:
    """Return a digest of the requirements and of all files in these folders."""
    digest = hashlib.sha256(PRODUCTION.read_bytes())
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if not path.is_file() or path.suffix == ".pyc":
                continue
            if tests or "tests" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(run_command("provisioning.installation.static_files", main))
