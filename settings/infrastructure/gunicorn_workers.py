"""Adapt gunicorn's sync worker to nginx on a unix socket.

The respondent pool uses it:
`worker_class = "settings.infrastructure.gunicorn_workers.PromptWorker"`.
"""

from __future__ import annotations

import errno
import socket

from gunicorn.http.message import Request
from gunicorn.workers.sync import SyncWorker


class PromptWorker(SyncWorker):
    """Close a connection without waiting for the client to close it first.

    gunicorn waits for the client, because closing a TCP connection with unread
    input can discard output that the client has not read yet. Here the client is
    nginx, which sends a whole request before it reads the response. Waiting for
    it took 15 % of a worker's time and two context switches per request.
    """

    def handle(
        self, listener: socket.socket, client: socket.socket, addr: object
    ) -> None:
        super().handle(listener, PromptSocket.from_socket(client), addr)

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
    @classmethod
    def from_socket(cls, client: socket.socket) -> PromptSocket:
        """Take over the connection of an open socket."""
        return cls(client.family, client.type, client.proto, client.detach())

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
