"""The whole stack, once: what it promises to browsers, engineers and itself."""

from __future__ import annotations

import csv
import http.client
import json
import os
import re
import resource
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import date
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from stat import S_IMODE
from typing import Any
from urllib.parse import urlencode

import psutil
import psycopg2
import pytest

from provisioning.commands import VERSION
from provisioning.installation.stack_folder import environment_of
from provisioning.installation.supervisor import Supervisor, workers_of
from provisioning.measure.benchmarks.soak import LONGEST_START, start_of_a_worker
from provisioning.measure.benchmarks.stack import running_stack
from provisioning.measure.capacity import WORKER_MB
from provisioning.measure.load.respondent import SAVE
from provisioning.monitoring.alerts import ALERTS
from provisioning.processes import wait_until_gone
from provisioning.prove.fault_injection.controls import CONTROLS
from provisioning.prove.fault_injection.stack import RunningStack
from provisioning.tests.conftest import copied, equipped, run
from settings.tests.patience import patience
from survey.taking.prepared_statements import prepared_text
from survey.taking.storage import postgresql_insert
from survey.tests.workbooks import form

pytestmark = pytest.mark.alone


class Stack:
    """A running stack with ports and people of its own."""

    def __init__(self, folder: Path) -> None:
        self.checkout = equipped(copied(folder / "checkout"))
        self.home = folder / "home"
        self.port = free_ports(6)
        self.supervisor = Supervisor(self.home)
        self.codes: Iterator[str] = iter(())

    def command(self, *words: str) -> str:
        done = run(self.checkout, "stack", *words, GROUNDSWELL_STACK=str(self.home))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def up(self, *options: str) -> str:
        return self.command("up", f"--port={self.port}", *options)

    def invite(self) -> None:
        codes = self.home / "codes.txt"
        shape = "--respondents 60 --pages 3 --items 2 --name term"
        self.command("manage", "open_rehearsal", *shape.split(), f"--codes={codes}")
        self.codes = iter(codes.read_text().split())

    def pids(self) -> dict[str, int]:
        return {
            f"{each['group']}:{each['name']}": each["pid"]
            for each in self.supervisor.programs()
        }

    def ask(
        self, method: str, path: str, body: str = "", *, port: int = 0, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request on a new connection; write `headers` with underscores."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        connection = http.client.HTTPConnection(
            "127.0.0.1", port or self.port, timeout=patience(30)
        )
        with closing(connection):
            connection.request(method, path, body.encode(), named)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def connect(self, role: str) -> Any:
        """Connect to a role's pool, with the password of its program."""
        program, purpose = (
            ("worker", "REPORTS") if role == "reports" else (role, "DATABASE")
        )
        given = environment_of(self.home, program)
        return psycopg2.connect(
            host=str(self.home / "run"),
            port=6432,
            dbname=role,
            user=role,
            password=given[f"GROUNDSWELL_{purpose}_PASSWORD"],
        )

    def watch(self, path: str) -> tuple[int, bytes]:
        status, _, body = self.ask("GET", path, port=self.port + 1)
        return status, body


def free_ports(count: int) -> int:
    """Return the first of so many consecutive ports."""
    for first in range(20000 + os.getpid() % 5000, 32000, 7):
        try:
            for port in range(first, first + count):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return first
    raise AssertionError("no free ports")


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    # A short path, which the servers' user may enter.
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    folder.chmod(0o755)
    stack = Stack(folder)
    try:
        output = stack.up()
        assert f"http://127.0.0.1:{stack.port}/" in output
        assert "provisioning/stack down" in output
        stack.invite()
        yield stack
    finally:
        if stack.supervisor.is_running():
            stack.command("down")
        stack.supervisor.close()
        shutil.rmtree(folder)


# Of a rehearsal.
STATEMENTS = {"p1_q1": "1", "p1_q2": "2"}


