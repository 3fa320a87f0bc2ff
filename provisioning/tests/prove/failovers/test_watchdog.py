"""A watchdog resets a host once nobody tells it that Patroni lives."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioning.prove.failovers.host import Watchdog
from settings.tests.patience import eventually


class Device:
    def __init__(self, path: Path) -> None:
        self.resets: list[float] = []
        self.watchdog = Watchdog(path, lambda: self.resets.append(time.monotonic()))
        self.pipe = os.open(path, os.O_WRONLY)

    def tell(self, text: bytes) -> None:
        os.write(self.pipe, text)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    device = Device(tmp_path / "watchdog")
    yield device
    os.close(device.pipe)


def test_a_host_is_reset_when_its_keepalives_end(device):
    device.tell(b"Ctimeout=1\n")
    for _ in range(8):
        device.tell(b"1")
        time.sleep(0.2)
    assert not device.resets
    eventually(lambda: device.resets)


def test_no_host_is_reset_whose_patroni_has_stopped_it(device):
    device.tell(b"Ctimeout=1\n")
    device.tell(b"1")
    device.tell(b"V")
    time.sleep(1.5)
    assert not device.resets


def test_a_device_that_nobody_has_opened_resets_nothing(device):
    time.sleep(1.5)
    assert not device.resets


def test_the_control_without_a_watchdog_resets_nothing(device):
    device.watchdog.is_on = False
    device.tell(b"Ctimeout=1\n")
    device.tell(b"1")
    time.sleep(1.5)
    assert not device.resets
