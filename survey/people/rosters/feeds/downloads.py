"""Download the roster that a feed offers, as a ZIP over HTTPS or SFTP, or by REST."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from survey.people.rosters.feeds import https_zip, rest, rest_pages
from survey.people.rosters.feeds.download_types import (
    Download,
    DownloadFailed,
    FeedSource,
)

if TYPE_CHECKING:
    from survey.people.rosters.oneroster.store import OneRosterStore

__all__ = ["Download", "DownloadFailed", "FeedSource", "download", "load_into"]


def download(
    source: FeedSource, folder: Path, *, on_bytes: Callable[[int], None]
) -> Download:
    """Download a roster into a new private file in this folder.

    `on_bytes` is called with the size of each part. Raises DownloadFailed, and
    then leaves no file.
    """
    if source.kind == "sftp":
        # asyncssh takes 11 MB, in each process that imports it.
        from survey.people.rosters.feeds import sftp

        return sftp.fetch(source, folder, on_bytes)
    fetch = {"zip": https_zip.fetch, "rest": rest.fetch}[source.kind]
    return fetch(source, folder, on_bytes)


def load_into(store: OneRosterStore, download: Download) -> list[str]:
    """Load a download into a store, completely or not at all.

    Returns which files, columns, fields and values were ignored or read differently.
    Raises OneRosterInvalid.
    """
    if download.path is None:
        raise ValueError("An unchanged download has no content.")
    if rest_pages.is_rest(download.path):
        return rest_pages.load_into(store, download.path)
    with open(download.path, "rb") as file:
        return store.load_zip(file).notes
