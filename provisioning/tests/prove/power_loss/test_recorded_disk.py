"""A file survives a power failure once it is flushed, and not before."""

from __future__ import annotations

import os
import subprocess

import pytest

from provisioning.commands import ROOT
from provisioning.installation.environment import PYTHON, path_of_program
from provisioning.prove.fault_injection.start import OWN_MOUNTS

PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from random import Random
from provisioning.prove.power_loss.images import (
    PowerLoss, build_images, read_records
)
from provisioning.prove.power_loss.recorded_disk import recorded_disk

folder = Path(sys.argv[1])
mounted = folder / "mounted"
mounted.mkdir()
with recorded_disk(folder / "disk", mounted) as log_path:
    for name in ("flushed", "not-flushed"):
        with (mounted / name).open("w") as file:
            file.write(name * 1000)
            file.flush()
            if name == "flushed":
                os.fsync(file.fileno())
    requests = len(read_records(log_path.read_bytes()))
log = log_path.read_bytes()
losses = [PowerLoss(requests, 0.0)] * 3
for image in build_images(log, read_records(log), losses, folder, Random(1)):
    subprocess.run(["mount", "-o", "loop", image.path, mounted], check=True)
    assert (mounted / "flushed").read_text() == "flushed" * 1000
    other = mounted / "not-flushed"
    assert not other.exists() or other.read_text() != "not-flushed" * 1000
    subprocess.run(["umount", mounted], check=True)
"""


def why_not() -> str:
    if subprocess.run([*OWN_MOUNTS, "true"], capture_output=True).returncode:
        return "only root may mount"
    if not path_of_program("nbdfuse") or not os.path.exists("/dev/fuse"):
        return "nbdfuse can't be used here"
    free = subprocess.run(["losetup", "--find"], capture_output=True)
    return "no loop device is free" if free.returncode else ""


WHY_NOT = why_not()


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_a_flushed_file_is_in_each_image_and_an_unflushed_one_is_in_none(tmp_path):
    done = subprocess.run(
        [*OWN_MOUNTS, PYTHON, "-c", PROGRAM, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "mounted").is_mount()
