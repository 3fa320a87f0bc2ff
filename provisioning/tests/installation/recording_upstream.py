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
        received = b""
        while b"\r\n\r\n" not in received and (more := connection.recv(65536)):
            received += more
        head, _, body = received.partition(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = tuple(
            (name, value.strip())
            for name, _, value in (each.partition(":") for each in lines)
        )
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
