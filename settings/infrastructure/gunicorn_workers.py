"""Adapt gunicorn's sync worker to nginx on a unix socket.

The respondent pool uses it:
`worker_class = "settings.infrastructure.gunicorn_workers.PromptWorker"`.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from typing import cast
from wsgiref.types import WSGIApplication

from gunicorn.http.message import Request
from gunicorn.workers.sync import SyncWorker

from settings.infrastructure.uwsgi_protocol import (
    MODIFIER,
    InvalidRequest,
    Response,
    read_request,
    write,
)

# Bytes of one read: nearly all page saves are there at once.
CHUNK = 65_536
# Seconds between two signs of life, at the least: one for each request is a system call
# more. gunicorn's shortest timeout is a second.
PULSE = 0.25


class PromptWorker(SyncWorker):
    """Answer page saves that nginx sends by the uwsgi protocol, and the rest by HTTP.

    Half of all requests are page saves. nginx has parsed them already, and the uwsgi
    protocol hands on what it has read: with the lengths of all parts, so that nothing
    in a request can be taken for the beginning of another one.

    A connection is closed without waiting for the client to close it first. gunicorn
    waits for the client, because closing a TCP connection with unread input can discard
    output that the client has not read yet. Here the client is nginx, which sends a
    whole request before it reads the response. Waiting for it took 15 % of a worker's
    time and two context switches per request.
    """

    _next_pulse = 0.0

    def notify(self) -> None:
        now = time.monotonic()
        if now >= self._next_pulse:
            self._next_pulse = now + PULSE
            super().notify()

    def accept(self, listener: socket.socket) -> None:
        # A descriptor: each of Python's sockets costs a system call more.
        descriptor, address = listener._accept()  # type: ignore[attr-defined]
        try:
            received = os.read(descriptor, CHUNK)
        except OSError:
            os.close(descriptor)
            return
        if received[:1] == MODIFIER:
            self.answer(descriptor, received)
        else:
            kind = (listener.family, listener.type, listener.proto)
            client = PromptSocket(*kind, fileno=descriptor)
            client.received = received
            self.handle(listener, client, address)

    def answer(self, descriptor: int, received: bytes) -> None:
        """Answer one request of the uwsgi protocol, and close the connection."""
        try:
            request = read_request(received, descriptor)
            self.nr += 1
            if self.nr >= self.max_requests:
                self.log.info("Autorestarting worker after current request.")
                self.alive = False
            response = Response(request["REQUEST_METHOD"])
            body = cast(WSGIApplication, self.wsgi)(request, response.start)
            try:
                write(descriptor, response.encode(body))
            finally:
                if hasattr(body, "close"):
                    body.close()
        except InvalidRequest as invalid:
            self.log.warning("nginx sent what is no request: %s", invalid)
        except (BrokenPipeError, ConnectionResetError):
            self.log.debug("nginx has closed the connection")
        # nginx answers for whoever closes without a reply.
        except SystemExit:
            self.log.exception("a request took too long and was ended")
        except Exception:
            self.log.exception("Error handling request")
        finally:
            os.close(descriptor)

    def handle_error(
        self,
        req: Request | None,
        client: socket.socket,
        addr: object,
        exc: BaseException,
    ) -> None:
        """Close without a reply if gunicorn ends this worker for taking too long.

        gunicorn would write a page of its own, with 500. nginx answers 503, in the
        words of the page that was asked for, and a browser sends its answers again.
        """
        if isinstance(exc, SystemExit):
            self.log.exception("a request took too long and was ended")
        else:
            super().handle_error(req, client, addr, exc)


class PromptSocket(socket.socket):
    # What has been read from it and was not asked for yet.
    received = b""

    def recv(self, size: int, flags: int = 0) -> bytes:
        if flags or not self.received:
            return super().recv(size, flags)
        data, self.received = self.received[:size], self.received[size:]
        return data

    def shutdown(self, how: int) -> None:
        try:
            has_unread_input = bool(self.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK))
        except BlockingIOError:
            has_unread_input = False
        # An application that answers before it has read the whole request leaves
        # unread input. Only then does gunicorn have to wait for the client.
        if has_unread_input:
            super().shutdown(how)
        else:
            # gunicorn takes this for a disconnected client and does not wait.
            raise OSError(errno.ENOTCONN, "nothing to wait for")
