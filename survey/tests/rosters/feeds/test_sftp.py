from __future__ import annotations

import logging
import os
import stat
import threading
import time
from dataclasses import replace

import asyncssh
import pytest

from settings.tests.patience import patience
from survey.people.rosters.feeds import sftp
from survey.people.rosters.feeds.downloads import (
    Download,
    DownloadFailed,
    FeedSource,
    download,
)
from survey.people.rosters.feeds.outgoing import Limits
from survey.tests.rosters.feeds.servers import drip, raw_server
from survey.tests.rosters.feeds.sftp_server import sftp_server
from survey.tests.rosters.feeds.test_https_zip import zip_of

SECRET = "correct-horse-battery-staple"
CLIENT_KEY = asyncssh.generate_private_key("ssh-ed25519")
HOST_KEYS = [
    asyncssh.generate_private_key("ssh-ed25519"),
    asyncssh.generate_private_key("ecdsa-sha2-nistp256"),
]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    return folder


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(sftp, "SETTLED_SECONDS", 0.05)
    remote = tmp_path / "remote"
    (remote / "rosters").mkdir(parents=True)
    put(remote / "rosters/monday.zip", "one", hours_ago=24)
    with sftp_server(remote, HOST_KEYS[:1], password=SECRET) as server:
        yield server


def put(path, text: str, *, hours_ago: float) -> None:
    path.write_bytes(zip_of(text))
    when = int(time.time() - hours_ago * 3600)
    os.utime(path, (when, when))


@pytest.fixture
def source(server):
    return FeedSource(
        "sftp",
        f"127.0.0.1:{server.port}",
        credentials={"username": "northfield", "password": SECRET},
        options={"folder": "rosters", "pattern": "*.zip"},
    )


def fetch(source: FeedSource, folder) -> Download:
    return download(source, folder, on_bytes=lambda size: None)


def test_the_newest_file_is_downloaded(source, server, folder):
    put(server.folder / "rosters/tuesday.ZIP", "two", hours_ago=1)
    put(server.folder / "rosters/staff.csv", "three", hours_ago=0)
    (server.folder / "rosters/folder.zip").mkdir()
    sizes = []
    got = download(source, folder, on_bytes=sizes.append)
    assert got.path is not None
    assert got.path.read_bytes() == zip_of("two")
    assert stat.S_IMODE(got.path.stat().st_mode) == 0o600
    assert sum(sizes) == got.size == len(zip_of("two"))
    assert (got.is_unchanged, got.is_delta) == (False, False)
    assert got.host_key == f"ssh-ed25519 {HOST_KEYS[0].get_fingerprint()}"


def test_a_private_key_logs_in(source, server, folder):
    server.client_key = CLIENT_KEY.export_public_key("openssh").decode()
    for text in (
        CLIENT_KEY.export_private_key("openssh").decode(),
        CLIENT_KEY.export_private_key("pkcs8-pem").decode().replace("\n", "\r\n"),
    ):
        credentials = {"username": "northfield", "private_key": text}
        assert fetch(replace(source, credentials=credentials), folder).path


def test_an_encrypted_private_key_needs_its_passphrase(source, server, folder):
    server.client_key = CLIENT_KEY.export_public_key("openssh").decode()
    text = CLIENT_KEY.export_private_key("pkcs8-pem", passphrase=SECRET).decode()
    credentials = {"username": "northfield", "private_key": text}
    locked = replace(source, credentials=credentials)
    with pytest.raises(DownloadFailed, match="private key cannot be read"):
        fetch(locked, folder)
    opened = replace(source, credentials=credentials | {"passphrase": SECRET})
    assert fetch(opened, folder).path


@pytest.mark.parametrize(
    "credentials",
    [
        {"username": "northfield", "password": "wrong"},
        {"username": "somebody", "password": SECRET},
        {"username": "northfield", "private_key": "another key"},
    ],
)
def test_wrong_credentials_are_named(source, folder, credentials):
    if "private_key" in credentials:
        key = asyncssh.generate_private_key("ssh-ed25519")
        credentials["private_key"] = key.export_private_key("openssh").decode()
    with pytest.raises(DownloadFailed, match="refused the user name") as failed:
        fetch(replace(source, credentials=credentials), folder)
    assert not failed.value.may_retry
    assert list(folder.iterdir()) == []


# The key of the server