class RespondentBrowser:
    """A browser in which a code was entered."""

    def __init__(self, stack: Stack, code: str = "") -> None:
        self.stack = stack
        self.origin = f"http://127.0.0.1:{stack.port}"
        self.cookies: dict[str, str] = {}
        # With their flags.
        self.set_cookies: dict[str, str] = {}
        token = self.json("GET", "/")["csrf"]
        code = code or next(stack.codes)
        form = urlencode({"code": code, "csrfmiddlewaretoken": token})
        self.json("POST", "/", form, kind="application/x-www-form-urlencoded")
        self.take = self.json("GET", "/take/")
        self.revision = self.take["revision"]
        self.content = self.take["urls"]["content"].replace("{language}", "en")

    def ask(
        self, method: str, path: str, body: str = "", kind: str = "application/json"
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        status, headers, content = self.stack.ask(
            method,
            path,
            body,
            Accept="application/json",
            Content_Type=kind,
            Origin=self.origin,
            X_Groundswell_Respondent=getattr(self, "take", {}).get("tag", ""),
            Cookie="; ".join(f"{name}={it}" for name, it in self.cookies.items()),
        )
        for cookie in headers.get_all("Set-Cookie", []):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
            self.set_cookies[name] = cookie
        return status, headers, content

    def json(self, method: str, path: str, body: str = "", **more: str) -> Any:
        status, _, content = self.ask(method, path, body, **more)
        assert status == 200, content
        return json.loads(content)

    def save(self, answers: Mapping[str, str] = STATEMENTS, **sight: int) -> int:
        self.revision += 1
        body = json.dumps({"revision": self.revision, "answers": answers, **sight})
        status, _, content = self.ask("POST", "/take/pages/1/", body)
        if status == 200:
            assert json.loads(content)["revision"] == self.revision
        return status


@contextmanager
def stopped(stack: Stack, pool: str, path: str) -> Iterator[None]:
    """Stop a pool's programs; start them again, until `path` is served."""
    stack.supervisor.calls.stopProcessGroup(pool)
    try:
        yield
    finally:
        stack.supervisor.calls.startProcessGroup(pool)
        until(lambda: stack.ask("GET", path)[0] == 200)


@contextmanager
def unreachable(stack: Stack, pool: str) -> Iterator[None]:
    """Move a pool's socket away, and back.

    nginx finds nobody there, as after a stop, and no program has to start again.
    """
    path = stack.home / "run" / f"{pool}.sock"
    moved = path.with_suffix(".moved")
    path.rename(moved)
    try:
        yield
    finally:
        moved.rename(path)


@pytest.fixture
def without_taking(stack: Stack) -> Iterator[Callable[[], None]]:
    """Make the respondents' pool unreachable when called, until the test's end."""
    with ExitStack() as until_the_end:
        yield lambda: until_the_end.enter_context(unreachable(stack, "taking"))


class SuspendedPool:
    """A suspended pool, and connections that wait for it."""

    def __init__(self, stack: Stack, name: str) -> None:
        self.stack = stack
        self.waiting: list[socket.socket] = []
        pids = stack.pids().items()
        masters = [pid for program, pid in pids if program.startswith(f"{name}:")]
        self.pool = [psutil.Process(pid) for pid in masters]
        # They fork their workers one after another, also when one serves already.
        for master in self.pool:
            master.suspend()
            until(lambda master=master: master.status() == psutil.STATUS_STOPPED)
        workers = [each for master in self.pool for each in master.children()]
        for worker in workers:
            worker.suspend()
        self.pool += workers

    def move(self) -> None:
        # Workers first: their master kills those that have been silent too long.
        for process in reversed(self.pool):
            process.resume()

    def join(
        self,
        count: int,
        method: str,
        path: str,
        accept: str = "text/html",
        *,
        cookie: str = "",
        refused: int,
    ) -> list[bytes]:
        """Send so many requests; return the replies that come at once.

        Wait for `refused` replies, and a moment longer for any others.
        """
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n"
        head += f"Cookie: {cookie}\r\n" if cookie else ""
        asked = []
        for _ in range(count):
            each = socket.create_connection(("127.0.0.1", self.stack.port))
            each.sendall(f"{head}Content-Length: 0\r\n\r\n".encode())
            asked.append(each)
        self.waiting += asked
        return self.replies(asked, refused)

    def replies(self, asked: list[socket.socket], count: int) -> list[bytes]:
        with selectors.DefaultSelector() as selector:
            for each in asked:
                selector.register(each, selectors.EVENT_READ)
            chunks = []
            while selector.get_map():
                ready = selector.select(patience(10) if len(chunks) < count else 0.4)
                if not ready:
                    break
                for key, _ in ready:
                    selector.unregister(key.fileobj)
                    chunks.append(key.fileobj.recv(65_536))  # type: ignore[union-attr]
            return chunks

    def disperse(self) -> None:
        self.move()
        for each in self.waiting:
            each.close()


@pytest.fixture
def queue(stack: Stack) -> Iterator[SuspendedPool]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    queue = SuspendedPool(stack, "taking")
    yield queue
    queue.disperse()
    until(lambda: stack.ask("GET", "/")[0] == 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.fixture
def without_bounds(stack: Stack) -> Iterator[None]:
    """Remove the bounds of the classes; only the queue has one."""
    path = stack.home / "etc" / "nginx" / "nginx.conf"
    bounded = path.read_text()
    use_nginx_configuration(stack, re.sub("max_conns=[0-9]+", "max_conns=0", bounded))
    yield
    use_nginx_configuration(stack, bounded)


def use_nginx_configuration(stack: Stack, configuration: str) -> None:
    (stack.home / "etc" / "nginx" / "nginx.conf").write_text(configuration)
    nginx = psutil.Process(stack.pids()["nginx:nginx"])
    before = set(nginx.children())
    nginx.send_signal(signal.SIGHUP)
    until(lambda: not before & set(nginx.children()))


def until(happens: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + patience(seconds)
    while True:
        # The server may not listen yet, or no longer.
        with suppress(OSError, http.client.HTTPException):
            if happens():
                return
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_page_is_saved_and_every_program_runs(stack):
    maya = RespondentBrowser(stack)
    assert maya.save() == 200
    shown = stack.command("status")
    for program in (
        "primary",
        "replica",
        "rabbitmq",
        "taking_1",
        "beat",
        "long_worker",
        "scan_worker",
        "download_worker",
        "email_worker",
        "nginx",
    ):
        assert re.search(rf"^{program} +running", shown, re.MULTILINE), program
    assert "all running" in shown


def test_content_is_served_from_the_cache(stack, without_taking):
    maya = RespondentBrowser(stack)
    page, other_page = (maya.content.replace("{n}", n) for n in "12")
    _, headers, first = stack.ask("GET", page)
    assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert headers["Vary"] == "Accept-Encoding"
    assert headers["Set-Cookie"] is None

    without_taking()
    for path, cookie in ((page, ""), (f"{page}?child=2", "sessionid=mine")):
        status, headers, content = stack.ask("GET", path, Cookie=cookie)
        assert (status, content) == (200, first)
        assert headers["Set-Cookie"] is None
    assert stack.ask("HEAD", page)[0] == 200
    packed = stack.ask("GET", page, Accept_Encoding="gzip")
    assert packed[1]["Content-Encoding"] == "gzip"
    assert len(packed[2]) < len(first) / 2
    # The twin: a page that was not requested before is not cached.
    assert stack.ask("GET", other_page)[0] == 503


def test_public_pages_of_schools_are_kept_under_normalised_keys(stack, without_taking):
    status, headers, first = stack.ask("GET", "/schools/?lat=41.879999&lon=-87.631111")
    assert (status, headers["Set-Cookie"]) == (200, None)
    # Browsers ask each time; only the id of this request is in the reply.
    assert headers["Cache-Control"] == "no-cache"
    [request_id] = headers.get_all("X-Request-ID")

    without_taking()
    neighbour = "/schools/?utm=1&lon=-87.639&lat=41.87222"
    status, headers, content = stack.ask("GET", neighbour, Cookie="sessionid=mine")
    assert (status, headers["Set-Cookie"], content) == (200, None, first)
    [another_id] = headers.get_all("X-Request-ID")
    assert another_id != request_id
    # The twins: another place and another language are other pages.
    assert stack.ask("GET", "/schools/?lat=41.86&lon=-87.63")[0] == 503
    assert stack.ask("GET", neighbour, Accept_Language="fr, es;q=0.8")[0] == 503


def test_the_page_about_the_surveys_is_kept_in_each_language(stack, without_taking):
    pages = {
        language: stack.ask("GET", "/about/", Accept_Language=language)
        for language in ("en", "es")
    }
    assert pages["en"][2] != pages["es"][2]
    without_taking()
    for language, (_, _, first) in pages.items():
        asked = {"Accept_Language": language, "Cookie": "sessionid=mine"}
        status, headers, content = stack.ask("GET", "/about/?utm=1", **asked)
        assert (status, headers["Set-Cookie"], content) == (200, None, first)
        assert headers["Cache-Control"] == "no-cache"
    # The twin: a language that nobody asked for.
    assert stack.ask("GET", "/about/", Accept_Language="ar")[0] == 503


def test_an_edited_school_is_seen_within_thirty_seconds_and_old_pages_survive_a_failure(
    stack, without_taking
):
    with closing(stack.connect("console")) as console, console.cursor() as cursor:

        def move(city: str) -> None:
            cursor.execute(
                "UPDATE accounts_schoollisting SET latitude = 41.5, longitude = -87.5,"
                " city = %s WHERE school_id = (SELECT min(id) FROM accounts_school)",
                [city],
            )
            console.commit()

        move("Beforetown")
        # Until the replica has it.
        asked = (f"/schools/?lat=41.{n}&lon=-87.5" for n in range(100, 1000, 10))
        path = next(
            each for each in asked if b"Beforetown" in stack.ask("GET", each)[2]
        )
        other_page = "/schools/?lat=41.05&lon=-87.5"
        assert b"Beforetown" in stack.ask("GET", other_page)[2]
        move("Aftertown")
    edited = time.monotonic()
    # Cached, and so there was something that could stay.
    assert b"Beforetown" in stack.ask("GET", path)[2]
    time.sleep(15)
    stack.ask("GET", path)
    time.sleep(edited + 31 - time.monotonic())
    assert b"Aftertown" in stack.ask("GET", path)[2]
    without_taking()
    status, _, page = stack.ask("GET", other_page)
    assert (status, b"Beforetown" in page) == (200, True)


def test_published_results_are_kept_by_language_and_not_sent_after_an_error(stack):
    status, headers, first = stack.ask("GET", "/results/", Accept_Language="en")
    assert (status, headers["Set-Cookie"]) == (200, None)
    assert headers["Cache-Control"] == "no-cache"
    assert headers["ETag"]
    hidden = stack.ask("GET", "/results/hidden/", Accept_Language="en")
    assert (hidden[0], b"Which numbers are hidden" in hidden[2]) == (200, True)
    with unreachable(stack, "console"):
        asked = {"Accept_Language": "en", "Cookie": "sessionid=mine"}
        assert stack.ask("GET", "/results/hidden/", **asked)[::2] == hidden[::2]
        status, headers, content = stack.ask("GET", "/results/?utm=1", **asked)
        assert (status, headers["Set-Cookie"], content) == (200, None, first)
        # The twins: another language is another page, and nothing else is kept.
        assert stack.ask("GET", "/results/?language=es")[0] >= 500
        assert stack.ask("GET", "/results/0/")[0] >= 500
        # Longer than it is fresh: what was withdrawn meanwhile would come back.
        time.sleep(31)
        assert stack.ask("GET", "/results/", **asked)[0] >= 500


def test_bad_addresses_of_the_school_finder_are_refused_and_not_kept(
    stack, without_taking
):
    for query in ("lat=NaN&lon=1", f"lat={'9' * 40}&lon=1", "lat=1234&lon=1", "lat=1"):
        assert stack.ask("GET", f"/schools/?{query}")[0] == 400, query
    assert stack.ask("GET", "/schools/?q=LINCOLN")[0] == 302
    assert stack.ask("GET", "/schools/0/")[0] == 404
    many = "&".join(f"p{n}=1" for n in range(10_000))
    assert stack.ask("GET", f"/schools/?{many}")[0] == 414
    without_taking()
    for path in ("/schools/?lat=NaN&lon=1", "/schools/?q=LINCOLN", "/schools/0/"):
        assert stack.ask("GET", path)[0] == 503, path


def test_pages_of_a_person_are_never_cached(stack, without_taking):
    maya = RespondentBrowser(stack)
    before, after = maya.json("GET", "/take/"), maya.json("GET", "/take/")
    assert before["revision"] < after["revision"]
    without_taking()
    assert maya.ask("GET", "/take/")[0] == 503


def test_a_stopped_pool_asks_clients_to_retry(stack):
    maya = RespondentBrowser(stack)
    with stopped(stack, "taking", "/"):
        status, headers, body = maya.ask("POST", "/take/pages/1/", "{}")
        assert (status, json.loads(body)) == (503, {"error": "overloaded"})
        assert 1 <= int(headers["Retry-After"]) <= 5
        assert headers["Cache-Control"] == "no-store"
        status, headers, body = stack.ask("GET", "/")
        assert status == 503
        assert b"You are in line" in body
        assert 1 <= int(headers["Retry-After"]) <= 5
        # The other pool has its own workers.
        assert stack.ask("GET", "/healthz")[0] == 200


def test_starts_are_refused_first_and_finishes_last(stack, queue):
    """Each class fills up to its bound; finishing has room to the end."""
    written = (stack.home / "etc" / "nginx" / "nginx.conf").read_text()
    bounds = {
        name: int(bound)
        for name, bound in re.findall(r"zone (\w+) 64k;[^}]+max_conns=(\d+)", written)
    }
    assert bounds["starts"] < bounds["resumes"] < bounds["saves"]

    at_the_door = queue.join(bounds["starts"] + 3, "GET", "/", refused=3)
    assert [reply[:12] for reply in at_the_door] == [b"HTTP/1.1 503"] * 3
    for reply in at_the_door:
        assert b"You are in line" in reply
        assert re.search(rb"\r\nRefresh: (\d+)\r\n", reply)
        assert b"\r\nSet-Cookie: waits=1; Max-Age=90; " in reply
    # Each time the page waits longer, up to three times as long.
    for waits, times in (("1", 2), ("2", 3), ("3", 3), ("x", 1)):
        (reply,) = queue.join(1, "GET", "/", cookie=f"waits={waits}", refused=1)
        assert b"\r\nSet-Cookie: waits=%d; " % times in reply
        (seconds,) = re.findall(rb"\r\nRefresh: (\d+)\r\n", reply)
        assert int(seconds) in {each * times for each in range(5, 20, 2)}
    with_a_code = queue.join(1, "POST", "/", refused=1)
    assert b"Your code was not read yet" in with_a_code[0]
    assert b"\r\nRefresh:" not in with_a_code[0]
    assert b"\r\nSet-Cookie:" not in with_a_code[0]

    # An open tab asks for the code again: it counts as a resumed survey.
    assert queue.join(1, "GET", "/", "application/json", refused=0) == []
    inside = queue.join(bounds["resumes"] + 2, "GET", "/take/?language=es", refused=3)
    assert len(inside) == 3
    for reply in inside:
        assert b"Your answers are safe" in reply
        assert b"in line" not in reply
        assert re.search(rb"\r\nRetry-After: (\d+)\r\nRefresh: \1\r\n", reply)
        assert b"\r\nSet-Cookie: waits=1; " in reply

    saves = queue.join(
        bounds["saves"] + 3, "POST", "/take/pages/1/", "application/json", refused=3
    )
    assert len(saves) == 3
    for reply in saves:
        assert reply.endswith(b'\r\n\r\n{"error":"overloaded"}')
        assert b"\r\nRetry-After: " in reply
        # A script waits longer by itself.
        assert b"\r\nSet-Cookie: " not in reply
    assert queue.join(50, "GET", "/take/complete/", refused=0) == []
    queue.move()
    finishes = queue.replies(queue.waiting[-50:], 50)
    assert {reply[:12] for reply in finishes} == {b"HTTP/1.1 302"}

    log = (stack.home / "log" / "nginx-error.log").read_text()
    assert "no live upstreams" not in log
    access = stack.home / "log" / "nginx-access.log"
    until(lambda: access.read_text().count('"full":"saves"') == 3)


def test_without_bounds_starts_would_block_a_finish(stack, without_bounds, queue):
    pool = (stack.home / "etc" / "taking" / "gunicorn.py").read_text()
    backlog = int(re.findall("^backlog = ([0-9]+)", pool, re.MULTILINE)[0])
    assert queue.join(backlog + 20, "GET", "/", refused=1)
    (reply,) = queue.join(1, "GET", "/take/complete/", refused=1)
    assert reply.startswith(b"HTTP/1.1 503")
    assert b"Your answers are safe" in reply


def test_the_consoles_queue_has_a_bound_too(stack):
    queue = SuspendedPool(stack, "console")
    try:
        (refused,) = queue.join(65, "GET", "/console/", refused=1)
    finally:
        queue.disperse()
        # Those who waited are served first.
        until(lambda: stack.ask("GET", "/console/")[0] == 302)
    assert refused.startswith(b"HTTP/1.1 503")
    assert b"\r\nRetry-After: " in refused
    assert b"in line" not in refused


def test_the_rate_limit_counts_by_session(stack):
    maya, jamal = RespondentBrowser(stack), RespondentBrowser(stack)
    replies = [maya.ask("GET", "/take/") for _ in range(130)]
    refused = [reply for reply in replies if reply[0] == 429]
    assert {reply[0] for reply in replies} == {200, 429}
    _, headers, body = refused[0]
    assert json.loads(body) == {"error": "too_many"}
    assert 1 <= int(headers["Retry-After"]) <= 5
    assert jamal.save() == 200
    # A whole school has one address, and no session before its login.
    assert {stack.ask("GET", "/")[0] for _ in range(130)} == {200}


def test_too_large_a_save_is_refused_in_json(stack):
    status, _, body = RespondentBrowser(stack).ask(
        "POST", "/take/pages/1/", "x" * 1_200_000
    )
    # With the mark of `survey.taking.refusals`, or a tab would try again for ever.
    refusal = {"error": "too_large", "from": "groundswell"}
    assert (status, json.loads(body)) == (413, refusal)


def test_too_large_a_file_is_refused_with_a_page(stack):
    def sent(megabytes: int, accept: str = "text/html") -> tuple[int, bytes]:
        status, _, body = stack.ask(
            "POST",
            "/console/account/login/",
            "x" * (megabytes * 1_000_000),
            Content_Type="multipart/form-data; boundary=x",
            Accept=accept,
        )
        return status, body

    # Two million people are 250 MB, which the application has to receive.
    assert sent(250)[0] == 403
    status, body = sent(320)
    assert status == 413
    assert b"A file may have up to 300 MB" in body
    refusal = {"error": "too_large", "from": "groundswell"}
    status, body = sent(320, "application/json")
    assert (status, json.loads(body)) == (413, refusal)
    assert stack.ask("POST", "/unknown/", "x" * 2_000_000)[0] == 413


def test_an_upload_that_nobody_can_take_is_not_refused_as_too_large(stack):
    with unreachable(stack, "console"):
        status, headers, _ = stack.ask("POST", "/console/rosters/", "x" * 2_000_000)
    assert status == 503
    assert headers["Retry-After"]


@pytest.fixture
def header_application(stack: Stack) -> Iterator[dict[str, str]]:
    """Serve an application behind nginx that replies with these headers."""
    headers: dict[str, str] = {}

    class Teller(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, text in headers.items():
                self.send_header(name, text)
            self.end_headers()

        def log_message(self, *about: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Teller)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = stack.home / "etc" / "nginx" / "nginx.conf"
    written = path.read_text()
    tell = f"proxy_pass http://127.0.0.1:{server.server_port};"
    place = "        location /console/ {"
    assert place in written
    use_nginx_configuration(
        stack, written.replace(place, f"location = /tell/ {{ {tell} }}\n{place}")
    )
    yield headers
    use_nginx_configuration(stack, written)
    server.shutdown()
    server.server_close()


def test_nginx_sends_a_private_file_for_the_application(stack, header_application):
    files = stack.home / "files"
    assert files.stat().st_mode & 0o007 == 0
    folder = files / "exports"
    folder.mkdir()
    path = folder / "unguessable.csv"
    path.write_text("student,answer\n1,3\n")
    # As the workers write it: in a folder of their group, where they have one.
    folder.chmod(S_IMODE(files.stat().st_mode))
    path.chmod(0o640)
    header_application |= {
        "X-Accel-Redirect": "/private-files/exports/unguessable.csv",
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": 'attachment; filename="answers.csv"',
        "Cache-Control": "private, no-store",
    }

    status, headers, body = stack.ask("GET", "/tell/")
    assert (status, body) == (200, path.read_bytes())
    for name in ("Content-Type", "Content-Disposition", "Cache-Control"):
        assert headers[name] == header_application[name]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in headers["Content-Security-Policy"]
    part = stack.ask("GET", "/tell/", Range="bytes=0-6")
    assert (part[0], part[2]) == (206, b"student")

    # Its own address is not served to any client.
    for address in ("exports/unguessable.csv", ""):
        assert stack.ask("GET", f"/private-files/{address}")[0] == 404
    assert stack.ask("GET", "/private-files/../secrets/secret_key")[0] == 400
    header_application["X-Accel-Redirect"] = "/private-files/../secrets/secret_key"
    assert stack.ask("GET", "/tell/")[0] in (404, 500, 503)
    # A deleted file is gone at once.
    header_application["X-Accel-Redirect"] = "/private-files/exports/unguessable.csv"
    path.unlink()
    assert stack.ask("GET", "/tell/")[0] == 404


def test_quick_jobs_run_while_the_long_worker_is_busy(stack):
    """The scheduler's quick jobs run while the long worker is suspended."""
    home = RunningStack(stack.home)
    old = "INSERT INTO survey_job (kind, state, done, message, created_at, attempts)"
    long_worker = psutil.Process(stack.pids()["long_worker:long_worker"])
    at_work = [long_worker, *long_worker.children(recursive=True)]
    for process in at_work:
        process.suspend()
    try:
        job = home.query(
            f"{old} VALUES ('test.gone', 'waiting', 0, '', now() - interval '2 hours',"
            " 0) RETURNING id"
        )
        state = f"SELECT state FROM survey_job WHERE id = {job}"
        until(lambda: home.query(state) == "failed", seconds=40)
    finally:
        for process in at_work:
            process.resume()
        home.close()
    metrics = stack.watch("/metrics")[1]
    # The long worker and the scan workers are one pool.
    for queue, consumers in ((b"quick", b"1"), (b"long", b"2"), (b"downloads", b"1")):
        assert re.search(
            rb'^groundswell_queue_consumers{queue="%b"} %b' % (queue, consumers),
            metrics,
            re.MULTILINE,
        )


def test_each_alert_is_about_figures_that_this_stack_has(stack):
    figures = stack.watch("/metrics")[1].decode()
    there = {*re.findall(r"^# TYPE (groundswell_\w+)", figures, re.MULTILINE)}
    # What has not happened yet: a page saved, a code typed, an e-mail, a backup; and
    # there is no TLS here, and no cluster.
    later = re.compile(
        "page_saves|logins|wrong_codes|errors|messages_|backup_|drill_|certificate_|log_"
        "|restore_point_"
    )
    named = {
        name.removesuffix("_bucket")
        for alert in ALERTS
        for name in re.findall(r"groundswell_\w+", alert.expression)
    }
    assert {"groundswell_up", "groundswell_disk_free_bytes"} <= named & there
    missing = {name for name in named - there if not later.search(name)}
    assert not missing


def test_metrics_are_served_on_the_monitoring_port_only(stack):
    assert b"groundswell_request_seconds" in stack.watch("/metrics")[1]
    assert stack.watch("/readyz")[0] == 200
    assert stack.watch("/")[0] == 404
    assert stack.watch("/healthz")[1] == f"ok {VERSION}\n".encode()
    key = (stack.home / "secrets" / "monitoring_key").read_text().strip()
    for path in ("/metrics", "/readyz", "/durability", "/nginx_status"):
        status, *_ = stack.ask("GET", path, X_Groundswell_Monitoring=key)
        assert status == 404, path
    # The public does not learn the version.
    assert stack.ask("GET", "/healthz", X_Groundswell_Monitoring=key)[2] == b"ok\n"


def test_engineers_pages_are_served_on_their_own_port_only(stack):
    for path in ("/engineers", "/engineers/", "/engineers/login/", "/%65ngineers/"):
        assert stack.ask("GET", path)[0] == 404, path
    # Refused, because nginx and Django could read these as different pages.
    for path in ("//engineers/", "/engineers%2F", "/console/../engineers/"):
        assert stack.ask("GET", path)[0] == 400, path
    # The twin: there is something to hide.
    status, headers, _ = stack.ask("GET", "/engineers/", port=stack.port + 5)
    assert status == 302
    login = headers["Location"]
    assert login.startswith("/console/account/login/")
    assert stack.ask("GET", login, port=stack.port + 5)[0] == 200
    for path in ("/", "/take/", "/console/staff/", "/metrics"):
        assert stack.ask("GET", path, port=stack.port + 5)[0] == 404, path


class SlowSave:
    """A page save whose body has not come yet."""

    def __init__(self, stack: Stack) -> None:
        self.socket = socket.create_connection(("127.0.0.1", stack.port))
        self.socket.sendall(
            b"POST /take/pages/1/ HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 100000\r\n\r\n"
        )

    def goes_on(self, seconds: float) -> bool:
        """Send a byte now and then; return whether the server still reads."""
        deadline = time.monotonic() + seconds
        self.socket.settimeout(0.2)
        while time.monotonic() < deadline:
            try:
                self.socket.sendall(b"x")
                self.socket.recv(1000)
                return False
            except TimeoutError:
                continue
            except OSError:
                return False
        return True


@contextmanager
def nginx_settings(stack: Stack, **values: str) -> Iterator[None]:
    """Replace these settings, which are there once, and put them back."""
    path = stack.home / "etc" / "nginx" / "nginx.conf"
    written = changed = path.read_text()
    for name, value in values.items():
        changed, count = re.subn(
            rf"\b{name} [^;]+;", f"{name} {value};", changed, count=1
        )
        assert count, name
    use_nginx_configuration(stack, changed)
    try:
        yield
    finally:
        use_nginx_configuration(stack, written)


def test_one_address_cannot_take_every_connection(stack):
    def save_beside(count: int) -> tuple[int, bytes]:
        with ExitStack() as slow:
            for _ in range(count):
                slow.enter_context(closing(SlowSave(stack).socket))
            status, _, body = stack.ask(
                "POST", "/take/pages/1/", "{}", Accept="application/json"
            )
            return status, body

    # Workers of before a reload may still accept, and nginx may not have read the
    # headers of the others yet.
    with nginx_settings(stack, limit_conn="addresses 3", client_body_timeout="600s"):
        until(lambda: save_beside(3) == (503, b'{"error":"overloaded"}'))
    # The twin: the limit that is installed admits many times as many.
    until(lambda: save_beside(3)[0] not in (429, 503))


def connections(stack: Stack, count: int, sent: bytes) -> list[socket.socket]:
    opened = []
    for _ in range(count):
        each = socket.create_connection(("127.0.0.1", stack.port))
        each.sendall(sent)
        opened.append(each)
    return opened


def test_idle_connections_of_one_address_make_room_for_others(stack):
    """Only an incomplete header keeps a place: a firewall bounds their number."""
    with nginx_settings(stack, worker_connections="128"), ExitStack() as opened:
        request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for each in connections(stack, 600, request):
            opened.enter_context(closing(each))
        for _ in range(10):
            assert stack.ask("GET", "/metrics")[0] == 404
        # The twin.
        for each in connections(stack, 600, request[:5]):
            opened.enter_context(closing(each))
        with pytest.raises((OSError, http.client.HTTPException)):
            for _ in range(10):
                stack.ask("GET", "/metrics")


def test_a_body_that_pauses_too_long_is_not_awaited(stack):
    with nginx_settings(stack, client_body_timeout="1s"):
        slow = SlowSave(stack)
        with closing(slow.socket):
            slow.socket.settimeout(patience(10))
            with suppress(ConnectionResetError):
                assert slow.socket.recv(1000) == b""


def test_a_slow_body_ends_with_the_workers_of_before_a_reload(stack):
    with nginx_settings(stack, worker_shutdown_timeout="1s"):
        slow = SlowSave(stack)
        with closing(slow.socket):
            # The twin: a byte now and then keeps it open.
            assert slow.goes_on(seconds=3)
            nginx = psutil.Process(stack.pids()["nginx:nginx"])
            nginx.send_signal(signal.SIGHUP)
            until(lambda: not slow.goes_on(seconds=0.5))


def test_forwarded_headers_of_clients_are_ignored(stack):
    status, headers, _ = stack.ask(
        "GET", "/", X_Request_ID="mine", X_Forwarded_Proto="https"
    )
    assert status == 200
    assert re.fullmatch("[0-9a-f]{32}", headers["X-Request-ID"])
    # The twin: the id is in the log, and nothing that follows a "?".
    stack.ask("GET", "/?code=SECRET-CODE", Cookie="sessionid=SECRET-SESSION")
    log = stack.home / "log" / "nginx-access.log"
    until(lambda: headers["X-Request-ID"] in log.read_text())
    time.sleep(1.5)
    assert "SECRET" not in log.read_text()


def test_static_files_are_compressed_and_cached(stack):
    _, _, page = stack.ask("GET", "/")
    (sheet,) = set(re.findall(rb'href="(/static/CACHE/css/[^"]+)"', page)) or {b""}
    path = sheet.decode()
    for encoding in ("br", "gzip"):
        status, headers, _ = stack.ask("GET", path, Accept_Encoding=encoding)
        assert (status, headers["Content-Encoding"]) == (200, encoding)
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
    _, headers, _ = stack.ask("GET", "/static/css/error.css")
    assert headers["Cache-Control"] == "public, max-age=300"


def test_lists_of_static_files_are_not_served(stack):
    for name in ("staticfiles.json", "CACHE/manifest.json"):
        assert (stack.home / "static" / name).exists(), name
        for ending in ("", ".gz", ".br"):
            assert stack.ask("GET", f"/static/{name}{ending}")[0] == 404, name


# The responses of the administration that `invite` opened.
OPENED = "survey_response_1"


def test_no_role_reads_both_names_and_answers(stack):
    def tried(role: str, statement: str) -> str:
        with closing(stack.connect(role)) as connection:
            connection.autocommit = True
            try:
                connection.cursor().execute(statement)
            except psycopg2.Error as error:
                return type(error).__name__
        return "done"

    for statement in (
        "DELETE FROM survey_response WHERE respondent_id = -1",
        "DELETE FROM survey_respondent WHERE id = -1",
        "UPDATE survey_respondent SET issue = issue WHERE id = -1",
        "SELECT * FROM survey_identity WHERE respondent_id = -1",
    ):
        assert tried("taking", statement) == "InsufficientPrivilege", statement
    for statement in (
        "UPDATE accounts_auditentry SET action = ''",
        "DELETE FROM accounts_auditentry",
    ):
        for role in ("console", "worker"):
            assert tried(role, statement) == "InsufficientPrivilege", statement
    # Nobody who gets hold of the console's role adds a key or a certificate.
    certificates = "survey_destructioncertificate"
    for statement in (
        f"INSERT INTO {certificates} DEFAULT VALUES",
        f"UPDATE {certificates} SET public_key = ''",
        f"DELETE FROM {certificates}",
    ):
        assert tried("console", statement) == "InsufficientPrivilege", statement
    assert tried("console", f"SELECT * FROM {certificates}") == "done"
    assert tried("worker", f"UPDATE {certificates} SET kind = kind") == "done"
    names = "SELECT * FROM survey_identity LIMIT 1"
    for role in ("console", "worker"):
        assert tried(role, names) == "done"
        for statement in ("SELECT * FROM survey_response", f"DELETE FROM {OPENED}"):
            assert tried(role, statement) == "InsufficientPrivilege", statement
    for secret in ("mfa_authenticator", "account_emailaddress", "accounts_user"):
        statement = f"SELECT * FROM {secret}"
        assert tried("reports", statement) == "InsufficientPrivilege", statement
    assert tried("reports", "SELECT * FROM survey_response LIMIT 1") == "done"
    assert tried("reports", "SELECT * FROM survey_identity") == "InsufficientPrivilege"
    delete = "DELETE FROM survey_response WHERE respondent_id = -1"
    assert tried("reports", delete) in (
        "InsufficientPrivilege",
        "ReadOnlySqlTransaction",
    )


def test_no_role_is_reached_without_its_password(stack):
    for port, database in ((6432, "taking"), (5432, "groundswell")):
        place = {"host": str(stack.home / "run"), "port": port, "dbname": database}
        for role in ("taking", "groundswell", "worker", "postgres"):
            for password in ("", "guessed"):
                if (role, port) == ("postgres", 5432):
                    continue
                with pytest.raises(psycopg2.OperationalError):
                    psycopg2.connect(user=role, password=password, **place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_the_superuser_is_refused_to_the_programs_user(stack):
    words = ["psql", f"--host={stack.home / 'run'}", "--username=postgres"]
    words += ["--command=SELECT 1", "postgres"]
    as_server = ["runuser", "-u", "groundswell", "--", *words]
    refused = subprocess.run(as_server, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "Peer authentication failed" in refused.stderr
    # The twin: it is the user that is refused, not the connection.
    assert subprocess.run(words, capture_output=True).returncode == 0


# What a role's connection may do, tried where the browsers' requests lead to.
FORBIDDEN = {
    "taking": ("SELECT survey_identity", "DELETE survey_response", "INSERT auth_group"),
    "console": ("SELECT survey_response", f"SELECT {OPENED}"),
    "worker": ("SELECT survey_response", "DELETE accounts_auditentry"),
    "reports": ("SELECT survey_identity", "UPDATE survey_response"),
}
ALLOWED = {
    "taking": "INSERT survey_response",
    "console": "SELECT survey_identity",
    "worker": "SELECT survey_identity",
    "reports": "SELECT survey_response",
}


def test_what_protects_the_installation_holds_from_outside(stack):
    """Headers, cookies, hidden pages, limits and roles, in one look."""
    maya = RespondentBrowser(stack)
    cookies = maya.set_cookies
    for path in ("/", "/take/", "/take/complete/", "/console/account/login/"):
        _, headers, _ = stack.ask(
            "GET", path, Cookie=f"sessionid={maya.cookies['sessionid']}"
        )
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy or "default-src 'self'" in policy, path
        assert "unsafe" not in policy, path
        assert headers["X-Frame-Options"] == "DENY", path
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["Referrer-Policy"] == "same-origin", path
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin", path
        assert (headers["Server"], headers["X-Powered-By"]) == ("nginx", None), path
        for cookie in headers.get_all("Set-Cookie", []):
            if "Max-Age=0" not in cookie:
                cookies[cookie.split("=")[0]] = cookie
    assert {"csrftoken", "staff_csrftoken", "sessionid", "resume"} <= set(cookies)
    for name, cookie in cookies.items():
        assert "SameSite=Lax" in cookie, cookie
        assert "Domain" not in cookie, cookie
        assert ("HttpOnly" in cookie) == (not name.endswith("csrftoken")), cookie
        assert ("Path=/take/" if name == "resume" else "Path=/") in cookie, cookie
    # The service worker, the same for everyone, for the survey's pages only.
    status, headers, body = stack.ask(
        "GET", "/take/worker.js", Cookie=f"sessionid={maya.cookies['sessionid']}"
    )
    assert (status, headers["Cache-Control"]) == (200, "no-cache")
    assert headers["Content-Type"].startswith("application/javascript")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "worker-src 'self'" in headers["Content-Security-Policy"]
    assert headers["Service-Worker-Allowed"] is None
    assert headers["Set-Cookie"] is None
    assert body.startswith(b"const OFFLINE = {")
    # This stack has no TLS. Where it has, cookies are Secure.
    assert environment_of(stack.home, "taking")["GROUNDSWELL_TLS"] == "off"

    for path in (
        *("/metrics", "/readyz", "/nginx_status", "/engineers/", "/private-files/"),
        *(
            "/static/staticfiles.json",
            "/errors/429/inside.html",
            "/.env",
            "/.git/config",
        ),
    ):
        assert stack.ask("GET", path)[0] == 404, path
    assert stack.ask("GET", "/", Cookie="x" * 40_000)[0] == 400
    assert stack.ask("POST", "/take/pages/1/", "x" * 1_200_000)[0] == 413
    assert stack.ask("POST", "/", "x" * 1_200_000)[0] == 413

    right = "SELECT has_table_privilege(current_user, %s, %s)"
    for role, forbidden in FORBIDDEN.items():
        with closing(stack.connect(role)) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication"
                " OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
            )
            assert cursor.fetchone() == (False,), role
            for words, allowed in [
                *((each, False) for each in forbidden),
                (ALLOWED[role], True),
            ]:
                privilege, table = words.split()
                cursor.execute(right, (table, privilege))
                assert cursor.fetchone() == (allowed,), (role, words)


# What each system user may reach, as patterns below the stack's folder: files and
# folders to read or write, then sockets.
CACHES = "run/redis.sock run/redis-messages.sock run/memcached.sock run/.s.PGSQL.6432"
COUNTERS = "run/counters* run/ready*"
REACHED = {
    "": (
        "data data/primary* data/replica* log/primary* log/replica* etc/primary/*"
        " etc/replica/* etc/app/manage.env static* run run/.s.PGSQL.*.lock"
        " etc/backup/pgbackrest.conf etc/backup/prepare data/pgbackrest* log/backup*"
        " backups/database*",
        "run/.s.PGSQL.5432 run/.s.PGSQL.5433",
    ),
    "-pgbouncer": (
        f"run etc/pgbouncer/* run/pgbouncer.pid {COUNTERS}",
        f"{CACHES} run/.s.PGSQL.5432 run/.s.PGSQL.5433",
    ),
    "-redis": (f"run etc/redis*/* data/redis* {COUNTERS}", CACHES),
    "-memcached": (f"run {COUNTERS}", CACHES),
    "-rabbitmq": ("etc/rabbitmq/* data/rabbitmq* log/rabbitmq*", ""),
    "-nginx": ("cache/* log/nginx-*.log files*", "run/taking.sock run/console.sock"),
    "-taking": (f"etc/app/taking.env {COUNTERS}", CACHES),
    "-console": (f"etc/app/console.env files* {COUNTERS}", f"{CACHES} run/taking.sock"),
    "-worker": (f"etc/app/worker.env files* data/beat* {COUNTERS}", CACHES),
}
# They keep all servers' logs, and call provisioning/stack backup.
ROOTS = ("logs:logs", "backup:backup")
# No secrets, and written by root alone. What nginx answers there, it answers to
# everybody on its port.
READ_BY_ALL = (
    "etc/app/run etc/app/release etc/taking/* etc/console/* etc/nginx/errors/*"
    " cache/ansible/* static/* released log/supervisord.log run/compressing.sock"
)
PROBE = """
import json, os, socket, stat, sys
reached = {"read": [], "written": [], "connected": [], "signalled": []}
paths, pids = json.load(sys.stdin)
for path in paths:
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISSOCK(mode):
            socket.socket(socket.AF_UNIX).connect(path)
            reached["connected"].append(path)
            continue
        if not stat.S_ISDIR(mode):
            try:
                open(path, "rb").read(1)
                reached["read"].append(path)
            except OSError:
                pass
        if not stat.S_ISLNK(mode) and os.access(path, os.W_OK):
            reached["written"].append(path)
    except OSError:
        pass
for pid in pids:
    try:
        os.kill(pid, 0)
        reached["signalled"].append(pid)
    except PermissionError:
        pass
print(json.dumps(reached))
"""


def user_of(program: str) -> str:
    """Return the end of the name of a program's user."""
    suffixes = {"epmd": "rabbitmq", "beat": "worker"}
    suffixes |= {"long_worker": "worker", "email_worker": "worker"}
    suffixes |= {"scan_worker": "worker", "download_worker": "worker"}
    suffixes |= {"redis-messages": "redis"}
    group = program.partition(":")[0]
    return "" if group in ("primary", "replica") else f"-{suffixes.get(group, group)}"


def reached_by(stack: Stack, user: str) -> dict[str, set[str]]:
    """Try everything in the stack's folder as this user, and all its programs."""
    paths = [str(path) for path in stack.home.rglob("*")]
    pids = stack.pids()
    paths += [f"/proc/{pid}/environ" for pid in pids.values()]
    done = subprocess.run(
        ["runuser", "-u", f"groundswell{user}", "--", "python3", "-c", PROBE],
        input=json.dumps([paths, list(pids.values())]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = {pid: name for name, pid in pids.items()}
    names |= {f"/proc/{pid}/environ": name for name, pid in pids.items()}
    return {
        way: {
            names.get(each) or str(Path(each).relative_to(stack.home))
            for each in reached
        }
        for way, reached in json.loads(done.stdout).items()
    }


def unmatched(reached: set[str], patterns: str) -> tuple[set[str], set[str]]:
    """Return what no pattern names, and the patterns that name nothing."""
    every = patterns.split()
    extra = {each for each in reached if not any(fnmatch(each, it) for it in every)}
    return extra, {it for it in every if not any(fnmatch(each, it) for each in reached)}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_each_program_has_a_system_user_of_its_own(stack):
    for name, pid in stack.pids().items():
        process = psutil.Process(pid)
        if name.startswith("nginx:"):
            # Its master may take port 443, and reads no request.
            [process, *_] = process.children()
        expected = "root" if name in ROOTS else f"groundswell{user_of(name)}"
        assert process.username() == expected, name
    assert "users: a system user for each program" in stack.command("status")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("user", REACHED)
def test_a_system_user_reaches_nothing_of_the_others(stack, user):
    # A login, a job and a private file leave what there is to reach.
    assert RespondentBrowser(stack).save() == 200
    private = stack.home / "files" / "private"
    private.touch()
    private.chmod(0o640)
    files, sockets = REACHED[user]
    reached = reached_by(stack, user)
    processes = {name for name in stack.pids() if user_of(name) == user}
    assert reached["signalled"] <= processes
    extra, missing = unmatched(reached["connected"] - {"run/compressing.sock"}, sockets)
    assert (extra, missing) == (set(), set())
    extra, missing = unmatched(
        reached["read"] | reached["written"], f"{files} {READ_BY_ALL}"
    )
    assert extra <= processes
    assert missing <= set(READ_BY_ALL.split()) | {"log/nginx-*.log"}
    extra, _ = unmatched(reached["written"], files)
    assert extra == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_what_is_left_open_would_be_found(stack):
    """The twin: the same look finds an open file, folder and socket."""
    opened = ("etc/app/console.env", "data/primary", "run/console.sock", "etc/primary")
    before = {name: (stack.home / name).stat().st_mode for name in opened}
    try:
        for name in opened:
            (stack.home / name).chmod(0o777)
        reached = reached_by(stack, "-taking")
    finally:
        for name, mode in before.items():
            (stack.home / name).chmod(S_IMODE(mode))
    assert "etc/app/console.env" in reached["read"]
    assert {"data/primary", "etc/primary"} <= reached["written"]
    assert "run/console.sock" in reached["connected"]


def plan_of_a_save(stack, *settings: str) -> str:
    """The plan that a connection keeps for everybody."""
    text, types = postgresql_insert(5)
    prepare, execute = prepared_text(text, types)
    example = {"bigint": "1", "text": "'a'", "bigint[]": "'{1}'", "boolean": "false"}
    values = [example[kind] for kind in types]
    with (
        closing(stack.connect("taking")) as taking,
        taking.cursor() as cursor,
    ):
        for setting in ("plan_cache_mode = force_generic_plan", *settings):
            cursor.execute(f"SET LOCAL {setting}")
        name = prepare.split()[1]
        cursor.execute(prepare.replace(name, "planned"))
        cursor.execute("EXPLAIN " + execute.replace(name, "planned") % tuple(values))
        plan = "\n".join(line for (line,) in cursor.fetchall())
        cursor.execute("DEALLOCATE planned")
        return plan


def test_a_plan_for_small_tables_never_scans_a_table(stack):
    place = {"host": str(stack.home / "run"), "port": 5432}
    with closing(
        psycopg2.connect(dbname="groundswell", user="postgres", **place)
    ) as owner:
        owner.autocommit = True
        owner.cursor().execute("ANALYZE survey_respondent, survey_administration")
    assert "Seq Scan" not in plan_of_a_save(stack)
    # The twin.
    assert "Seq Scan" in plan_of_a_save(stack, "enable_seqscan = on")


# Faults under load --------------------------------------------------------


def test_no_answer_is_lost_under_faults_and_each_control_objects(stack):
    """Ten faults and all negative controls, on the stack that is already there.

    Before `writer` opens a survey for people who are not simulated, where no fault
    may be injected. `provisioning/test` never repeats this test.
    """
    before = stack.pids()
    faults = ("faults", "--quick", f"--home={stack.home}")
    done = run(stack.checkout, *faults, seconds=300)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["K"], result["planned"], result["not_planned"]) == (10, 10, {})
    assert result["N"] >= 5000
    assert len(result["controls"]) == len(CONTROLS)
    # The faults were injected here.
    after = stack.pids()
    assert before["primary:primary"] != after["primary:primary"]


# Answers and logs ---------------------------------------------------------

WORDS = {f"words{n}": "" for n in range(5)}
OF_WORDS = """administration_id =
    (SELECT id FROM survey_administration WHERE name = 'words')"""
RESPONDENT = f"SELECT 1 FROM survey_respondent WHERE {OF_WORDS}"
ANSWER = f"""SELECT 1 FROM survey_response WHERE {OF_WORDS} AND item_id =
    (SELECT item_id FROM survey_response WHERE {OF_WORDS}
     ORDER BY item_id LIMIT 1 OFFSET %d)"""
WAITING = """SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE NOT granted AND usename = 'taking'"""


@pytest.fixture(scope="module")
def writer(stack: Stack) -> RespondentBrowser:
    """A person whose survey has text items."""
    folder = stack.home.parent
    book, roster, codes = folder / "words.xlsx", folder / "pupil.csv", folder / "codes"
    questions = [["text", name, name] for name in WORDS]
    book.write_bytes(
        form(
            [["type", "name", "label"], ["begin group", "all", "All", "field-list"]]
            + [*questions, ["end group"]],
            settings=[["form_id", "version"], ["words", "1"]],
        )
    )
    roster.write_text("district,school,student id\nriverside,lincoln,1\n")
    closes = f"{date.today().year + 1}-12-31T00:00"
    window = ["--opens=2020-01-01T00:00", f"--closes={closes}"]
    commands = [
        ["import_survey", str(book)],
        ["publish_survey", "words"],
        ["open_administration", "words", "--survey=words", "--role=student", *window],
        ["import_roster", str(roster), "--administration=words"],
        ["access_codes", "--administration=words", f"--output={codes}"],
    ]
    # One process, because loading the project takes seconds.
    calls = [f"management.call_command(*{words!r})" for words in commands]
    program = ["from django.core import management", *calls]
    stack.command("manage", "shell", "-c", "; ".join(program))
    [card] = csv.DictReader(codes.read_text().splitlines())
    writer = RespondentBrowser(stack, card["code"])
    assert writer.save(WORDS) == 200
    return writer


class WriterRows:
    """The writer's rows in the database, and locks on them."""

    def __init__(self, stack: Stack, writer: RespondentBrowser) -> None:
        self.home = RunningStack(stack.home)
        self.writer = writer

    @contextmanager
    def locked(self, *statements: str) -> Iterator[list[Any]]:
        """Lock rows, with a connection for each statement."""
        with ExitStack() as opened:
            connections = [
                opened.enter_context(closing(self.home.connect())) for _ in statements
            ]
            for connection, statement in zip(connections, statements, strict=True):
                connection.autocommit = False
                connection.cursor().execute(
                    f"SET LOCAL lock_timeout = '5s'; {statement} FOR UPDATE"
                )
            yield connections

    @contextmanager
    def waiting(self, marker: str) -> Iterator[int]:
        """Yield the PostgreSQL process whose save of the marker waits for a lock."""
        with self.locked(RESPONDENT):
            saving = threading.Thread(target=self.save, args=[marker])
            saving.start()
            until(lambda: self.home.query(WAITING), seconds=0.9)
            pid = self.home.query(WAITING)
            yield pid
            assert wait_until_gone([pid])
        saving.join()

    def save(self, marker: str, **sight: int) -> int:
        return self.writer.save({name: f"{marker} {name}" for name in WORDS}, **sight)


def wait_for_a_lock(words: WriterRows, marker: str) -> None:
    with words.locked(RESPONDENT):
        assert words.save(marker) == 503


def wait_for_many_locks(words: WriterRows, marker: str) -> None:
    """Wait for one short lock after another, until the statement times out."""
    answers = [ANSWER % n for n in range(len(WORDS))]
    with words.locked(RESPONDENT, *answers) as locks:
        timers = [
            threading.Timer(0.7 * n, each.rollback) for n, each in enumerate(locks, 1)
        ]
        for timer in timers:
            timer.start()
        assert words.save(marker) == 503
        for timer in timers:
            timer.join()


def refuse_row(words: WriterRows, marker: str) -> None:
    """Save from a tab that has seen no row: the database refuses NULL."""
    assert words.save(marker, seen=0) == 409


def terminate_backend(words: WriterRows, marker: str) -> None:
    with words.waiting(marker) as pid:
        words.home.query(f"SELECT pg_terminate_backend({pid})")


def kill_backend(words: WriterRows, marker: str) -> None:
    """Kill the process; PostgreSQL ends all others too, and logs its statement."""
    with words.waiting(marker) as pid:
        words.home.signal([pid], signal.SIGKILL)


# Ways in which a save fails, and PostgreSQL's log line of each.
FAILURES: dict[Callable[[WriterRows, str], None], bytes] = {
    wait_for_a_lock: b"canceling statement due to lock timeout",
    wait_for_many_locks: b"canceling statement due to statement timeout",
    refuse_row: b'null value in column "revision"',
    terminate_backend: b"terminating connection due to administrator command",
    kill_backend: b"was terminated by signal 9",
}


def logged(stack: Stack) -> bytes:
    """Return all logs: of the servers, the application and PostgreSQL."""
    files = [path for path in (stack.home / "log").rglob("*") if path.is_file()]
    assert {"nginx-access.log", "taking_0.log", "primary.log"} <= {
        path.name for path in files
    }
    return b"\n".join(path.read_bytes() for path in files)


def marker_of(stack: Stack, words: WriterRows, failure: Callable, text: bytes) -> str:
    """Let a save fail, then succeed; return the marker in its answers."""
    before = logged(stack).count(text)
    marker = f"marker-{secrets.token_hex(8)}"
    failure(words, marker)
    until(lambda: words.save(marker) == 200)
    # There was something to leak, and it happened.
    until(lambda: logged(stack).count(text) > before)
    stored = f"SELECT count(*) FROM survey_response WHERE value LIKE '{marker}%'"
    assert words.home.query(stored) == len(WORDS)
    return marker


def leaking_failures(stack: Stack, writer: RespondentBrowser) -> set[str]:
    """Return the names of failures that wrote an answer into a log."""
    words = WriterRows(stack, writer)
    markers = {
        failure.__name__: marker_of(stack, words, failure, message)
        for failure, message in FAILURES.items()
    }
    words.home.close()
    # nginx writes every second.
    time.sleep(1.5)
    written = logged(stack)
    return {name for name, marker in markers.items() if marker.encode() in written}


@contextmanager
def changed_role(stack: Stack, *changes: str) -> Iterator[None]:
    """Change settings of the role that saves, and give all of them back."""
    home = RunningStack(stack.home)
    anew = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
    for change in changes:
        home.query(f"ALTER ROLE taking {change}")
    home.query(f"{anew}'taking'")
    try:
        yield
    finally:
        psql = [
            "psql",
            f"--host={home.run}",
            "--username=postgres",
            "--dbname=postgres",
        ]
        roles = home.folder / "etc" / "primary" / "roles.sql"
        subprocess.run([*psql, "--quiet", f"--file={roles}"], check=True)
        home.query(f"{anew}'taking'")
        home.close()


@pytest.fixture
def revealing_role(stack: Stack) -> Iterator[None]:
    """Remove the role's settings that keep answers out of PostgreSQL's logs."""
    resets = ("RESET log_min_error_statement", "RESET track_activities")
    with changed_role(stack, *resets):
        yield


def test_a_role_that_saves_without_flushing_is_not_ready(stack):
    def durability() -> tuple[int, str]:
        status, body = stack.watch("/readyz")
        return status, json.loads(body)["checks"]["durability"]["detail"]

    lost = "a crash would lose saved pages: synchronous_commit = off"
    until(lambda: durability() == (200, "commits are flushed"))
    with changed_role(stack, "SET synchronous_commit = off"):
        until(lambda: durability() == (503, lost))
    # Each worker keeps its answer for ten seconds.
    until(lambda: durability() == (200, "commits are flushed"))


def test_failed_saves_leave_no_answers_in_logs(stack, writer):
    assert leaking_failures(stack, writer) == set()


def test_without_the_roles_settings_logs_would_contain_answers(
    stack, writer, revealing_role
):
    assert leaking_failures(stack, writer) == {failure.__name__ for failure in FAILURES}


def test_each_timeout_is_longer_than_the_one_inside(stack):
    def written(path: str, pattern: str) -> float:
        text = (stack.home / "etc" / path).read_text()
        return float(re.findall(pattern, text, re.MULTILINE)[0])

    taking = "^ALTER ROLE taking SET {} = '([0-9]+)s'"
    sending = stack.checkout / "static" / "js" / "send_save.js"
    timeouts = {
        "lock": written("primary/roles.sql", taking.format("lock_timeout")),
        "statement": written("primary/roles.sql", taking.format("statement_timeout")),
        "pgbouncer": written("pgbouncer/pgbouncer.ini", "^query_wait_timeout = (.+)"),
        "gunicorn": written("taking/gunicorn.py", "^timeout = (.+)"),
        "nginx": written("nginx/nginx.conf", "proxy_read_timeout (.+)s;"),
        "browser": int(re.findall("SEND_TIMEOUT = ([0-9]+)", sending.read_text())[0])
        / 1000,
    }

    def are_nested(seconds: dict[str, float]) -> bool:
        values = list(seconds.values())
        return values == sorted(set(values))

    assert are_nested(timeouts), timeouts
    assert not are_nested({**timeouts, "nginx": timeouts["gunicorn"]})
    # A worker that has to stop may finish its requests.
    graceful = written("taking/gunicorn.py", "^graceful_timeout = (.+)")
    stops = written("taking/supervisor.ini", "^stopwaitsecs = (.+)")
    assert timeouts["statement"] + timeouts["pgbouncer"] < graceful < stops


# What hangs, and what comes back ------------------------------------------

# Seconds: above the limit of a statement, and shorter than in production.
LIMIT = 4


@pytest.fixture
def hanging_pool(stack: Stack) -> Iterator[None]:
    """Serve the respondents' pool with views that hang, and a shorter limit."""
    changes = {
        "survey.taking.wsgi": "settings.tests.infrastructure.hanging_pool",
        "timeout = 15\n": f"timeout = {LIMIT}\n",
    }
    file = stack.home / "etc" / "taking" / "gunicorn.py"
    written = file.read_text()

    def restart() -> None:
        stack.supervisor.calls.stopProcessGroup("taking")
        stack.supervisor.calls.startProcessGroup("taking")
        until(lambda: stack.ask("GET", "/")[0] == 200)
        # The first one answers before the masters have started the others.
        until(lambda: workers() == complete)

    def workers() -> int:
        return len(workers_of(stack.supervisor.programs(), "taking"))

    complete = workers()
    changed = written
    for before, after in changes.items():
        assert before in changed
        changed = changed.replace(before, after, 1)
    file.write_text(changed)
    restart()
    yield
    file.write_text(written)
    restart()


def test_requests_that_hang_are_ended_and_nobody_elses_save_is(stack, hanging_pool):
    maya = RespondentBrowser(stack)
    before = workers_of(stack.supervisor.programs(), "taking")
    ended: dict[str, tuple[int, bytes, float]] = {}

    def ask(way: str, accept: str) -> None:
        begun = time.monotonic()
        status, _, body = stack.ask("GET", f"/take/hang/{way}/", Accept=accept)
        ended[way] = status, body, time.monotonic() - begun

    ways = {"loop": "text/html", "c": "text/html", "regex": "application/json"}
    ways["statement"] = "application/json"
    hanging = [threading.Thread(target=ask, args=each) for each in ways.items()]
    for thread in hanging:
        thread.start()
    while any(thread.is_alive() for thread in hanging):
        assert maya.save() == 200
        time.sleep(0.12)

    for status, _, seconds in ended.values():
        assert status == 503
        # gunicorn looks once a second, and kills a second later.
        assert seconds < patience(LIMIT + 3)
    for way in ("loop", "c"):
        assert b"Your answers are safe" in ended[way][1]
    assert json.loads(ended["regex"][1]) == {"error": "overloaded"}
    # PostgreSQL has ended this one, and the product answers by itself.
    assert json.loads(ended["statement"][1]) == {"error": "database"}

    def replaced() -> bool:
        after = workers_of(stack.supervisor.programs(), "taking")
        gone = set(before) - set(after)
        return len(gone) == 3 and len(after) == len(before)

    until(replaced)


def staff_try_to_log_in(stack: Stack) -> set[int]:
    """Let so many threads of the console read the database; return the statuses."""
    address = "/console/account/login/"
    statuses: set[int] = set()

    def log_in() -> None:
        _, headers, page = stack.ask("GET", address)
        token = re.search(rb'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        form = {"login": f"{secrets.token_hex(8)}@example.org", "password": "unknown"}
        cookies = headers.get_all("Set-Cookie", [])
        status, *_ = stack.ask(
            "POST",
            address,
            urlencode({**form, "csrfmiddlewaretoken": token[1].decode()}),
            Content_Type="application/x-www-form-urlencoded",
            Cookie="; ".join(cookie.split(";")[0] for cookie in cookies),
            Origin=f"http://127.0.0.1:{stack.port}",
        )
        statuses.add(status)

    threads = [threading.Thread(target=log_in) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


@pytest.mark.parametrize("servers", [["primary"], ["pgbouncer", "redis", "rabbitmq"]])
def test_every_worker_reconnects_after_its_servers_return(stack, servers):
    maya = RespondentBrowser(stack)
    # Connections of the console that nobody uses until the servers are back.
    assert staff_try_to_log_in(stack) == {200}
    before = stack.pids()
    for server in servers:
        stack.supervisor.calls.stopProcessGroup(server)
    try:
        assert maya.save() == 503
        time.sleep(3)
    finally:
        for server in servers:
            stack.supervisor.calls.startProcessGroup(server)
    until(lambda: maya.save() == 200)
    assert staff_try_to_log_in(stack) == {200}
    assert RespondentBrowser(stack).save() == 200

    # The scheduler sends a task every five seconds; a worker needs the database.
    log = stack.home / "log" / "worker.log"
    seen = log.stat().st_size

    def has_worked() -> bool:
        with log.open("rb") as file:
            file.seek(seen)
            lines = file.read()
        return re.search(rb"send_staff_emails\[[^\]]+\] succeeded", lines) is not None

    until(has_worked, seconds=40)
    until(lambda: b'"degraded": []' in stack.watch("/readyz")[1])
    after = stack.pids()
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {f"{server}:{server}" for server in servers}


# What is measured ---------------------------------------------------------


def test_a_quick_benchmark_has_no_failures(stack):
    done = run(stack.checkout, "bench", "--quick", f"--home={stack.home}")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result) == {
        *("machine", "size", "limits", "saves", "mix", "views", "failed", "non_2xx"),
        *("saves_per_s", "mix_per_s", "cpu_us_per_save", "cpu_us_per_request"),
        *("statements_per_save", "commits_per_fsync"),
    }
    assert (result["failed"], result["non_2xx"]) == (0, {})
    assert result["statements_per_save"] == result["saves"]["inserted_share"] == 1.0
    limits = result["limits"]
    assert set(limits) == {
        *("statement_direct_per_s", "statement_by_pgbouncer_per_s"),
        *("empty_view_per_s", "nginx_cache_per_s"),
    }
    assert min(limits.values()) > 0
    assert result["views"][SAVE]["count"] > 0


def test_a_worker_is_small_and_starts_fast(stack):
    assert re.search("taking: 8 workers of ", stack.command("status"))
    measured = running_stack(folder=stack.home)
    before = workers_of(stack.supervisor.programs(), "taking")
    assert max(before.values()) < WORKER_MB
    assert 0 < start_of_a_worker(measured) < LONGEST_START
    after = workers_of(stack.supervisor.programs(), "taking")
    assert len(set(before) - set(after)) == len(set(after) - set(before)) == 1


def test_no_kind_of_request_costs_more_instructions_than_are_kept(stack):
    done = run(
        stack.checkout,
        *("run", "instructions", "--against"),
        seconds=600,
        GROUNDSWELL_STACK=str(stack.home),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "Nothing is compared" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert json.loads(done.stdout.splitlines()[-1])["save_instructions"] > 0


def changed_tasks(stack: Stack) -> list[str]:
    """Return the tasks of the last `up` that changed something."""
    log = (stack.home / "provisioning.log").read_text()
    return re.findall(
        r"^(?:TASK|RUNNING HANDLER) \[([^]]+)\][^\n]*\nchanged:", log, re.MULTILINE
    )


def test_a_second_up_changes_only_what_differs(stack):
    # After the first, nearly everything was a change.
    assert len(changed_tasks(stack)) > 20
    before = stack.pids()
    stack.up("--set=memcached_megabytes=65", "--set=session_rate=11r/s")
    after = stack.pids()
    assert {name for name in after if after[name] != before[name]} == {
        "memcached:memcached"
    }
    assert "rate=11r/s" in (stack.home / "etc" / "nginx" / "nginx.conf").read_text()
    assert changed_tasks(stack) == [
        "cache : Write the configuration",
        "cache : Start them, or restart what changed",
        "web : Write nginx's configuration",
        "web : Reload nginx",
    ]


def test_no_save_fails_during_a_rolling_restart(stack):
    before = stack.pids()
    people = [RespondentBrowser(stack) for _ in range(4)]
    outcomes: Counter[int] = Counter()
    over = threading.Event()

    def go_on(person: RespondentBrowser) -> None:
        while not over.wait(0.12):
            outcomes[person.save()] += 1

    threads = [threading.Thread(target=go_on, args=(each,)) for each in people]
    for thread in threads:
        thread.start()
    stack.command("reload")
    over.set()
    for thread in threads:
        thread.join()

    after = stack.pids()
    masters = {f"{pool}:{pool}_{n}" for pool in ("taking", "console") for n in "01"}
    assert {name for name in after if after[name] != before[name]} == masters
    assert outcomes[200] > 50
    assert set(outcomes) == {200}


def test_killed_programs_are_restarted(stack):
    before = stack.pids()
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)

    def all_back() -> bool:
        programs = stack.supervisor.programs()
        return (
            all(each["statename"] == "RUNNING" for each in programs)
            and not set(before.values()) & set(stack.pids().values())
            and b'"degraded": []' in stack.watch("/readyz")[1]
        )

    until(all_back, seconds=40)
    assert RespondentBrowser(stack).save() == 200


def test_down_ends_all_processes_and_keeps_the_data(stack):
    stack.command("down")

    def at_work() -> list[str]:
        return [
            " ".join(process.info["cmdline"])
            for process in psutil.process_iter(["cmdline"])
            if any(str(stack.home) in part for part in process.info["cmdline"] or ())
        ]

    # Workers of a master that was killed look around every few seconds.
    until(lambda: not at_work(), seconds=10)
    assert (stack.home / "data" / "primary" / "PG_VERSION").exists()
    assert "Nothing is running" in stack.command("down")
