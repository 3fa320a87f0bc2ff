"""A mail server in a process of its own, which refuses, hangs and closes connections.

Prints its port. When its input ends, it prints as JSON what it has received.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

from aiosmtpd.smtp import SMTP, Envelope, Session

# Every so many recipients are refused, connections closed before the text, closed
# after it, and left without a reply to it. None is a multiple of another.
REFUSED, CLOSED, CLOSED_AFTER, HUNG = 10, 1009, 1511, 20_011
BOUNCE = "550 5.1.1 No such user"


class MailServer:
    def __init__(self) -> None:
        self.recipients = self.texts = 0
        self.received: Counter[str] = Counter()
        self.trouble: Counter[str] = Counter()

    async def handle_RCPT(
        self,
        smtp: SMTP,
        session: Session,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        self.recipients += 1
        if self.recipients % CLOSED == 0:
            return self._close(smtp, "closed")
        if self.recipients % REFUSED == 0:
            self.trouble["refused"] += 1
            return BOUNCE
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(
        self, smtp: SMTP, session: Session, envelope: Envelope
    ) -> str:
        self.texts += 1
        self.received.update(envelope.rcpt_tos)
        if self.texts % HUNG == 0:
            self.trouble["hung"] += 1
            await asyncio.sleep(3600)
        if self.texts % CLOSED_AFTER == 0:
            return self._close(smtp, "closed_after")
        return "250 OK"

    def _close(self, smtp: SMTP, name: str) -> str:
        self.trouble[name] += 1
        assert isinstance(smtp.transport, asyncio.Transport)  # noqa: S101
        smtp.transport.abort()
        return "250 OK"


async def serve(server: MailServer) -> None:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(
        lambda: SMTP(server, loop=loop, enable_SMTPUTF8=False), "127.0.0.1", 0
    )
    print(listener.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    listener.close()


def main() -> None:
    server = MailServer()
    asyncio.run(serve(server))
    times = Counter(server.received.values())
    print(
        json.dumps({"received": len(server.received), "times": times, **server.trouble})
    )


if __name__ == "__main__":
    main()
