"""A server that misbehaves on request, and respondents who are logged in."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

from provisioning.measure.load.crowd import Crowd
from provisioning.measure.load.engine import Engine
from provisioning.measure.load.respondent import (
    RehearsalSurvey,
    Respondent,
    save_requests,
)
from provisioning.measure.load.tally import Tally
from provisioning.measure.load.target import target_of

DESCRIBED = {
    "administration": "rehearsal",
    "digest": "d" * 64,
    "renderer": "r1",
    "language": "en",
    "pages": [
        {
            "n": n,
            "items": [{"name": f"p{n}_q{q}", "values": ["1", "2"]} for q in (1, 2)],
        }
        for n in range(1, 11)
    ],
}

Send = Callable[[bytes], None]


def reply(body: bytes, status: str = "200 OK", head: bytes = b"") -> bytes:
    line = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n".encode()
    return line + head + b"\r\n" + body


def receipt(request: bytes, **changes: int) -> bytes:
    asked = json.loads(request.split(b"\r\n\r\n", 1)[1])
    given = {"saved": len(asked["answers"]), "revision": asked["revision"], "at": "now"}
    return json.dumps({**given, **changes}).encode()


class CloseConnection(Exception):
    """Close the connection without another byte."""


class Server:
    """Answer each request with a function, which may also delay or disconnect."""

    def __init__(
        self, path: Path | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(path))
            self.listener.listen(16)
            self.address = f"unix:{path}"
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        if tls:
            self.listener = tls.wrap_socket(self.listener, server_side=True)
        self.answer: Callable[[bytes, Send], None] = lambda request, send: send(
            reply(receipt(request))
        )
        self.requests: list[bytes] = []
        self.connections = 0
        self.threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self.threads.append(thread)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, CloseConnection):
            while request := self._read(connection):
                self.requests.append(request)
                self.answer(request, connection.sendall)

    def _read(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def engine_for(server: Server, **options: float) -> Engine:
    return Engine(target_of(server.address), **options)


def logged_in_respondent(server: Server, code: str = "AAAA-BBBB-CCCC") -> Respondent:
    return Respondent(
        code,
        RehearsalSurvey.of(DESCRIBED),
        target_of(server.address),
        tag="tag",
        revision=100,
        cookies={"sessionid": "s", "csrftoken": "t"},
    )


def save_pages(server: Server, pages: int = 3, **options: float) -> Tally:
    """Save each page by another respondent, one request after another."""
    people = []
    for n in range(1, pages + 1):
        respondent = logged_in_respondent(server, f"code{n}")
        page = 1 + (n - 1) % 10
        people.append(save_requests(respondent, [page]))
    engine = engine_for(server, **options)
    tally = Crowd(engine, people).run_closed(together=1)
    engine.close()
    return tally
