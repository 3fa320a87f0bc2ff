"""A proxy that breaks connections on purpose: between any two of the servers.

Runs in a thread of its own. `fault` may be exchanged at any time and applies
to connections that are already open:

    with proxied("/run/slow.sock", "/run/redis.sock") as proxy:
        proxy.fault = Fault(delay=3)

An address is the path of a unix socket, or a host and a port.
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
# Closing with nothing left to linger for sends a reset.
RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Fault:
    """What happens to replies; nothing, unless something is said.

    delay    seconds that each part of a reply is late
    hang     neither requests nor replies pass
    reset    the connection is reset when a request arrives, which is not passed
    lose     the request passes, its reply does not: the connection is cut
    corrupt  one bit in the second half of each part of a reply is turned
    share    of the requests that this happens to, drawn by the proxy's seed
    """

    delay: float = 0.0
    hang: bool = False
    reset: bool = False
    lose: bool = False
    corrupt: bool = False
    share: float = 1.0


NONE = Fault()


class Proxy:
    def __init__(self, listen: Address, upstream: Address, *, seed: int = 0) -> None:
        self.listen = listen
        self.upstream = upstream
        self.fault = NONE
        # How often a fault happened: a run whose faults did not is void.
        self.happened = 0
        self._draw = random.Random(seed)  # noqa: S311
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        if isinstance(self.listen, str):
            Path(self.listen).unlink(missing_ok=True)

    async def _listen(self) -> None:
        if isinstance(self.listen, str):
            self._server = await asyncio.start_unix_server(self._serve, self.listen)
        else:
            self._server = await asyncio.start_server(self._serve, *self.listen)
            # Port 0 is any that is free.
            self.listen = self._server.sockets[0].getsockname()[:2]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        # One that was accepted a moment ago has its turn first.
        await asyncio.sleep(0)
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        # Sockets are closed in the loop's next rounds.
        await asyncio.sleep(0.01)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._join(Side(reader, writer), await _connect(self.upstream))
        finally:
            self._connections.discard(task)
            writer.close()

    async def _join(self, client: Side, server: Side) -> None:
        line = Line(self, client, server)
        ways = [asyncio.create_task(line.requests())]
        ways.append(asyncio.create_task(line.replies()))
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Before anything that may be interrupted.
            server.writer.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def strikes(self, fault: Fault) -> bool:
        strikes = fault != NONE and self._draw.random() < fault.share
        self.happened += strikes
        return strikes

    def turned(self, data: bytes) -> bytes:
        place = self._draw.randrange(len(data) // 2, len(data))
        turned = data[place] ^ (1 << self._draw.randrange(8))
        return data[:place] + bytes([turned]) + data[place + 1 :]


@dataclass(frozen=True)
class Side:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        found: socket.socket | None = self.writer.get_extra_info("socket")
        if found is not None:
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.writer.transport.abort()


class Line:
    """One connection: its requests one way, its replies the other."""

    def __init__(self, proxy: Proxy, client: Side, server: Side) -> None:
        self.proxy = proxy
        self.client = client
        self.server = server
        # The fault of the request that was passed last.
        self.fault = NONE

    async def requests(self) -> None:
        while data := await self.client.reader.read(CHUNK):
            fault = self.proxy.fault
            self.fault = fault if self.proxy.strikes(fault) else NONE
            if self.fault.reset:
                return self.client.reset()
            while self.fault.hang and self.proxy.fault.hang:
                await asyncio.sleep(0.01)
            await self.server.send(data)

    async def replies(self) -> None:
        while data := await self.server.reader.read(CHUNK):
            if self.fault.lose:
                return self.client.reset()
            if self.fault.delay:
                await asyncio.sleep(self.fault.delay)
            if self.fault.corrupt:
                data = self.proxy.turned(data)
            await self.client.send(data)


async def _connect(address: Address) -> Side:
    if isinstance(address, str):
        return Side(*await asyncio.open_unix_connection(address))
    return Side(*await asyncio.open_connection(*address))


@contextmanager
def proxied(listen: Address, upstream: Address, *, seed: int = 0) -> Iterator[Proxy]:
    proxy = Proxy(listen, upstream, seed=seed)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
