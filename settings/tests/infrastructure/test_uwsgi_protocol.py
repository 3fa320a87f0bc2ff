"""Requests of the uwsgi protocol: as gunicorn reads them from HTTP, or refused."""

from __future__ import annotations

import os
from struct import pack

import pytest
from gunicorn.config import Config
from gunicorn.http.parser import RequestParser
from gunicorn.http.wsgi import create

from settings.infrastructure.uwsgi_protocol import (
    ALWAYS,
    LARGEST_BODY,
    InvalidRequest,
    Response,
    read_request,
)

BODY = b'{"revision": 1, "answers": {}}'
VARIABLES = {
    "REQUEST_METHOD": "POST",
    "REQUEST_URI": "/take/pages/3/?a=%20b",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "CONTENT_TYPE": "application/json",
    "CONTENT_LENGTH": str(len(BODY)),
    "HTTP_HOST": "survey.example.org",
    "HTTP_X_FORWARDED_PROTO": "https",
    "HTTP_X_FORWARDED_FOR": "192.0.2.7",
    "HTTP_X_REQUEST_ID": "0123456789abcdef",
    "HTTP_COOKIE": "sessionid=abc; csrftoken=d\xe9f",
}
# What each of the two adds about itself.
DIFFERENT = {"wsgi.input", "wsgi.errors", "wsgi.file_wrapper", "wsgi.early_hints"}
DIFFERENT |= {"SERVER_SOFTWARE", "gunicorn.socket", "wsgi.multiprocess"}


def encode(variables: dict[str, str], body: bytes = BODY) -> bytes:
    block = b"".join(
        pack("<H", len(text)) + text.encode("latin-1")
        for pair in variables.items()
        for text in pair
    )
    return b"\0" + pack("<H", len(block)) + b"\0" + block + body


def read(data: bytes, *, first: int = 1_000_000):
    """Read a request of which so many bytes come first."""
    rest, nginx = os.pipe()
    try:
        os.write(nginx, data[first:])
        os.close(nginx)
        return read_request(data[:first], rest)
    finally:
        os.close(rest)


def read_http(variables: dict[str, str]):
    """Return the environment that gunicorn makes of the same request in HTTP."""
    headers = {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in variables.items()
        if name.startswith(("HTTP_", "CONTENT_"))
    }
    lines = [f"{variables['REQUEST_METHOD']} {variables['REQUEST_URI']} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    data = "\r\n".join([*lines, "", ""]).encode("latin-1") + BODY
    config = Config()
    config.set("forwarded_allow_ips", "*")
    request = next(RequestParser(config, [data], ""))
    return create(request, None, "", "/run/taking.sock", config)[1]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"REQUEST_URI": "/take/pages/%C3%A9/%2541?%41"},
        {"REQUEST_URI": "/take/pages/1/"},
        {"HTTP_HOST": "127.0.0.1:8080", "HTTP_X_FORWARDED_PROTO": "http"},
        {"HTTP_X_FORWARDED_PROTO": "http"},
        {"REQUEST_METHOD": "GET"},
    ],
)
def test_the_environment_is_that_of_the_same_request_in_http(changes):
    variables = {**VARIABLES, **changes}
    environ, from_http = read(encode(variables)), read_http(variables)
    assert environ["wsgi.input"].read() == from_http["wsgi.input"].read() == BODY
    for both in (environ, from_http):
        for name in DIFFERENT:
            both.pop(name, None)
    assert environ == from_http


def test_a_request_may_come_in_pieces():
    data = encode(VARIABLES)
    for first in range(1, len(data)):
        environ = read(data, first=first)
        assert environ["wsgi.input"].read() == BODY
        assert environ["PATH_INFO"] == "/take/pages/3/"


def test_a_request_without_a_body_has_none():
    variables = VARIABLES.copy()
    del variables["CONTENT_LENGTH"]
    assert read(encode(variables, b""))["wsgi.input"].read() == b""


def test_a_request_that_is_cut_off_anywhere_is_refused():
    data = encode(VARIABLES)
    for end in range(len(data)):
        with pytest.raises(InvalidRequest):
            read(data[:end])
    assert read(data)


