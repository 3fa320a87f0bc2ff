from __future__ import annotations

import gzip
import socket
import time
from itertools import islice

import httpcore
import pytest
from django.conf import settings

from survey.people.rosters.feeds import outgoing
from survey.people.rosters.feeds.downloads import DownloadFailed
from survey.people.rosters.feeds.http_client import (
    CHUNK,
    HttpClient,
    _decoded,
    check_status,
)
from survey.people.rosters.feeds.outgoing import Deadline, Limits
from survey.tests.rosters.feeds.servers import (
    certificate,
    drip,
    http_server,
    raw_server,
)

SECRET = "correct-horse-battery-staple"


def get(address, *, limits=None, secret="") -> bytes:
    def authorize(method: str, url: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {secret}"} if secret else {}

    with (
        HttpClient([address], limits=limits) as client,
        client.request("GET", address, authorize=authorize) as answer,
    ):
        check_status(answer)
        return b"".join(answer.chunks())


def test_a_file_is_fetched_over_https(sis):
    sis.give("/roster.zip", 200, b"content")
    address = f"https://sis.example.org:{sis.port}/roster.zip"
    assert get(address, secret=SECRET) == b"content"
    (request,) = sis.requests
    assert request.headers["host"] == f"sis.example.org:{sis.port}"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["user-agent"] == f"Groundswell/{settings.VERSION}"


# Addresses


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.9.1", "loopback"),
        ("0.0.0.0", "this machine"),  # noqa: S104
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("169.254.1.1", "link-local"),
        ("169.254.169.254", "metadata of cloud machines"),
        ("168.63.129.16", "Azure's services"),
        ("192.0.0.192", "Oracle's metadata"),
        ("100.64.0.1", "a provider's NAT"),
        ("100.100.100.200", "Alibaba's metadata"),
        ("192.0.2.1", "documentation"),
        ("198.18.0.1", "benchmarks"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "this machine"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("::127.0.0.1", "IPv4-compatible"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("64:ff9b:1::a00:1", "a network's own NAT64"),
        ("2001::7f00:1", "Teredo"),
        ("2002:7f00:1::", "6to4"),
        ("fc00::1", "unique local"),
        ("fd00:ec2::254", "Amazon's metadata"),
        ("fe80::1", "link-local"),
        ("fe80::1%1", "link-local, with an interface"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
    ],
)
def test_a_host_without_a_public_address_is_refused(
    settings, resolver, monkeypatch, address, what
):
    settings.FEED_NETWORKS = []
    tried = []
    monkeypatch.setattr(socket, "create_connection", lambda *a, **k: tried.append(a))
    resolver.names["sis.example.org"] = [[address]]
    with pytest.raises(DownloadFailed, match="has no public address") as failed:
        get("https://sis.example.org/")
    assert not failed.value.may_retry
    assert address not in failed.value.message
    assert tried == []

    # The name is refused as well if only one of its addresses is not public.
    resolver.names["sis.example.org"] = [["8.8.8.8", address]]
    with pytest.raises(DownloadFailed, match="has no public address"):
        get("https://sis.example.org/")
    assert tried == []


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "100.63.255.255", "172.32.0.1", "2606:4700:4700::1111"]
)
def test_public_addresses_are_permitted(settings, address):
    settings.FEED_NETWORKS = []
    assert outgoing.is_permitted(address)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "[::1]"],
)
def test_spellings_of_loopback_are_refused(settings, server, host):
    server.give("/", 200, b"internal")
    address = f"https://{host}:{server.port}/"
    settings.FEED_NETWORKS = []
    with pytest.raises(DownloadFailed, match="has no public address"):
        get(address)
    assert server.connections == 0


def test_the_twin_without_the_check_reaches_loopback(settings, server, monkeypatch):
    settings.FEED_NETWORKS = []
    monkeypatch.setattr(outgoing, "is_permitted", lambda address: True)
    # No TLS is spoken there, but it was connected to.
    with pytest.raises(DownloadFailed, match="No encrypted connection"):
        get(f"https://127.0.0.1:{server.port}/")
    assert server.connections == 1


def test_an_unknown_name_is_answered_as_a_private_one(settings, resolver):
    settings.FEED_NETWORKS = []
    messages = set()
    for answer in ([], ["10.0.0.1"]):
        resolver.names["hr.internal"] = [answer]
        with pytest.raises(DownloadFailed) as failed:
            get("https://hr.internal/")
        messages.add(failed.value.message)
    assert len(messages) == 1


