"""Closing a connection to nginx without waiting, and without losing output."""

from __future__ import annotations

import socket
import time

import pytest
from gunicorn.util import close_graceful

from settings.infrastructure.gunicorn_workers import PromptSocket
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
    with PromptSocket.from_socket(both[1]) as prompt:
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


def test_the_socket_keeps_its_file_descriptor():
    nginx, worker = socket.socketpair(socket.AF_UNIX)
    number = worker.fileno()
    with nginx, PromptSocket.from_socket(worker) as prompt:
        assert isinstance(prompt, PromptSocket)
        assert (prompt.fileno(), worker.fileno()) == (number, -1)
        assert prompt.gettimeout() is None
