"""Ask before a file with other IDs than earlier rosters invites people twice."""

from __future__ import annotations

import re

import pytest
from django.db.models import Value
from django.db.models.functions import Concat

from survey.models import FeedScan, Identity, RosterFeed
from survey.people.rosters import column_choices, diff
from survey.people.rosters.dry_run import open_roster
from survey.people.rosters.unreadable import RosterUnreadable
from survey.tests.rosters.roster_console import ALI, HEADER, MAYA, counts

pytestmark = pytest.mark.django_db

NEW_ID = HEADER.replace("student ID", "Local ID")
OTHERS = [MAYA.replace("00123", "L-1"), ALI.replace("00124", "L-2")]
COLUMNS = {
    "external_id": "Local ID",
    "school": "school",
    "district": "district",
    "given_name": "given name",
    "family_name": "family name",
    "grade": "grade",
    "classroom": "class",
}


def columns_page(upload):
    return f"/console/rosters/{upload.pk}/columns/"


@pytest.fixture
def dana(staff, console_of):
    return console_of(staff.dana)


def test_other_ids_than_in_earlier_rosters_are_not_taken_silently(administration, dana):
    dana.apply(administration, HEADER, MAYA, ALI)
    upload = dana.upload(administration, NEW_ID, *OTHERS)
    assert upload.state == "mapping"
    page = dana.get(columns_page(upload))
    assert "identify people by “student ID”, and" in page.content.decode()
    response = dana.post(columns_page(upload), **COLUMNS)
    assert "previous ID" in str(response.context["form"].errors["previous_id"])
    upload.refresh_from_db()
    assert upload.state == "mapping"
    dana.post(columns_page(upload), **COLUMNS, same_people="on")
    # They are on the roster under another ID, by their names.
    upload.refresh_from_db()
    assert upload.state == "refused"
    assert "2 of 2 people" in upload.message
    assert "“Local ID” identifies them here, “student ID” did before" in upload.message


def test_everybody_would_be_doubled_without_the_check_of_ids(
    administration, dana, monkeypatch
):
    """Shows that the test above would fail without the check."""
    monkeypatch.setattr(diff, "refuse_other_identifiers", lambda *_: None)
    monkeypatch.setattr(column_choices, "find_earlier_id", lambda *_, **__: "")
    dana.apply(administration, HEADER, MAYA, ALI)
    dana.apply(administration, NEW_ID, *OTHERS)
    assert Identity.objects.filter(given_name="Maya").count() == 2


def test_another_header_of_the_same_ids_is_read_without_asking(administration, dana):
    dana.apply(administration, HEADER, MAYA, ALI)
    upload = dana.upload(administration, NEW_ID, MAYA, ALI)
    assert (upload.state, counts(upload)) == ("checked", {"unchanged": 2})


# After a feed ---------------------------------------------------------------------

OF_FEED = HEADER.replace("student ID", "Person ID")


@pytest.fixture
def feed(staff, administration, dana):
    """A feed that has brought Maya and Ali by their sourcedId."""
    upload = dana.apply(administration, OF_FEED, MAYA, ALI)
    feed = RosterFeed.objects.create(
        name="SIS", district=staff.riverside, by=staff.dana, kind="zip"
    )
    upload.scan = FeedScan.objects.create(
        feed=feed, district=staff.riverside, reason="now", state="applied"
    )
    upload.save(update_fields=["scan"])
    return feed


def asked_for_ids(dana, administration, header, *rows):
    """Return what the page says about earlier IDs, or "" without a question."""
    upload = dana.upload(administration, header, *rows)
    if upload.state != "mapping":
        return ""
    return dana.get(columns_page(upload)).context["form"].earlier_id


def test_the_page_names_the_id_of_a_feed_and_not_our_header(administration, dana, feed):
    upload = dana.upload(administration, NEW_ID, *OTHERS)
    page = dana.get(columns_page(upload)).content.decode()
    assert "by the nightly roster sync&#x27;s ID (sourcedId), and" in page
    assert "Person ID" not in page
    dana.post(columns_page(upload), **COLUMNS, same_people="on")
    upload.refresh_from_db()
    assert "the nightly roster sync's ID (sourcedId) did before" in upload.message


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        ("identifier", "the nightly roster sync's ID (identifier)"),
        ("userIds:SIS", "the nightly roster sync's ID (userIds, type SIS)"),
    ],
)
def test_each_id_of_a_feed_has_its_words(administration, dana, feed, identity, words):
    RosterFeed.objects.update(identity=identity)
    assert asked_for_ids(dana, administration, NEW_ID, *OTHERS) == words


def test_the_ids_of_the_last_scan_count_until_the_next_one(administration, dana, feed):
    """Somebody has changed the feed's ID, and no scan has brought the new ones."""
    RosterFeed.objects.update(identity="identifier", previous_identity="sourcedId")
    header = NEW_ID.replace("Local ID", "identifier")
    words = "the nightly roster sync's ID (sourcedId)"
    assert asked_for_ids(dana, administration, header, *OTHERS) == words


def test_the_feeds_own_kind_of_id_is_not_asked_for(administration, dana, feed):
    """Also where the first people of the file are new."""
    header = NEW_ID.replace("Local ID", "sourcedId")
    assert asked_for_ids(dana, administration, header, *OTHERS) == ""


def test_a_scan_with_other_ids_is_refused_in_the_words_of_the_feed(
    administration, dana, feed
):
    people = Identity.objects.all()
    people.update(external_id=Concat(Value("L-"), "external_id"))
    words = re.escape("the nightly roster sync's ID (sourcedId) identifies them here")
    with (
        open_roster(feed.scans.get().uploads.get()) as table,
        pytest.raises(RosterUnreadable, match=words),
        diff.compare_roster(administration=administration, table=table),
    ):
        pass
