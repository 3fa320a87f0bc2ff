"""The log's file system: content is kept, and it can be full."""

from __future__ import annotations

import os
import subprocess

import pytest

from provisioning.commands import ROOT
from provisioning.installation.environment import PYTHON
from provisioning.prove.fault_injection.faults import LogDisk
from provisioning.prove.fault_injection.start import OWN_MOUNTS

PROGRAM = """
import errno, os, sys
from pathlib import Path
from provisioning.prove.fault_injection.faults import LogDisk

folder = Path(sys.argv[1])
disk = LogDisk(folder)

def state():
    inside = folder / "archive" / "one"
    owners = inside.stat().st_uid, folder.stat().st_uid
    return inside.read_text(), owners, oct(folder.stat().st_mode)

before = state()
disk.mount()
assert folder.is_mount() and state() == before, state()
disk.fill()
try:
    (folder / "more").write_bytes(bytes(1 << 20))
except OSError as error:
    assert error.errno == errno.ENOSPC, error
else:
    raise AssertionError("the disk is not full")
disk.empty()
(folder / "more").write_text("later")
disk.unmount()
disk.unmount()
assert not folder.is_mount() and state() == before, state()
assert (folder / "more").read_text() == "later"
"""


def may_mount() -> bool:
    return subprocess.run([*OWN_MOUNTS, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="only root may mount")
def test_the_log_survives_its_own_file_system_and_a_full_disk(tmp_path):
    folder = tmp_path / "pg_wal"
    (folder / "archive").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "archive" / "one").write_text("a segment")
    for path in (folder, folder / "archive" / "one"):
        os.chown(path, 65534, 65534)
    done = subprocess.run(
        [*OWN_MOUNTS, PYTHON, "-c", PROGRAM, folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    # Nothing was mounted outside of the program's own namespace.
    assert not folder.is_mount()


def test_a_disk_that_is_not_mounted_is_left_alone(tmp_path):
    (tmp_path / "segment").write_text("kept")
    LogDisk(tmp_path).unmount()
    assert (tmp_path / "segment").read_text() == "kept"
