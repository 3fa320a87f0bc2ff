"""Install R, and packages of Debian's for it, which the tests can do without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from provisioning.installation.environment import install_packages

# Names a file for each package that is installed.
INSTALLED = Path("/var/lib/dpkg/info")


def prepare_r(packages: Sequence[str]) -> None:
    """Install those of the packages that are missing, and R with them, as root."""
    missing = [name for name in packages if not (INSTALLED / f"{name}.list").exists()]
    if missing:
        install_packages(missing)