def test_unencrypted_connections_are_for_allowed_networks(settings, server):
    server.give("/", 200, b"content")
    address = f"http://127.0.0.1:{server.port}/"
    assert get(address) == b"content"
    settings.FEED_NETWORKS = []
    with pytest.raises(DownloadFailed, match="must be encrypted"):
        get(address)
    assert server.connections == 1


def test_an_address_holds_no_credentials():
    with pytest.raises(DownloadFailed, match="in their own fields") as failed:
        get(f"https://northfield:{SECRET}@sis.example.org/")
    assert SECRET not in failed.value.message


@pytest.mark.parametrize(
    "address", ["ftp://x.example/", "file:///etc/passwd", "https://", "//x.example/"]
)
def test_other_schemes_are_refused(address):
    with pytest.raises(DownloadFailed, match="must begin with https"):
        get(address)


@pytest.mark.parametrize("host", ["a\0b.example", "a b.example", "☃" * 300, "x" * 300])
def test_impossible_names_are_refused(host):
    with pytest.raises(DownloadFailed, match="no valid name|does not exist"):
        get(f"https://{host}/")


@pytest.mark.parametrize("host", ["127。0。0。1", "１２７.0.0.1"])
def test_other_scripts_spell_no_private_address(settings, host):
    settings.FEED_NETWORKS = []
    with pytest.raises(DownloadFailed, match="has no public address"):
        get(f"https://{host}/")


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        ([], []),
        (["10.1.0.0/16", "fd00::/8"], []),
        (["10.1.2.3/16"], ["survey.E005"]),
        (["sis.example.org"], ["survey.E005"]),
    ],
)
def test_the_deploy_check_refuses_what_is_no_network(settings, networks, expected):
    settings.FEED_NETWORKS = networks
    assert [message.id for message in outgoing.check_feed_networks()] == expected


def test_an_address_cannot_add_headers(server):
    server.give("/a%20b?c%0D%0AX:%20y", 200, b"content")
    # urlsplit drops line ends itself; an escaped one stays escaped.
    get(f"http://127.0.0.1:{server.port}/a b?c%0D%0AX:%20y")
    assert "x" not in server.requests[0].headers


# Rebinding


@pytest.fixture
def rebinding(settings, resolver, server):
    """A name that leads to a permitted address first, then to another one."""
    settings.FEED_NETWORKS = ["127.0.0.2/32"]
    resolver.names["sis.example.org"] = [["127.0.0.2"], ["127.0.0.1"]]
    server.give("/", 200, b"internal")
    with http_server(host="127.0.0.2", port=server.port) as outside:
        outside.give("/", 200, b"roster")
        yield f"http://sis.example.org:{server.port}/"


def test_the_checked_address_is_the_one_connected_to(rebinding, server, resolver):
    assert get(rebinding) == b"roster"
    assert resolver.asked == ["sis.example.org"]
    assert server.connections == 0


def test_the_twin_that_looks_up_again_is_rebound(rebinding, server, monkeypatch):
    def connect_by_name(self, host, port, timeout=None, *_, **__):
        outgoing.look_up(host, port, only_allowed_networks=True)
        return httpcore.SyncBackend().connect_tcp(host, port, timeout)

    monkeypatch.setattr(outgoing.CheckedBackend, "connect_tcp", connect_by_name)
    assert get(rebinding) == b"internal"


def test_sftp_connects_to_the_checked_address(rebinding, server, resolver):
    limits = Limits()
    connection = outgoing.connect(
        "sis.example.org", server.port, limits, Deadline(limits.seconds)
    )
    with connection:
        assert connection.getpeername() == ("127.0.0.2", server.port)


# Redirects


def test_redirects_are_followed(sis):
    sis.give("/old", 302, Location="/new")
    sis.give("/new", 301, Location=f"https://sis.example.org:{sis.port}/newest")
    sis.give("/newest", 200, b"content")
    address = f"https://sis.example.org:{sis.port}/old"
    assert get(address, secret=SECRET) == b"content"
    assert all("authorization" in request.headers for request in sis.requests)


