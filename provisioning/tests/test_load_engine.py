"""The engine against a server that does what servers do on a bad day."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.load.crowd import Crowd, Turn
from provisioning.load.engine import Engine, Exchange
from provisioning.load.replies import Garbled, ReplyReader
from provisioning.load.respondent import (
    Plan,
    Respondent,
    answering,
    hash_of,
    taking,
)
from provisioning.load.tally import Tally
from provisioning.load.target import target_of
from provisioning.percentiles import LatencyHistogram

pytestmark = pytest.mark.once

DESCRIBED = {
    "administration": "rehearsal",
    "digest": "d" * 64,
    "renderer": "r1",
    "language": "en",
    "pages": [
        {
            "n": n,
            "items": [{"name": f"p{n}_q{q}", "values": ["1", "2"]} for q in (1, 2)],
        }
        for n in range(1, 11)
    ],
}

Send = Callable[[bytes], None]


def reply(body: bytes, status: str = "200 OK", head: bytes = b"") -> bytes:
    line = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n".encode()
    return line + head + b"\r\n" + body


def receipt(request: bytes, **changes: int) -> bytes:
    asked = json.loads(request.split(b"\r\n\r\n", 1)[1])
    given = {"saved": len(asked["answers"]), "revision": asked["revision"], "at": "now"}
    return json.dumps({**given, **changes}).encode()


class Cut(Exception):
    """Close the connection now."""


class Server:
    """Answers each request by a function, which may also cut or dawdle."""

    def __init__(self, path: Path | None = None) -> None:
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(path))
            self.listener.listen(16)
            self.address = f"unix:{path}"
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.answer: Callable[[bytes, Send], None] = lambda request, send: send(
            reply(receipt(request))
        )
        self.requests: list[bytes] = []
        self.connections = 0
        self.threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self.threads.append(thread)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, Cut):
            while request := self._read(connection):
                self.requests.append(request)
                self.answer(request, connection.sendall)

    def _read(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def engine_for(server: Server, **options: float) -> Engine:
    return Engine(target_of(server.address), **options)


def person(server: Server, code: str = "AAAA-BBBB-CCCC") -> Respondent:
    """Logged in already."""
    one = Respondent(code, Plan.of(DESCRIBED), target_of(server.address))
    one.tag, one.revision = "tag", 100
    one.cookies = {"sessionid": "s", "csrftoken": "t"}
    one._prepare_saves()
    return one


def save_pages(server: Server, pages: int = 3, **options: float) -> Tally:
    """One person's saves, one after another; whoever fails is replaced."""
    turns = [
        Turn(one, answering(one, [1 + (n - 1) % 10]))
        for n in range(1, pages + 1)
        for one in [person(server, f"code{n}")]
    ]
    engine = engine_for(server, **options)
    tally = Crowd(engine, turns).run_all(together=1)
    engine.close()
    return tally


def test_saves_are_acknowledged(server):
    tally = save_pages(server, pages=10)

    assert tally.answered("survey_change_page") == 10
    assert tally.failed() == 0
    assert server.connections == 1
    request = server.requests[0]
    assert request.startswith(b"POST /take/pages/1/ HTTP/1.1\r\n")
    for line in (
        f"Origin: {server.address}",
        "Content-Type: application/json",
        "X-Groundswell-Respondent: tag",
        "Cookie: sessionid=s; csrftoken=t",
    ):
        assert f"\r\n{line}\r\n".encode() in request
    assert set(json.loads(request.split(b"\r\n\r\n")[1])["answers"]) == {
        "p1_q1",
        "p1_q2",
    }


def in_chunks(request: bytes, send: Send) -> None:
    body = receipt(request)
    send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for piece in (body[:7], body[7:]):
        send(b"%x\r\n%b\r\n" % (len(piece), piece))
        time.sleep(0.002)
    send(b"0\r\n\r\n")


def byte_by_byte(request: bytes, send: Send) -> None:
    for byte in reply(receipt(request)):
        send(bytes([byte]))


def continuing(request: bytes, send: Send) -> None:
    send(b"HTTP/1.1 100 Continue\r\n\r\n" + reply(receipt(request)))


def until_the_end(request: bytes, send: Send) -> None:
    send(b"HTTP/1.1 200 OK\r\n\r\n" + receipt(request))
    raise Cut


@pytest.mark.parametrize("answer", [in_chunks, byte_by_byte, continuing, until_the_end])
def test_replies_come_in_any_pieces(server, answer):
    server.answer = answer
    tally = save_pages(server)
    assert (tally.answered(), tally.failures_by_name()) == (3, {})


def wrong_revision(request: bytes, send: Send) -> None:
    send(reply(receipt(request, revision=7)))


def wrong_number(request: bytes, send: Send) -> None:
    send(reply(receipt(request, saved=1)))


def captive_portal(request: bytes, send: Send) -> None:
    send(reply(b"<html>Please accept the terms</html>"))


def a_list(request: bytes, send: Send) -> None:
    send(reply(b"[1]"))


def cut_after_the_request(request: bytes, send: Send) -> None:
    raise Cut


