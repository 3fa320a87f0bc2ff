"""`provisioning/measure_saves`: time one page save after another.

Each run has two baselines: an address that the same server answers without a
database, and a flush of the same disk. Ratios to those travel between
machines; milliseconds do not.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from provisioning.benchmarks.machine import processor
from provisioning.commands import (
    ROOT,
    Refusal,
    listen,
    print_table,
    run_command,
    step,
)
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    manage,
    prepare_environment,
)
from provisioning.installation.servers import private_servers
from provisioning.percentiles import percentile
from provisioning.processes import start_process, stop_process
from survey.definitions.schema import ANSWERABLE

WARM_UP = 50


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
        flushes = _time_flushes(Path(folder), count)
        for name, times in _time_saves(folder, "settings.embedded", {}, count).items():
            rows.append(("SQLite", name, times))
        with private_servers() as servers:
            postgresql = {
                "GROUNDSWELL_TEST_SERVERS": str(servers),
                "GROUNDSWELL_TEST_DATABASE": "groundswell",
            }
            settings = "settings.browser_test_server"
            for name, times in _time_saves(folder, settings, postgresql, count).items():
                rows.append(("PostgreSQL", name, times))
    rows.append(("disk", "flush of 8 KiB", flushes))
    print(f"\n{processor()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print_table(
        ("", "milliseconds", "median", "p95", "max"),
        [(place, name, *figures_of(times)) for place, name, times in rows],
    )
    return 0


def figures_of(times: list[float]) -> tuple[str, str, str]:
    """Return median, 95th percentile and maximum, for a table."""
    figures = statistics.median(times), percentile(times, 95), max(times)
    median, p95, most = (f"{figure:.2f}" for figure in figures)
    return median, p95, most


def _time_saves(
    folder: str, settings: str, variables: Mapping[str, str], count: int
) -> dict[str, list[float]]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": settings,
        "GROUNDSWELL_DATA": folder,
        "GROUNDSWELL_STATIC_ROOT": f"{folder}/static",
        **variables,
    }
    with step(f"Preparing {settings}"):
        demo = prepare_demo(environment)
    with served(environment) as port, step(f"Saving {count} pages"):
        student = Student(port, demo["cards"][0]["code"])
        return {
            "page save": _times_of(student.save, count),
            "empty answer": _times_of(student.request_missing_page, count),
        }


def prepare_demo(environment: Mapping[str, str]) -> dict[str, Any]:
    """Create the tables and static files, load the demonstration and describe it."""
    manage("migrate", "--verbosity=0", environment=environment)
    manage("collectstatic", "--no-input", "--verbosity=0", environment=environment)
    manage("compress", "--verbosity=0", environment=environment)
    demo: dict[str, Any] = json.loads(
        manage("load_demo", "--json", environment=environment)
    )
    return demo


@contextmanager
def served(environment: Mapping[str, str], *options: str) -> Iterator[int]:
    """Serve the application with gunicorn, and yield its port."""
    with listen(0) as listener:
        port = listener.getsockname()[1]
        server = start_process(
            [str(PYTHON), "-m", "gunicorn", "settings.wsgi", "--no-control-socket"]
            + ["--worker-class=gthread", "--threads=8", "--log-level=warning"]
            + [f"--bind=fd://{listener.fileno()}", *options],
            cwd=ROOT,
            env=environment,
            pass_fds=(listener.fileno(),),
        )
    try:
        yield port
    finally:
        stop_process(server, seconds=40)


class Student:
    """A browser that logs in and then saves one page again and again."""

    def __init__(self, port: int, code: str) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.cookies: dict[str, str] = {}
        token = json.loads(self._send("GET", "/"))["csrf"]
        form = urlencode({"code": code, "csrfmiddlewaretoken": token})
        self._send("POST", "/", form, "application/x-www-form-urlencoded")
        take = json.loads(self._send("GET", "/take/"))
        self.tag, self.revision = take["tag"], take["revision"]
        outline = take["urls"]["content"].replace("{language}", take["language"])
        rules = json.loads(self._send("GET", outline.replace("{n}", "0")))
        # The page with most items costs most to save.
        self.page, self.answers = max(
            (
                (n, first_answers(page["items"], rules))
                for n, page in enumerate(rules["pages"], start=1)
            ),
            key=lambda found: len(found[1]),
        )

    def save(self) -> None:
        self.revision += 1
        body = json.dumps({"revision": self.revision, "answers": self.answers})
        reply = json.loads(self._send("POST", f"/take/pages/{self.page}/", body))
        if reply.get("revision") != self.revision:
            raise Refusal(f"A page was not saved: {reply}")

    def request_missing_page(self) -> None:
        self._send("GET", f"/content/none/none/none/{self.page}/", status=404)

    def _send(
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
            "Cookie": "; ".join(
                f"{name}={value}" for name, value in self.cookies.items()
            ),
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


def first_answers(names: list[str], rules: dict[str, Any]) -> dict[str, Any]:
    """Answer a page: the first option of each choice, and blanks."""
    answers: dict[str, Any] = {}
    for name in names:
        item = rules["items"][name]
        if item["kind"] == "select_one":
            answers[name] = rules["option_sets"][item["option_set"]][0]["value"]
        elif item["kind"] in ANSWERABLE:
            answers[name] = None
    return answers


def _times_of(act: Callable[[], None], count: int) -> list[float]:
    """Return the milliseconds of each call, after a warm-up."""
    for _ in range(WARM_UP):
        act()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    return times


def _time_flushes(folder: Path, count: int) -> list[float]:
    with (folder / "flushed").open("wb", buffering=0) as file:

        def flush() -> None:
            file.seek(0)
            file.write(os.urandom(8192))
            os.fdatasync(file.fileno())

        return _times_of(flush, count)


if __name__ == "__main__":
    sys.exit(run_command("provisioning/measure_saves", main))
