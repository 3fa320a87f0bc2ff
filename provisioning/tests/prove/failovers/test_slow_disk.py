"""A flush takes as long as is asked for, and ends when the disk is well again."""

from __future__ import annotations

import subprocess

import pytest

from provisioning.commands import ROOT
from provisioning.installation.environment import PYTHON
from provisioning.prove.fault_injection.start import OWN_MOUNTS
from provisioning.tests.prove.power_loss.test_recorded_disk import WHY_NOT

PROGRAM = """
import os, sys, threading, time
from pathlib import Path
from provisioning.prove.power_loss.disk_plugin import FLUSH_SECONDS
from provisioning.prove.power_loss.recorded_disk import DISK, mount_disk, serve_disk

folder, mounted = Path(sys.argv[1]) / "disk", Path(sys.argv[1]) / "mounted"
mounted.mkdir()
serve_disk(folder, 512 << 20)
mount_disk(folder / DISK, mounted)

def seconds_of_a_flush():
    # From before the write, which may wait for the disk as well.
    began = time.monotonic()
    with (mounted / "file").open("a") as file:
        file.write("text")
        file.flush()
        os.fsync(file.fileno())
        return time.monotonic() - began

(folder / FLUSH_SECONDS).write_text("2")
slow = seconds_of_a_flush()
(folder / FLUSH_SECONDS).write_text("60")
threading.Timer(5, (folder / FLUSH_SECONDS).unlink).start()
ended = seconds_of_a_flush()
well = seconds_of_a_flush()
assert slow >= 2 and 0.9 < ended < 30 and well < 1, (slow, ended, well)
"""


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_each_flush_is_slow_until_the_disk_is_well_again(tmp_path):
    # In a process namespace of its own, which ends the disk's server.
    done = subprocess.run(
        [*OWN_MOUNTS, "--pid", "--fork", "--kill-child", PYTHON, "-c", PROGRAM]
        + [tmp_path],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
