"""Add, scan, compare and remove feeds, as `provisioning/run feeds` does."""

from __future__ import annotations

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import District, User
from provisioning.measure.benchmarks import feed_rows
from provisioning.measure.benchmarks.feed_servers import DistrictServers
from survey.models import (
    Administration,
    FeedScan,
    Identity,
    Job,
    Respondent,
    RosterFeed,
    RosterUpload,
)
from survey.people.rosters.feeds.scans import start_scan
from survey.simulation.load_survey import NotARehearsal, find_or_open
from survey.simulation.oneroster import SyntheticDistrict
from survey.simulation.oneroster_server import Faults, serve
from survey.work.files import path_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="drops partitions"),
]
RIGHT = {"duplicates": 0, "wrong_withdrawals": 0, "missing": 0, "outdated": 0}


@pytest.fixture
def servers(tmp_path):
    """Three districts whose feeds were added."""
    servers = DistrictServers(tmp_path, 3)
    for number in servers.numbers:
        for night in range(2):
            path = servers.path(number, night)
            path.parent.mkdir(exist_ok=True)
            SyntheticDistrict(number, 60, night=night, changed=0.05).write(path)
    for district in servers.districts.values():
        district.faults = Faults()
    servers.offer(0)
    with serve(servers.districts) as server:
        address = f"http://127.0.0.1:{server.port}"
        feed_rows.prepare(numbers=list(servers.numbers), address=address)
        yield servers


def scan(servers, night=1):
    """Scan all feeds; the jobs run at once, in this process."""
    return feed_rows.scan(
        numbers=list(servers.numbers), night=night, window_s=60, wait_s=60
    )


def verify(servers):
    offered = {f"{number}": f"{path}" for number, path in servers.offered.items()}
    return feed_rows.verify(offered=offered)


def test_everybody_is_as_the_files_say_after_each_night(servers):
    night = scan(servers)
    assert (night["states"], night["failed"]) == ({"applied": 3}, {})
    assert night["is_over"] and not night["applied_twice"]
    assert set(night["stages"]) == {"download", "parse", "compare", "apply"}
    invited = Respondent.objects.count()
    assert 150 < invited == night["stages"]["compare"]["rows"]
    assert verify(servers) == {"exact": 3, **RIGHT}

    servers.offer(1, [1, 2])
    assert scan(servers, night=2)["states"] == {"applied": 2, "unchanged": 1}
    assert verify(servers) == {"exact": 3, **RIGHT}
    # The twin: two of them differ from the night before.
    servers.offer(0)
    assert verify(servers)["exact"] == 1


def test_only_the_feeds_that_are_asked_for_are_scanned(servers):
    feed_rows.scan(numbers=[2], night=1, window_s=60, wait_s=60)
    [scanned] = FeedScan.objects.all()
    assert scanned.district.code == "rehearsal-feeds-00002"


def test_a_broken_feed_is_named_by_its_number(servers):
    servers.districts["2"].archive = b"<html>"
    night = scan(servers)
    assert night["states"] == {"applied": 2, "failed": 1}
    assert list(night["failed"]) == [2]
    assert "sent a web page" in night["failed"][2]


def test_people_who_are_wrong_in_the_database_are_found(servers):
    scan(servers)
    first, second, third = Identity.objects.order_by("pk")[:3]
    Respondent.objects.filter(pk=first.respondent_id).update(
        withdrawn_at=timezone.now()
    )
    Identity.objects.filter(pk=second.pk).update(external_id="another ID")
    Identity.objects.filter(pk=third.pk).update(email="old@example.org")
    wrong = verify(servers)
    assert wrong.pop("exact") < 3
    assert wrong == {**RIGHT, "wrong_withdrawals": 1, "missing": 1, "outdated": 1}


def test_removing_leaves_neither_rows_nor_files(servers):
    other_project = find_or_open("rehearsal-other", 1, 1)
    scan(servers)
    administrations = list(feed_rows.administrations())
    assert len(administrations) == 2
    stores = list(RosterFeed.objects.values_list("store", flat=True))
    files = list(RosterUpload.objects.values_list("file", flat=True))
    assert all(path_of(name).exists() for name in (*stores, *files))

    feed_rows.remove()

    for model in (District, FeedScan, Identity, Job, Respondent, RosterFeed):
        assert not model.objects.exists(), model
    assert list(Administration.objects.all()) == [other_project]
    assert not User.objects.filter(email=feed_rows.OWNER).exists()
    assert not any(path_of(name).exists() for name in (*stores, *files))
    tables = set(connection.introspection.table_names())
    for administration in administrations:
        assert f"survey_response_{administration.pk}" not in tables


def test_an_interrupted_run_is_removed_with_its_waiting_jobs(servers, settings):
    settings.JOBS_BY_MESSAGE = False
    start_scan(feed_rows.feeds([1]).get(), reason=FeedScan.Reason.NOW, by=None)
    assert Job.objects.count() == 1
    feed_rows.remove()
    assert not FeedScan.objects.exists()
    assert not Job.objects.exists()


def test_administrations_of_real_people_are_left_alone(servers):
    feed_rows.remove()
    find_or_open("rehearsal-feeds-students", 1, 1)
    Administration.objects.update(wave=None)
    with pytest.raises(NotARehearsal):
        feed_rows.prepare(numbers=[4], address="http://127.0.0.1:9")
    feed_rows.remove()
    assert Administration.objects.count() == 1
