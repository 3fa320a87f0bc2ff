"""Download the roster that a feed offers, as a ZIP over HTTPS or SFTP, or by REST."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from survey.rosters.oneroster.store import OneRosterStore


@dataclass(frozen=True)
class FeedSource:
    """Where a feed's roster is, and what the last download found there."""

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


@dataclass(frozen=True)
class Download:
    # None if the content is unchanged.
    path: Path | None
    size: int
    etag: str
    digest: str
    host_key: str
    is_unchanged: bool
    is_delta: bool


class DownloadFailed(Exception):
    """A download that did not succeed, with a message for people."""

    def __init__(self, message: str, *, may_retry: bool) -> None:
        super().__init__(message)
        self.message = message
        # Whether the same download may succeed in some minutes.
        self.may_retry = may_retry


def download(
    source: FeedSource, folder: Path, *, on_bytes: Callable[[int], None]
) -> Download:
    """Download a roster into a new private file in this folder.

    `on_bytes` is called with the number of bytes of each part. Raises
    DownloadFailed, and then leaves no file.
    """
    raise DownloadFailed(f"Feeds cannot be of kind {source.kind}.", may_retry=False)


def load_into(store: OneRosterStore, download: Download) -> None:
    """Load a download into a store, completely or not at all.

    Raises OneRosterInvalid.
    """
    if download.path is None:
        raise ValueError("An unchanged download has no content.")
    with open(download.path, "rb") as file:
        store.load_zip(file)
