"""nginx brings a file of object storage to whom the application says, and nobody else.

nginx runs with its real configuration, between an application and a storage that
record what arrives.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

import pytest

from provisioning.tests.installation.rendered_files import render_web
from provisioning.tests.installation.test_hostile_requests import (
    Server,
    request,
    running_nginx,
)

STORED = "/private-files/files/exports/a-B_9.csv?X-Amz-Expires=60&X-Amz-Signature=a%2Fb"
SENT = {
    "X-Accel-Redirect": STORED,
    "Content-Type": "text/csv; charset=utf-8",
    "Content-Disposition": 'attachment; filename="answers.csv"',
    "Cache-Control": "private, no-store",
}
FILE = b"student,answer\n1,3\n"


class UnixServer(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


@dataclass
class Storage:
    status: int = 200
    body: bytes = FILE
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def handler(status_of, headers_of, body_of, record) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            record(self.command, self.path, dict(self.headers))
            body = body_of()
            self.send_response(status_of())
            for name, text in headers_of().items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *about: object) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Server, Storage]]:
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    home, storage = folder / "h", Storage()
    keeper = ThreadingHTTPServer(
        ("127.0.0.1", 0),
        handler(
            lambda: storage.status,
            lambda: {
                "Content-Type": "text/csv",
                "ETag": '"1"',
                "x-amz-request-id": "7",
            },
            lambda: storage.body,
            lambda method, path, headers: storage.asked.append((path, headers)),
        ),
    )
    threading.Thread(target=keeper.serve_forever, daemon=True).start()
    place = f"127.0.0.1:{keeper.server_port}"
    render_web(
        home,
        nginx_listen=f"unix:{home}/run/public_nginx.sock",
        nginx_engineers_listen=f"unix:{home}/run/engineers.sock",
        nginx_monitoring_listen=f"unix:{home}/run/monitoring.sock",
        files_bucket=f"s3://key:secret@{place}/files?plain=yes",
    )
    (home / "run").mkdir(exist_ok=True)
    application = UnixServer(
        str(home / "run/console.sock"),
        handler(lambda: 200, lambda: SENT, lambda: b"", lambda *_: None),
    )
    threading.Thread(target=application.serve_forever, daemon=True).start()
    address = home / "run/public_nginx.sock"
    with running_nginx(home / "etc/nginx/nginx.conf", address):
        yield Server(address, []), storage
    for server in (application, keeper):
        server.shutdown()
        server.server_close()
    shutil.rmtree(folder)


@pytest.fixture
def storage(served) -> Storage:
    storage = served[1]
    storage.status, storage.body = 200, FILE
    storage.asked.clear()
    return storage


@pytest.fixture
def nginx(served) -> Server:
    return served[0]


def test_a_file_comes_with_the_headers_of_the_application(nginx, storage):
    secrets = (
        "Cookie: __Host-sessionid=abc\r\nAuthorization: Basic x\r\nRange: bytes=0-6"
    )
    answer = nginx.ask(request("/console/exports/7/file/", secrets))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body == FILE
    lines = head.decode().split("\r\n")
    assert 'Content-Disposition: attachment; filename="answers.csv"' in lines
    assert "Cache-Control: private, no-store" in lines
    assert "X-Content-Type-Options: nosniff" in lines
    for hidden in ("etag", "x-amz", "signature", "secret"):
        assert hidden not in head.decode().lower()
    # Exactly what was signed, and nothing of the browser but the part it wants.
    [(path, headers)] = storage.asked
    assert path == STORED.removeprefix("/private-files")
    assert headers["Range"] == "bytes=0-6"
    assert headers["Host"].startswith("127.0.0.1:")
    assert not {"Cookie", "Authorization", "User-Agent"} & set(headers)


def test_no_client_asks_the_storage_by_itself(nginx, storage):
    assert b" 404 " in nginx.ask(request(STORED)).partition(b"\r\n")[0]
    assert storage.asked == []


@pytest.mark.parametrize(
    ("status", "shown"), [(403, 503), (404, 404), (500, 503), (503, 503)]
)
def test_what_the_storage_says_of_a_fault_is_not_passed_on(
    nginx, storage, status, shown
):
    storage.status, storage.body = (
        status,
        b"<Error><Key>exports/a-B_9.csv</Key></Error>",
    )
    answer = nginx.ask(request("/console/exports/7/file/"))
    assert answer.startswith(b"HTTP/1.1 %d " % shown)
    assert b"<Key>" not in answer
