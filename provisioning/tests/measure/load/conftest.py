from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from provisioning.tests.measure.load.helpers import (
    Send,
    Server,
    receipt,
    reply,
    save_pages,
)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def reply_timeout() -> float:
    """Seconds after which this machine has surely answered a small request."""
    server = Server()
    began = time.monotonic()
    save_pages(server, pages=20)
    server.close()
    return max(0.3, 2 * (time.monotonic() - began))


@pytest.fixture
def survey_server(server: Server) -> Server:
    """Answers as the survey does; the session of a code is the code."""
    finished: set[bytes] = set()

    def answer(request: bytes, send: Send) -> None:
        line = request.split(b"\r\n", 1)[0]
        session = request.partition(b"sessionid=")[2].split(b"\r\n")[0]
        if line.startswith(b"POST /take/pages/"):
            send(reply(receipt(request)))
        elif line.startswith(b"GET /take/complete/"):
            review = b'<input name="reviewed" value="token">'
            send(reply(b"Thank you" if session in finished else review))
        elif line.startswith(b"POST /take/complete/"):
            finished.add(session)
            send(reply(b"", "302 Found"))
        elif line.startswith(b"GET /take/"):
            script = b'<script id="take" type="application/json">%s</script>'
            data = b'{"tag": "t", "revision": 5, "seen": [], "digest": "%s"}'
            send(reply(script % (data % (b"d" * 64))))
        elif line.startswith(b"POST / "):
            code = request.partition(b"code=")[2].split(b"&")[0]
            send(reply(b"", "302 Found", b"Set-Cookie: sessionid=%s\r\n" % code))
        elif line.startswith(b"GET /content/"):
            send(reply(b"<section>"))
        else:
            send(reply(b"", head=b"Set-Cookie: csrftoken=t\r\n"))

    server.answer = answer
    return server
