"""The engine against a server that misbehaves."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.measure.load.engine import Engine, Exchange, clock, play
from provisioning.measure.load.replies import InvalidReply, ReplyReader
from provisioning.measure.load.respondent import read_receipt
from provisioning.measure.load.target import target_of
from provisioning.prove.installing.authority import own_certificate
from provisioning.tests.measure.load.helpers import (
    CloseConnection,
    Send,
    Server,
    engine_for,
    logged_in_respondent,
    receipt,
    reply,
    save_pages,
)
from settings.tests.patience import patience


def test_saves_are_counted_when_their_receipts_arrive(server):
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


@pytest.mark.parametrize("answer", [in_chunks, byte_by_byte])
def test_replies_are_read_from_pieces_of_any_size(server, answer):
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
    raise CloseConnection


def cut_in_the_reply(request: bytes, send: Send) -> None:
    send(reply(receipt(request))[:-5])
    raise CloseConnection


def cut_in_a_chunk(request: bytes, send: Send) -> None:
    send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{")
    raise CloseConnection


def overloaded(request: bytes, send: Send) -> None:
    send(reply(b"", "503 Service Unavailable", b"Retry-After: 1\r\n"))


def superseded(request: bytes, send: Send) -> None:
    send(reply(b'{"error": "superseded"}', "409 Conflict"))


def no_http(request: bytes, send: Send) -> None:
    send(b"SSH-2.0-OpenSSH\r\n")


def twice(request: bytes, send: Send) -> None:
    send(reply(receipt(request)) * 2)


def silent(request: bytes, send: Send) -> None:
    threading.Event().wait(60)


@pytest.mark.parametrize(
    ("answer", "failure", "outcome"),
    [
        (wrong_revision, "false receipt", "unknown"),
        (wrong_number, "false receipt", "acked"),
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
def test_each_failure_is_counted_under_its_name(
    server, reply_timeout, answer, failure, outcome
):
    def every_second(request: bytes, send: Send) -> None:
        if b"/pages/2/" in request:
            answer(request, send)
        else:
            send(reply(receipt(request)))

    server.answer = every_second
    timeout = reply_timeout if answer is silent else 30
    tally = save_pages(server, timeout=timeout)

    assert tally.failures_by_name() == {failure: 1}
    assert tally.answered() == 2
    status = failure.removeprefix("status ")
    assert tally.non_2xx() == ({status: 1} if status.isdigit() else {})

    respondent, exchanges = logged_in_respondent(server), []
    engine = engine_for(server, timeout=timeout)
    request = respondent.save(2, {"p2_q1": "1", "p2_q2": "2"})
    engine.ask(request.data, exchanges.append)
    engine.run()
    engine.close()
    assert request.check(exchanges[0]) == failure
    assert read_receipt(exchanges[0], request.revision).outcome == outcome


def exchange_over_tls(folder: Path, authority: str, body: bytes) -> Exchange:
    """Ask a server whose certificate is by the authority `known`."""
    for name in ("known", "unknown"):
        own_certificate(folder / name, "survey.example.org")
    shown = folder / "known/certificates/survey.example.org"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{shown}.pem", f"{shown}.key")
    server = Server(tls=context)
    server.answer = lambda request, send: send(reply(body))
    trusted = folder / authority / "certificates/ca.pem"
    target = replace(
        target_of(server.address, host="survey.example.org"),
        tls=ssl.create_default_context(cafile=trusted),
    )
    engine = Engine(target)
    exchange = engine.exchange(b"GET / HTTP/1.1\r\n\r\n")
    engine.close()
    server.close()
    return exchange


def test_a_reply_over_tls_may_have_many_records(tmp_path):
    body = bytes(200_000)
    exchange = exchange_over_tls(tmp_path, "known", body)
    assert exchange.reply is not None
    assert exchange.reply.body == body


def test_an_unknown_authority_is_refused(tmp_path):
    exchange = exchange_over_tls(tmp_path, "unknown", b"")
    assert (exchange.reply, exchange.failure) == (None, "refused")


def test_connections_to_a_closed_port_are_refused(server):
    server.close()
    tally = save_pages(server)
    assert tally.failures_by_name() == {"refused": 3}


def test_a_connection_that_the_server_closes_is_replaced(server):
    server.answer = lambda request, send: send(
        reply(receipt(request), head=b"Connection: close\r\n")
    )
    tally = save_pages(server)
    assert (tally.answered(), tally.failed(), server.connections) == (3, 0, 3)


def test_a_connection_closed_while_idle_causes_no_failure(server):
    def answer_and_close(request: bytes, send: Send) -> None:
        send(reply(receipt(request)))
        raise CloseConnection

    server.answer = answer_and_close
    respondent, failures = logged_in_respondent(server), []
    engine = engine_for(server)
    for n in (1, 2):
        request = respondent.save(n, {"p1_q1": "1"})
        engine.ask(
            request.data,
            lambda exchange, of=request: failures.append(of.check(exchange)),
        )
        engine.run()
        deadline = time.monotonic() + patience(10)
        while engine._connections and time.monotonic() < deadline:
            engine.run(until=time.monotonic() + 0.01)
    engine.close()
    assert failures == ["", ""]


def test_the_same_bytes_can_be_sent_twice_at_once(server):
    respondent, failures = logged_in_respondent(server), []
    engine = engine_for(server)
    request = respondent.save(1, {"p1_q1": "1", "p1_q2": "2"})
    for _ in range(2):
        engine.ask(request.data, lambda each: failures.append(request.check(each)))
    engine.run()
    engine.close()
    assert failures == ["", ""]
    assert server.requests[0] == server.requests[1]
    assert server.connections == 2


def test_requests_under_way_can_be_abandoned(server):
    server.answer = silent
    engine, exchanges = engine_for(server), []
    for _ in range(2):
        engine.ask(
            logged_in_respondent(server).save(1, {"p1_q1": "1"}).data, exchanges.append
        )
    engine.later(0.05, engine.abandon)
    engine.run()
    engine.close()
    assert [exchange.failure for exchange in exchanges] == ["abandoned"] * 2


def test_a_scenario_goes_on_with_each_reply_and_after_pauses(server):
    engine, statuses = engine_for(server), []

    def scenario():
        for _ in range(2):
            request = logged_in_respondent(server).save(1, {"p1_q1": "1"})
            exchange = yield request.data
            statuses.append((request.check(exchange), clock()))
            yield 0.2

    play(engine, scenario())
    engine.run()
    engine.close()
    [first, first_at], [second, second_at] = statuses
    assert first == second == ""
    assert second_at - first_at >= 0.2


def test_the_number_of_connections_is_limited(server):
    engine, exchanges = engine_for(server, connections=2), []
    for _ in range(20):
        engine.ask(
            logged_in_respondent(server).save(1, {"p1_q1": "1"}).data, exchanges.append
        )
    engine.run()
    engine.close()
    assert [exchange.failure for exchange in exchanges] == [""] * 20
    assert server.connections == 2


def test_unix_sockets_can_be_loaded(tmp_path):
    server = Server(tmp_path / "s")
    assert save_pages(server).answered() == 3
    server.close()


@pytest.mark.parametrize(
    "address",
    ["http://example.org", "http://10.0.0.1:80", "https://127.0.0.1", "unix:/nowhere"],
)
def test_other_machines_are_refused(address):
    with pytest.raises(Refusal):
        target_of(address)


def test_localhost_and_ipv6_loopback_are_accepted():
    assert target_of("http://localhost:8080").address == ("127.0.0.1", 8080)
    assert target_of("http://[::1]:8080").family == socket.AF_INET6


def test_a_head_without_an_end_is_invalid():
    with pytest.raises(InvalidReply):
        ReplyReader().feed(b"HTTP/1.1 200 OK\r\n" + b"a" * 70_000)


def test_an_exchange_is_scheduled_then_sent_then_answered(server):
    exchanges: list[Exchange] = []
    engine = engine_for(server)
    engine.ask(
        logged_in_respondent(server).save(1, {"p1_q1": "1"}).data, exchanges.append
    )
    engine.run()
    engine.close()
    assert exchanges[0].scheduled <= exchanges[0].sent <= exchanges[0].answered
