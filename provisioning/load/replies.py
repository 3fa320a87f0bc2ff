"""HTTP/1.1 replies out of whatever pieces they arrive in."""

from __future__ import annotations

LARGEST_HEAD = 65_536
WITHOUT_BODY = (204, 304)


class Garbled(Exception):
    """What came is not HTTP."""


class Reply:
    __slots__ = ("body", "closing", "head", "status")

    def __init__(self, status: int, head: bytes, body: bytes, closing: bool) -> None:
        self.status = status
        self.head = head
        self.body = body
        # The server will not answer another request on this connection.
        self.closing = closing

    def header(self, name: bytes) -> bytes | None:
        """The first value; `name` in small letters."""
        return next(iter(self.headers(name)), None)

    def headers(self, name: bytes) -> list[bytes]:
        found = []
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name:
                found.append(value.strip())
        return found


class ReplyReader:
    """Feed it bytes; it gives a reply once there is a whole one."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Reply | None:
        """Raises Garbled."""
        buffer = self._buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > LARGEST_HEAD or not _may_begin(buffer):
                raise Garbled
            return None
        head = buffer[:end]
        status = _status(head)
        lower = head.lower()
        if 100 <= status < 200:
            # A server may say so first, and the reply still comes.
            self._buffer = b""
            return self.feed(buffer[end + 4 :]) if len(buffer) > end + 4 else None
        body = self._body(lower, status, end + 4)
        if body is None:
            return None
        self._buffer = b""
        closing = b"\r\nconnection: close" in lower or lower.startswith(b"http/1.0")
        return Reply(status, head, body, closing)

    def ended(self) -> Reply | None:
        """The connection was closed: the reply, if its end is just that."""
        buffer, self._buffer = self._buffer, b""
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = buffer[:end]
        lower = head.lower()
        if b"\r\ncontent-length:" in lower or b"\r\ntransfer-encoding:" in lower:
            return None
        return Reply(_status(head), head, buffer[end + 4 :], True)

    def _body(self, lower: bytes, status: int, start: int) -> bytes | None:
        if status in WITHOUT_BODY:
            return b""
        at = lower.find(b"\r\ncontent-length:")
        if at >= 0:
            line = lower[at + 17 :].split(b"\r\n", 1)[0].strip()
            if not line.isdigit():
                raise Garbled
            stop = start + int(line)
            if len(self._buffer) > stop:
                # More than was asked for: whose reply would the next one be?
                raise Garbled
            return self._buffer[start:] if len(self._buffer) == stop else None
        if b"\r\ntransfer-encoding: chunked" in lower:
            return _unchunked(self._buffer, start)
        # Until the server closes.
        return None


def _may_begin(buffer: bytes) -> bool:
    return b"HTTP/1.".startswith(buffer[:7]) or buffer.startswith(b"HTTP/1.")


def _status(head: bytes) -> int:
    if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
        raise Garbled
    return int(head[9:12])


def _unchunked(buffer: bytes, at: int) -> bytes | None:
    pieces: list[bytes] = []
    while (end := buffer.find(b"\r\n", at)) >= 0:
        try:
            size = int(buffer[at:end].split(b";")[0], 16)
        except ValueError:
            raise Garbled from None
        at = end + 2 + size
        if len(buffer) < at + 2:
            return None
        if buffer[at : at + 2] != b"\r\n":
            raise Garbled
        if not size:
            return b"".join(pieces)
        pieces.append(buffer[end + 2 : at])
        at += 2
    return None
