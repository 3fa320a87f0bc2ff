"""The HTTP parser: what is one reply, and what is refused."""

from __future__ import annotations

import pytest

from provisioning.measure.load.replies import InvalidReply, ReplyReader

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-A: 1\r\nx-a: 2\r\n\r\nbody"


def feed(*pieces: bytes):
    reader = ReplyReader()
    return [reader.feed(piece) for piece in pieces]


def test_a_reply_is_complete_at_its_last_byte():
    reader = ReplyReader()
    for n in range(len(REPLY) - 1):
        assert reader.feed(REPLY[n : n + 1]) is None
    reply = reader.feed(REPLY[-1:])
    assert (reply.status, reply.body, reply.closing) == (200, b"body", False)


def test_headers_are_found_without_regard_to_case():
    (reply,) = feed(REPLY)
    assert reply.headers(b"x-a") == [b"1", b"2"]
    assert reply.headers(b"x-b") == []


def test_a_reader_is_ready_for_the_next_reply():
    first, second = feed(REPLY, REPLY)
    assert first.body == second.body == b"body"


def test_204_and_304_have_no_body():
    (reply,) = feed(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n")
    assert (reply.status, reply.body) == (304, b"")


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nConnection: close", b"HTTP/1.0 200 OK"]
)
def test_a_closing_reply_is_marked(head):
    (reply,) = feed(head + b"\r\nContent-Length: 0\r\n\r\n")
    assert reply.closing


def test_chunks_are_joined():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert feed(head + b"3\r\nabc\r\n", b"2;x=1\r\nde\r\n0\r\n\r\n")[1].body == b"abcde"


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the connection ends",
        REPLY + b"more",
        b"HTTP/1.1 200 OK\r\nContent-Length: four\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
    ],
)
def test_anything_but_one_reply_is_invalid(data):
    with pytest.raises(InvalidReply):
        feed(data)
