"""A worker that does not wait for nginx to hang up, and loses no byte by it."""

from __future__ import annotations

import socket
import time

import pytest
from gunicorn.util import close_graceful

from settings.infrastructure.gunicorn_workers import PromptSocket, _prompt

pytestmark = pytest.mark.once

ANSWER = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000


@pytest.fixture
def both():
    """nginx's end, and the worker's."""
    nginx, worker = socket.socketpair(socket.AF_UNIX)
    yield nginx, worker
    nginx.close()
    worker.close()


@pytest.fixture
def prompt(both):
    with _prompt(both[1]) as prompt:
        yield prompt


def seconds_to_close(worker: socket.socket) -> float:
    begun = time.monotonic()
    close_graceful(worker, timeout=0.3)
    return time.monotonic() - begun


def read_all(nginx: socket.socket) -> bytes:
    nginx.settimeout(1)
    return b"".join(iter(lambda: nginx.recv(65536), b""))


def test_the_answer_arrives_whole_and_nobody_waits(both, prompt):
    nginx, _ = both
    nginx.sendall(b"the request")
    assert prompt.recv(100) == b"the request"
    prompt.sendall(ANSWER)
    assert seconds_to_close(prompt) < 0.1
    assert read_all(nginx) == ANSWER


def test_gunicorn_itself_waits(both):
    """The twin."""
    nginx, worker = both
    worker.sendall(ANSWER)
    assert seconds_to_close(worker) >= 0.3


def test_a_request_that_was_not_read_is_waited_for(both, prompt):
    nginx, _ = both
    nginx.sendall(b"a body that nobody has read")
    prompt.sendall(ANSWER)
    assert seconds_to_close(prompt) >= 0.3
    assert read_all(nginx) == ANSWER


def test_a_client_who_has_gone_is_no_error(both, prompt):
    both[0].close()
    close_graceful(prompt)
    assert prompt.fileno() == -1


def test_it_is_the_same_connection():
    nginx, worker = socket.socketpair(socket.AF_UNIX)
    number = worker.fileno()
    with nginx, _prompt(worker) as prompt:
        assert isinstance(prompt, PromptSocket)
        assert (prompt.fileno(), worker.fileno()) == (number, -1)
        assert prompt.gettimeout() is None
