"""No request reaches another page than its address says, or becomes two.

nginx runs with its real configuration, between a raw client and upstreams that record
what arrives.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from provisioning.installation.environment import ROLES, path_of_program
from provisioning.tests.installation import hostile_requests
from provisioning.tests.installation.recording_upstream import RecordingUpstream
from provisioning.tests.installation.rendered_files import render_web
from settings.tests.patience import patience

TEMPLATES = ROLES / "web" / "templates" / "nginx"
# A path for each location that is a regular expression.
EXAMPLES = {
    "^/logo/": "/logo/state-0123/",
    "^/accent/": "/accent/0a6375.css",
    "^/content/": "/content/ab-1/r_2/en/3/",
    "^/schools/": "/schools/12/",
    "^/(?<notice>": "/questions/spring-2027/",
    "^/results/": "/results/3/schools/12/answers.csv",
    "/(staticfiles|manifest)": "/static/staticfiles.json",
    "[0-9a-f]{12}": "/static/js/a.0123456789ab.js",
    "^/(engineers|console/account)/": "/console/account/login/",
}
FORBIDDEN = re.compile(r"/(?:readyz|metrics|engineers(?:/.*)?)")
# Seconds, before a request is taken for one that nginx does not find complete.
WAITING = 0.1
PATH = re.compile(r"/[!-\"$-\[\]-~]*")


@dataclass
class Server:
    """nginx on a unix socket, or HAProxy in front of it."""

    address: Path
    upstreams: list[RecordingUpstream]

    def ask(self, raw: bytes) -> bytes:
        """Send bytes, and return all that comes back until the connection closes."""
        received = b""
        with socket.socket(socket.AF_UNIX) as client, suppress(ConnectionError):
            client.connect(str(self.address))
            # Refused before all was sent, nginx closes, and its answer can be read.
            with suppress(BrokenPipeError):
                client.sendall(raw)
            # Too early, nginx would give a request up that its upstream is still asked.
            client.settimeout(patience(WAITING))
            try:
                while more := client.recv(65536):
                    received += more
            except TimeoutError:
                # It waits for more, which does not come.
                client.shutdown(socket.SHUT_WR)
                client.settimeout(10)
                while more := client.recv(65536):
                    received += more
        return received

    def arrived(self) -> list:
        requests = [each for upstream in self.upstreams for each in upstream.requests]
        for upstream in self.upstreams:
            upstream.requests.clear()
        return requests


def request(
    target: str, headers: str = "", body: str = "", method: str = "GET"
) -> bytes:
    lines = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    return (lines + (headers + "\r\n" if headers else "") + "\r\n" + body).encode(
        "latin-1", "xmlcharrefreplace"
    )


@pytest.fixture(scope="module")
def rendered() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    home = folder / "h"
    render_web(
        home,
        # Many requests from one address, at once.
        requests_per_address=10_000,
        **{
            f"nginx_{name}listen": f"unix:{home}/run/{name or 'public_'}nginx.sock"
            for name in ("", "engineers_", "monitoring_")
        },
    )
    (home / "run").mkdir(exist_ok=True)
    yield home
    shutil.rmtree(folder)


@contextmanager
def running_nginx(configuration: Path, address: Path) -> Iterator[None]:
    """Run nginx until it listens at this address, and stop it afterwards."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    # As root, its workers would not reach this folder.
    directives = "daemon off; master_process off;" + (
        f" user {user};" if not os.geteuid() else ""
    )
    options = ["-e", "stderr", "-c", configuration, "-g", directives]
    process = subprocess.Popen(
        [path_of_program("nginx"), *options], stderr=subprocess.PIPE
    )
    try:
        for _ in range(200):
            if address.exists():
                break
            assert process.poll() is None, process.stderr.read().decode()
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def upstreams(rendered):
    servers = [
        RecordingUpstream(rendered / "run" / f"{name}.sock")
        for name in ("taking", "console")
    ]
    yield servers
    for upstream in servers:
        upstream.close()


@pytest.fixture(scope="module")
def nginx(rendered, upstreams) -> Iterator[Server]:
    address = rendered / "run/public_nginx.sock"
    with running_nginx(rendered / "etc/nginx/nginx.conf", address):
        yield Server(address, upstreams)


