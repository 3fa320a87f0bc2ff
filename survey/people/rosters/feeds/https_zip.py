"""Download a ZIP over HTTPS, unless it is unchanged."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from django.utils.translation import gettext as _

from survey.people.rosters.feeds.download_types import (
    Download,
    DownloadFailed,
    FeedSource,
    new_file,
)
from survey.people.rosters.feeds.http_client import (
    HttpClient,
    check_status,
    is_header_value,
)
from survey.people.rosters.feeds.zip_writer import ZipWriter

# Marks the time of a server without ETags, in the field for an ETag.
MODIFIED = "modified "
# So many characters are kept; one that is longer or odd is not sent back.
MOST_ETAG = 500
# A key may not replace these.
OWN_HEADERS = ("host", "connection", "content-length", "transfer-encoding")


def fetch(
    source: FeedSource, folder: Path, on_bytes: Callable[[int], None]
) -> Download:
    """Download a ZIP into a new private file. Raises DownloadFailed."""
    headers = {"Accept": "application/zip, */*;q=0.1", "Accept-Encoding": "identity"}
    headers |= _conditions(source.etag)
    with (
        HttpClient([source.address], on_bytes=on_bytes) as client,
        client.request(
            "GET",
            source.address,
            headers=headers,
            authorize=lambda method, url: credential_headers(source.credentials),
        ) as answer,
    ):
        if answer.status == 304 and source.etag:
            return source.unchanged(size=0, etag=source.etag)
        check_status(answer)
        with new_file(folder, ".zip") as (path, file):
            writer = ZipWriter(file, answer.url.host)
            for chunk in answer.chunks():
                writer.write(chunk)
            digest = writer.finish()
        etag = answer.headers.get("etag", "")
        if not etag and (modified := answer.headers.get("last-modified", "")):
            etag = MODIFIED + modified
        if len(etag) > MOST_ETAG or not is_header_value(etag):
            etag = ""
        if digest == source.digest:
            path.unlink()
            return source.unchanged(size=writer.size, etag=etag)
        return Download(path, writer.size, digest, etag)


def _conditions(etag: str) -> dict[str, str]:
    if etag.startswith(MODIFIED):
        return {"If-Modified-Since": etag.removeprefix(MODIFIED)}
    return {"If-None-Match": etag} if etag else {}


def credential_headers(credentials: Mapping[str, str]) -> dict[str, str]:
    """Return the header for a user name and password, a token, or a key."""
    if credentials.get("token"):
        return {"Authorization": f"Bearer {credentials['token']}"}
    if name := credentials.get("header", ""):
        if not re.fullmatch("[A-Za-z0-9-]+", name) or name.lower() in OWN_HEADERS:
            raise DownloadFailed(_("The name of the header for the key is not valid."))
        return {name: credentials.get("key", "")}
    if credentials.get("username"):
        pair = f"{credentials['username']}:{credentials.get('password', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}
