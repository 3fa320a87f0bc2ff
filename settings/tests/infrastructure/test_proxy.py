"""Each fault of the proxy does what it promises; without one, nothing breaks."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from settings.tests.proxy import Fault, proxied


class Echo:
    """A server that sends back what it receives, and records it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()[:2]
        self.received: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=[client], daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client:
            while data := client.recv(65536):
                self.received.append(data)
                client.sendall(data)


@pytest.fixture
def echo():
    echo = Echo()
    yield echo
    echo.listener.close()


@pytest.fixture
def proxy(echo):
    with proxied(("127.0.0.1", 0), echo.address, seed=7) as proxy:
        yield proxy


@contextmanager
def connected(proxy):
    unix = isinstance(proxy.listen, str)
    with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as client:
        client.settimeout(30)
        client.connect(proxy.listen)
        yield client


def answered(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return client.recv(65536)


def test_without_a_fault_requests_and_replies_pass(proxy):
    with connected(proxy) as client:
        for n in range(20):
            assert answered(client, b"page %d" % n) == b"page %d" % n
    assert proxy.happened == 0


def test_a_delayed_reply_takes_at_least_the_delay(proxy):
    with connected(proxy) as client:
        proxy.fault = Fault(delay=0.2)
        began = time.monotonic()
        assert answered(client, b"page") == b"page"
        assert time.monotonic() - began >= 0.2


def test_a_reset_request_does_not_reach_the_server(proxy, echo):
    with connected(proxy) as client:
        proxy.fault = Fault(reset=True)
        with pytest.raises(ConnectionResetError):
            answered(client, b"page")
    assert echo.received == []


def test_a_request_whose_reply_is_lost_reaches_the_server(proxy, echo):
    with connected(proxy) as client:
        proxy.fault = Fault(lose=True)
        with pytest.raises(ConnectionResetError):
            answered(client, b"page")
    assert echo.received == [b"page"]


def test_a_hanging_request_reaches_the_server_after_the_fault(proxy, echo):
    with connected(proxy) as client:
        proxy.fault = Fault(hang=True)
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            answered(client, b"page")
        assert echo.received == []
        proxy.fault = Fault()
        client.settimeout(30)
        assert client.recv(100) == b"page"


def test_a_corrupt_reply_differs_by_one_bit_in_its_second_half(proxy):
    sent = bytes(100)
    with connected(proxy) as client:
        proxy.fault = Fault(corrupt=True)
        changed_reply = answered(client, sent)
    assert changed_reply[:50] == sent[:50]
    (changed,) = (byte for byte in changed_reply if byte)
    assert changed.bit_count() == 1


def test_the_seed_decides_which_requests_are_affected(echo, tmp_path):
    def affected(seed: int) -> list[bool]:
        with proxied(f"{tmp_path}/{seed}", echo.address, seed=seed) as proxy:
            proxy.fault = Fault(corrupt=True, share=0.3)
            with connected(proxy) as client:
                return [answered(client, bytes(8)) != bytes(8) for _ in range(40)]

    first = affected(3)
    assert 4 <= sum(first) <= 20
    assert affected(3) == first
    assert affected(4) != first


def test_the_connection_is_closed_when_the_server_is_down(tmp_path):
    with (
        proxied(f"{tmp_path}/p", f"{tmp_path}/missing") as proxy,
        connected(proxy) as client,
    ):
        assert client.recv(100) == b""
