"""Each fault does what it says, and nothing is broken without one."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from provisioning.fault_injection.proxy import Fault, proxied

pytestmark = pytest.mark.once


class Echo:
    """Answers what it is sent, and remembers it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()[:2]
        self.heard: list[bytes] = []
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
                self.heard.append(data)
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
        client.settimeout(0.3)
        client.connect(proxy.listen)
        yield client


def answered(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return client.recv(65536)


def test_without_a_fault_everything_passes(proxy):
    with connected(proxy) as client:
        for n in range(20):
            assert answered(client, b"page %d" % n) == b"page %d" % n
    assert proxy.happened == 0


def test_a_late_reply_is_late_by_that_much(proxy):
    with connected(proxy) as client:
        proxy.fault = Fault(delay=0.2)
        began = time.monotonic()
        assert answered(client, b"page") == b"page"
        assert time.monotonic() - began >= 0.2


def test_a_reset_request_is_never_heard(proxy, echo):
    with connected(proxy) as client:
        proxy.fault = Fault(reset=True)
        with pytest.raises(ConnectionResetError):
            answered(client, b"page")
    assert echo.heard == []


def test_a_lost_reply_was_heard(proxy, echo):
    with connected(proxy) as client:
        proxy.fault = Fault(lose=True)
        with pytest.raises(ConnectionResetError):
            answered(client, b"page")
    assert echo.heard == [b"page"]


def test_a_hung_server_hears_it_once_it_goes_on(proxy, echo):
    with connected(proxy) as client:
        proxy.fault = Fault(hang=True)
        with pytest.raises(TimeoutError):
            answered(client, b"page")
        assert echo.heard == []
        proxy.fault = Fault()
        assert client.recv(100) == b"page"


def test_a_garbled_reply_differs_by_one_bit_in_its_second_half(proxy):
    sent = bytes(100)
    with connected(proxy) as client:
        proxy.fault = Fault(corrupt=True)
        received = answered(client, sent)
    assert received[:50] == sent[:50]
    (changed,) = (byte for byte in received if byte)
    assert changed.bit_count() == 1


def test_a_share_of_the_requests_is_the_same_for_the_same_seed(echo, tmp_path):
    def struck(seed: int) -> list[bool]:
        with proxied(f"{tmp_path}/{seed}", echo.address, seed=seed) as proxy:
            proxy.fault = Fault(corrupt=True, share=0.3)
            with connected(proxy) as client:
                return [answered(client, bytes(8)) != bytes(8) for _ in range(40)]

    first = struck(3)
    assert 4 <= sum(first) <= 20
    assert struck(3) == first
    assert struck(4) != first


def test_a_server_that_is_away_closes_the_connection(tmp_path):
    with (
        proxied(f"{tmp_path}/p", f"{tmp_path}/nobody") as proxy,
        connected(proxy) as client,
    ):
        assert client.recv(100) == b""
