"""`provisioning/measure_saves`: how long one page save takes, one at a time.

Two baselines of the same run stand beside it: an address that the same server
answers without a database, and a bare flush of the same disk. Ratios to those
travel between machines; milliseconds do not.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from provisioning.commands import ROOT, Refusal, output_of, run_command, step, undelayed
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    prepare_environment,
)
from provisioning.installation.servers import private_servers
from provisioning.percentiles import percentile
from provisioning.processes import end_with_parent
from survey.definitions.schema import ANSWERABLE

WARMING = 50


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="provisioning/measure_saves",
        description="Times page saves over HTTP, one after another, on SQLite and on"
        " PostgreSQL behind pgbouncer, with the demonstration's students' survey.",
    )
    parser.add_argument("--count", type=int, default=1000, help="saves on each")
    count = parser.parse_args().count
    prepare_environment(PRODUCTION, TESTS, STACK)
    rows = []
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        flush = _flushes(Path(folder), count)
        data = {"GROUNDSWELL_DATA": folder}
        sqlite = {**data, "DJANGO_SETTINGS_MODULE": "settings.embedded"}
        rows += [("SQLite", *row) for row in _measure(sqlite, count)]
        with private_servers() as servers:
            postgresql = {
                **data,
                "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
                "GROUNDSWELL_TEST_SERVERS": str(servers),
                "GROUNDSWELL_TEST_DATABASE": "groundswell",
            }
            rows += [("PostgreSQL", *row) for row in _measure(postgresql, count)]
    _print([*rows, ("disk", "flush of 8 KiB", flush)])
    return 0


def _measure(changes: dict[str, str], count: int) -> list[tuple[str, list[float]]]:
    environment = {**os.environ, **changes}
    environment["GROUNDSWELL_STATIC_ROOT"] = f"{changes['GROUNDSWELL_DATA']}/static"
    with step(f"Preparing {changes['DJANGO_SETTINGS_MODULE']}"):
        _manage(environment, "migrate", "--verbosity=0")
        _manage(environment, "collectstatic", "--no-input", "--verbosity=0")
        _manage(environment, "compress", "--verbosity=0")
        demo = json.loads(_manage(environment, "load_demo", "--json"))
    with _served(environment) as port, step(f"Saving {count} pages"):
        student = Student(port, demo["cards"][0]["code"])
        return [
            ("page save", _times(student.save, count)),
            ("empty answer", _times(student.ask_for_nothing, count)),
        ]


def _manage(environment: dict[str, str], *arguments: str) -> str:
    return output_of(
        [PYTHON, ROOT / "manage.py", *arguments],
        failing=f"manage.py {arguments[0]} failed",
        env=environment,
    )


@contextmanager
def _served(environment: dict[str, str]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        port = undelayed(listener).getsockname()[1]
        server = subprocess.Popen(
            [str(PYTHON), "-m", "gunicorn", "settings.wsgi", "--no-control-socket"]
            + ["--worker-class=gthread", "--threads=8", "--log-level=warning"]
            + [f"--bind=fd://{listener.fileno()}"],
            cwd=ROOT,
            env=environment,
            pass_fds=(listener.fileno(),),
            preexec_fn=end_with_parent(15),
        )
    try:
        yield port
    finally:
        server.terminate()
        server.wait()


class Student:
    """One browser: a kept connection, its cookies, one page saved repeatedly."""

    def __init__(self, port: int, code: str) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.cookies: dict[str, str] = {}
        token = json.loads(self._ask("GET", "/"))["csrf"]
        form = urlencode({"code": code, "csrfmiddlewaretoken": token})
        self._ask("POST", "/", form, "application/x-www-form-urlencoded")
        take = json.loads(self._ask("GET", "/take/"))
        self.tag, self.revision = take["tag"], take["revision"]
        outline = take["urls"]["content"].replace("{language}", take["language"])
        rules = json.loads(self._ask("GET", outline.replace("{n}", "0")))
        # The page with most items is the dearest one to save.
        self.page, self.answers = max(
            (
                (n, _answers(page["items"], rules))
                for n, page in enumerate(rules["pages"], start=1)
            ),
            key=lambda found: len(found[1]),
        )

    def save(self) -> None:
        self.revision += 1
        body = json.dumps({"revision": self.revision, "answers": self.answers})
        reply = json.loads(self._ask("POST", f"/take/pages/{self.page}/", body))
        if reply.get("revision") != self.revision:
            raise Refusal(f"A page was not saved: {reply}")

    def ask_for_nothing(self) -> None:
        self._ask("GET", f"/content/none/none/none/{self.page}/", status=404)

    def _ask(
        self,
        method: str,
        path: str,
        body: str = "",
        kind: str = "application/json",
        status: int = 200,
    ) -> bytes:
        headers = {
            "Accept": "application/json",
            "Content-Type": kind,
            "Origin": self.origin,
            "X-Groundswell-Respondent": getattr(self, "tag", ""),
            "Cookie": "; ".join(f"{name}={it}" for name, it in self.cookies.items()),
        }
        self.connection.request(method, path, body, headers)
        reply = self.connection.getresponse()
        content = reply.read()
        for cookie in reply.headers.get_all("Set-Cookie", []):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        if reply.status != status:
            raise Refusal(f"{method} {path}: {reply.status} {content[:200]!r}")
        return content


def _answers(names: list[str], rules: dict[str, Any]) -> dict[str, Any]:
    """The first option of each choice, and blanks, for a page's items."""
    answers: dict[str, Any] = {}
    for name in names:
        item = rules["items"][name]
        if item["kind"] == "select_one":
            answers[name] = rules["option_sets"][item["option_set"]][0]["value"]
        elif item["kind"] in ANSWERABLE:
            answers[name] = None
    return answers


def _times(act: Callable[[], None], count: int) -> list[float]:
    """Milliseconds of each, after some that are not counted."""
    for _ in range(WARMING):
        act()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    return times


def _flushes(folder: Path, count: int) -> list[float]:
    with (folder / "flushed").open("wb", buffering=0) as file:

        def flush() -> None:
            file.seek(0)
            file.write(os.urandom(8192))
            os.fdatasync(file.fileno())

        return _times(flush, count)


def _print(rows: list[tuple[str, str, list[float]]]) -> None:
    print(f"\n{_processor()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print(f"{'':<12}{'milliseconds':<18}{'median':>8}{'p95':>8}{'max':>8}")
    for where, what, times in rows:
        median, p95 = statistics.median(times), percentile(times, 95)
        print(f"{where:<12}{what:<18}{median:8.2f}{p95:8.2f}{max(times):8.2f}")


def _processor() -> str:
    with contextlib.suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        if found:
            return found[1]
    return platform.machine()


if __name__ == "__main__":
    sys.exit(run_command("provisioning/measure_saves", main))
