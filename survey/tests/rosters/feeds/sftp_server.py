"""An SFTP server on loopback, with one user and a folder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh


@dataclass
class SftpServer:
    folder: Path
    port: int = 0
    username: str = "northfield"
    password: str = ""
    client_key: str = ""
    # Files that were opened.
    opened: list[str] = field(default_factory=list)
    logins: int = 0
    # Names that the server adds to its lists, and what reads run first.
    made_up: list[str] = field(default_factory=list)
    before_read: object = None


@contextmanager
def sftp_server(
    folder: Path, host_keys: list[asyncssh.SSHKey], **options: object
) -> Iterator[SftpServer]:
    shown = SftpServer(folder, **options)

    class Login(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            shown.logins += 1
            return True

        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, password: str) -> bool:
            return bool(shown.password) and (username, password) == (
                shown.username,
                shown.password,
            )

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
            line = key.export_public_key("openssh").decode().split()
            return (
                username == shown.username and line[:2] == shown.client_key.split()[:2]
            )

    class Files(asyncssh.SFTPServer):
        def __init__(self, channel: asyncssh.SSHServerChannel) -> None:
            super().__init__(channel, chroot=str(folder))

        async def scandir(self, path: bytes):
            async for entry in super().scandir(path):
                yield entry
            for name in shown.made_up:
                attrs = asyncssh.SFTPAttrs(
                    size=10, permissions=0o100644, mtime=4_000_000_000, atime=0
                )
                yield asyncssh.SFTPName(name.encode(), attrs=attrs)

        def open(self, path: bytes, *args):
            shown.opened.append(path.decode())
            return super().open(path, *args)

        async def read(self, file, offset: int, size: int):
            if shown.before_read is not None:
                await asyncio.to_thread(shown.before_read)
            return super().read(file, offset, size)

    loops: list[asyncio.AbstractEventLoop] = []
    started, ends = threading.Event(), asyncio.Event()

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        server = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=host_keys,
            server_factory=Login,
            sftp_factory=Files,
            config=None,
        )
        shown.port = server.get_port()
        started.set()
        await ends.wait()
        server.close()

    # Cancels the connections that are left.
    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield shown
    finally:
        loops[0].call_soon_threadsafe(ends.set)
        thread.join(30)
