"""Download a ZIP over HTTPS, unless it is unchanged."""

from __future__ import annotations

import base64
import hashlib
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
    Answer,
    HttpClient,
    check_status,
    is_header_value,
)

# Marks the time of a server without ETags, in the field for an ETag.
MODIFIED = "modified "
# Of any ZIP, and of one without files.
ZIP_BEGINS = (b"PK\x03\x04", b"PK\x05\x06")

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
            return _unchanged(source, source.etag, 0)
        check_status(answer)
        return _stored(source, answer, folder)


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
            raise DownloadFailed(
                _("The name of the header for the key is not valid."), may_retry=False
            )
        return {name: credentials.get("key", "")}
    if credentials.get("username"):
        pair = f"{credentials['username']}:{credentials.get('password', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _stored(source: FeedSource, answer: Answer, folder: Path) -> Download:
    digest, size = hashlib.sha256(), 0
    with new_file(folder, ".zip") as (path, file):
        beginning = b""
        for chunk in answer.chunks():
            if len(beginning) < 4096:
                beginning += chunk[:4096]
                check_is_zip(beginning, answer.url.host)
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        check_is_zip(beginning, answer.url.host, is_whole=True)
    etag = answer.headers.get("etag", "")
    if not etag and (modified := answer.headers.get("last-modified", "")):
        etag = MODIFIED + modified
    if len(etag) > MOST_ETAG or not is_header_value(etag):
        etag = ""
    if digest.hexdigest() == source.digest:
        path.unlink()
        return _unchanged(source, etag, size)
    return Download(
        path=path,
        size=size,
        etag=etag,
        digest=digest.hexdigest(),
        host_key="",
        is_unchanged=False,
        is_delta=False,
    )


def _unchanged(source: FeedSource, etag: str, size: int) -> Download:
    return Download(
        path=None,
        size=size,
        etag=etag,
        digest=source.digest,
        host_key=source.host_key,
        is_unchanged=True,
        is_delta=False,
    )


def check_is_zip(beginning: bytes, host: str, *, is_whole: bool = False) -> None:
    """Raise DownloadFailed if these first bytes are not those of a ZIP."""
    if beginning.startswith(ZIP_BEGINS) or (len(beginning) < 4 and not is_whole):
        return
    if not beginning:
        raise DownloadFailed(
            _("%(host)s sent an empty file.") % {"host": host}, may_retry=True
        )
    if re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html|head)", beginning, re.I):
        raise DownloadFailed(
            _(
                "%(host)s sent a web page and not a ZIP file. The address may"
                " lead to a page on which people log in: enter the one of the"
                " file itself."
            )
            % {"host": host},
            may_retry=False,
        )
    raise DownloadFailed(
        _("%(host)s sent something that is not a ZIP file.") % {"host": host},
        may_retry=False,
    )
