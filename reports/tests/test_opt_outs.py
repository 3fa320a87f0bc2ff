"""People who have opted out: apart in response rates, and in no export."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime

import pytest

from accounts.tests.logging_in import log_in
from reports.models import SchoolRate
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from reports.tests.exports.conftest import FIRST, answer, made, opened, published
from reports.tests.exports.conftest import enrol as enrol  # noqa: PLC0414
from reports.tests.exports.test_formats import rows_of
from survey.models import Respondent
from survey.people.opt_outs.records import Request, opt_out, take_back

pytestmark = pytest.mark.django_db

ASKED = Request(date(2026, 9, 1), "parent")


@pytest.fixture
def visible(students):
    """Let staff see who has finished, so that changes count at once."""
    students.coordinators_see_finished = True
    students.save()
    return students


def figures(administration, school):
    rate = SchoolRate.objects.get(administration=administration, school=school)
    return rate.eligible, rate.started, rate.finished, rate.opted_out


@pytest.mark.sqlite
def test_opted_out_people_are_not_in_the_denominator(staff, visible):
    people = invite(visible, staff.lincoln, 20, finished=10)
    roll_up()
    assert figures(visible, staff.lincoln) == (20, 10, 10, 0)
    for person in (people[0], people[19]):
        opt_out(person, ASKED, by=staff.chen)
    roll_up()
    assert figures(visible, staff.lincoln) == (18, 9, 9, 2)
    take_back(people[0], by=staff.chen)
    roll_up()
    assert figures(visible, staff.lincoln) == (19, 10, 10, 1)


@pytest.mark.sqlite
def test_one_opt_out_does_not_show_whether_the_person_had_finished(staff, students):
    people = invite(students, staff.lincoln, 20, grade="07", finished=10)
    roll_up()
    opt_out(people[0], ASKED, by=staff.chen)
    roll_up()
    assert figures(students, staff.lincoln) == (20, 10, 10, 1)


@pytest.mark.sqlite
@pytest.mark.parametrize("schools", [1, 3])
def test_each_school_has_its_number(staff, visible, schools):
    places = [staff.lincoln, staff.washington, staff.roosevelt][:schools]
    for place in places:
        [person] = invite(visible, place, 1)
        opt_out(person, ASKED, by=staff.state)
    roll_up()
    for place in places:
        assert figures(visible, place)[3] == 1


def test_pages_and_files_have_the_number(client, staff, visible):
    people = invite(visible, staff.lincoln, 20, finished=10)
    opt_out(people[0], ASKED, by=staff.chen)
    roll_up()
    log_in(client, staff.dana)
    for page in (
        f"/console/rates/schools/{staff.lincoln.pk}/",
        f"/console/rates/districts/{staff.riverside.pk}/",
    ):
        assert "Opted out: 1" in client.get(page).content.decode(), page
    for page in (
        f"/console/rates/schools/{staff.lincoln.pk}/school.csv",
        f"/console/rates/districts/{staff.riverside.pk}/schools.csv",
    ):
        content = client.get(page).content.decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(content)))
        assert rows[0]["opted out"] == "1", page


@pytest.mark.sqlite
@pytest.mark.parametrize("minimum_group", [1, 5])
def test_no_export_has_their_answers(staff, enrol, minimum_group):
    administration = opened(published(FIRST, "3"), "fall", minimum_group=minimum_group)
    people = []
    for number in range(12):
        moment = datetime(2027, 3, 1, 15, tzinfo=UTC)
        person = enrol(administration, staff.lincoln, started_at=moment)
        answer(person, {"age": str(number + 5)})
        people.append(person)
    opt_out(people[3], ASKED, by=staff.state)

    def ages():
        return {int(row["age"]) for row in rows_of(made(staff.state, administration))}

    everyone = set(range(5, 17))
    # Before the release, and after it.
    assert ages() == everyone - {8}
    opt_out(people[5], ASKED, by=staff.state)
    left = ages()
    if minimum_group == 1:
        assert left == everyone - {8, 10}
    else:
        # Others leave with that person: the page less the file would be one answer.
        assert left < everyone - {8, 10}
        assert len(everyone - {8} - left) >= minimum_group
    # Withdrawn people stay: an opt-out is more.
    Respondent.objects.filter(pk=people[4].pk).update(
        withdrawn_at=datetime(2027, 3, 2, tzinfo=UTC)
    )
    assert ages() == left
    for number in (3, 5):
        people[number].refresh_from_db()
        take_back(people[number], by=staff.state)
    assert ages() == everyone - {8}
