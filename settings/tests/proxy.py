"""Break connections between any two of the servers on purpose.

The proxy runs in a thread of its own. `fault` may be changed at any time, and
applies to connections that are already open:

    with proxied("/run/slow.sock", "/run/redis.sock") as proxy:
        proxy.fault = Fault(delay=3)

An address is the path of a Unix socket, or a host and a port.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Address = str | tuple[str, int]

CHUNK = 65536
# SO_LINGER of zero seconds: closing sends a reset.
RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Fault:
    """A fault of replies; without arguments there is none.

    delay    seconds that each part of a reply is late
    hang     neither requests nor replies pass
    reset    the connection is reset when a request arrives, which is not passed
    lose     the request passes, its reply does not: the connection is cut
    corrupt  one bit in the second half of each part of a reply is flipped
    share    of the requests that this happens to, drawn by the proxy's seed
    """

    delay: float = 0.0
    hang: bool = False
    reset: bool = False
    lose: bool = False
    corrupt: bool = False
    share: float = 1.0


NONE = Fault()


@dataclass(frozen=True)
class Peer:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        client: socket.socket | None = self.writer.get_extra_info("socket")
        if client is not None:
            with contextlib.suppress(OSError):
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.writer.transport.abort()


class Proxy:
    def __init__(self, listen: Address, upstream: Address, *, seed: int = 0) -> None:
        self.listen = listen
        self.upstream = upstream
        self.fault = NONE
        # How often a fault happened: a run without any is void.
        self.happened = 0
        self._random = random.Random(seed)  # noqa: S311
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        async def listen() -> None:
            if isinstance(self.listen, str):
                self._server = await asyncio.start_unix_server(self._serve, self.listen)
            else:
                self._server = await asyncio.start_server(self._serve, *self.listen)
                # Port 0 is any free one.
                self.listen = self._server.sockets[0].getsockname()[:2]

        self._thread.start()
        asyncio.run_coroutine_threadsafe(listen(), self._loop).result(10)

    def stop(self) -> None:
        async def close() -> None:
            if self._server is not None:
                self._server.close()
            # A connection accepted a moment ago gets its turn first.
            await asyncio.sleep(0)
            connections = list(self._connections)
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)
            # Sockets are closed in the loop's next rounds.
            await asyncio.sleep(0.01)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        if isinstance(self.listen, str):
            Path(self.listen).unlink(missing_ok=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                if isinstance(self.upstream, str):
                    streams = await asyncio.open_unix_connection(self.upstream)
                else:
                    streams = await asyncio.open_connection(*self.upstream)
                await self._connect(Peer(reader, writer), Peer(*streams))
        finally:
            self._connections.discard(task)
            writer.close()

    async def _connect(self, client: Peer, server: Peer) -> None:
        # The fault of the request that was passed last.
        current = NONE

        async def pass_requests() -> None:
            nonlocal current
            while data := await client.reader.read(CHUNK):
                fault = self.fault
                happens = fault != NONE and self._random.random() < fault.share
                self.happened += happens
                current = fault if happens else NONE
                if current.reset:
                    return client.reset()
                while current.hang and self.fault.hang:
                    await asyncio.sleep(0.01)
                await server.send(data)

        async def pass_replies() -> None:
            while data := await server.reader.read(CHUNK):
                if current.lose:
                    return client.reset()
                if current.delay:
                    await asyncio.sleep(current.delay)
                if current.corrupt:
                    place = self._random.randrange(len(data) // 2, len(data))
                    flipped = data[place] ^ (1 << self._random.randrange(8))
                    data = data[:place] + bytes([flipped]) + data[place + 1 :]
                await client.send(data)

        tasks = [asyncio.create_task(pass_requests())]
        tasks.append(asyncio.create_task(pass_replies()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # First, since what follows may be interrupted.
            server.writer.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def proxied(listen: Address, upstream: Address, *, seed: int = 0) -> Iterator[Proxy]:
    proxy = Proxy(listen, upstream, seed=seed)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
