"""The demonstration as a newcomer starts it, and what stands in the way."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioning.tests.conftest import environment, run

pytestmark = pytest.mark.once

CODE = re.compile(r"\b(?:[A-Z2-9]{4}-){2}[A-Z2-9]{4}\b")


class Demo:
    """A running demonstration, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.output = ""
        while "Ctrl-C" not in self.output:
            line = process.stdout.readline()
            assert line, self.output + process.stderr.read()
            self.output += line
        self.codes = CODE.findall(self.output)

    def stop(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        status = self.process.wait(timeout=30)
        return status, self.process.stderr.read()


@contextlib.contextmanager
def started(checkout: Path, port: int, *options: str) -> Iterator[Demo]:
    process = subprocess.Popen(
        [checkout / "provisioning" / "demo", "--port", str(port), *options],
        cwd="/",
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Demo(process)
        finally:
            process.terminate()


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def is_answered(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_demo_runs_stops_and_goes_on_with_its_data(checkout, port):
    with started(checkout, port) as first:
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/")  # noqa: S310
        assert page.status == 200
        assert len(set(first.codes)) == 3
        assert first.output.count("student") >= 2
        assert "teacher" in first.output

        with socket.create_server(("127.0.0.1", 0)) as other:
            beside = run(checkout, "demo", "--port", str(other.getsockname()[1]))
        assert (beside.returncode, beside.stdout) == (1, "")
        assert "Another demo is running" in beside.stderr

        assert first.stop(signal.SIGINT) == (0, "")
    assert not is_answered(port)

    with started(checkout, port) as second:
        # The second run has no long work left.
        assert "Joining" in first.output
        assert "Joining" not in second.output
        assert second.codes == first.codes
        assert second.stop(signal.SIGTERM) == (0, "")

    (checkout / ".demo" / "notes.txt").write_text("not the demo's to delete")
    with started(checkout, port, "--fresh") as third:
        assert set(third.codes).isdisjoint(first.codes)
    assert (checkout / ".demo" / "notes.txt").exists()


def test_a_killed_demo_takes_its_server_along(checkout, port):
    with started(checkout, port) as demo:
        assert is_answered(port)
        demo.process.kill()
        demo.process.wait()
        for _ in range(100):
            if not is_answered(port):
                break
            time.sleep(0.1)
        assert not is_answered(port)


def test_a_taken_port_is_named_before_the_long_work(bare_checkout):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        refused = run(bare_checkout, "demo", "--port", str(taken))
    assert refused.returncode == 1
    assert refused.stderr == (
        f"provisioning/demo: Port {taken} is taken by another program;"
        " choose one with --port\n"
    )
    assert not (bare_checkout / ".venv").exists()


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_a_port_that_is_none_is_refused(bare_checkout, port):
    refused = run(bare_checkout, "demo", f"--port={port}")
    assert refused.returncode == 2
    assert "is not between 1 and 65535" in refused.stderr
    assert not (bare_checkout / ".demo").exists()


def test_an_unreachable_registry_is_one_line(bare_checkout, port):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
    refused = run(
        bare_checkout,
        "demo",
        f"--port={port}",
        PIP_INDEX_URL=nowhere,
        PIP_NO_CACHE_DIR="1",
        PIP_CONFIG_FILE="/dev/null",
    )
    assert refused.returncode == 1
    assert refused.stderr == (
        "provisioning/demo: The package registry can't be reached; check the"
        " network, or set PIP_INDEX_URL to a mirror of it\n"
    )
    assert "Installing requirements.txt" in refused.stdout
    assert not list((bare_checkout / ".venv").glob("installed/*"))


def test_a_python_without_venv_is_one_line(bare_checkout, port, tmp_path):
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    # Without apt-get on the path even root can't put it right by itself.
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("dirname", "readlink", "basename"):
        (tools / tool).symlink_to(f"/usr/bin/{tool}")
    refused = run(
        bare_checkout,
        "demo",
        f"--port={port}",
        PYTHONPATH=str(tmp_path),
        PATH=str(tools),
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("provisioning/demo: Missing: python3")
    assert refused.stderr.count("\n") == 1
