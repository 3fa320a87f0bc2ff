"""The roll-up counts on the replica, and stores how far behind that is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import OperationalError, connections
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.models import RollUp, SchoolRate
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from survey.database.replica import health
from survey.models import Respondent
from survey.tests.two_servers import (
    Replica,
    StatementCounter,
    replica_alias,
    replica_routing,
)

pytestmark = [
    pytest.mark.skipif(not settings.SERVERS, reason="needs PostgreSQL's two servers"),
    pytest.mark.django_db(transaction=True, databases=["default", "replica"]),
]


# Django must know the databases of a test before the test starts.
@pytest.fixture(scope="module", autouse=True)
def known(django_db_setup) -> Iterator[None]:
    with replica_alias():
        yield


@pytest.fixture
def replica(known, transactional_db, monkeypatch) -> Iterator[Replica]:
    monkeypatch.setattr(health, "RETRY_INTERVAL", 0.1)
    replica = Replica()
    replica.catch_up()
    with replica_routing():
        yield replica
    replica.catch_up()


def stored_finished() -> int:
    return SchoolRate.objects.using("default").get(eligible=12).finished


def test_people_are_counted_on_the_replica_as_of_its_last_commit(
    replica, staff, students
):
    invite(students, staff.lincoln, 12, finished=3)
    replica.catch_up()
    ran = StatementCounter().during(roll_up)
    assert ran["replica"]["read survey_respondent"] == 1
    assert ran["primary"]["read survey_respondent"] == 0
    assert stored_finished() == 3
    # The figures are recent although nothing was saved.
    assert timezone.now() - RollUp.objects.get().as_of < timedelta(seconds=10)


def test_figures_of_a_lagging_replica_have_its_age(replica, staff, students, client):
    invite(students, staff.lincoln, 12, finished=3)
    replica.catch_up()
    roll_up()
    replica.stop_replaying()
    start = timezone.now()
    Respondent.objects.filter(completed_at=None).update(
        started_at=start, completed_at=start
    )
    roll_up()

    assert stored_finished() == 3
    assert RollUp.objects.using("default").get().as_of < start
    replica.catch_up()
    roll_up()
    assert stored_finished() == 12
    assert RollUp.objects.using("default").get().as_of > start


def test_figures_stay_and_grow_old_while_the_replica_is_away(
    replica, staff, students, client
):
    invite(students, staff.lincoln, 12, finished=3)
    replica.catch_up()
    roll_up()
    RollUp.objects.update(as_of=timezone.now() - timedelta(minutes=5))
    connections["replica"].close()
    replica.stop()
    try:
        # The primary does not count instead: it has respondents to serve.
        with pytest.raises(OperationalError):
            roll_up()
        health.mark_down()
        log_in(client, staff.dana)
        page = client.get(f"/console/rates/schools/{staff.lincoln.pk}/")
        assert "3 of 12 finished" in page.content.decode()
        assert "These figures are 5 minutes old" in page.content.decode()
    finally:
        connections["replica"].close()
        replica.start()
