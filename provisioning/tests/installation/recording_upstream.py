"""Record what nginx sends to the application: each request, byte by byte."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# Between two pieces of a request; a second request would come at once.
PAUSE = 0.004


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it arrived, and what followed it on the connection."""

    upstream: str
    line: str
    headers: tuple[tuple[str, str], ...]
    rest: bytes

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclass
class RecordingUpstream:
    """A server on a unix socket that answers with the address it was asked for."""

    path: Path
    requests: list[Recorded] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            # nginx may have given up.
            with connection, suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        received = connection.recv(65536)
        read = read_uwsgi if received[:1] == b"\0" else read_http
        line, headers, body = read(connection, received)
        recorded = Recorded(self.path.stem, line, headers, b"")
        length = int((recorded.values("Content-Length") or ["0"])[0])
        while len(body) < length and (more := connection.recv(65536)):
            body += more
        # What comes beyond the body is another request.
        connection.settimeout(PAUSE)
        with suppress(TimeoutError):
            body += connection.recv(65536)
        self.requests.append(Recorded(self.path.stem, line, headers, body[length:]))
        text = f"<{line}>".encode("latin-1")
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n"
            "Cache-Control: max-age=60\r\nContent-Type: text/html\r\n"
            "Connection: close\r\n\r\n"
        )
        connection.sendall(head.encode() + text)


Headers = tuple[tuple[str, str], ...]


def read_http(connection: socket.socket, received: bytes) -> tuple[str, Headers, bytes]:
    """Return the line and the headers of a request, and what is there of its body."""
    while b"\r\n\r\n" not in received and (more := connection.recv(65536)):
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    pairs = (each.partition(":") for each in lines)
    return line, tuple((name, value.strip()) for name, _, value in pairs), body


def read_uwsgi(
    connection: socket.socket, received: bytes
) -> tuple[str, Headers, bytes]:
    """Return the same of a request by the uwsgi protocol; see `uwsgi_protocol`."""
    end = 4 + int.from_bytes(received[1:3], "little")
    while len(received) < end and (more := connection.recv(65536)):
        received += more
    texts, at = [], 4
    while at < end:
        size = int.from_bytes(received[at : at + 2], "little")
        texts.append(received[at + 2 : at + 2 + size].decode("latin-1"))
        at += 2 + size
    variables = list(zip(texts[::2], texts[1::2], strict=True))
    headers = tuple(
        (name.removeprefix("HTTP_").replace("_", "-"), value)
        for name, value in variables
        if name.startswith(("HTTP_", "CONTENT_"))
    )
    known = dict(variables)
    line = f"{known['REQUEST_METHOD']} {known['REQUEST_URI']} HTTP/1.1"
    return line, headers, received[end:]