def test_a_redirect_into_a_private_network_is_refused(settings, server, resolver):
    settings.FEED_NETWORKS = ["127.0.0.1/32"]
    with http_server(host="127.0.0.2", port=server.port) as internal:
        internal.give("/", 200, b"internal")
        server.give("/", 302, Location=f"http://127.0.0.2:{server.port}/")
        with pytest.raises(DownloadFailed, match="127.0.0.2 must be encrypted"):
            get(f"http://127.0.0.1:{server.port}/")
        server.give("/", 302, Location=f"https://127.0.0.2:{server.port}/")
        with pytest.raises(DownloadFailed, match="has no public address"):
            get(f"http://127.0.0.1:{server.port}/")
        assert internal.connections == 0

        # The twin: where both are allowed, the redirect is followed.
        settings.FEED_NETWORKS = ["127.0.0.0/8"]
        server.give("/", 302, Location=f"http://127.0.0.2:{server.port}/")
        assert get(f"http://127.0.0.1:{server.port}/") == b"internal"


def test_credentials_are_not_sent_to_another_server(server):
    with http_server(host="127.0.0.2", port=server.port) as target:
        server.give("/", 302, Location=f"http://127.0.0.2:{server.port}/")
        target.give("/", 200, b"content")
        address = f"http://127.0.0.1:{server.port}/"
        assert get(address, secret=SECRET) == b"content"
        assert "authorization" in server.requests[0].headers
        assert SECRET not in str(target.requests[0].headers)


def test_a_redirect_never_leaves_https(sis, server):
    server.give("/", 200, b"content")
    sis.give("/", 302, Location=f"http://127.0.0.1:{server.port}/")
    with pytest.raises(DownloadFailed, match="without encryption"):
        get(f"https://sis.example.org:{sis.port}/")
    assert server.connections == 0


def test_a_redirect_to_another_port_is_refused(server):
    with http_server() as target:
        server.give("/", 302, Location=f"http://127.0.0.1:{target.port}/")
        with pytest.raises(DownloadFailed, match="which this roster sync may not use"):
            get(f"http://127.0.0.1:{server.port}/")
        assert target.connections == 0


def test_endless_redirects_end(server):
    server.give("/", 302, Location="/")
    with pytest.raises(DownloadFailed, match="more than 3 times"):
        get(f"http://127.0.0.1:{server.port}/")
    assert len(server.requests) == 4


def test_a_redirected_post_is_not_repeated(server):
    with raw_server(
        lambda c: c.recv(9999) and c.sendall(b"HTTP/1.1 307 x\r\nLocation: /\r\n\r\n")
    ) as port:
        address = f"http://127.0.0.1:{port}/"
        with (
            HttpClient([address]) as client,
            pytest.raises(DownloadFailed, match="answered with a redirect"),
            client.request("POST", address, body=SECRET.encode()),
        ):
            pass


# TLS and proxies


def test_certificates_are_verified(sis, resolver, tmp_path, monkeypatch):
    sis.give("/", 200, b"content")
    resolver.names["other.example.org"] = [["127.0.0.1"]]
    with pytest.raises(DownloadFailed, match="certificate of other.example.org"):
        get(f"https://other.example.org:{sis.port}/")
    monkeypatch.delenv("SSL_CERT_FILE")
    outgoing.tls_context.cache_clear()
    with pytest.raises(DownloadFailed, match="self-signed") as failed:
        get(f"https://sis.example.org:{sis.port}/")
    assert not failed.value.may_retry
    assert sis.requests == []


def test_an_expired_certificate_is_named(tmp_path, resolver, monkeypatch):
    context, authority = certificate(tmp_path, "sis.example.org", days=-1)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    outgoing.tls_context.cache_clear()
    resolver.names["sis.example.org"] = [["127.0.0.1"]]
    with (
        http_server(tls=context) as server,
        pytest.raises(DownloadFailed, match="has expired"),
    ):
        get(f"https://sis.example.org:{server.port}/")
    outgoing.tls_context.cache_clear()


