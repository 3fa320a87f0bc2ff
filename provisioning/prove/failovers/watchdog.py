"""Reset a host when Patroni stops sending keep-alives, as a watchdog does.

The kernel may have no watchdog that can be loaded, and a real one would reset the
machine that the drill runs on. So the device is a named pipe, into which Patroni's
own driver for tests writes what it would tell a device.
"""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path

NAME = "watchdog"
TIMEOUT = re.compile(rb"Ctimeout=(\d+)\n")
# What ends the watch, as the last that is written before the device is closed.
STOP = b"V"


class Watchdog:
    def __init__(self, device: Path, reset: Callable[[], None]) -> None:
        os.mkfifo(device)
        # Patroni's user writes there.
        device.chmod(0o622)
        self.reset = reset
        # Off, it resets nothing: a machine without a watchdog.
        self.is_on = True
        self.resets = 0
        self.timeout = 60
        # When it resets the host; None: it does not.
        self.ends: float | None = None
        # Open for both, so that it stays open when Patroni closes it.
        self.pipe = os.open(device, os.O_RDWR)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            ready, _, _ = select.select([self.pipe], [], [], 0.1)
            if ready:
                told = os.read(self.pipe, 4096)
                for seconds in TIMEOUT.findall(told):
                    self.timeout = int(seconds)
                self.ends = time.monotonic() + self.timeout
                if told.endswith(STOP):
                    self.ends = None
            elif self.ends is not None and time.monotonic() > self.ends:
                self.ends = None
                if self.is_on:
                    self.resets += 1
                    self.reset()
