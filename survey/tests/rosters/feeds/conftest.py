from __future__ import annotations

import pytest

from survey.people.rosters.feeds.feeds import create_feed
from survey.people.rosters.feeds.outgoing import tls_context
from survey.tests.rosters.feeds.feed_scans import (
    invited,
    offer,
    scan,
    students,
    zip_of,
)
from survey.tests.rosters.feeds.servers import Resolver, certificate, http_server


@pytest.fixture
def resolver(monkeypatch):
    return Resolver(monkeypatch)


@pytest.fixture
def server():
    with http_server() as server:
        yield server


@pytest.fixture
def sis(tmp_path, monkeypatch, resolver):
    """sis.example.org with TLS, in an allowed network."""
    context, authority = certificate(tmp_path, "sis.example.org")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    tls_context.cache_clear()
    resolver.names["sis.example.org"] = [["127.0.0.1"]]
    with http_server(tls=context) as server:
        yield server
    tls_context.cache_clear()


@pytest.fixture
def feed(staff, administration, sis, settings):
    """A feed of Riverside, which Dana owns; the tests run its jobs themselves."""
    settings.JOBS_BY_MESSAGE = False
    return create_feed(
        district=staff.riverside,
        kind="zip",
        name="PowerSchool",
        address=f"https://sis.example.org:{sis.port}/roster.zip",
        administrations=[administration],
        by=staff.dana,
    )


@pytest.fixture
def held(feed, sis):
    """A scan that would withdraw 4 of 30 people."""
    offer(sis, zip_of(*students()))
    scan(feed)
    offer(sis, zip_of(*students(26)))
    held = scan(feed)
    assert (held.state, len(invited())) == ("held", 30)
    return held