def test_proxies_of_the_environment_are_not_used(server, monkeypatch):
    server.give("/", 200, b"content")
    with http_server() as proxy:
        for name in ("http_proxy", "HTTPS_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert get(f"http://127.0.0.1:{server.port}/") == b"content"
        assert proxy.connections == 0


# Limits


def test_a_large_file_is_stopped(server):
    server.give("/", 200, b"x" * 200_000)
    limits = Limits(content=100_000)
    with pytest.raises(DownloadFailed, match="larger than"):
        get(f"http://127.0.0.1:{server.port}/", limits=limits)


def test_a_gzip_bomb_is_stopped(server):
    bomb = gzip.compress(bytes(300_000_000), 9)
    assert len(bomb) < 400_000
    server.give("/", 200, bomb, Content_Encoding="gzip")
    limits = Limits(content=1_000_000)
    with pytest.raises(DownloadFailed, match="larger than"):
        get(f"http://127.0.0.1:{server.port}/", limits=limits)
    # It was decompressed in small parts, so that little of it was in memory.
    assert {len(part) for part in islice(_decoded([bomb], "gzip", "x"), 50)} == {CHUNK}


def test_compressed_answers_are_read(server):
    content = bytes(range(256)) * 2000
    server.give("/", 200, gzip.compress(content), Content_Encoding="gzip")
    assert get(f"http://127.0.0.1:{server.port}/") == content
    server.give("/", 200, gzip.compress(content)[:-20], Content_Encoding="gzip")
    with pytest.raises(DownloadFailed, match="broke off"):
        get(f"http://127.0.0.1:{server.port}/")
    server.give("/", 200, b"not gzip at all", Content_Encoding="gzip")
    with pytest.raises(DownloadFailed, match="cannot be read"):
        get(f"http://127.0.0.1:{server.port}/")
    server.give("/", 200, b"content", Content_Encoding="br")
    with pytest.raises(DownloadFailed, match="not asked for"):
        get(f"http://127.0.0.1:{server.port}/")


def test_what_follows_compressed_content_is_not_kept(server):
    """Otherwise a server could fill the memory: it counts as no content."""
    packed = gzip.compress(b"content")
    server.give("/", 200, packed + bytes(5_000_000), Content_Encoding="gzip")
    with pytest.raises(DownloadFailed, match="cannot be read"):
        get(f"http://127.0.0.1:{server.port}/")


def test_a_file_that_breaks_off_fails(server):
    server.give("/", 200, b"half", Content_Length="1000")
    with pytest.raises(DownloadFailed, match="broke off") as failed:
        get(f"http://127.0.0.1:{server.port}/")
    assert failed.value.may_retry


@pytest.mark.parametrize(
    ("beginning", "each"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nX-Header: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["content", "headers", "continue"],
)
def test_a_server_that_drips_is_stopped(beginning, each):
    limits = Limits(seconds=0.6, read_seconds=0.3)
    with raw_server(lambda c: drip(c, beginning, each)) as port:
        began = time.monotonic()
        with pytest.raises(DownloadFailed, match="took longer than"):
            get(f"http://127.0.0.1:{port}/", limits=limits)
        assert time.monotonic() - began < 20


def test_a_server_that_hangs_is_named():
    with (
        raw_server(lambda c: time.sleep(1)) as port,
        pytest.raises(DownloadFailed, match="127.0.0.1 does not answer"),
    ):
        get(f"http://127.0.0.1:{port}/", limits=Limits(read_seconds=0.2))


def test_endless_headers_are_stopped():
    def flood(connection: socket.socket) -> None:
        connection.recv(9999)
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for number in range(100_000):
            connection.sendall(b"X-%d: %s\r\n" % (number, b"x" * 1000))

    with (
        raw_server(flood) as port,
        pytest.raises(DownloadFailed, match="no valid answer"),
    ):
        get(f"http://127.0.0.1:{port}/")


def test_a_closed_port_is_named():
    with raw_server(lambda c: None) as port:
        pass
    with pytest.raises(DownloadFailed, match=f"port {port}") as failed:
        get(f"http://127.0.0.1:{port}/")
    assert failed.value.may_retry


def test_something_else_than_http_is_named():
    with (
        raw_server(lambda c: c.sendall(b"SSH-2.0-OpenSSH\r\n")) as port,
        pytest.raises(DownloadFailed, match="no valid answer"),
    ):
        get(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    ("status", "message", "may_retry"),
    [
        (401, "refused the credentials", False),
        (404, "nothing at this address", False),
        (429, "no more requests for now", True),
        (503, "error of its own", True),
        (418, "status 418", False),
    ],
)
def test_a_status_is_named(server, status, message, may_retry):
    server.give("/", status)
    with pytest.raises(DownloadFailed, match=message) as failed:
        get(f"http://127.0.0.1:{server.port}/")
    assert failed.value.may_retry is may_retry
