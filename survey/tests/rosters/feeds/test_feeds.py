"""Create, change and remove feeds."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError

from accounts.models import AuditEntry
from survey.models import RosterFeed
from survey.people.rosters.feeds import scans
from survey.people.rosters.feeds.credentials import unseal
from survey.people.rosters.feeds.feeds import (
    CredentialsNeeded,
    change_feed,
    create_feed,
    identifier_samples,
    pause_feed,
    remove_feed,
)
from survey.tests.rosters.feeds.feed_scans import offer, scan, students, zip_of
from survey.work.files import path_of

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "correct-horse-battery-staple"


def test_credentials_are_sealed_and_not_in_the_audit_log(feed, staff):
    change_feed(feed, by=staff.dana, credentials={"token": SECRET})
    assert SECRET.encode() not in bytes(feed.credentials)
    assert unseal(bytes(feed.credentials)) == {"token": SECRET}
    # Without credentials the stored ones stay.
    change_feed(feed, by=staff.state, name="Aeries")
    assert unseal(bytes(feed.credentials)) == {"token": SECRET}
    assert feed.by == staff.state

    entries = list(AuditEntry.objects.order_by("pk"))
    assert [entry.action for entry in entries] == [
        "add feed",
        *["change feed"] * 2,
    ]
    assert entries[1].after["credentials"] == "changed"
    assert (entries[2].before["name"], entries[2].after["name"]) == (
        "PowerSchool",
        "Aeries",
    )
    assert SECRET not in json.dumps([[entry.before, entry.after] for entry in entries])


@pytest.mark.parametrize(
    "moved",
    [
        {"address": "https://other.example.org/roster.zip"},
        {"address": "https://sis.example.org:8443/roster.zip"},
        {"address": "http://sis.example.org:443/roster.zip"},
        {"address": "sis.example.org:443", "kind": "sftp"},
        {"options": {"token_url": "https://other.example.org/token"}},
        {"options": {"token_url": "http://sis.example.org:443/token"}},
        {"options": {}},
    ],
)
def test_stored_credentials_are_never_sent_to_another_server(feed, staff, moved):
    here = {
        "address": "https://sis.example.org/roster.zip",
        "options": {"token_url": "https://sis.example.org/token"},
    }
    change_feed(feed, by=staff.dana, credentials={"token": SECRET}, **here)
    with pytest.raises(CredentialsNeeded):
        change_feed(feed, by=staff.state, **here | moved)
    feed.refresh_from_db()
    assert (feed.address, feed.options, feed.by) == (*here.values(), staff.dana)

    # The twins: the same servers, credentials typed again, and none at all.
    change_feed(
        feed,
        by=staff.state,
        address="https://SIS.example.org:443/other.zip",
        options={"token_url": "https://sis.example.org/other"},
    )
    assert unseal(bytes(feed.credentials)) == {"token": SECRET}
    change_feed(feed, by=staff.state, credentials={"token": "typed"}, **here | moved)
    assert unseal(bytes(feed.credentials)) == {"token": "typed"}
    change_feed(feed, by=staff.state, credentials={}, **here)
    change_feed(feed, by=staff.state, **here | moved)
    assert bytes(feed.credentials) == b""


@pytest.mark.parametrize(
    "moved",
    ["other.example.org", "sftp.example.org:2222", "sftp://sftp.example.org:23"],
)
def test_a_stored_password_is_never_sent_to_another_sftp_server(feed, staff, moved):
    RosterFeed.objects.update(kind="sftp", address="sftp.example.org", host_key="key")
    change_feed(feed, by=staff.dana, credentials={"password": SECRET})
    with pytest.raises(CredentialsNeeded):
        change_feed(feed, by=staff.state, address=moved)
    feed.refresh_from_db()
    assert (feed.address, feed.host_key) == ("sftp.example.org", "key")
    # The twins: the same server, and a password of the new one.
    change_feed(feed, by=staff.state, address="sftp://SFTP.example.org:22/")
    assert unseal(bytes(feed.credentials)) == {"password": SECRET}
    change_feed(feed, by=staff.state, address=moved, credentials={"password": "new"})
    assert (unseal(bytes(feed.credentials)), feed.host_key) == ({"password": "new"}, "")


def test_credentials_that_were_changed_meanwhile_are_not_sent_to_the_server_before(
    feed, staff
):
    before = "https://sis.example.org/roster.zip"
    change_feed(feed, by=staff.dana, address=before, credentials={"token": "old"})
    # Somebody opens the form, and somebody else sends it first.
    opened = RosterFeed.objects.get()
    now = "https://other.example.org/roster.zip"
    change_feed(feed, by=staff.state, address=now, credentials={"token": SECRET})
    with pytest.raises(CredentialsNeeded):
        change_feed(opened, by=staff.dana, address=before, name="Aeries")
    assert RosterFeed.objects.get().address == now


def test_another_folder_keeps_the_known_key_of_the_server(feed, staff):
    """Otherwise any server would be trusted with the password."""
    RosterFeed.objects.update(kind="sftp", address="sftp.example.org", host_key="key")
    change_feed(feed, by=staff.dana, options={"folder": "rosters"})
    assert feed.host_key == "key"
    change_feed(feed, by=staff.dana, address="other.example.org")
    assert feed.host_key == ""


def test_another_source_drops_the_data_of_the_old_one(feed, sis, staff):
    offer(sis, zip_of(*students()))
    scan(feed)
    store = path_of(feed.store)
    change_feed(feed, by=staff.dana, name="Aeries")
    assert store.exists() and feed.etag == "" and not feed.is_store_applied
    change_feed(feed, by=staff.dana, address=feed.address + "?year=2027")
    assert (feed.store, feed.digest, feed.loaded_at) == ("", "", None)
    assert not store.exists()


def test_another_id_column_keeps_the_old_one_until_a_scan_is_applied(feed, sis, staff):
    offer(sis, zip_of(*students()))
    scan(feed)
    change_feed(feed, by=staff.dana, identity="identifier")
    assert feed.previous_identity == "sourcedId"
    change_feed(feed, by=staff.dana, identity="sourcedId")
    assert feed.previous_identity == ""


def test_changing_a_feed_cancels_its_scans(feed, staff):
    running = scans.start_scan(feed, reason="now", by=staff.dana)
    change_feed(feed, by=staff.dana, name="Aeries")
    running.refresh_from_db()
    assert (running.state, running.message) == (
        "cancelled",
        "The roster sync was changed.",
    )


def test_a_removed_feed_keeps_neither_data_nor_credentials(feed, sis, staff):
    offer(sis, zip_of(*students()))
    running = scan(feed)
    change_feed(feed, by=staff.dana, credentials={"token": SECRET})
    store = path_of(feed.store)
    remove_feed(feed, by=staff.dana)
    feed.refresh_from_db()
    assert (bytes(feed.credentials), feed.store) == (b"", "")
    assert not store.exists()
    assert feed.scans.get() == running
    assert not RosterFeed.objects.current().exists()
    with pytest.raises(scans.ScanConflict, match="removed"):
        scans.start_scan(feed, reason="now", by=staff.dana)
    # Its name is free again.
    create_feed(
        district=feed.district, kind="zip", name=feed.name, address="x", by=staff.dana
    )


def test_a_removed_feed_gets_no_credentials_from_a_form_that_was_open(feed, staff):
    opened = RosterFeed.objects.get()
    remove_feed(feed, by=staff.dana)
    with pytest.raises(ValidationError, match="was removed"):
        change_feed(opened, by=staff.state, credentials={"token": SECRET})
    opened.refresh_from_db()
    assert (bytes(opened.credentials), opened.by) == (b"", staff.dana)


def test_two_feeds_of_a_district_have_different_names(feed, staff):
    with pytest.raises(ValidationError):
        create_feed(
            district=feed.district,
            kind="zip",
            name=feed.name,
            address="x",
            by=staff.dana,
        )


def test_two_feeds_of_a_district_never_bring_people_to_one_administration(
    feed, staff, administration
):
    """Each would withdraw the people of the other."""

    def add(name, district=staff.riverside, administrations=(administration,)):
        return create_feed(
            district=district,
            kind="zip",
            name=name,
            address="x",
            administrations=administrations,
            by=staff.state,
        )

    with pytest.raises(ValidationError, match="“PowerSchool” already brings people"):
        add("Aeries")
    assert not RosterFeed.objects.filter(name="Aeries").exists()
    aeries = add("Aeries", administrations=())
    with pytest.raises(ValidationError, match="“PowerSchool” already brings people"):
        change_feed(aeries, by=staff.dana, administrations=[administration])
    assert not aeries.administrations.exists()

    # Its own administrations are no reason, and neither is another district's feed.
    change_feed(feed, by=staff.dana, administrations=[administration])
    assert add("Lakeside", staff.lakeside).administrations.get() == administration
    remove_feed(feed, by=staff.dana)
    change_feed(aeries, by=staff.dana, administrations=[administration])
    assert aeries.administrations.get() == administration


def test_pausing_is_recorded_once(feed, staff):
    for _ in range(2):
        pause_feed(feed, is_paused=True, by=staff.dana)
    assert AuditEntry.objects.filter(action="pause feed").count() == 1


def test_feeds_belong_to_whole_districts(feed, staff):
    from accounts.permissions import Permissions

    for user, count in (
        (staff.state, 1),
        (staff.dana, 1),
        (staff.chen, 0),
        (staff.sam, 0),
    ):
        visible = RosterFeed.objects.visible_to(Permissions(user))
        assert visible.count() == count


def test_samples_show_the_kinds_of_ids(feed, sis):
    assert identifier_samples(feed) == {}
    offer(sis, zip_of(*students()))
    scan(feed)
    assert identifier_samples(feed) == {
        "sourcedId": ["u0000", "u0001", "u0002"],
        "identifier": [],
    }