def cut_in_the_reply(request: bytes, send: Send) -> None:
    send(reply(receipt(request))[:-5])
    raise Cut


def cut_in_a_chunk(request: bytes, send: Send) -> None:
    send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{")
    raise Cut


def overloaded(request: bytes, send: Send) -> None:
    send(reply(b"", "503 Service Unavailable", b"Retry-After: 1\r\n"))


def superseded(request: bytes, send: Send) -> None:
    send(reply(b'{"error": "superseded"}', "409 Conflict"))


def no_http(request: bytes, send: Send) -> None:
    send(b"SSH-2.0-OpenSSH\r\n")


def twice(request: bytes, send: Send) -> None:
    send(reply(receipt(request)) * 2)


def silent(request: bytes, send: Send) -> None:
    time.sleep(1)


@pytest.mark.parametrize(
    ("answer", "failure", "outcome"),
    [
        (wrong_revision, "false receipt", "unknown"),
        (wrong_number, "false receipt", "unknown"),
        (captive_portal, "false receipt", "unknown"),
        (a_list, "false receipt", "unknown"),
        (cut_after_the_request, "cut", "unknown"),
        (cut_in_the_reply, "cut", "unknown"),
        (cut_in_a_chunk, "cut", "unknown"),
        (overloaded, "status 503", "unknown"),
        (superseded, "status 409", "rejected"),
        (no_http, "garbled", "unknown"),
        (twice, "garbled", "unknown"),
        (silent, "timeout", "unknown"),
    ],
)
def test_each_failure_has_its_name(server, answer, failure, outcome):
    def every_second(request: bytes, send: Send) -> None:
        if b"/pages/2/" in request:
            answer(request, send)
        else:
            send(reply(receipt(request)))

    server.answer = every_second
    tally = save_pages(server, timeout=0.2)

    assert tally.failures_by_name() == {failure: 1}
    assert tally.answered() == 2
    status = failure.removeprefix("status ")
    assert tally.non_2xx == ({int(status): 1} if status.isdigit() else {})

    one, found = person(server), []
    engine = engine_for(server, timeout=0.2)
    request = one.save(2, {"p2_q1": "1", "p2_q2": "2"})
    engine.ask(request.data, found.append)
    engine.run()
    engine.close()
    assert one.outcome(request, found[0], one.check(request, found[0])) == outcome


def test_a_server_that_is_away_refuses(server):
    server.close()
    tally = save_pages(server)
    assert tally.failures_by_name() == {"refused": 3}


def test_a_kept_connection_that_was_closed_is_replaced(server):
    server.answer = lambda request, send: send(
        reply(receipt(request), head=b"Connection: close\r\n")
    )
    tally = save_pages(server)
    assert (tally.answered(), tally.failed(), server.connections) == (3, 0, 3)


def test_a_connection_closed_while_idle_is_no_failure(server):
    def answer_and_close(request: bytes, send: Send) -> None:
        send(reply(receipt(request)))
        raise Cut

    server.answer = answer_and_close
    one, found = person(server), []
    engine = engine_for(server)
    for n in (1, 2):
        request = one.save(n, {"p1_q1": "1"})
        engine.ask(
            request.data, lambda each, of=request: found.append(one.check(of, each))
        )
        engine.run(until=time.monotonic() + 0.1)
    engine.close()
    assert found == ["", ""]


def test_the_same_bytes_can_be_sent_twice_at_once(server):
    one, found = person(server), []
    engine = engine_for(server)
    request = one.save(1, {"p1_q1": "1", "p1_q2": "2"})
    for _ in range(2):
        engine.ask(request.data, lambda each: found.append(one.check(request, each)))
    engine.run()
    engine.close()
    assert found == ["", ""]
    assert server.requests[0] == server.requests[1]
    assert server.connections == 2


def test_a_request_can_be_abandoned(server):
    server.answer = silent
    engine, found = engine_for(server), []
    exchange = engine.ask(person(server).save(1, {"p1_q1": "1"}).data, found.append)
    engine.later(0.05, lambda: engine.abandon(exchange))
    engine.run()
    engine.close()
    assert [one.failure for one in found] == ["abandoned"]


def test_no_more_connections_than_allowed(server):
    engine, found = engine_for(server, connections=2), []
    for _ in range(20):
        engine.ask(person(server).save(1, {"p1_q1": "1"}).data, found.append)
    engine.run()
    engine.close()
    assert [one.failure for one in found] == [""] * 20
    assert server.connections == 2


def test_unix_sockets(tmp_path):
    server = Server(tmp_path / "s")
    assert save_pages(server).answered() == 3
    server.close()


@pytest.mark.parametrize(
    "address",
    ["http://example.org", "http://10.0.0.1:80", "https://127.0.0.1", "unix:/nowhere"],
)
def test_only_this_machine_is_loaded(address):
    with pytest.raises(Refusal):
        target_of(address)


def test_localhost_is_this_machine():
    assert target_of("http://localhost:8080").address == ("127.0.0.1", 8080)
    assert target_of("http://[::1]:8080").family == socket.AF_INET6


# The open loop -----------------------------------------------------------


def open_loop(server: Server, **options: float) -> Tally:
    people = (person(server, f"code{n}") for n in range(10_000))
    turns = (Turn(one, answering(one, range(1, 11))) for one in people)
    engine = engine_for(server)
    tally = Crowd(engine, turns, present=200).run_open(**options)
    engine.close()
    return tally


def test_arrivals_come_at_their_rate(server):
    tally = open_loop(server, rate=200, seconds=1, warm=0.2)
    assert 150 < tally.answered() < 250
    assert tally.per_second() == pytest.approx(tally.answered(), rel=0.05)
    assert tally.failed() == 0


def test_a_slow_server_is_not_hidden(server):
    """While it stands still, requests go on being due, and each one waits."""
    stall = threading.Event()
    lock = threading.Lock()

    def stalling(request: bytes, send: Send) -> None:
        with lock:
            if not stall.is_set() and len(server.requests) > 50:
                stall.set()
                time.sleep(0.5)
        send(reply(receipt(request)))

    server.answer = stalling
    tally = open_loop(server, rate=200, seconds=1.5)

    slow = tally.overall()
    assert slow.longest > 0.45
    # A hundred were due in that half second.
    assert slow.percentile(80) > 0.1

    # A closed loop sees the same stall as one slow request.
    stall.clear()
    server.requests.clear()
    closed = save_pages(server, pages=300).overall()
    assert closed.longest > 0.45
    assert closed.percentile(80) < 0.1


def test_too_much_load_shows_what_was_managed(server):
    """The queue of the warming up is answered first, and late."""
    lock = threading.Lock()

    def one_at_a_time(request: bytes, send: Send) -> None:
        with lock:
            time.sleep(0.01)
        send(reply(receipt(request)))

    server.answer = one_at_a_time
    tally = open_loop(server, rate=300, seconds=0.5, warm=0.5)
    assert 50 < tally.per_second() < 101
    assert tally.overall().percentile(50) > 0.5


def test_what_was_never_answered_is_a_failure(server, monkeypatch):
    monkeypatch.setattr("provisioning.load.crowd.DRAIN", 0.1)
    server.answer = silent
    tally = open_loop(server, rate=50, seconds=0.3)
    assert tally.answered() == 0
    assert tally.failures_by_name() == {"unanswered": tally.failed()}
    assert tally.failed() > 5


def test_a_closed_loop_ends_by_time(server):
    people = (person(server, f"code{n}") for n in range(100_000))
    turns = (Turn(one, answering(one, range(1, 11))) for one in people)
    engine = engine_for(server)
    tally = Crowd(engine, turns).run_closed(together=4, seconds=0.3, warm=0.1)
    engine.close()
    assert 0.28 < tally.seconds < 0.5
    assert tally.answered() > 50
    assert server.connections == 4


# People ------------------------------------------------------------------


def test_half_of_what_a_person_asks_are_saves():
    plan = Plan.of(DESCRIBED)
    one = Respondent("code", plan, target_of("http://127.0.0.1:1"))
    one.cookies["csrftoken"] = "t"
    kinds = Counter(request.kind for request in taking(one))
    assert kinds == {
        "survey_login": 2,
        "survey_display": 1,
        "survey_content": 4,
        "survey_change_page": 10,
        "survey_complete": 3,
    }


def test_equal_answers_have_one_hash():
    assert hash_of({"a": "1", "b": None}) == hash_of({"b": None, "a": "1"})
    assert hash_of({"a": "1", "b": None}) != hash_of({"a": "1", "b": "1"})


# Counting ----------------------------------------------------------------


def test_quantiles_are_within_two_percent():
    latencies = LatencyHistogram()
    for n in range(1, 10_001):
        latencies.add(n / 10_000)
    for percent in (50, 95, 99):
        assert latencies.percentile(percent) == pytest.approx(percent / 100, rel=0.02)
    assert latencies.percentile(100) == pytest.approx(1.0, rel=0.02)


def test_tallies_of_two_processes_are_one():
    left, right = Tally(began=1.0, ended=3.0), Tally(began=1.5, ended=3.5)
    for tally, seconds in ((left, 0.1), (right, 0.3)):
        tally.add("survey_login", seconds, "")
        tally.add("survey_login", 0.0, "status 502", 502)
    left.merge(right)
    assert (left.answered(), left.failed(), left.seconds) == (2, 2, 2.5)
    assert left.overall().longest == 0.3
    assert left.figures()["non_2xx"] == {"502": 2}


def test_a_reader_refuses_a_head_without_end():
    with pytest.raises(Garbled):
        ReplyReader().feed(b"HTTP/1.1 200 OK\r\n" + b"a" * 70_000)


def test_times_are_in_order(server):
    found: list[Exchange] = []
    engine = engine_for(server)
    engine.ask(person(server).save(1, {"p1_q1": "1"}).data, found.append)
    engine.run()
    engine.close()
    assert found[0].scheduled <= found[0].sent <= found[0].answered
