"""Run a Redis or Memcached for one test, and simulate faults in it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from provisioning.processes import end_with_parent
from settings.tests.patience import patience
from settings.tests.proxy import Fault, Proxy, proxied

TROUBLES = ("down", "hung", "slow")
COMMANDS = {
    "redis": "redis-server --port 0 --unixsocket {path} --save '' --dir {folder}",
    "memcached": "memcached -s {path} -m 64 -u nobody",
}


class Helper:
    """A server process with a proxy in front of it, at `address`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.path = folder / f"{name}.sock"
        self.address = f"{folder}/{name}-by-proxy.sock"
        self.process: subprocess.Popen | None = None
        self.proxy: Proxy

    def start(self) -> None:
        self.path.unlink(missing_ok=True)
        command = COMMANDS[self.name].format(path=self.path, folder=self.folder)
        self.process = subprocess.Popen(
            [word.strip("'") for word in command.split()],
            stdout=subprocess.DEVNULL,
            preexec_fn=end_with_parent(signal.SIGKILL),
        )
        deadline = time.monotonic() + patience(10)
        while time.monotonic() < deadline:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(self.path)) == 0:
                    self.path.chmod(0o777)
                    return
            time.sleep(0.005)
        self.stop()
        raise AssertionError(f"{self.name} does not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def suffer(self, trouble: str) -> None:
        if trouble == "down":
            self.stop()
        elif trouble == "hung":
            os.kill(self.process.pid, signal.SIGSTOP)
        else:
            self.proxy.fault = Fault(delay=3)

    def recover(self) -> None:
        self.proxy.fault = Fault()
        if self.process is None:
            self.start()
        os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def running(name: str) -> Iterator[Helper]:
    # Not in pytest's folder: a unix socket's path is limited to 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="groundswell-", dir="/tmp"))
    # Memcached drops root's privileges before it creates its socket.
    folder.chmod(0o777)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        helper = Helper(name, folder)
        helper.start()
        stack.callback(helper.stop)
        helper.proxy = stack.enter_context(proxied(helper.address, str(helper.path)))
        yield helper
