"""The demo's feed brings the demo's own people, and one more."""

from __future__ import annotations

import pytest
from django.test import override_settings

from survey.models import Identity, RosterFeed
from survey.people.rosters.oneroster.store import OneRosterStore
from survey.simulation.demo.feed import WHOLE, WITHOUT_A_SCHOOL
from survey.simulation.demo.load import RUNNING, load_demo

pytestmark = pytest.mark.django_db


def rows_of(path, folder):
    store = OneRosterStore(folder / f"{path.name}.sqlite3")
    with path.open("rb") as file:
        store.load_zip(file)
    rows = store.rows(roles=("student", "teacher"), identity="identifier")
    return [dict(zip(store.header(), row, strict=True)) for row in rows]


def test_the_files_have_the_districts_people_and_one_more(unanswered, tmp_path):
    address = "http://127.0.0.1:8001"
    with override_settings(FEED_NETWORKS=[]):
        load_demo(feed_folder=str(tmp_path), feed_address=address)
    assert not RosterFeed.objects.exists()

    load_demo(feed_folder=str(tmp_path), feed_address=address)
    feed = RosterFeed.objects.get()
    assert feed.address == f"{address}/{WHOLE}"
    known = Identity.objects.filter(
        administration__name__in=RUNNING.names, district=feed.district
    ).select_related("respondent")
    by_id = {row["Person ID"]: row for row in rows_of(tmp_path / WHOLE, tmp_path)}
    assert len(by_id) == known.count() + 1
    for identity in known:
        row = by_id[identity.external_id]
        assert row["Language"] == identity.respondent.language
        assert row["Class"] == identity.respondent.classroom
    fewer = rows_of(tmp_path / WITHOUT_A_SCHOOL, tmp_path)
    schools = {row["School code"] for row in by_id.values()}
    assert len({row["School code"] for row in fewer}) == len(schools) - 1
    assert len(fewer) < len(by_id)
    # The port may be another one the next time.
    load_demo(feed_folder=str(tmp_path), feed_address="http://127.0.0.1:8002")
    assert RosterFeed.objects.get().address == f"http://127.0.0.1:8002/{WHOLE}"