def test_a_size_that_is_changed_anywhere_never_reads_past_the_request():
    """Each is refused, or read as a request whose body is not longer than what came."""
    data = encode(VARIABLES)
    for at in range(len(data) - len(BODY)):
        for value in (0, 1, 254, 255):
            changed = data[:at] + bytes([value]) + data[at + 1 :]
            try:
                environ = read(changed)
            except InvalidRequest:
                continue
            assert environ["wsgi.input"].read() in data


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        ({"CONTENT_LENGTH": "-1"}, BODY),
        ({"CONTENT_LENGTH": "+30"}, BODY),
        ({"CONTENT_LENGTH": "30, 30"}, BODY),
        ({"CONTENT_LENGTH": ""}, BODY),
        ({"CONTENT_LENGTH": "\xb3"}, b"123"),
        ({"CONTENT_LENGTH": "0x1e"}, BODY),
        ({"CONTENT_LENGTH": str(LARGEST_BODY + 1)}, BODY),
        ({"CONTENT_LENGTH": "9" * 5000}, BODY),
        # A second request behind the first.
        ({}, BODY + encode(VARIABLES)),
        ({"CONTENT_LENGTH": "0"}, b"x"),
    ],
)
def test_a_body_has_exactly_the_length_that_is_said(changes, body):
    with pytest.raises(InvalidRequest):
        read(encode({**VARIABLES, **changes}, body))


@pytest.mark.parametrize("head", [b"\1\0\0\0", b"\0\0\0\1", b"GET / HTTP/1.1\r\n\r\n"])
def test_only_requests_are_read(head):
    with pytest.raises(InvalidRequest):
        read(head + bytes(20_000))


def with_another(name: bytes, value: bytes) -> bytes:
    """Return a request with one variable more, or twice."""
    once = encode(VARIABLES, b"")
    more = pack("<H", len(name)) + name + pack("<H", len(value)) + value
    return (
        b"\0" + pack("<H", len(once) - 4 + len(more)) + b"\0" + once[4:] + more + BODY
    )


@pytest.mark.parametrize("name", [b"REQUEST_METHOD", b"CONTENT_LENGTH", b"REQUEST_URI"])
def test_what_describes_the_request_may_not_come_twice(name):
    with pytest.raises(InvalidRequest, match="twice"):
        read(with_another(name, b"30"))


def test_a_header_that_comes_twice_is_joined():
    environ = read(with_another(b"HTTP_COOKIE", b"more=1"))
    assert environ["HTTP_COOKIE"] == VARIABLES["HTTP_COOKIE"] + ",more=1"


@pytest.mark.parametrize("name", sorted(ALWAYS))
def test_a_request_needs_what_nginx_always_says(name):
    variables = VARIABLES.copy()
    del variables[name]
    with pytest.raises(InvalidRequest, match="missing"):
        read(encode(variables))


# Responses


def test_a_response_is_written_as_http():
    response = Response("POST")
    response.start("200 OK", [("Content-Length", "2"), ("X-Name", "caf\xe9")])
    assert response.encode([b"o", b"k"]) == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Name: caf\xe9\r\n"
        b"Connection: close\r\n\r\nok"
    )


def test_a_response_to_head_has_no_body():
    response = Response("HEAD")
    response.start("200 OK", [("Content-Length", "2")])
    assert response.encode([b"ok"]).endswith(b"\r\n\r\n")


@pytest.mark.parametrize("text", ["a\r\nb: c", "a\nb", "a\rb", "a\n", "\r"])
def test_no_header_becomes_two(text):
    for status, headers in (
        (text, []),
        ("200 OK", [("X", text)]),
        ("200 OK", [(text, "1")]),
    ):
        with pytest.raises(ValueError, match="line break"):
            Response("GET").start(status, headers)


def test_a_response_that_was_not_started_is_an_error():
    with pytest.raises(ValueError, match="not started"):
        Response("GET").encode([b"text"])
