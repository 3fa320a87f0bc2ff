"""Feeds in the console: who sees them, their forms, and what they cost."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.console.feeds.credentials_form import OPENSSH
from survey.console.feeds.scope import next_window
from survey.models import FeedScan, RosterFeed
from survey.people.rosters.feeds.credentials import seal, unseal
from survey.people.rosters.feeds.download_types import FeedSource
from survey.people.rosters.feeds.sftp import _client_key
from survey.tests.console.feed_cast import SECRET, create_feed, create_scan

pytestmark = pytest.mark.django_db

PAGES = ("", "change/", "remove/")
ACTIONS = ("pause/", "resume/", "try/", "scan/", "accept-key/", "change/", "remove/")


def form_of(administration, **changed):
    return {
        "name": "PowerSchool",
        "address": "https://sis.example.org/oneroster.zip",
        "identity": "identifier",
        "administrations": [administration.pk],
        "window_begins": "01:00",
        "window_ends": "04:00",
        "username": "groundswell",
        "password": SECRET,
        **changed,
    }


@pytest.fixture
def public_hosts(monkeypatch):
    """Let example.org have a public address; tests look up no real name."""

    def look_up(host, port, **_):
        assert host.endswith(".example.org")
        return [(2, 1, 6, "", ("93.184.216.34", port))]

    monkeypatch.setattr("socket.getaddrinfo", look_up)


@pytest.fixture
def new_feed(staff):
    return f"/console/feeds/new/{staff.riverside.pk}/zip/"


@pytest.fixture
def feed(staff, administration):
    feed = create_feed(
        staff.riverside,
        staff.dana,
        credentials=seal({"username": "groundswell", "password": SECRET}),
    )
    feed.administrations.add(administration)
    return feed


def errors_of(response):
    assert response.status_code == 200
    return {
        name: " ".join(texts) for name, texts in response.context["form"].errors.items()
    }


def test_an_administrator_adds_a_feed(client, staff, administration, public_hosts):
    log_in(client, staff.dana)
    errors = errors_of(client.post("/console/feeds/new/", {"kind": ""}))
    assert errors == {"kind": "Choose what the system offers."}
    chosen = client.post("/console/feeds/new/", {"kind": "zip"})
    assert chosen.url == f"/console/feeds/new/{staff.riverside.pk}/zip/"
    added = client.post(chosen.url, form_of(administration))
    assert added.status_code == 302, errors_of(added)
    feed = RosterFeed.objects.get()
    assert (feed.district, feed.by, feed.kind) == (staff.riverside, staff.dana, "zip")
    assert (feed.window_begins, feed.window_ends) == (time(1), time(4))
    assert unseal(feed.credentials) == {"username": "groundswell", "password": SECRET}
    page = client.get(added.url).content.decode()
    assert "https://sis.example.org/oneroster.zip" in page
    assert "Try it" in page


def test_a_second_feed_for_an_administration_is_refused_beside_the_field(
    client, staff, administration, feed, new_feed, public_hosts
):
    log_in(client, staff.dana)
    refused = client.post(new_feed, form_of(administration, name="Aeries"))
    errors = errors_of(refused)
    assert errors.keys() == {"administrations"}
    assert (
        "The roster sync “PowerSchool” already brings people"
        in errors["administrations"]
    )
    assert administration.title in errors["administrations"]
    assert RosterFeed.objects.get() == feed


def test_without_keys_for_credentials_a_feed_is_refused_with_the_reason(
    client, staff, administration, public_hosts, settings
):
    settings.FEED_KEYS = []
    log_in(client, staff.dana)
    page = f"/console/feeds/new/{staff.riverside.pk}/zip/"
    errors = errors_of(client.post(page, form_of(administration)))
    assert "GROUNDSWELL_FEED_KEYS" in " ".join(errors.values())
    assert not RosterFeed.objects.exists()


def test_other_districts_and_coordinators_never_see_a_feed(
    client, staff, feed, administration
):
    scan = create_scan(feed, state="held")
    address = f"/console/feeds/{feed.pk}/"
    scans = f"{address}scans/{scan.pk}/"
    log_in(client, staff.dana)
    assert b"PowerSchool" in client.get("/console/feeds/").content
    for page in PAGES:
        assert client.get(address + page).status_code == 200
    assert client.get(scans).status_code == 200
    # An administrator of the other district, a coordinator of this one.
    staff.sam.memberships.update(role="district", district=staff.lakeside, school=None)
    log_in(client, staff.sam)
    assert b"PowerSchool" not in client.get("/console/feeds/").content
    for user in (staff.sam, staff.chen, staff.analyst):
        log_in(client, user)
        for page in PAGES:
            assert client.get(address + page).status_code == 404
        for action in ACTIONS:
            assert client.post(address + action, {}).status_code == 404
        assert client.get(scans).status_code == 404
        for action in ("confirm/", "cancel/"):
            assert client.post(scans + action, {"seen": 0}).status_code == 404
        new = f"/console/feeds/new/{staff.riverside.pk}/zip/"
        assert client.get(new).status_code == 404
        assert client.post(new, form_of(administration)).status_code == 404
    for user in (staff.chen, staff.analyst):
        log_in(client, user)
        for page in ("", "new/", "window/"):
            assert client.get(f"/console/feeds/{page}").status_code == 404
    assert RosterFeed.objects.count() == 1
    assert FeedScan.objects.count() == 1


@pytest.mark.parametrize("district", ["lakeside", "riverside"])
def test_a_scan_of_another_feed_is_not_found_under_this_one(
    client, staff, feed, district
):
    feed_there = create_feed(getattr(staff, district), staff.state, name="Other")
    scan = create_scan(feed_there, state="held")
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/scans/{scan.pk}/"
    assert client.get(address).status_code == 404
    for action in ("confirm/", "cancel/"):
        response = client.post(address + action, {"seen": 0})
        assert response.status_code == 404
    scan.refresh_from_db()
    assert scan.state == "held"
    # The twin: under its own feed it is found.
    log_in(client, staff.state)
    assert (
        client.get(f"/console/feeds/{feed_there.pk}/scans/{scan.pk}/").status_code
        == 200
    )


def test_credentials_are_on_no_page(client, staff, feed, administration):
    create_scan(feed, state="failed")
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/"
    # There is something to leak.
    assert unseal(feed.credentials)["password"] == SECRET
    wrong = client.post(f"{address}change/", form_of(administration, name=""))
    assert errors_of(wrong)["name"]
    pages = [client.get(address + page) for page in PAGES] + [wrong]
    for page in pages:
        assert SECRET not in page.content.decode()
    assert "Credentials were set" in pages[1].content.decode()


def test_credentials_are_kept_until_new_ones_are_typed(
    client, staff, feed, administration, public_hosts
):
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/change/"
    unchanged = form_of(administration, username="", password="", name="Renamed")
    assert client.post(address, unchanged).status_code == 302
    feed.refresh_from_db()
    assert feed.name == "Renamed"
    assert unseal(feed.credentials)["password"] == SECRET
    typed = form_of(administration, username="", password="", token="new-token")
    assert client.post(address, typed).status_code == 302
    feed.refresh_from_db()
    assert unseal(feed.credentials) == {"token": "new-token"}


def test_kept_credentials_are_never_sent_to_another_server(
    client, staff, feed, administration, public_hosts
):
    """An administrator who does not know the password could read it there."""
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/change/"
    moved = form_of(
        administration,
        address="https://elsewhere.example.org/oneroster.zip",
        username="",
        password="",
    )
    assert (
        "The server is another one"
        in errors_of(client.post(address, moved))["username"]
    )
    feed.refresh_from_db()
    assert "elsewhere" not in feed.address
    # Another path on the same server, or credentials typed again.
    same = {**moved, "address": "https://sis.example.org/new.zip"}
    assert client.post(address, same).status_code == 302
    typed = {**moved, "username": "groundswell", "password": "typed again"}
    assert client.post(address, typed).status_code == 302


def test_addresses_that_are_refused_say_why(client, staff, administration, settings):
    cases = [
        ("zip", "https://me:secret@sis.example.org/a.zip", "user name or password"),
        ("sftp", "me@sftp.example.org", "user name or password"),
        ("rest", "https://me@sis.example.org/", "user name or password"),
        ("zip", "https://127.0.0.1/a.zip", "no public address"),
        ("zip", "https://[::1]/a.zip", "no public address"),
        ("zip", "https://169.254.169.254/latest/meta-data", "no public address"),
        ("sftp", "10.0.0.1", "no public address"),
        ("rest", "https://192.168.1.1/", "no public address"),
        ("zip", "https://[/a.zip", "no address"),
        ("zip", "file:///etc/passwd", "https://"),
        ("zip", "gopher://sis.example.org/", "https://"),
        ("rest", "sis.example.org", "https://"),
        ("zip", "https://localhost/a.zip", "no public address"),
        ("zip", "https://0x7f000001/a.zip", "no public address"),
        ("zip", "http://93.184.216.34/a.zip", "must be encrypted"),
        ("rest", "http://10.0.0.1/", "must be encrypted"),
        ("sftp", "sftp://127.0.0.1:2222", "no public address"),
        ("sftp", "https://sftp.example.org", "name of the server"),
    ]
    settings.FEED_NETWORKS = []
    log_in(client, staff.dana)
    for kind, address, message in cases:
        response = client.post(
            f"/console/feeds/new/{staff.riverside.pk}/{kind}/",
            form_of(administration, address=address),
        )
        assert message in errors_of(response)["address"], address
    assert not RosterFeed.objects.exists()


def test_the_address_of_tokens_is_checked_too(client, staff, administration, settings):
    settings.FEED_NETWORKS = []
    log_in(client, staff.dana)
    for address in ("https://127.0.0.1/token", "https://a:b@sis.example.org/token"):
        response = client.post(
            f"/console/feeds/new/{staff.riverside.pk}/rest/",
            form_of(
                administration, version="1.1", authorization="oauth2", token_url=address
            ),
        )
        assert errors_of(response)["token_url"]


def test_nonsense_in_a_field_is_reported_beside_it(
    client, staff, administration, new_feed, public_hosts
):
    cases = [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"address": "\x00"}, "address"),
        ({"identity": "email"}, "identity"),
        ({"identity": "userIds"}, "identity_type"),
        ({"administrations": []}, "administrations"),
        ({"administrations": ["x"]}, "administrations"),
        ({"administrations": [10**20]}, "administrations"),
        ({"window_begins": "25:00"}, "window_begins"),
        ({"window_begins": "soon"}, "window_begins"),
        ({"window_begins": ""}, "window_begins"),
        ({"window_ends": ""}, "window_ends"),
        ({"window_ends": "01:00"}, "window_ends"),
        ({"username": ""}, "password"),
        ({"token": "x"}, "token"),
        ({"password": "x" * 1001}, "password"),
    ]
    log_in(client, staff.dana)
    for changed, field in cases:
        response = client.post(new_feed, form_of(administration, **changed))
        assert field in errors_of(response), changed
    assert not RosterFeed.objects.exists()


# Of no server; its passphrase is "secret-words".
OPENSSH_KEY_WITH_PASSPHRASE = """\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABC3qDZJmE
RF5sIrx9wi78A6AAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAILu3K26cGyRb5xUS
O7S/SuJa/JHyq1X3lWgXTxZHdgfXAAAAkHYbE03ro9LmVx+s5E8ggRCA7btg+7wRI9IDZZ
mJE6FC3qRsE8Bi0WDCNNGGlkLoG2+0hfMq4HiMw6owCbIDJUVzOH7EIx7R6j54cpFl6K3v
BH/wg5RHGrcP2Qyys7Js7KgMvpQMWxsxTWEULsXFlRorOSGgESmTfF1tyPBA3kJTVjsAaB
p5dgTVsIdQyppR9w==
-----END OPENSSH PRIVATE KEY-----
"""


def private_key(private_format="PKCS8", passphrase=""):
    return (
        Ed25519PrivateKey.generate()
        .private_bytes(
            serialization.Encoding.PEM,
            getattr(serialization.PrivateFormat, private_format),
            serialization.BestAvailableEncryption(passphrase.encode())
            if passphrase
            else serialization.NoEncryption(),
        )
        .decode()
    )


@pytest.mark.parametrize(
    ("key", "passphrase", "field", "message"),
    [
        (OPENSSH_KEY_WITH_PASSPHRASE, "secret-words", "private_key", "PKCS8"),
        (OPENSSH_KEY_WITH_PASSPHRASE, "", "private_key", "without a passphrase"),
        (["PKCS8", "right"], "", "passphrase", "Enter it"),
        (["PKCS8", "right"], "wrong", "passphrase", "this passphrase"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", "", "private_key", "PKCS #8"),
        (f"{OPENSSH}\nnot base64: é\n", "", "private_key", "PKCS #8"),
        (["OpenSSH"], "", None, ""),
        (["PKCS8"], "", None, ""),
        (["PKCS8", "right"], "right", None, ""),
    ],
)
def test_private_keys_that_cannot_be_used_are_refused(
    client, staff, administration, public_hosts, key, passphrase, field, message
):
    if isinstance(key, list):
        key = private_key(*key).replace("\n", "\r\n")
    log_in(client, staff.dana)
    response = client.post(
        f"/console/feeds/new/{staff.riverside.pk}/sftp/",
        form_of(
            administration,
            address="sftp.example.org",
            password="",
            private_key=key,
            passphrase=passphrase,
        ),
    )
    if field is None:
        assert response.status_code == 302, errors_of(response)
        sealed = RosterFeed.objects.get().credentials
        # What the form accepts, a download can read.
        assert _client_key(FeedSource("sftp", "x", credentials=unseal(sealed)))
        return
    errors = errors_of(response)
    assert list(errors) == [field] and message in errors[field]
    assert not RosterFeed.objects.exists()
    for line in key.splitlines()[1:]:
        assert line not in response.content.decode()


def test_only_administrations_with_a_roster_in_the_district_are_offered(
    client, staff, administration, new_feed, public_hosts
):
    log_in(client, staff.state)
    offered = client.get(new_feed).context["form"].fields["administrations"].queryset
    assert list(offered) == [administration]
    administration.district = staff.lakeside
    administration.save(update_fields=["district"])
    assert not offered.all()
    response = client.post(new_feed, form_of(administration))
    assert "administrations" in errors_of(response)
    administration.district, administration.denominator = None, "count"
    administration.save(update_fields=["district", "denominator"])
    assert not offered.all()


def test_unknown_kinds_are_not_found(client, staff):
    log_in(client, staff.dana)
    address = f"/console/feeds/new/{staff.riverside.pk}/ftp/"
    assert client.get(address).status_code == 404


def test_late_feeds_come_first_and_then_those_that_need_somebody(client, staff):
    long_ago = timezone.now() - timedelta(days=3)

    def feed(name, **fields):
        return create_feed(staff.riverside, staff.dana, name=name, **fields)

    create_scan(feed("current"))
    create_scan(feed("paused", is_paused=True), state="failed")
    create_scan(feed("running"), state="running")
    # Only its trial is new.
    late = feed("late", created_at=long_ago)
    create_scan(late, began=long_ago)
    create_scan(late, state="tried", reason="try")
    create_scan(feed("failing", failures_in_a_row=2), state="failed")
    create_scan(feed("held"), state="held")
    waiting = feed("held for days", created_at=long_ago)
    create_scan(waiting, began=long_ago)
    create_scan(waiting, state="held")
    create_scan(feed("never", created_at=long_ago), state="failed")
    RosterFeed.objects.filter(name="never").update(failures_in_a_row=1)
    feed("new")
    log_in(client, staff.dana)
    page = client.get("/console/feeds/")
    rows = page.context["feeds"]
    assert [(row["feed"].name, row["status"].words) for row in rows] == [
        ("held for days", "waits for confirmation"),
        ("never", "failed"),
        ("late", "overdue"),
        ("held", "waits for confirmation"),
        ("failing", "failed 2 times"),
        ("running", "being scanned"),
        ("new", "never scanned"),
        ("current", "up to date"),
        ("paused", "paused"),
    ]
    assert rows[0]["feed"].people == 1_200
    assert [bool(row["feed"].is_late) for row in rows] == [True] * 3 + [False] * 6
    text = page.content.decode()
    assert text.count("Last success: ") == 2
    assert text.count("No success yet") == 1


def test_a_feed_without_a_window_is_never_late(client, staff):
    long_ago = timezone.now() - timedelta(days=30)
    feed = create_feed(
        staff.riverside,
        staff.dana,
        created_at=long_ago,
        window_begins=None,
        window_ends=None,
    )
    create_scan(feed, began=long_ago)
    log_in(client, staff.dana)
    [row] = client.get("/console/feeds/").context["feeds"]
    assert row["status"].words == "up to date"
    assert row["next_window"] is None


def test_the_next_window_begins_today_or_tomorrow(staff, settings):
    zone = ZoneInfo(settings.TIME_ZONE)
    feed = create_feed(staff.riverside, staff.dana)

    def next_from(hour):
        return next_window(feed, datetime(2027, 1, 12, hour, tzinfo=zone))

    assert next_from(0) == datetime(2027, 1, 12, 1, tzinfo=zone)
    assert next_from(1) == datetime(2027, 1, 13, 1, tzinfo=zone)
    feed.is_paused = True
    assert next_from(0) is None


@pytest.mark.parametrize(
    ("sent", "state", "download"),
    [
        # Nothing was sent (ETag), or the same file again.
        (0, "unchanged", {}),
        (1_000_000, "unchanged", {}),
        # Compared once more, because the scan before was held.
        (0, "held", {"is_unchanged": True}),
    ],
)
def test_a_download_without_news_is_called_unchanged(
    client, staff, feed, sent, state, download
):
    scan = create_scan(feed, state=state, download=download)
    scan.stages.filter(stage="download").update(bytes=sent)
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/"
    [row] = client.get(address).context["scans"]
    assert row.stages[0].amount == "unchanged"
    page = client.get(f"{address}scans/{scan.pk}/")
    assert page.context["stages"][0].size == "unchanged"
    assert "0\xa0bytes" not in page.content.decode()


def test_a_download_with_news_shows_its_size(client, staff, feed):
    scan = create_scan(feed)
    log_in(client, staff.dana)
    page = client.get(f"/console/feeds/{feed.pk}/scans/{scan.pk}/")
    sizes = [(stage.size, stage.rows) for stage in page.context["stages"]]
    assert sizes == [("976.6\xa0KB", "–"), *[("–", "1,200")] * 3]


def test_an_id_that_was_changed_is_explained(client, staff, feed):
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/"
    page = client.get(address).content.decode()
    assert "identifier: usually the student or staff number" in page
    assert "Changed from" not in page
    RosterFeed.objects.update(identity="userIds:SIS", previous_identity="identifier")
    page = client.get(address).content.decode()
    assert "userIds of the type SIS" in page
    assert "Changed from identifier." in page


def test_pausing_and_resuming(client, staff, feed):
    log_in(client, staff.dana)
    for action, is_paused in (("pause", True), ("resume", False)):
        client.post(f"/console/feeds/{feed.pk}/{action}/")
        feed.refresh_from_db()
        assert feed.is_paused is is_paused


def test_removing_needs_the_typed_name(client, staff, feed):
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/remove/"
    for typed in ("", "Power", "x" * 600):
        assert errors_of(client.post(address, {"typed": typed}))["typed"]
    assert client.post(address, {"typed": " powerschool "}).status_code == 302
    feed.refresh_from_db()
    assert feed.removed_at is not None
    assert client.get(f"/console/feeds/{feed.pk}/").status_code == 404
    assert client.get("/console/feeds/").context["feeds"] == []


@pytest.mark.parametrize("count", [1, 30])
def test_the_list_costs_five_statements(
    client, staff, count, django_assert_num_queries
):
    for n in range(count):
        create_scan(create_feed(staff.riverside, staff.dana, name=f"Feed {n}"))
    log_in(client, staff.state)
    with django_assert_num_queries(5):
        client.get("/console/feeds/")


@pytest.mark.parametrize("count", [1, 30])
def test_the_history_costs_ten_statements(
    client, staff, feed, count, django_assert_num_queries
):
    for n in range(count):
        create_scan(feed, night=date(2027, 1, 1) + timedelta(n), reason="night")
    log_in(client, staff.dana)
    with django_assert_num_queries(10):
        client.get(f"/console/feeds/{feed.pk}/")


OLD_KEY, NEW_KEY = (f"ssh-ed25519 SHA256:{sign * 43}" for sign in "Az")


def test_a_changed_host_key_is_accepted_as_it_was_shown(client, staff, feed):
    feed.host_key = OLD_KEY
    feed.save()
    create_scan(feed, state="failed", message="Any words.", host_key=NEW_KEY)
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/"
    page = client.get(address).content.decode()
    assert NEW_KEY in page
    # A page that showed another key.
    client.post(f"{address}accept-key/", {"seen": NEW_KEY.replace("z", "y")})
    feed.refresh_from_db()
    assert feed.host_key == OLD_KEY
    client.post(f"{address}accept-key/", {"seen": NEW_KEY})
    feed.refresh_from_db()
    assert feed.host_key == NEW_KEY
    assert "Accept the new key" not in client.get(address).content.decode()


def test_only_people_who_may_change_a_feed_accept_a_new_host_key(client, staff, feed):
    feed.host_key = OLD_KEY
    feed.save()
    create_scan(feed, state="failed", host_key=NEW_KEY)
    staff.sam.memberships.update(role="district", district=staff.lakeside, school=None)
    address = f"/console/feeds/{feed.pk}/accept-key/"
    for user in (staff.sam, staff.chen, staff.analyst):
        log_in(client, user)
        assert client.post(address, {"seen": NEW_KEY}).status_code == 404
    log_in(client, staff.dana)
    assert client.get(address, {"seen": NEW_KEY}).status_code == 405
    feed.refresh_from_db()
    assert feed.host_key == OLD_KEY


@pytest.mark.parametrize(
    "newer",
    [
        {"state": "failed", "host_key": NEW_KEY.replace("z", "y")},
        {"state": "failed", "host_key": ""},
        {"state": "applied", "host_key": ""},
        {"state": "running", "host_key": ""},
    ],
)
def test_a_key_that_a_newer_scan_did_not_meet_is_not_accepted(
    client, staff, feed, newer
):
    """Neither the one of a page that is out of date nor the one of the server now."""
    feed.host_key = OLD_KEY
    feed.save()
    create_scan(feed, state="failed", host_key=NEW_KEY)
    create_scan(feed, **newer)
    log_in(client, staff.dana)
    address = f"/console/feeds/{feed.pk}/"
    for seen in (NEW_KEY, "", OLD_KEY):
        refused = client.post(f"{address}accept-key/", {"seen": seen}, follow=True)
        assert "The server showed another key" in refused.content.decode()
    feed.refresh_from_db()
    assert feed.host_key == OLD_KEY
    assert not AuditEntry.objects.filter(action="accept host key").exists()
