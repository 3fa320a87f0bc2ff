"""Copy the code into a folder of its own for each release.

`releases/VERSION` has the code with its `.venv`, and never changes; `current` is a
link to the one that serves. It moves once static files and migrations are done
(`roles/application/templates/scripts/release.j2`). Another one takes its place by
`provisioning/upgrade` only.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from provisioning.commands import ROOT, Refusal, step
from provisioning.installation.server.options import HOME

RELEASES = HOME / "releases"
CURRENT = HOME / "current"
# The address of the repository that the first release was a checkout of.
SOURCE = HOME / "source"
# What commands leave in a checkout, which git ignores.
LEFT_OUT = (
    *(".git", ".venv", ".stack", ".stack.before*", ".bench", ".demo", ".test"),
    *(".hypothesis", ".jmeter", ".files", ".help", "CACHE", "collected"),
    *("__pycache__", ".*_cache"),
)
# Nothing but the code decides the digest.
NO_CODE = ("*.pyc",)


def is_release(root: Path = ROOT) -> bool:
    return root.parent == RELEASES


def version_of(root: Path = ROOT) -> str:
    """Return the commit's day and number; without git, a digest of the files."""
    try:
        changed = git(root, "status", "--porcelain")
        commit = git(root, "log", "-1", "--format=%cs-%h", "--abbrev=10")
    except OSError:
        return digest_of(root)
    if changed:
        raise Refusal(
            f"{root} has changes that are in no commit; an installation is of one"
            " commit"
        )
    return commit


def git(root: Path, *arguments: str) -> str:
    """Return what git prints about a checkout; raise OSError if it refuses."""
    done = subprocess.run(
        ["git", "-C", root, *arguments],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            # The checkout may belong to the user who called sudo.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": str(root),
        },
    )
    if done.returncode:
        raise OSError(done.stderr)
    return done.stdout.strip()


def digest_of(root: Path) -> str:
    ignored = shutil.ignore_patterns(*LEFT_OUT, *NO_CODE)
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        left_out = ignored(folder, [*folders, *files])
        folders[:] = sorted(set(folders) - left_out)
        for name in sorted(set(files) - left_out):
            path = Path(folder, name)
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return f"files-{digest.hexdigest()[:12]}"


def copy_release(version: str, source: Path | None = None) -> Path:
    """Copy the checkout or a folder, if it is not there yet; all users may read it.

    Refuses other files than those of the release that is there under this name.
    """
    source = source or ROOT
    release = RELEASES / version
    if release.exists():
        if source != ROOT and digest_of(source) != digest_of(release):
            raise Refusal(f"{release} is there already, with other files")
        return release
    with step(f"Copying release {version}"):
        RELEASES.mkdir(mode=0o755, parents=True, exist_ok=True)
        RELEASES.chmod(0o755)
        # Under another name until it is complete.
        draft = RELEASES / f".{version}.new"
        shutil.rmtree(draft, ignore_errors=True)
        ignored = shutil.ignore_patterns(*LEFT_OUT, *NO_CODE)
        shutil.copytree(source, draft, symlinks=True, ignore=ignored)
        for folder, _, files in os.walk(draft):
            for path in (Path(folder), *(Path(folder, name) for name in files)):
                if not path.is_symlink():
                    os.chown(path, 0, 0)
                    path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
        draft.rename(release)
    return release


def compile_release() -> None:
    """Compile it once: its programs' users may not write into it."""
    command = [sys.executable, "-m", "compileall", "-q", "-j0", "-x", r"/\.venv/"]
    subprocess.run([*command, str(ROOT)], capture_output=True)


def served_release() -> Path | None:
    """Return the folder of the release that serves; None before the first does."""
    if CURRENT.is_symlink() and (HOME / "released").exists():
        return CURRENT.resolve()
    return None


def link_first_release() -> None:
    """Let `current` lead to this release if there is none: nothing serves yet."""
    if not CURRENT.is_symlink():
        CURRENT.symlink_to(ROOT)
