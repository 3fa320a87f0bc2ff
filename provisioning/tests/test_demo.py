"""Start the demonstration as a newcomer does, also with obstacles."""

from __future__ import annotations

import contextlib
import http.cookiejar
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from provisioning.tests.conftest import copied, environment, equipped, run
from settings.tests.patience import patience

pytestmark = pytest.mark.slow

CODE = re.compile(r"\b(?:[A-Z2-9]{4}-){2}[A-Z2-9]{4}\b")


class Demo:
    """A running demonstration and its output so far."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.output = ""
        while "Ctrl-C" not in self.output:
            line = process.stdout.readline()
            assert line, self.output + process.stderr.read()
            self.output += line
        self.codes = CODE.findall(self.output)
        [self.password] = re.findall("with the password (.+)", self.output)

    def stop(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        status = self.process.wait(timeout=patience(30))
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


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@pytest.fixture
def port() -> int:
    return free_port()


class Loaded(NamedTuple):
    """Where a first run left its data, and what it printed."""

    checkout: Path
    codes: list[str]
    output: str


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    checkout = equipped(copied(tmp_path_factory.mktemp("first") / "a checkout"))
    folder = checkout / ".demo"
    # Of an earlier run, and damaged.
    (folder / "files" / "exports").mkdir(parents=True)
    (folder / "files" / "exports" / "old.csv").touch()
    for name in ("groundswell.sqlite3", "secrets.json", "notes.txt"):
        (folder / name).write_text("not the demo's to read")
    port = free_port()
    with started(checkout, port, "--fresh") as demo:
        assert is_answered(port)
        assert demo.stop(signal.SIGINT) == (0, "")
    assert not is_answered(port)
    assert workers_of(checkout) == []
    return Loaded(checkout, demo.codes, demo.output)


class Continued(NamedTuple):
    """A demonstration that runs on the data of an earlier run."""

    demo: Demo
    port: int


@pytest.fixture(scope="module")
def continued(loaded: Loaded) -> Iterator[Continued]:
    port = free_port()
    with started(loaded.checkout, port) as demo:
        yield Continued(demo, port)


def is_answered(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_fresh_demo_deletes_its_own_data_only(loaded):
    folder = loaded.checkout / ".demo"
    assert not (folder / "files" / "exports" / "old.csv").exists()
    assert (folder / "notes.txt").exists()


def test_the_demo_continues_with_its_data(loaded, continued):
    # The first run did the long work.
    assert "Joining" in loaded.output
    demo, port = continued
    assert "Joining" not in demo.output
    assert demo.codes == loaded.codes
    page = urllib.request.urlopen(f"http://127.0.0.1:{port}/")  # noqa: S310
    assert page.status == 200
    for name in ("healthz", "readyz"):
        address = f"http://127.0.0.1:{port}/{name}"
        assert urllib.request.urlopen(address).status == 200  # noqa: S310
    # Three cards, and two open codes for parents.
    assert len(set(demo.codes)) == 5
    assert f"http://127.0.0.1:{port}/open/#{demo.codes[3]}" in demo.output
    assert demo.output.count("student") >= 2
    assert "teacher" in demo.output
    assert "state administrator, the state" in demo.output
    assert "school coordinator, Lincoln Middle School" in demo.output
    assert "No second factor is asked for" in demo.output
    for role in ("state", "district", "coordinator", "analyst"):
        email = f"{role}@groundswell.example"
        assert "Welcome" in console_of(port, email, demo.password)

    beside = run(loaded.checkout, "demo", "--port", str(free_port()))
    assert (beside.returncode, beside.stdout) == (1, "")
    assert "Another demo is running" in beside.stderr


def console_of(port: int, email: str, password: str) -> str:
    """Log in with a password only; return the page that follows."""
    cookies = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    login = f"http://127.0.0.1:{port}/console/account/login/"
    form = browser.open(login).read().decode()
    [token] = set(re.findall('name="csrfmiddlewaretoken" value="([^"]+)"', form))
    typed = {"login": email, "password": password, "csrfmiddlewaretoken": token}
    request = urllib.request.Request(  # noqa: S310
        login, urllib.parse.urlencode(typed).encode(), {"Referer": login}
    )
    return browser.open(request).read().decode()


def manage(checkout: Path, program: str) -> None:
    """Run a program with the demonstration's settings."""
    done = subprocess.run(
        [checkout / ".venv" / "bin" / "python", "manage.py", "shell", "-c", program],
        cwd=checkout,
        env=environment(DJANGO_SETTINGS_MODULE="settings.embedded"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def state_of_job(checkout: Path, kind: str) -> str:
    with contextlib.closing(
        sqlite3.connect(checkout / ".demo" / "groundswell.sqlite3", timeout=30)
    ) as database:
        query = "SELECT state FROM survey_job WHERE kind = ?"
        [state] = database.execute(query, [kind]).fetchone()
        return str(state)


def workers_of(checkout: Path) -> list[psutil.Process]:
    workers = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if words[-1:] == ["work"] and str(checkout / "manage.py") in words:
            workers.append(process)
    return workers


def until(happens: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + patience(seconds)
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_jobs_run_and_a_killed_worker_is_restarted(loaded, continued):
    checkout = loaded.checkout
    # A job of an unknown kind: the scheduler fails it, an hour late.
    start = (
        "from survey.models import Job;"
        "from django.utils import timezone as t; from datetime import timedelta as d;"
        "Job.objects.create(kind='test.gone', created_at=t.now() - d(hours=2))"
    )
    until(lambda: len(workers_of(checkout)) == 1)
    [worker] = workers_of(checkout)
    manage(checkout, start)
    until(lambda: state_of_job(checkout, "test.gone") == "failed", seconds=40)

    worker.kill()
    until(lambda: [each.pid for each in workers_of(checkout)] not in ([], [worker.pid]))
    assert (checkout / ".demo" / "work.log").exists()
    assert stat.S_IMODE((checkout / ".demo" / "work.log").stat().st_mode) == 0o600


def test_the_server_ends_with_a_killed_demo(loaded, continued):
    """The last test of the demonstration that runs."""
    process = continued.demo.process
    assert is_answered(continued.port)
    process.kill()
    process.wait()
    until(lambda: not is_answered(continued.port))
    until(lambda: not workers_of(loaded.checkout))
    # The worker's output was not mixed into the command's.
    assert process.stderr.read() == ""


def test_a_used_port_is_refused_before_the_long_work(bare_checkout):
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        refused = run(bare_checkout, "demo", "--port", str(taken))
    assert refused.returncode == 1
    assert refused.stderr == (
        f"provisioning/demo: Port {taken} is taken by another program;"
        " choose one with --port\n"
    )
    assert not (bare_checkout / ".venv").exists()


def test_an_impossible_port_is_refused(bare_checkout):
    refused = run(bare_checkout, "demo", "--port=0")
    assert refused.returncode == 2
    assert "is not between 1 and 65535" in refused.stderr
    assert not (bare_checkout / ".demo").exists()


def test_an_unreachable_registry_is_refused_with_one_line(bare_checkout, port):
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


def test_a_python_without_venv_is_refused_with_one_line(bare_checkout, port, tmp_path):
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    # Without apt-get on the path even root has to be told.
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
