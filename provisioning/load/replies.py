"""Parse HTTP/1.1 replies from pieces of any size."""

from __future__ import annotations

LARGEST_HEAD = 65_536
WITHOUT_BODY = (204, 304)


class InvalidReply(Exception):
    """The bytes received are not one HTTP reply."""


class Reply:
    __slots__ = ("body", "closing", "head", "status")

    def __init__(self, status: int, head: bytes, body: bytes, closing: bool) -> None:
        self.status = status
        self.head = head
        self.body = body
        # The server will not answer another request on this connection.
        self.closing = closing

    def header(self, name: bytes) -> bytes | None:
        """Return the first value; `name` is in lower case."""
        return next(iter(self.headers(name)), None)

    def headers(self, name: bytes) -> list[bytes]:
        found = []
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name:
                found.append(value.strip())
        return found


class ReplyReader:
    """Collect bytes until they are a whole reply."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Reply | None:
        """Return the reply once it is complete. Raises InvalidReply."""
        buffer = self._buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > LARGEST_HEAD or buffer[:7] != b"HTTP/1."[: len(buffer)]:
                raise InvalidReply
            return None
        head, start = buffer[:end], end + 4
        status = _status(head)
        lower = head.lower()
        if 100 <= status < 200:
            # An interim reply; the final one follows.
            self._buffer = b""
            return self.feed(buffer[start:]) if len(buffer) > start else None
        body: bytes | None = None
        at = lower.find(b"\r\ncontent-length:")
        if status in WITHOUT_BODY:
            body = b""
        elif at >= 0:
            length = lower[at + 17 :].split(b"\r\n", 1)[0].strip()
            # More bytes than announced would be taken for the next reply.
            if not length.isdigit() or len(buffer) > start + int(length):
                raise InvalidReply
            body = buffer[start:] if len(buffer) == start + int(length) else None
        elif b"\r\ntransfer-encoding: chunked" in lower:
            body = _join_chunks(buffer, start)
        if body is None:
            return None
        self._buffer = b""
        closing = b"\r\nconnection: close" in lower or lower.startswith(b"http/1.0")
        return Reply(status, head, body, closing)

    def end(self) -> Reply | None:
        """Return the reply that ends where the connection was closed, if any."""
        buffer, self._buffer = self._buffer, b""
        head, separator, body = buffer.partition(b"\r\n\r\n")
        lower = head.lower()
        if not separator or any(
            name in lower
            for name in (b"\r\ncontent-length:", b"\r\ntransfer-encoding:")
        ):
            return None
        return Reply(_status(head), head, body, True)


def _status(head: bytes) -> int:
    if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
        raise InvalidReply
    return int(head[9:12])


def _join_chunks(buffer: bytes, at: int) -> bytes | None:
    """Return the body of a chunked reply, or None while its end is missing."""
    chunks: list[bytes] = []
    while (end := buffer.find(b"\r\n", at)) >= 0:
        try:
            size = int(buffer[at:end].split(b";")[0], 16)
        except ValueError:
            raise InvalidReply from None
        at = end + 2 + size
        if len(buffer) < at + 2:
            return None
        if buffer[at : at + 2] != b"\r\n":
            raise InvalidReply
        if not size:
            return b"".join(chunks)
        chunks.append(buffer[end + 2 : at])
        at += 2
    return None