# A load balancer in front of nginx, which keeps connections and shares them.
HAPROXY = """
global
    maxconn 500
defaults
    mode http
    http-reuse always
    timeout connect 3s
    timeout client 5s
    timeout server 5s
listen public
    bind unix@{run}/haproxy.sock
    server nginx unix@{run}/public_nginx.sock
"""


@pytest.fixture(scope="module")
def balancer(rendered, upstreams, nginx) -> Iterator[Server]:
    run = rendered / "run"
    (run / "haproxy.cfg").write_text(HAPROXY.format(run=run))
    process = subprocess.Popen([path_of_program("haproxy"), "-f", run / "haproxy.cfg"])
    for _ in range(200):
        if (run / "haproxy.sock").exists():
            break
        assert process.poll() is None
        time.sleep(0.02)
    yield Server(run / "haproxy.sock", upstreams)
    process.terminate()
    process.wait()


def locations(configuration: str) -> list[str]:
    """Return a path for each location of the public server."""
    paths = []
    servers = configuration.split("    server {\n")
    public = next(each for each in servers if "public_nginx.sock" in each)
    for kind, path in re.findall(r"location (=|~|\^~)? ?(\S+) \{", public):
        if kind == "~":
            [path] = [EXAMPLES[part] for part in EXAMPLES if part in path]
        paths.append(path)
    assert len(paths) > 20
    return paths


@pytest.fixture(scope="module")
def paths(rendered) -> list[str]:
    return locations((rendered / "etc/nginx/nginx.conf").read_text())


def check(server: Server, raw: bytes) -> tuple[bytes, list]:
    """Send one request, and test that at most one arrives, as it may."""
    answer = server.ask(raw)
    arrived = server.arrived()
    # Sent in one piece: 0 where nginx refuses, 2 where the client itself sent two.
    assert len(arrived) <= 1, (raw, arrived)
    for each in arrived:
        assert not each.rest, (raw, each)
        assert PATH.fullmatch(each.target.partition("?")[0]), (raw, each)
        assert re.fullmatch("[!-~]+", each.target), (raw, each)
        assert re.fullmatch(r"[A-Z]+ \S+ HTTP/1\.1", each.line), (raw, each)
        path = each.target.partition("?")[0]
        assert not FORBIDDEN.fullmatch(path), (raw, each)
        assert not each.values("X-Groundswell-Monitoring"), (raw, each)
        assert not each.values("X-Forwarded-Host"), (raw, each)
        for name in ("Host", "X-Forwarded-Proto", "X-Forwarded-For", "Content-Length"):
            assert len(each.values(name)) <= 1, (raw, each)
        assert not each.values("Transfer-Encoding"), (raw, each)
        assert all("_" not in name for name, _ in each.headers), (raw, each)
    assert b"Active connections" not in answer
    assert not answer or answer.startswith(b"HTTP/1.1 ") or is_old(raw), (raw, answer)
    return answer, arrived


def is_old(raw: bytes) -> bool:
    """Test for a request in HTTP/0.9: its answers have no status line."""
    return not raw.splitlines()[0].rpartition(b" ")[2].startswith(b"HTTP/1")


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_hostile_paths_are_refused_before_anybody_is_asked(nginx, paths):
    for path in paths:
        for target in hostile_requests.hostile_paths(path):
            answer, arrived = check(nginx, request(target))
            assert status(answer) == 400, (target, answer)
            assert not arrived, target


def test_odd_paths_are_passed_on_as_they_are_or_not_at_all(nginx, paths):
    for path in paths:
        for target in hostile_requests.odd_paths(path):
            _, arrived = check(nginx, request(target))
            for each in arrived:
                sent = target.split(" ")[0].partition("?")[0]
                assert each.target.partition("?")[0] == sent, target


def test_no_target_reaches_a_page_from_inside(nginx):
    for target in hostile_requests.HOSTILE_TARGETS:
        check(nginx, request(target))


def test_odd_methods_and_versions_are_one_request_or_none(nginx, paths):
    for path in paths:
        for method in hostile_requests.METHODS:
            check(nginx, request(path, method=method))
        for version in hostile_requests.VERSIONS:
            raw = request(path).replace(b"HTTP/1.1", version.encode(), 1)
            check(nginx, raw)


def test_hostile_headers_are_one_request_or_none(nginx, paths):
    for path in paths:
        for headers, body in hostile_requests.HOSTILE_HEADERS:
            check(nginx, request(path, headers, body, "POST" if body else "GET"))