def test_a_server_whose_key_changed_is_refused(source, server, folder):
    first = fetch(source, folder)
    pinned = replace(source, host_key=first.host_key)
    assert fetch(pinned, folder).host_key == first.host_key
    logins = server.logins

    # Of another kind, and of the same kind.
    for new in (HOST_KEYS[1], asyncssh.generate_private_key("ssh-ed25519")):
        with sftp_server(server.folder, [new], password=SECRET) as impostor:
            moved = replace(pinned, address=f"127.0.0.1:{impostor.port}")
            with pytest.raises(DownloadFailed, match="has changed from") as failed:
                fetch(moved, folder)
            # The password was not sent.
            assert impostor.logins == 0
            assert HOST_KEYS[0].get_fingerprint() in failed.value.message
            assert new.get_fingerprint() in failed.value.message
            assert not failed.value.may_retry
            # The twin: without a pinned key, the server is trusted.
            assert fetch(replace(moved, host_key=""), folder).path
    assert server.logins == logins


def test_the_pinned_kind_of_key_is_asked_for(source, server, folder):
    with sftp_server(server.folder, HOST_KEYS[::-1], password=SECRET) as both:
        with_both = replace(source, address=f"127.0.0.1:{both.port}")
        kinds = set()
        for key in HOST_KEYS:
            pinned = f"{key.get_algorithm()} {key.get_fingerprint()}"
            kinds.add(fetch(replace(with_both, host_key=pinned), folder).host_key)
        assert len(kinds) == 2


# Unchanged, and complete


def test_a_file_that_did_not_change_is_not_downloaded(source, server, folder):
    first = fetch(source, folder)
    known = replace(source, etag=first.etag, digest=first.digest)
    server.opened.clear()
    got = fetch(known, folder)
    assert (got.path, got.is_unchanged, got.digest) == (None, True, first.digest)
    assert server.opened == []

    # The same content under another name.
    put(server.folder / "rosters/tuesday.zip", "one", hours_ago=1)
    got = fetch(known, folder)
    assert (got.path, got.is_unchanged) == (None, True)
    assert got.etag != first.etag
    put(server.folder / "rosters/tuesday.zip", "two", hours_ago=0)
    assert not fetch(known, folder).is_unchanged


def test_a_file_that_grows_is_left_to_the_next_scan(
    source, server, folder, monkeypatch
):
    path = server.folder / "rosters/monday.zip"
    real = sftp.asyncio.sleep

    async def grow(seconds: float) -> None:
        with path.open("ab") as file:
            file.write(b"more")
        await real(seconds)

    monkeypatch.setattr(sftp.asyncio, "sleep", grow)
    with pytest.raises(DownloadFailed, match="still being written") as failed:
        fetch(source, folder)
    assert failed.value.may_retry


def test_a_file_that_changes_while_it_is_read_is_left(source, server, folder):
    path = server.folder / "rosters/monday.zip"
    server.before_read = lambda: os.utime(path)
    with pytest.raises(DownloadFailed, match="still being written"):
        fetch(source, folder)
    assert list(folder.iterdir()) == []


def test_a_marker_says_that_a_file_is_complete(source, server, folder, monkeypatch):
    marked = replace(source, options={**source.options, "done_marker": True})
    with pytest.raises(DownloadFailed, match="no complete file"):
        fetch(marked, folder)
    (server.folder / "rosters/monday.zip.done").touch()
    put(server.folder / "rosters/tuesday.zip", "two", hours_ago=0)
    monkeypatch.setattr(sftp, "SETTLED_SECONDS", 1000)
    got = fetch(marked, folder)
    assert got.path is not None
    assert got.path.read_bytes() == zip_of("one")


# What a server may not do


@pytest.mark.parametrize(
    "name", ["../outside.zip", "/etc/x.zip", "a\\b.zip", "a\nb.zip"]
)
def test_names_with_a_path_are_ignored(source, server, folder, name):
    server.made_up = [name]
    got = fetch(source, folder)
    assert got.path is not None
    assert got.path.read_bytes() == zip_of("one")
    assert [path.parent for path in folder.iterdir()] == [folder]
    # The twin: an ordinary name of this time would be opened.
    server.made_up = ["made-up.zip"]
    with pytest.raises(DownloadFailed):
        fetch(source, folder)


def test_a_folder_without_end_is_refused(source, server, folder, monkeypatch):
    monkeypatch.setattr(sftp, "MOST_ENTRIES", 100)
    server.made_up = [f"{number}.zip" for number in range(200)]
    with pytest.raises(DownloadFailed, match="more than 100 files"):
        fetch(source, folder)


