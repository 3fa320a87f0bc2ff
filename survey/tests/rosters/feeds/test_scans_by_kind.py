"""Scan feeds of each kind, which bring the same people."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from datetime import timedelta

import asyncssh
import pytest
from django.core.exceptions import ValidationError

from survey.models import Identity, RosterFeed
from survey.people.rosters.feeds import rest, sftp
from survey.people.rosters.feeds.feeds import accept_host_key, create_feed, new_host_key
from survey.simulation.oneroster_server import District, serve
from survey.tests.rosters.feeds.feed_scans import scan, students, zip_of
from survey.tests.rosters.feeds.oneroster_objects import read_archive
from survey.tests.rosters.feeds.sftp_server import sftp_server

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "correct-horse-battery-staple"
HOST_KEY = asyncssh.generate_private_key("ssh-ed25519")
CONTENT = zip_of(*students(30), *students(20, school="washington", first=30))


def people():
    identities = Identity.objects.filter(respondent__withdrawn_at=None)
    return sorted(
        identities.values_list(
            "external_id",
            "given_name",
            "family_name",
            "respondent__school__code",
            "respondent__grade",
        )
    )


def in_the_zip():
    names = ("Ali", "Diaz")
    return [
        (f"u{n:04}", *names, "lincoln" if n < 30 else "washington", "07")
        for n in range(50)
    ]


@pytest.fixture
def add(staff, administration, settings):
    """Add a feed of Riverside; the tests run its jobs themselves."""
    settings.JOBS_BY_MESSAGE = False

    def add(kind, address, **fields):
        return create_feed(
            district=staff.riverside,
            kind=kind,
            name="PowerSchool",
            address=address,
            administrations=[administration],
            by=staff.dana,
            **fields,
        )

    return add


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """A folder of an SFTP server."""
    monkeypatch.setattr(sftp, "SETTLED_SECONDS", 0.05)
    folder = tmp_path / "remote"
    (folder / "rosters").mkdir(parents=True)
    (folder / "rosters/monday.zip").write_bytes(CONTENT)
    return folder


def add_sftp(add, port):
    return add(
        "sftp",
        f"127.0.0.1:{port}",
        credentials={"username": "northfield", "password": SECRET},
        options={"folder": "rosters", "pattern": "*.zip"},
    )


@pytest.fixture
def district():
    return District(read_archive(io.BytesIO(CONTENT)), CONTENT, authorization="bearer")


def add_rest(add, server):
    return add(
        "rest",
        server.address(),
        credentials={"token": "token"},
        options={"version": "1.1", "authorization": "bearer", "page_size": 20},
    )


def test_a_zip_is_scanned(add, district):
    with serve({"north": district}) as server:
        ended = scan(
            add("zip", server.archive_address(), credentials={"token": "token"})
        )
    assert (ended.state, ended.message) == ("applied", "")
    assert people() == in_the_zip()


def test_a_folder_of_an_sftp_server_is_scanned(add, remote):
    with sftp_server(remote, [HOST_KEY], password=SECRET) as server:
        feed = add_sftp(add, server.port)
        ended = scan(feed)
        assert (ended.state, ended.message) == ("applied", "")
        assert people() == in_the_zip()
        assert feed.host_key == f"ssh-ed25519 {HOST_KEY.get_fingerprint()}"
        assert scan(feed).state == "unchanged"
        (remote / "rosters/tuesday.zip").write_bytes(zip_of(*students(30)))
        assert scan(feed).state == "held"


def test_a_rest_server_is_scanned(add, district, monkeypatch):
    soon = replace(rest.DELAYS, first=timedelta(milliseconds=5))
    monkeypatch.setattr(rest, "DELAYS", soon)
    with serve({"north": district}) as server:
        feed = add_rest(add, server)
        ended = scan(feed)
        assert (ended.state, ended.message) == ("applied", "")
        assert people() == in_the_zip()
        assert sum("/users?" in path for path in district.requests) >= 3
        # The next scan asks only for what has changed since.
        district.collections["users"][0] |= {
            "givenName": "Zoe",
            "dateLastModified": "2099-01-01T00:00:00.000Z",
        }
        assert scan(feed).state == "applied"
    assert "dateLastModified" in district.requests[-1]
    [changed] = set(people()) - set(in_the_zip())
    assert changed[:2] == ("u0000", "Zoe")


def test_the_new_key_of_a_server_is_the_one_that_it_showed(
    add, remote, staff, monkeypatch
):
    with sftp_server(remote, [HOST_KEY], password=SECRET) as server:
        feed = add_sftp(add, server.port)
        assert scan(feed).host_key == ""
    known, new = feed.host_key, asyncssh.generate_private_key("ssh-ed25519")
    shown = f"ssh-ed25519 {new.get_fingerprint()}"

    def other_words(transfer):
        failed = changed_key(transfer)
        failed.message = re.sub("[a-zA-Z]", "x", failed.message)
        return failed

    changed_key = sftp._Transfer._changed_key
    monkeypatch.setattr(sftp._Transfer, "_changed_key", other_words)
    with sftp_server(remote, [new], password=SECRET) as server:
        RosterFeed.objects.update(address=f"127.0.0.1:{server.port}")
        failed = scan(feed)
        assert (failed.state, failed.host_key, server.logins) == ("failed", shown, 0)
        assert new_host_key(feed, failed) == shown
        for wrong in ("", known, f"{shown}x"):
            with pytest.raises(ValidationError, match="another key"):
                accept_host_key(feed, key=wrong, by=staff.dana)
        accept_host_key(feed, key=shown, by=staff.dana)
        feed.refresh_from_db()
        assert (feed.host_key, new_host_key(feed, failed)) == (shown, "")
        assert scan(feed).state == "unchanged"
