"""People who await consent: apart in response rates, and in no export."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime

import pytest

from accounts.tests.logging_in import log_in
from reports.models import SchoolRate
from reports.rates.rollup import roll_up, students_by_school
from reports.tests.conftest import invite
from reports.tests.exports.conftest import FIRST, answer, made, opened, published
from reports.tests.exports.conftest import enrol as enrol  # noqa: PLC0414
from reports.tests.exports.test_formats import rows_of
from survey.people.opt_outs.consents import await_consent, give_consent
from survey.people.opt_outs.records import Request, opt_out, take_back

pytestmark = pytest.mark.django_db

FORM = Request(date(2026, 9, 1), "parent")


@pytest.fixture
def students(students):
    students.requires_consent = True
    # So that changes count at once.
    students.coordinators_see_finished = True
    students.save()
    return students


def figures(administration, school):
    rate = SchoolRate.objects.get(administration=administration, school=school)
    return rate.eligible, rate.started, rate.opted_out, rate.awaiting_consent


@pytest.mark.sqlite
def test_they_are_not_in_the_denominator(staff, students):
    people = invite(students, staff.lincoln, 20)
    await_consent([person.pk for person in people])
    roll_up()
    assert figures(students, staff.lincoln) == (0, 0, 0, 20)
    for person in people[:12]:
        give_consent(person, FORM, by=staff.chen)
    opt_out(people[19], FORM, by=staff.chen)
    roll_up()
    assert figures(students, staff.lincoln) == (12, 0, 1, 7)


@pytest.mark.sqlite
@pytest.mark.parametrize("schools", [1, 3])
def test_each_school_has_its_number_for_the_same_statements(staff, students, schools):
    places = [staff.lincoln, staff.washington, staff.roosevelt][:schools]
    for place in places:
        await_consent([person.pk for person in invite(students, place, 2)])
    roll_up()
    for place in places:
        assert figures(students, place)[3] == 2


def test_the_parents_threshold_counts_students_without_consent(
    staff, students, administer
):
    parents = administer("parents-2027", "parent", wave=students.wave)
    people = invite(students, staff.lincoln, 20)
    await_consent([person.pk for person in people[:15]])
    roll_up()
    assert students_by_school(parents)[staff.lincoln.pk] == 20


def test_pages_and_files_have_the_number(client, staff, students):
    people = invite(students, staff.lincoln, 20, finished=10)
    await_consent([people[19].pk])
    roll_up()
    log_in(client, staff.dana)
    for page in (
        f"/console/rates/schools/{staff.lincoln.pk}/",
        f"/console/rates/districts/{staff.riverside.pk}/",
    ):
        assert "Awaiting consent: 1" in client.get(page).content.decode(), page
    for page in (
        f"/console/rates/schools/{staff.lincoln.pk}/school.csv",
        f"/console/rates/districts/{staff.riverside.pk}/schools.csv",
    ):
        content = client.get(page).content.decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(content)))
        assert rows[0]["awaiting consent"] == "1", page


@pytest.mark.sqlite
def test_no_export_has_answers_without_consent(staff, enrol):
    administration = opened(published(FIRST, "3"), "fall", minimum_group=1)
    administration.requires_consent = True
    administration.save()
    people = []
    for number in range(12):
        moment = datetime(2027, 3, 1, 15, tzinfo=UTC)
        person = enrol(administration, staff.lincoln, started_at=moment)
        answer(person, {"age": str(number + 5)})
        people.append(person)

    def ages():
        return {int(row["age"]) for row in rows_of(made(staff.state, administration))}

    everyone = set(range(5, 17))
    assert ages() == everyone
    # Consent was taken back, and then the opt-out: it is missing.
    opt_out(people[3], FORM, by=staff.state)
    take_back(people[3], by=staff.state)
    assert ages() == everyone - {8}
    give_consent(people[3], FORM, by=staff.state)
    assert ages() == everyone
