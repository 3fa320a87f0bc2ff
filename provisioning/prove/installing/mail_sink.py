"""A mail server on loopback that takes every e-mail, and counts them."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType

from provisioning.prove.installing.machine import free_port


class MailSink:
    def __init__(self) -> None:
        self.port = free_port()
        self.received = 0
        sink = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 sink\r\n")
                while line := self.rfile.readline():
                    command = line[:4].upper().strip()
                    if command == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        while self.rfile.readline() not in (b".\r\n", b""):
                            pass
                        sink.received += 1
                    self.wfile.write(
                        b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n"
                    )

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", self.port), Handler)

    def __enter__(self) -> MailSink:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.server.shutdown()
        self.server.server_close()
