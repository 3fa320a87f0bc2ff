from __future__ import annotations

import base64
import hashlib
import io
import logging
import stat
import zipfile
from dataclasses import replace

import pytest

from survey.people.rosters.feeds.downloads import (
    Download,
    DownloadFailed,
    FeedSource,
    download,
)

SECRET = "correct-horse-battery-staple"


def zip_of(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        # With a fixed time, so that it is the same file whenever it is made.
        archive.writestr(zipfile.ZipInfo("manifest.csv"), text)
    return file.getvalue()


@pytest.fixture
def source(sis) -> FeedSource:
    sis.give("/roster.zip", 200, zip_of("one"), ETag='"1"')
    return FeedSource("zip", f"https://sis.example.org:{sis.port}/roster.zip")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    return folder


def fetch(source: FeedSource, folder) -> Download:
    return download(source, folder, on_bytes=lambda size: None)


def test_a_zip_is_downloaded_to_a_private_file(source, folder):
    sizes = []
    got = download(source, folder, on_bytes=sizes.append)
    content = zip_of("one")
    assert got.path is not None
    assert got.path.read_bytes() == content
    assert stat.S_IMODE(got.path.stat().st_mode) == 0o600
    assert (got.size, sum(sizes)) == (len(content), len(content))
    assert got.digest == hashlib.sha256(content).hexdigest()
    assert (got.etag, got.is_unchanged, got.is_delta) == ('"1"', False, False)


def test_the_server_is_asked_whether_it_changed(source, folder, sis):
    first = fetch(source, folder)
    known = replace(source, etag=first.etag, digest=first.digest)
    sis.give("/roster.zip", 304)
    got = fetch(known, folder)
    assert sis.requests[-1].headers["if-none-match"] == '"1"'
    assert (got.path, got.is_unchanged, got.size) == (None, True, 0)
    assert (got.etag, got.digest) == (first.etag, first.digest)


def test_a_server_without_etags_is_asked_by_time(source, folder, sis):
    time = "Wed, 18 Nov 2026 02:00:00 GMT"
    sis.give("/roster.zip", 200, zip_of("one"), Last_Modified=time)
    first = fetch(source, folder)
    sis.give("/roster.zip", 304)
    got = fetch(replace(source, etag=first.etag, digest=first.digest), folder)
    assert sis.requests[-1].headers["if-modified-since"] == time
    assert got.is_unchanged


def test_the_same_content_is_unchanged_whatever_the_etag(source, folder, sis):
    first = fetch(source, folder)
    sis.give("/roster.zip", 200, zip_of("one"), ETag='"2"')
    got = fetch(replace(source, etag=first.etag, digest=first.digest), folder)
    assert (got.path, got.is_unchanged, got.etag) == (None, True, '"2"')
    assert list(folder.iterdir()) == [first.path]

    sis.give("/roster.zip", 200, zip_of("two"), ETag='"2"')
    got = fetch(replace(source, etag='"2"', digest=first.digest), folder)
    assert (got.is_unchanged, got.path is None) == (False, False)


@pytest.mark.parametrize("etag", ['"\x89cole"', '"a\tb"', "x" * 501])
def test_an_etag_that_cannot_be_sent_back_is_not_kept(source, folder, sis, etag):
    """Otherwise every later scan of the feed would fail."""
    sis.give("/roster.zip", 200, zip_of("one"), ETag=etag)
    first = fetch(source, folder)
    assert first.etag == ""
    result = fetch(replace(source, etag=first.etag, digest=first.digest), folder)
    assert result.is_unchanged


def test_a_304_without_a_condition_is_no_roster(source, folder, sis):
    sis.give("/roster.zip", 304)
    with pytest.raises(DownloadFailed, match="status 304"):
        fetch(source, folder)


@pytest.mark.parametrize(
    ("credentials", "header", "value"),
    [
        (
            {"username": "northfield", "password": SECRET},
            "authorization",
            "Basic " + base64.b64encode(f"northfield:{SECRET}".encode()).decode(),
        ),
        ({"token": SECRET}, "authorization", f"Bearer {SECRET}"),
        ({"header": "X-Api-Key", "key": SECRET}, "x-api-key", SECRET),
    ],
)
def test_credentials_are_sent(source, folder, sis, credentials, header, value):
    fetch(replace(source, credentials=credentials), folder)
    assert sis.requests[-1].headers[header] == value


@pytest.mark.parametrize("name", ["Host", "Content-Length", "X: 1\r\nY", "X Y"])
def test_a_key_replaces_no_header_of_the_request(source, folder, name):
    credentials = {"header": name, "key": SECRET}
    with pytest.raises(DownloadFailed, match="name of the header"):
        fetch(replace(source, credentials=credentials), folder)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<!DOCTYPE html><html><title>Log in</title>", "web page and not a ZIP"),
        (b"\xef\xbb\xbf\r\n <HTML>", "web page and not a ZIP"),
        (b"sourcedId,status", "not a ZIP file"),
        (b"PK", "not a ZIP file"),
        (b"", "an empty file"),
    ],
)
def test_something_else_than_a_zip_is_named(source, folder, sis, body, message):
    sis.give("/roster.zip", 200, body)
    with pytest.raises(DownloadFailed, match=message):
        fetch(source, folder)
    assert list(folder.iterdir()) == []


def test_a_download_that_breaks_off_leaves_no_file(source, folder, sis):
    sis.give("/roster.zip", 200, zip_of("one"), Content_Length="99999")
    with pytest.raises(DownloadFailed, match="broke off"):
        fetch(source, folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "credentials",
    [
        {"username": "northfield", "password": SECRET},
        {"token": SECRET},
        {"header": "X-Api-Key", "key": SECRET},
        {"token": SECRET + "\n"},
        {"token": SECRET + "☃"},
    ],
)
@pytest.mark.parametrize("status", [200, 302, 401, 500])
def test_no_secret_is_logged_or_shown(source, folder, sis, caplog, credentials, status):
    sis.give("/roster.zip", status, b"<html>", Location="https://other.invalid/")
    with caplog.at_level(logging.DEBUG), pytest.raises(DownloadFailed) as failed:
        fetch(replace(source, credentials=credentials), folder)
    pair = base64.b64encode(f"northfield:{SECRET}".encode()).decode()
    error: BaseException | None = failed.value
    shown = caplog.text
    while error is not None:
        shown += repr(error) + str(error)
        error = error.__cause__ or error.__context__
    assert SECRET not in shown
    assert pair not in shown
