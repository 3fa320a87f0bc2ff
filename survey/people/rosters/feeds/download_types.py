"""The source of a feed, its download, and how a download fails."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO


@dataclass(frozen=True)
class FeedSource:
    """Where a feed's roster is, and what the last download found there.

    Credentials: `username` and `password`, or `token`, or `header` and `key`
    (zip); `username` and `password` or `private_key` (sftp); `client_id` and
    `client_secret`, or `token` (rest).

    Options of sftp: `folder`, `pattern` (such as *.zip), `done_marker` (whether
    NAME.done says that NAME is complete). Options of rest: `version` (1.1 or 1.2),
    `authorization` (oauth2, oauth1, bearer), `token_url`, `scope`, `client_auth`
    (basic, body), `signature` (HMAC-SHA1, HMAC-SHA256), `per_school`, `page_size`.
    """

    # "zip", "sftp" or "rest".
    kind: str
    address: str
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, object] = field(default_factory=dict)
    etag: str = ""
    digest: str = ""
    # Of an SFTP server; if empty, the key that it shows is accepted.
    host_key: str = ""
    # Of a REST server: fetch only what changed since. None: everything.
    changed_since: datetime | None = None

    def unchanged(self, *, size: int, etag: str = "", host_key: str = "") -> Download:
        """Return the download of what was downloaded before."""
        return Download(None, size, self.digest, etag, host_key, is_unchanged=True)


@dataclass(frozen=True)
class Download:
    # None if the content is unchanged.
    path: Path | None
    size: int
    digest: str
    etag: str = ""
    host_key: str = ""
    is_unchanged: bool = False
    is_delta: bool = False


class DownloadFailed(Exception):
    """A download that did not succeed, with a message for people."""

    def __init__(
        self, message: str, *, may_retry: bool = False, host_key: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        # The key that an SFTP server showed in place of the known one.
        self.host_key = host_key
        # Whether the same download may succeed in some minutes.
        self.may_retry = may_retry


@contextmanager
def new_file(folder: Path, ending: str) -> Iterator[tuple[Path, BinaryIO]]:
    """Write a new private file; delete it if the download fails."""
    path = folder / f"{secrets.token_urlsafe(24)}{ending}"
    try:
        with open(path, "xb", opener=_owner_only) as file:
            yield path, file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
