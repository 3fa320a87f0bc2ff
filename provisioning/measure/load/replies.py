"""Parse HTTP/1.1 replies from pieces of any size."""

from __future__ import annotations

from dataclasses import dataclass

LARGEST_HEAD = 65_536
WITHOUT_BODY = (204, 304)


class InvalidReply(Exception):
    """The bytes received are not one HTTP reply."""


@dataclass(slots=True)
class Reply:
    status: int
    head: bytes
    body: bytes
    # The server will not answer another request on this connection.
    closing: bool

    def headers(self, name: bytes) -> list[bytes]:
        """Return the values of a header; `name` is in lower case."""
        lines = (line.partition(b":") for line in self.head.split(b"\r\n")[1:])
        return [value.strip() for key, _, value in lines if key.lower() == name]


class ReplyReader:
    """Collect bytes until they are a whole reply."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Reply | None:
        """Return the reply once it is complete. Raises InvalidReply.

        A body needs a length or chunks, as nginx and gunicorn always send.
        """
        buffer = self._buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > LARGEST_HEAD or buffer[:7] != b"HTTP/1."[: len(buffer)]:
                raise InvalidReply
            return None
        head, start = buffer[:end], end + 4
        if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
            raise InvalidReply
        status, lower = int(head[9:12]), head.lower()
        body: bytes | None
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
        else:
            raise InvalidReply
        if body is None:
            return None
        self._buffer = b""
        closing = b"\r\nconnection: close" in lower or lower.startswith(b"http/1.0")
        return Reply(status, head, body, closing)


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
