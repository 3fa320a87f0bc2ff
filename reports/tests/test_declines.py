"""People who have declined: invited, not finished, and in no output of answers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.utils import timezone

from accounts.permissions import Places
from accounts.tests.logging_in import log_in
from reports.answers.people import read_people
from reports.answers.selection import Selection
from reports.models import SchoolRate
from reports.rates.rollup import roll_up
from reports.technical.roster import roster_groups
from reports.tests.conftest import invite
from reports.tests.exports.conftest import FIRST, answer, made, opened, published
from reports.tests.exports.conftest import enrol as enrol  # noqa: PLC0414
from reports.tests.exports.test_formats import rows_of
from survey.fieldwork.administrations import count_progress
from survey.models import Respondent

pytestmark = pytest.mark.django_db


def decline(*people) -> None:
    now = timezone.now()
    Respondent.objects.filter(pk__in=[person.pk for person in people]).update(
        started_at=now, completed_at=now, declined_at=now
    )


@pytest.mark.sqlite
def test_they_stay_in_the_denominator_and_have_not_finished(staff, students):
    people = invite(students, staff.lincoln, 20, finished=10)
    decline(people[15], people[16])
    roll_up()
    rate = SchoolRate.objects.get(administration=students, school=staff.lincoln)
    assert (rate.eligible, rate.started, rate.finished) == (20, 12, 10)
    assert rate.opted_out == 0
    progress = count_progress(students)
    assert (progress.in_progress, progress.finished) == (2, 10)
    [everyone] = roster_groups(students, [""])
    assert (everyone.eligible, everyone.started, everyone.finished) == (20, 12, 10)


@pytest.mark.sqlite
@pytest.mark.parametrize("minimum_group", [1, 5])
def test_no_file_has_what_they_answered_before(staff, enrol, minimum_group):
    administration = opened(published(FIRST, "3"), "fall", minimum_group=minimum_group)
    people = []
    for number in range(12):
        moment = datetime(2027, 3, 1, 15, tzinfo=UTC)
        person = enrol(administration, staff.lincoln, started_at=moment)
        answer(person, {"age": str(number + 5)})
        people.append(person)

    def ages():
        return {int(row["age"]) for row in rows_of(made(staff.state, administration))}

    decline(people[3])
    everyone = set(range(5, 17))
    # There was something to leave out.
    assert ages() == everyone - {8}
    # After the release of that file as well.
    decline(people[5])
    assert 10 not in ages()
    counted = read_people("default", administration)
    assert {people[3].pk, people[5].pk}.isdisjoint(counted.ids.tolist())
    assert len(counted) == 10
    with connection.cursor() as cursor:
        condition = Selection([administration], Places(state=True)).people(
            administration, "default"
        )
        cursor.execute(f"SELECT count(*) FROM survey_respondent r WHERE {condition}")
        assert cursor.fetchone() == (10,)


@pytest.mark.parametrize("is_confidential", [False, True])
def test_pages_say_how_many(client, staff, students, is_confidential):
    students.coordinators_see_finished = not is_confidential
    students.allows_declining = True
    students.save()
    people = invite(students, staff.lincoln, 40, finished=10)
    log_in(client, staff.dana)
    address = f"/console/rates/districts/{staff.riverside.pk}/"
    for number in (0, 3, 12):
        decline(*people[20 : 20 + number])
        roll_up()
        page = client.get(address).content.decode()
        if is_confidential or not number:
            # It would fall by one for who gets a new code.
            assert "Declined" not in page
        else:
            assert f"Declined: {number}<" in page
    # The other district has none of them.
    log_in(client, staff.sam)
    page = client.get(f"/console/rates/districts/{staff.riverside.pk}/")
    assert page.status_code == 404