def test_thousands_of_tiny_headers_are_passed_on_or_get_a_page(nginx):
    arrivals = []
    # Newer ones of nginx have a bound for their number, too.
    for count in (10, 900, 3_000, 5_500, 5_900, 6_000, 7_000, 20_000):
        headers = "\r\n".join(["a:"] * count)
        answer, arrived = check(nginx, request("/", headers))
        arrivals.append(len(arrived))
        assert status(answer) == (200 if arrived else 400), (count, answer)
        assert arrived or b"We could not read that" in answer
    assert arrivals == sorted(arrivals, reverse=True)
    assert arrivals[:2] == [1, 1] and arrivals[-1] == 0


def test_what_fits_in_no_message_to_a_worker_is_tried_again(rendered, upstreams):
    """HTTP/2 lets through more headers than a message to a worker holds."""
    headers = "\r\n".join(f"a{number}: {'x' * 90}" for number in range(900))
    text = (rendered / "etc/nginx/nginx.conf").read_text()
    text = text.replace("header_buffers 3 8k;", "header_buffers 8 32k;")
    for sign, page in ((" 500 502", 503), (" 502", 500)):
        folder = rendered / f"lavish-{page}"
        shutil.copytree(rendered / "etc", folder / "etc")
        errors = folder / "etc/nginx/errors.conf"
        errors.write_text(errors.read_text().replace(" 500 502", sign))
        configuration = text.replace(f"{rendered}/etc", f"{folder}/etc")
        listen = f"listen unix:{rendered}/run/"
        configuration = configuration.replace(listen, f"listen unix:{folder}-")
        (folder / "nginx.conf").write_text(configuration)
        address = Path(f"{folder}-public_nginx.sock")
        with running_nginx(folder / "nginx.conf", address):
            server = Server(address, upstreams)
            answer = server.ask(request("/", headers))
        assert status(answer) == page and server.arrived() == []
        # Without it, nginx says so in its own words.
        assert (b"error.css" in answer) == (page == 503)
        assert (b"<center>nginx" in answer) == (page == 500)


def test_behind_a_load_balancer_a_request_stays_one_too(balancer):
    # Locations differ by what they rebuild; all are asked without it above.
    for path in [*EXAMPLES.values(), "/take/pages/", "/console/"]:
        for target in hostile_requests.hostile_paths(path):
            answer, arrived = check(balancer, request(target))
            # HAProxy refuses some by closing.
            assert (not answer or status(answer) == 400) and not arrived, target
    for path in ("/content/ab-1/r_2/en/3/", "/take/pages/", "/console/"):
        for headers, body in hostile_requests.HOSTILE_HEADERS:
            raw = request(path, headers, body, "POST" if body else "GET")
            answer, _ = check(balancer, raw.replace(b"Connection: close\r\n", b""))
            # Nobody else's answer, on a connection that people share.
            shown = re.findall(rb"<[A-Z]+ ([^ ?]+)", answer)
            assert shown in ([], [path.encode()]), (raw, answer)


def test_what_is_kept_is_what_its_address_says(nginx):
    for path, is_cached in (
        ("/content/ab-1/r_2/en/4/", True),
        ("/logo/kept/", True),
        ("/take/worker.js", True),
        ("/about/", True),
        ("/schools/77/", True),
        ("/schools/", True),
        ("/questions/spring-77/", True),
        ("/privacy/", True),
        ("/accessibility/", True),
        ("/results/77/", True),
        ("/results/77/scores.csv", True),
        ("/results/77/nothing/", False),
        ("/take/", False),
    ):
        for query in ("", "?x=1", "?utm=2&q=3", "?language=es"):
            asked = request(path + query)
            first, second = nginx.ask(asked), nginx.ask(asked)
            assert first.split(b"<")[1] == second.split(b"<")[1]
            shown = first.split(b"<")[1].decode()
            assert shown.split(" ")[1].partition("?")[0] == path
            arrived = nginx.arrived()
            assert len(arrived) <= (1 if is_cached else 2), (path, query)
            # Where others read the answer, nothing of the request's own is in it.
            assert not is_cached or all(
                "x=1" not in each.target and "utm" not in each.target
                for each in arrived
            )


