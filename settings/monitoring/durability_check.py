"""Ask the respondents' pool whether its commits are flushed when they return."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import closing
from pathlib import Path

from django.conf import settings

from settings.monitoring.answers import NOT_SET_UP, TIMEOUT, Answer

# Seconds for which an answer is kept: these settings rarely change.
KEPT = 10.0


class DurabilityCheck:
    """Check the settings of the connections that save pages."""

    def __init__(self) -> None:
        self.known = NOT_SET_UP
        self.until = 0.0

    def __call__(self) -> Answer:
        if time.monotonic() >= self.until:
            self.known = ask_pool()
            self.until = time.monotonic() + KEPT
        return self.known


check_durability = DurabilityCheck()


def ask_pool() -> Answer:
    paths = [path for path in settings.MONITORED_SOCKETS if Path(path).stem == "taking"]
    if not paths:
        return NOT_SET_UP
    try:
        unsafe = json.loads(get("/durability", socket_path=paths[0]))["unsafe"]
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        # The pool may be busy. Other checks tell if a server is down.
        return Answer(None, f"the respondents' pool: {type(error).__name__}")
    if unsafe:
        return Answer(False, f"a crash would lose saved pages: {', '.join(unsafe)}")
    return Answer(True, "commits are flushed")


def get(path: str, *, socket_path: str) -> bytes:
    client = http.client.HTTPConnection("localhost")
    with socket.socket(socket.AF_UNIX) as client.sock, closing(client):
        client.sock.settimeout(TIMEOUT)
        client.sock.connect(socket_path)
        client.request("GET", path)
        return client.getresponse().read()
