"""Read a request of the uwsgi protocol, and write the response.

nginx sends four bytes (0, the size of the variables in two bytes, 0), the variables as
pairs of a name and a value, each behind its size in two bytes, and then the body, whose
size is the variable CONTENT_LENGTH. Sizes have the low byte first. The response is that
of HTTP. See https://uwsgi-docs.readthedocs.io/en/latest/Protocol.html.

gunicorn has a parser of its own, which makes headers of the variables, and variables of
the headers again. Here the variables are the environment of WSGI at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from io import BytesIO
from types import TracebackType
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIEnvironment

MODIFIER = b"\0"
# Bytes before the variables.
HEAD = 4
CHUNK = 65_536
# As many as nginx admits for what a respondent sends, and some more.
LARGEST_BODY = 16 * 1024 * 1024
# What nginx says of every request: without them, variables were lost on the way.
ALWAYS = {
    *("REQUEST_METHOD", "REQUEST_URI", "HTTP_X_REQUEST_ID"),
    *("HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_FOR"),
}
LENGTH = re.compile(r"[0-9]{1,8}", re.ASCII)

ExceptionInfo = (
    tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]
)


class InvalidRequest(Exception):
    """What came is cut off, or is not of this protocol."""


def read_request(received: bytes, descriptor: int) -> WSGIEnvironment:
    """Return the environment of WSGI. Raises InvalidRequest, and OSError.

    `received` has been read already; what is missing comes from the descriptor.
    """
    data = _receive(received, HEAD, descriptor)
    end = HEAD + (data[1] | data[2] << 8)
    if data[0] or data[3]:
        raise InvalidRequest("unknown modifier")
    data = _receive(data, end, descriptor)
    environ = _parse_variables(data, end)
    digits = environ.get("CONTENT_LENGTH", "0")
    if not LENGTH.fullmatch(digits) or (length := int(digits)) > LARGEST_BODY:
        raise InvalidRequest("the length of the body is no number, or too large")
    body = _receive(data[end:], length, descriptor)
    if len(body) != length:
        raise InvalidRequest("more than one request")
    _complete(environ, body)
    return environ


def _receive(data: bytes, size: int, descriptor: int) -> bytes:
    """Return at least `size` bytes, of which some are there."""
    if len(data) >= size:
        return data
    parts, count = [data], len(data)
    while count < size:
        part = os.read(descriptor, CHUNK)
        if not part:
            raise InvalidRequest("cut off")
        parts.append(part)
        count += len(part)
    return b"".join(parts)


def write(descriptor: int, data: bytes) -> None:
    """Write all of it. Raises OSError."""
    while data:
        data = data[os.write(descriptor, data) :]


def _parse_variables(data: bytes, end: int) -> WSGIEnvironment:
    """Return the variables between the head and `end`. Raises InvalidRequest."""
    # One character for each byte, as WSGI wants it.
    text = data[:end].decode("latin-1")
    environ: WSGIEnvironment = {}
    at = HEAD
    try:
        while at < end:
            name_at = at + 2
            value_at = name_at + (data[at] | data[at + 1] << 8) + 2
            at = value_at + (data[value_at - 2] | data[value_at - 1] << 8)
            if at > end:
                break
            name = text[name_at : value_at - 2]
            value = text[value_at:at]
            if name in environ:
                # A header that came twice, as gunicorn joins it.
                if not name.startswith("HTTP_"):
                    raise InvalidRequest("a variable twice")
                value = f"{environ[name]},{value}"
            environ[name] = value
    except IndexError:
        at = end + 1
    if at != end:
        raise InvalidRequest("a variable is longer than all of them")
    return environ


def _complete(environ: WSGIEnvironment, body: bytes) -> None:
    """Add what WSGI wants besides (PEP 3333), by the rules of gunicorn's HTTP."""
    if not environ.keys() >= ALWAYS:
        raise InvalidRequest("a variable is missing")
    uri = environ.pop("REQUEST_URI")
    path, _, query = uri.partition("?")
    if "%" in path:
        path = unquote_to_bytes(path).decode("latin-1")
    scheme = environ["HTTP_X_FORWARDED_PROTO"]
    host, _, port = environ.get("HTTP_HOST", "").partition(":")
    environ.update(
        {
            "RAW_URI": uri,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SCRIPT_NAME": "",
            "SERVER_NAME": host,
            "SERVER_PORT": port or ("443" if scheme == "https" else "80"),
            "REMOTE_ADDR": "",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": scheme,
            "wsgi.input": BytesIO(body),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }
    )


class Response:
    """What the application answers, to be sent in one piece."""

    def __init__(self, method: str) -> None:
        self.omits_body = method == "HEAD"
        self.head = b""

    def start(
        self,
        status: str,
        headers: list[tuple[str, str]],
        exc_info: ExceptionInfo | None = None,
        /,
    ) -> Callable[[bytes], object]:
        """Do what PEP 3333 calls start_response. Raises ValueError for a line break."""
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
        head = "\r\n".join(lines)
        # No header can become two of them, or the beginning of the body.
        breaks = len(headers)
        if not head.count("\r") == head.count("\n") == head.count("\r\n") == breaks:
            raise ValueError("a line break in a header")
        self.head = f"{head}\r\nConnection: close\r\n\r\n".encode("latin-1")
        return self._write

    def encode(self, body: Iterable[bytes]) -> bytes:
        parts = b"".join(body)
        if not self.head:
            raise ValueError("the application has not started its response")
        return self.head if self.omits_body else self.head + parts

    def _write(self, data: bytes) -> Any:
        raise ValueError("a response is returned here, and not written in pieces")
