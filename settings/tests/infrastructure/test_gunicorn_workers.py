"""Closing a connection to nginx without waiting, and without losing output."""

from __future__ import annotations

import socket
import time

import pytest
from gunicorn.util import close_graceful

from settings.infrastructure.gunicorn_workers import PromptSocket
from settings.tests.infrastructure.test_time_limit import PROMPT, gunicorn
from settings.tests.infrastructure.test_uwsgi_protocol import VARIABLES, encode
from settings.tests.patience import patience

ANSWER = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000


@pytest.fixture
def both():
    """Return nginx's end of a connection and the worker's."""
    nginx, worker = socket.socketpair(socket.AF_UNIX)
    yield nginx, worker
    nginx.close()
    worker.close()


@pytest.fixture
def prompt(both):
    worker = both[1]
    kind = (worker.family, worker.type, worker.proto)
    with PromptSocket(*kind, fileno=worker.detach()) as prompt:
        yield prompt


def seconds_to_close(worker: socket.socket) -> float:
    begun = time.monotonic()
    close_graceful(worker, timeout=patience(0.3))
    return time.monotonic() - begun


def read_all(nginx: socket.socket) -> bytes:
    nginx.settimeout(1)
    return b"".join(iter(lambda: nginx.recv(65536), b""))


def test_the_response_arrives_complete_without_waiting(both, prompt):
    nginx, _ = both
    nginx.sendall(b"the request")
    assert prompt.recv(100) == b"the request"
    prompt.sendall(ANSWER)
    assert seconds_to_close(prompt) < patience(0.1)
    assert read_all(nginx) == ANSWER


def test_an_unmodified_socket_waits_for_the_client(both):
    nginx, worker = both
    worker.sendall(ANSWER)
    assert seconds_to_close(worker) >= patience(0.3)


def test_closing_waits_if_the_request_was_not_read(both, prompt):
    nginx, _ = both
    nginx.sendall(b"a body that nobody has read")
    prompt.sendall(ANSWER)
    assert seconds_to_close(prompt) >= patience(0.3)
    assert read_all(nginx) == ANSWER


def test_a_disconnected_client_is_not_an_error(both, prompt):
    both[0].close()
    close_graceful(prompt)
    assert prompt.fileno() == -1


# One worker, both protocols


@pytest.fixture(scope="module")
def server():
    with gunicorn(f"--worker-class={PROMPT}", "--timeout=2", limited=False) as server:
        yield server


def exchange(server, data: bytes) -> bytes:
    """Send a request as nginx does, and return all of the response."""
    with socket.socket(socket.AF_UNIX) as nginx:
        nginx.connect(str(server.path))
        nginx.sendall(data)
        nginx.settimeout(patience(20))
        return b"".join(iter(lambda: nginx.recv(65536), b""))


def uwsgi_request(path: str) -> bytes:
    return encode({**VARIABLES, "REQUEST_URI": path})


def test_both_protocols_are_answered_alike(server):
    status, text = server.get("/quick")
    head, _, body = exchange(server, uwsgi_request("/quick")).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert body.decode() == text


def test_what_is_no_request_gets_no_reply_and_ends_no_worker(server):
    whole = uwsgi_request("/quick")
    for data in (b"\0\5\0\0xxxxx", b"\0" * 100, whole + whole, b"\0\0\0\1"):
        assert exchange(server, data) == b""
    assert exchange(server, whole).startswith(b"HTTP/1.1 200")


def test_a_request_that_takes_too_long_gets_no_reply(server):
    """nginx answers 503 then, and the next one has a new worker."""
    assert exchange(server, uwsgi_request("/loop")) == b""
    assert exchange(server, uwsgi_request("/quick")).startswith(b"HTTP/1.1 200")


def test_both_are_read_from_one_piece(both, prompt):
    """What was read to tell the protocols apart is not lost to gunicorn's parser."""
    prompt.received = b"GET / HTTP/1.1"
    both[0].sendall(b"\r\n\r\n")
    assert (prompt.recv(3), prompt.recv(100), prompt.recv(100)) == (
        *(b"GET", b" / HTTP/1.1"),
        b"\r\n\r\n",
    )
