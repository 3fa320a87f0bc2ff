"""Download the newest complete ZIP of a folder by SFTP."""

from __future__ import annotations

import asyncio
import posixpath
import re
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO, cast

import asyncssh
from django.utils.translation import gettext as _

from survey.people.rosters.feeds.download_types import (
    Download,
    DownloadFailed,
    FeedSource,
    new_file,
)
from survey.people.rosters.feeds.outgoing import Deadline, Limits, ascii_host, connect
from survey.people.rosters.feeds.zip_writer import ZipWriter

PORT = 22
CHUNK = 256 * 1024
# A folder with more entries is not the one that was meant.
MOST_ENTRIES = 10_000
# Without a marker, a file whose size stays the same for this long is complete.
SETTLED_SECONDS = 5.0
LIMITS = Limits()


@dataclass(frozen=True)
class RemoteFile:
    name: str
    size: int
    modified: int
    has_marker: bool

    @property
    def etag(self) -> str:
        return f"{self.name} {self.size} {self.modified}"


def fetch(
    source: FeedSource, folder: Path, on_bytes: Callable[[int], None]
) -> Download:
    """Download a ZIP into a new private file. Raises DownloadFailed."""
    host, port = parse_address(source.address)
    key = _client_key(source)
    deadline = Deadline(LIMITS.seconds)
    connection = connect(host, port, LIMITS, deadline)
    connection.setblocking(False)
    transfer = _Transfer(source, folder, on_bytes, host, key)
    try:
        # asyncio refuses to run in a thread that runs another event loop.
        with ThreadPoolExecutor(1) as executor:
            seconds = deadline.shorten(None)
            running = executor.submit(
                lambda: asyncio.run(transfer.run(connection, seconds))
            )
            return running.result()
    finally:
        connection.close()


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of "sftp.example.org:2222". Raises DownloadFailed."""
    match = re.fullmatch(
        r"(?:sftp://)?(\[[0-9a-fA-F:.]+\]|[^\s/:@\[\]]+)(?::(\d{1,5}))?/?", text.strip()
    )
    port = int(match[2] or PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise DownloadFailed(
            _(
                "The address must be a server, such as sftp.example.org or"
                " sftp.example.org:2222."
            )
        )
    return ascii_host(match[1].strip("[]")), port


def _client_key(source: FeedSource) -> asyncssh.SSHKey | None:
    text = source.credentials.get("private_key", "")
    if not text:
        return None
    key = None
    with suppress(asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError):
        key = asyncssh.import_private_key(
            text.strip() + "\n", source.credentials.get("passphrase") or None
        )
    # Outside, without the cause.
    if key is None:
        raise DownloadFailed(
            _(
                "The private key cannot be read. Check its passphrase; a key with"
                " one must be in PEM format."
            )
        )
    return key


class _Client(asyncssh.SSHClient):
    """Accept the first key of a server, and later on no other."""

    def __init__(self, pinned: str) -> None:
        self.pinned = pinned
        self.shown = ""

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        self.shown = f"{key.get_algorithm()} {key.get_fingerprint()}"
        return self.pinned in ("", self.shown)


class _Transfer:
    """One connection to a server."""

    def __init__(
        self,
        source: FeedSource,
        folder: Path,
        on_bytes: Callable[[int], None],
        host: str,
        key: asyncssh.SSHKey | None,
    ) -> None:
        self._source = source
        self._folder = folder
        self._on_bytes = on_bytes
        self._host = host
        self._key = key
        self._client = _Client(source.host_key)

    async def run(self, connection: Any, seconds: float) -> Download:
        try:
            async with asyncio.timeout(seconds):
                return await self._run(connection)
        except TimeoutError:
            failed = DownloadFailed(
                _("%(host)s does not answer, or is too slow.") % {"host": self._host},
                may_retry=True,
            )
        except asyncssh.HostKeyNotVerifiable:
            failed = self._changed_key()
        except asyncssh.PermissionDenied:
            failed = DownloadFailed(
                _("%(host)s refused the user name, password or key.")
                % {"host": self._host}
            )
        except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPPermissionDenied):
            failed = DownloadFailed(
                _(
                    "%(host)s has no such folder or file, or does not let this"
                    " user read it."
                )
                % {"host": self._host}
            )
        except (asyncssh.Error, OSError, ValueError):
            failed = DownloadFailed(
                _("%(host)s broke off the connection, or does not speak SFTP.")
                % {"host": self._host},
                may_retry=True,
            )
        raise failed

    def _changed_key(self) -> DownloadFailed:
        return DownloadFailed(
            _(
                "The key of %(host)s has changed from %(host_key)s to %(shown)s."
                " Ask who runs the server whether this is right; then accept the"
                " new key in the settings of the roster sync."
            )
            % {
                "host": self._host,
                "host_key": self._source.host_key,
                "shown": self._client.shown,
            },
            host_key=self._client.shown,
        )

    async def _run(self, connection: Any) -> Download:
        algorithm = self._source.host_key.partition(" ")[0]
        password = self._source.credentials.get("password") or None
        async with (
            asyncssh.connect(
                self._host,
                sock=connection,
                # Nothing of the system user's own: no keys, agent or known hosts.
                config=None,
                known_hosts=([], [], []),
                agent_path=None,
                client_keys=[self._key] if self._key else None,
                client_factory=lambda: self._client,
                username=self._source.credentials.get("username", ""),
                password=password,
                # Servers have keys of several kinds: ask for the pinned one.
                server_host_key_algs=_preferring(algorithm),
                gss_auth=False,
                gss_kex=False,
                compression_algs=None,
                connect_timeout=LIMITS.read_seconds,
                login_timeout=LIMITS.read_seconds,
            ) as ssh,
            ssh.start_sftp_client() as sftp,
        ):
            return await self._fetch(sftp)

    async def _fetch(self, sftp: asyncssh.SFTPClient) -> Download:
        folder = str(self._source.options.get("folder") or ".")
        async with asyncio.timeout(LIMITS.read_seconds):
            newest = await self._newest(sftp, folder)
        if newest.etag == self._source.etag:
            return self._source.unchanged(
                size=0, etag=newest.etag, host_key=self._client.shown
            )
        path = posixpath.join(folder, newest.name)
        if not newest.has_marker:
            await asyncio.sleep(SETTLED_SECONDS)
            await self._check_same(sftp, path, newest)
        if newest.size > LIMITS.content:
            raise LIMITS.too_large()
        with new_file(self._folder, ".zip") as (local, file):
            digest = await self._copy(sftp, path, newest, file)
            await self._check_same(sftp, path, newest)
        if digest == self._source.digest:
            local.unlink()
            return self._source.unchanged(
                size=newest.size, etag=newest.etag, host_key=self._client.shown
            )
        return Download(local, newest.size, digest, newest.etag, self._client.shown)

    async def _newest(self, sftp: asyncssh.SFTPClient, folder: str) -> RemoteFile:
        entries: dict[str, asyncssh.SFTPAttrs] = {}
        async for entry in sftp.scandir(folder):
            name = str(entry.filename)
            # A name is one part of a path, whatever the server says.
            if "/" in name or "\\" in name or not name.isprintable():
                continue
            entries[name] = entry.attrs
            if len(entries) > MOST_ENTRIES:
                raise DownloadFailed(
                    _("The folder has more than %(most_entries)s files.")
                    % {"most_entries": f"{MOST_ENTRIES:,}"}
                )
        pattern = str(self._source.options.get("pattern") or "*.zip").casefold()
        files = [
            RemoteFile(
                name, attrs.size or 0, int(attrs.mtime or 0), f"{name}.done" in entries
            )
            for name, attrs in entries.items()
            if fnmatchcase(name.casefold(), pattern)
            and stat.S_ISREG(attrs.permissions or stat.S_IFREG)
        ]
        if self._source.options.get("done_marker"):
            files = [file for file in files if file.has_marker]
        if not files:
            raise DownloadFailed(
                _("The folder has no complete file that fits %(pattern)s.")
                % {"pattern": pattern},
                may_retry=True,
            )
        return max(files, key=lambda file: (file.modified, file.name))

    async def _check_same(
        self, sftp: asyncssh.SFTPClient, path: str, before: RemoteFile
    ) -> None:
        async with asyncio.timeout(LIMITS.read_seconds):
            now = await sftp.stat(path)
        if (now.size or 0, int(now.mtime or 0)) != (before.size, before.modified):
            raise DownloadFailed(
                _("%(name)s is still being written. It is read by the next scan.")
                % {"name": before.name},
                may_retry=True,
            )

    async def _copy(
        self,
        sftp: asyncssh.SFTPClient,
        path: str,
        expected: RemoteFile,
        file: BinaryIO,
    ) -> str:
        writer = ZipWriter(file, self._host)
        async with sftp.open(path, "rb") as remote:
            while writer.size <= expected.size:
                async with asyncio.timeout(LIMITS.read_seconds):
                    chunk = cast(bytes, await remote.read(CHUNK))
                if not chunk:
                    break
                writer.write(chunk)
                self._on_bytes(len(chunk))
        digest = writer.finish()
        if writer.size != expected.size:
            raise DownloadFailed(
                _("%(name)s has %(size)s bytes and not %(size_2)s, as the folder says.")
                % {
                    "name": expected.name,
                    "size": f"{writer.size:,}",
                    "size_2": f"{expected.size:,}",
                },
                may_retry=True,
            )
        return digest


def _preferring(pinned: str) -> Any:
    """Return asyncssh's option that asks for this kind of key before others."""
    if not pinned:
        return ()
    # A key of this kind signs with SHA-2 today.
    return "^rsa-sha2-512,rsa-sha2-256" if pinned == "ssh-rsa" else f"^{pinned}"
