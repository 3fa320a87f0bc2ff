"""Servers of feeds that lie, never end, repeat secrets, or lead somewhere else."""

from __future__ import annotations

import io
import logging
import time
import zipfile

import pytest

from accounts.models import AuditEntry, QueuedEmail
from accounts.tests.logging_in import log_in
from survey.models import FeedScan, FeedStage, Job, RosterFeed
from survey.people.rosters.feeds.downloads import DownloadFailed
from survey.people.rosters.feeds.feeds import change_feed
from survey.people.rosters.feeds.http_client import HttpClient
from survey.people.rosters.feeds.outgoing import Limits
from survey.tests.rosters.feeds.feed_scans import (
    invited,
    offer,
    scan,
    students,
    zip_of,
)
from survey.tests.rosters.feeds.servers import drip, http_server, raw_server
from survey.tests.rosters.feeds.test_outgoing import get

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "correct-horse-battery-staple"


@pytest.fixture
def applied(feed, sis):
    """The feed, whose 30 people were invited by an earlier scan."""
    offer(sis, zip_of(*students()))
    assert scan(feed).state == "applied"
    return feed


# Where a connection leads


def test_a_name_that_leads_elsewhere_after_it_was_saved_is_not_followed(
    feed, sis, resolver
):
    """Forms check an address when it is saved, and each scan checks it again."""
    offer(sis, zip_of(*students()))
    resolver.names["sis.example.org"] = [["10.0.0.1"], ["127.0.0.1"]]
    ended = scan(feed)
    assert ended.state == "failed"
    assert "has no public address" in ended.message
    assert sis.connections == 0
    # The twin: the name leads to the server again.
    assert scan(feed).state == "applied"


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("file:///etc/passwd", "must begin with https"),
        ("gopher://127.0.0.1/", "must begin with https"),
        ("https:///roster.zip", "must begin with https"),
        (f"http://me:{SECRET}@127.0.0.1:PORT/", "in their own fields"),
        ("http://[/", "no URL"),
        ("//169.254.169.254:PORT/latest/meta-data", "must be encrypted"),
        ("https://169.254.169.254/latest/meta-data", "no public address"),
        ("http://localhost:PORT/", "must be encrypted"),
        ("https://[::ffff:127.0.0.1]/", "no public address"),
    ],
)
def test_redirects_to_other_places_are_refused(server, resolver, location, message):
    resolver.names["localhost"] = [["127.0.0.1", "::1"]]
    server.give("/", 302, Location=location.replace("PORT", str(server.port)))
    with pytest.raises(DownloadFailed, match=message) as failed:
        get(f"http://127.0.0.1:{server.port}/")
    assert SECRET not in failed.value.message
    assert (server.connections, len(server.requests)) == (1, 1)


def test_credentials_are_not_sent_to_another_port(server):
    """A feed may use both: that of the API and that of the tokens."""
    with http_server() as target:
        addresses = [f"http://127.0.0.1:{each.port}/" for each in (server, target)]
        server.give("/", 302, Location=addresses[1])
        target.give("/", 200, b"content")

        def authorize(method: str, url: str) -> dict[str, str]:
            return {"Authorization": f"Bearer {SECRET}"}

        with (
            HttpClient(addresses) as client,
            client.request("GET", addresses[0], authorize=authorize) as answer,
        ):
            assert b"".join(answer.chunks()) == b"content"
        assert SECRET in str(server.requests)
        assert SECRET not in str(target.requests)


# Answers that lie, or never end


@pytest.mark.parametrize("length", ["0", "100", "-1", "1e3", "9999999", "9" * 30])
def test_a_length_that_lies_withdraws_nobody(applied, sis, length):
    store = applied.store
    offer(sis, zip_of(*students(29)), Content_Length=length)
    ended = scan(applied)
    assert ended.state == "failed"
    assert any(
        words in ended.message for words in ("is damaged", "broke off", "an empty file")
    )
    assert (applied.store, len(invited()), ended.folder) == (store, 30, "")
    # The twin: the true length.
    offer(sis, zip_of(*students(29)))
    assert scan(applied).state == "applied"
    assert len(invited()) == 29


def test_a_zip_of_ten_thousand_files_is_refused_before_it_is_listed(
    applied, sis, monkeypatch
):
    file, store = io.BytesIO(), applied.store
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(10_000):
            archive.writestr(f"{number}.csv", "")
    offer(sis, file.getvalue())

    def list_files(*_):
        raise AssertionError("the directory was read")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "_RealGetContents", list_files)
        ended = scan(applied)
    assert ended.state == "failed"
    assert "more than 500 files" in ended.message
    assert (applied.store, len(invited())) == (store, 30)


def test_a_server_that_drips_its_handshake_is_stopped():
    """The head of a record of 16 KB, which then comes byte by byte."""
    limits = Limits(connect_seconds=0.5)
    with raw_server(lambda c: drip(c, b"\x16\x03\x03\x40\x00", b"\x02")) as port:
        began = time.monotonic()
        with pytest.raises(DownloadFailed, match="does not answer"):
            get(f"https://127.0.0.1:{port}/", limits=limits)
        assert time.monotonic() - began < 20


# Servers that repeat what they were sent


def test_a_server_that_repeats_the_credentials_does_not_spread_them(
    applied, sis, staff, client, caplog
):
    credentials = {"header": "X-Api-Key", "key": SECRET}
    change_feed(applied, by=staff.dana, credentials=credentials)
    here = f"https://sis.example.org:{sis.port}"
    answers = (
        (401, SECRET.encode(), {"WWW_Authenticate": f'Basic realm="{SECRET}"'}),
        (302, b"", {"Location": f"{here}/{SECRET}"}),
        (302, b"", {"Location": f"http://{SECRET}.example.org/?key={SECRET}"}),
        (302, b"", {"Location": f"https://me:{SECRET}@sis.example.org/"}),
        (200, SECRET.encode(), {"Content_Type": SECRET}),
        (200, b"x", {"Content_Encoding": SECRET}),
        (503, SECRET.encode(), {"Retry_After": SECRET}),
    )
    with caplog.at_level(logging.INFO):
        for status, body, headers in answers:
            sis.give("/roster.zip", status, body, **headers)
            assert scan(applied).state == "failed"
    assert SECRET in str(sis.requests)
    tables = (FeedScan, FeedStage, Job, AuditEntry, QueuedEmail, RosterFeed)
    for table in tables:
        assert table.objects.exists()
        assert SECRET not in str(list(table.objects.values())), table
    assert SECRET not in caplog.text
    log_in(client, staff.dana)
    address = f"/console/feeds/{applied.pk}/"
    scans = [f"{address}scans/{row.pk}/" for row in applied.scans.all()]
    for page in (address, f"{address}change/", *scans):
        assert SECRET not in client.get(page).content.decode()
