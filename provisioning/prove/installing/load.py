"""Answer surveys over TLS until told to stop, and count requests that fail.

`load ORIGIN FILE`: FILE has what `manage.py open_rehearsal --json` printed, and codes.
Runs in the network of the drill's machine, until SIGTERM. Prints
figures as JSON. A request fails that gets no answer, another status than its own, or
another answer; one that a kept connection was closed under is sent once more, as
browsers do.
"""

from __future__ import annotations

import json
import signal
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path
from urllib.parse import urlsplit

from provisioning.measure.load.replies import InvalidReply, Reply, ReplyReader
from provisioning.measure.load.respondent import (
    SAVE,
    RehearsalSurvey,
    Request,
    Respondent,
    login_requests,
    save_requests,
)
from provisioning.measure.load.target import Target

CLIENTS = 6
# Between two requests of a client, in seconds.
PAUSE = 0.2
# How often a client begins anew, as another person, in saves.
VISIT = 40
TIMEOUT = 30.0
CHUNK = 262_144


class ClosedConnection(Exception):
    """The server closed the connection before it answered."""


class Client:
    """A browser with one kept connection."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.connection: ssl.SSLSocket | None = None

    def send(self, data: bytes) -> Reply:
        """Return the reply; raises OSError, InvalidReply or ClosedConnection."""
        is_kept = self.connection is not None
        try:
            return self.exchange(data)
        except (ConnectionError, ssl.SSLError, ClosedConnection):
            self.close()
            if not is_kept:
                raise
        return self.exchange(data)

    def exchange(self, data: bytes) -> Reply:
        if self.connection is None:
            host, context = self.target.host, self.target.tls
            assert context is not None  # noqa: S101
            plain = socket.create_connection(("127.0.0.1", 443), timeout=TIMEOUT)
            self.connection = context.wrap_socket(plain, server_hostname=host)
        self.connection.sendall(data)
        reader = ReplyReader()
        while True:
            received = self.connection.recv(CHUNK)
            if not received:
                raise ClosedConnection
            if reply := reader.feed(received):
                if reply.closing:
                    self.close()
                return reply

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Load:
    def __init__(self, host: str, described: dict[str, object], codes: list[str]):
        self.survey = RehearsalSurvey.of(described)
        # The drill's certificate is of its own authority.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.target = Target(socket.AF_INET, ("127.0.0.1", 443), host, context)
        self.codes = cycle(codes)
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.requests = 0
        self.saves = 0
        self.longest = 0.0
        self.failures: Counter[str] = Counter()
        # When requests failed, in seconds since the beginning.
        self.times: list[float] = []
        self.began = time.monotonic()

    def run(self) -> dict[str, object]:
        clients = [threading.Thread(target=self.browse) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        self.stopped.wait()
        for client in clients:
            client.join()
        return {
            "requests": self.requests,
            "saved_pages": self.saves,
            "failed": sum(self.failures.values()),
            "failures": dict(self.failures),
            "failed_at": self.times[:20],
            "longest_ms": round(1000 * self.longest),
            "seconds": round(time.monotonic() - self.began),
        }

    def browse(self) -> None:
        client = Client(self.target)
        for number in count():
            with self.lock:
                code = next(self.codes)
            respondent = Respondent(code, self.survey, self.target, seed=number)
            for request in self.visit(respondent):
                if self.stopped.wait(PAUSE):
                    return
                if not self.succeeds(client, request):
                    # As a person who reloads the page.
                    break

    def visit(self, respondent: Respondent) -> Iterator[Request]:
        yield from login_requests(respondent)
        pages = cycle(range(1, len(self.survey.pages) + 1))
        for _, page in zip(range(VISIT), pages, strict=False):
            yield respondent.content(page)
            yield from save_requests(respondent, [page])

    def succeeds(self, client: Client, request: Request) -> bool:
        began = time.monotonic()
        try:
            failure = request.check_reply(client.send(request.data))
        except (OSError, InvalidReply, ClosedConnection) as error:
            failure = type(error).__name__
            client.close()
        with self.lock:
            self.requests += 1
            self.saves += request.kind == SAVE and not failure
            self.longest = max(self.longest, time.monotonic() - began)
            if failure:
                self.failures[f"{request.kind}: {failure}"] += 1
                self.times.append(round(began - self.began, 1))
        return not failure


def main(origin: str, file: str) -> None:
    known = json.loads(Path(file).read_text())
    load = Load(urlsplit(origin).hostname or "", known["survey"], known["codes"])
    signal.signal(signal.SIGTERM, lambda number, frame: load.stopped.set())
    print(json.dumps(load.run()))


if __name__ == "__main__":
    main(*sys.argv[1:])