def test_a_large_file_is_refused(source, server, folder, monkeypatch):
    monkeypatch.setattr(sftp, "LIMITS", Limits(content=50))
    with pytest.raises(DownloadFailed, match="larger than"):
        fetch(source, folder)
    assert server.opened == []


def test_something_else_than_a_zip_is_named(source, server, folder):
    (server.folder / "rosters/monday.zip").write_text("sourcedId,status")
    with pytest.raises(DownloadFailed, match="not a ZIP file"):
        fetch(source, folder)
    (server.folder / "rosters/monday.zip").write_text("")
    with pytest.raises(DownloadFailed, match="empty file"):
        fetch(source, folder)
    assert list(folder.iterdir()) == []


def test_a_missing_folder_is_named(source, folder):
    missing = replace(source, options={"folder": "nothing"})
    with pytest.raises(DownloadFailed, match="no such folder"):
        fetch(missing, folder)


def test_a_server_that_hangs_is_named(source, folder, monkeypatch):
    monkeypatch.setattr(sftp, "LIMITS", Limits(seconds=0.5))
    with raw_server(lambda connection: time.sleep(2)) as port:
        hanging = replace(source, address=f"127.0.0.1:{port}")
        with pytest.raises(DownloadFailed, match="does not answer") as failed:
            fetch(hanging, folder)
    assert failed.value.may_retry


def test_a_server_that_drips_is_stopped(source, folder, monkeypatch):
    monkeypatch.setattr(sftp, "LIMITS", Limits(seconds=0.5))
    with raw_server(lambda c: drip(c, b"SSH-2.0-", b"x")) as port:
        dripping = replace(source, address=f"127.0.0.1:{port}")
        with pytest.raises(DownloadFailed, match="too slow"):
            fetch(dripping, folder)


def test_a_file_that_comes_too_slowly_is_stopped(source, server, folder, monkeypatch):
    stopped = threading.Event()
    server.before_read = lambda: stopped.wait(patience(3))
    monkeypatch.setattr(sftp, "LIMITS", Limits(seconds=patience(1)))
    try:
        with pytest.raises(DownloadFailed, match="too slow"):
            fetch(source, folder)
    finally:
        stopped.set()
    assert len(server.opened) == 1
    assert list(folder.iterdir()) == []


def test_something_else_than_sftp_is_named(source, folder):
    with raw_server(lambda c: c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        web = replace(source, address=f"127.0.0.1:{port}")
        with pytest.raises(DownloadFailed, match="does not speak SFTP"):
            fetch(web, folder)


def test_private_addresses_are_refused(source, server, folder, settings):
    settings.FEED_NETWORKS = []
    with pytest.raises(DownloadFailed, match="has no public address"):
        fetch(source, folder)
    assert server.logins == 0


@pytest.mark.parametrize(
    ("address", "parsed"),
    [
        ("sftp.example.org", ("sftp.example.org", 22)),
        (" sftp.example.org:2222 ", ("sftp.example.org", 2222)),
        ("sftp://sftp.example.org/", ("sftp.example.org", 22)),
        ("[2606:4700::1]:22", ("2606:4700::1", 22)),
    ],
)
def test_addresses_are_read(address, parsed):
    assert sftp.parse_address(address) == parsed


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://x.example",
        "user@x.example",
        "x.example:0",
        "x.example:99999",
        "a b",
    ],
)
def test_other_addresses_are_refused(address):
    with pytest.raises(DownloadFailed, match="must be a server"):
        sftp.parse_address(address)


@pytest.mark.parametrize("works", [True, False])
def test_no_secret_is_logged_or_shown(source, server, folder, caplog, works):
    key = CLIENT_KEY.export_private_key("openssh").decode()
    server.client_key = (
        CLIENT_KEY.export_public_key("openssh").decode() if works else ""
    )
    given = replace(
        source,
        credentials={"username": "northfield", "password": SECRET, "private_key": key},
    )
    server.password = SECRET if works else "another one"
    shown = repr(given)
    with caplog.at_level(logging.DEBUG):
        asyncssh.set_debug_level(3)
        try:
            fetch(given, folder)
            assert works
        except DownloadFailed as failed:
            assert not works
            error: BaseException | None = failed
            while error is not None:
                shown += repr(error)
                error = error.__cause__ or error.__context__
        finally:
            asyncssh.set_debug_level(1)
    assert "northfield" in caplog.text
    for secret in (SECRET, key.splitlines()[1]):
        assert secret not in shown + caplog.text
