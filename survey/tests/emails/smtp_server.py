"""A real mail server for tests, which can refuse, hang and close connections."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message

from aiosmtpd.smtp import SMTP, Envelope, Session

HANG, CLOSE = "hang", "close"


class SmtpServer:
    """Runs in a thread of its own. `on_rcpt` and `on_text` get a running number.

    They return a reply such as "550 No such user", HANG, CLOSE, or None.
    """

    def __init__(self) -> None:
        self.on_rcpt: Callable[[int], str | None] = lambda n: None
        # After the text was received and before it is confirmed.
        self.on_text: Callable[[int], str | None] = lambda n: None
        self.recipients = self.texts = 0
        self.accepted: list[tuple[str, bytes]] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> SmtpServer:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set_result, None)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._run())

    async def _run(self) -> None:
        self._over = self._loop.create_future()
        server = await self._loop.create_server(
            lambda: SMTP(self, loop=self._loop), "127.0.0.1", 0
        )
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._over
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # The hooks of aiosmtpd.

    async def handle_RCPT(
        self, smtp: SMTP, session: Session, envelope: Envelope, address: str, options
    ) -> str:
        self.recipients += 1
        fault = self.on_rcpt(self.recipients)
        if fault is None:
            envelope.rcpt_tos.append(address)
        return await self._answer(smtp, fault)

    async def handle_DATA(
        self, smtp: SMTP, session: Session, envelope: Envelope
    ) -> str:
        self.texts += 1
        [address] = envelope.rcpt_tos
        fault = self.on_text(self.texts)
        if fault in (None, HANG, CLOSE):
            self.accepted.append((address, envelope.content))
        return await self._answer(smtp, fault)

    async def _answer(self, smtp: SMTP, fault: str | None) -> str:
        if fault == HANG:
            await asyncio.sleep(3600)
        if fault == CLOSE:
            smtp.transport.abort()
        return fault or "250 OK"

    @property
    def times(self) -> Counter[str]:
        """How often each address got an e-mail."""
        return Counter(address for address, _ in self.accepted)

    @property
    def messages(self) -> list[Message]:
        return [message_from_bytes(content) for _, content in self.accepted]


def every(n: int, reply: str) -> Callable[[int], str | None]:
    return lambda number: reply if number % n == 0 else None


def only(n: int, reply: str) -> Callable[[int], str | None]:
    return lambda number: reply if number == n else None