def test_pages_of_help_are_kept_where_the_path_is_the_whole_address(nginx):
    for target, most in (("/help/en/77/", 1), ("/help/en/77/?x=1", 2)):
        shown = {nginx.ask(request(target)).split(b"<")[1] for _ in range(2)}
        assert len(shown) == 1
        assert len(nginx.arrived()) == most


def test_people_and_programs_reach_their_pages(nginx):
    for target, upstream, seen in (
        ("/results/3/districts/4/answers.csv", "console", None),
        (
            "/results/3/?q=lincoln%20school&language=es-MX",
            "console",
            "q=lincoln%20school",
        ),
        ("/questions/spring_2027/?language=ar", "console", "language=ar"),
        ("/privacy/?language=ar", "console", "language=ar"),
        ("/schools/?q=S%C3%A3o%0aX", "taking", "q=S%C3%A3o%0aX"),
        ("/content/ab/c/es/1/", "taking", None),
        (
            "/console/surveys/1/?next=%2Fconsole%2F..%2F",
            "console",
            "next=%2Fconsole%2F..%2F",
        ),
        ("/console/try/abc:def:ghi/take/", "console", None),
        ("/console/results/1/scores/quality/a%20b/%C3%A9/", "console", None),
        ("/unsubscribe/a%3Ab/", "console", None),
        ("/messages/1/a-b.json", "taking", None),
        ("/open/begin/", "taking", None),
    ):
        answer, arrived = check(nginx, request(target))
        assert status(answer) == 200, target
        [recorded] = arrived
        assert recorded.upstream == upstream
        assert recorded.target.partition("?")[0] == target.partition("?")[0]
        assert seen is None or seen in recorded.target


def test_tokens_are_masked_in_the_access_log(nginx, rendered):
    for path in ("/unsubscribe/secret-1/", "/console/try/secret:2/content/en/1/"):
        nginx.ask(request(path))
    log = rendered / "log/nginx-access.log"
    for _ in range(100):
        lines = log.read_bytes().decode(errors="replace")
        if '"/console/try/-/content/en/1/"' in lines:
            break
        time.sleep(0.05)
    assert '"/unsubscribe/-/"' in lines
    assert '"/console/try/-/content/en/1/"' in lines
    assert "secret" not in lines


def test_the_decoded_path_in_a_request_would_be_a_second_request(
    rendered, upstreams, nginx, tmp_path
):
    """Show that the requests above do harm where the configuration lets them."""
    text = (rendered / "etc/nginx/nginx.conf").read_text()
    text = text.replace("if ($is_hostile)", 'if ($is_hostile = "never")')
    text = text.replace(
        "proxy_pass http://compressing$shared_path", "proxy_pass http://resumes$uri"
    )
    text = re.sub(r'location ~ "\^/content/.*?\\z"', "location ~ ^/content/", text)
    text = text.replace("set $shared_path /content/$content/;", "")
    text = text.replace(
        str(rendered / "run/public_nginx.sock"), str(rendered / "run/twin_nginx.sock")
    )
    for name in ("compressing", "engineers_nginx", "monitoring_nginx"):
        text = text.replace(f"{name}.sock", f"twin_{name}.sock")
    text = text.replace(str(rendered / "cache"), str(tmp_path)).replace(
        "nginx.pid", "twin.pid"
    )
    for folder in ("body", "proxy", "unused", "content", "finder"):
        (tmp_path / folder).mkdir()
    configuration = tmp_path / "twin.conf"
    configuration.write_text(text)
    twin = Server(rendered / "run/twin_nginx.sock", upstreams)
    with running_nginx(configuration, twin.address):
        twin.ask(request("/content/a/" + hostile_requests.HOSTILE_PARTS[0]))
        arrived = twin.arrived()
        assert any(b"GET /readyz HTTP/1.1" in each.rest for each in arrived)


def test_no_decoded_path_is_passed_on():
    for template in TEMPLATES.rglob("*.conf.j2"):
        for line in template.read_text().splitlines():
            if re.match(r"\s*(proxy_|uwsgi_|rewrite|return|set |add_header)", line):
                assert not re.search(
                    r"\$(uri|document_uri|request_filename)\b", line
                ), line
            if match := re.match(r"\s*location ~\*? (.*) \{", line):
                # `$` would let a line break follow.
                assert "$" not in match[1], line
