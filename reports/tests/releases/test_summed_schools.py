"""Which schools are added up stays as it was decided with the first release."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.models import School
from reports.models import CountedSchool, RollUp, SchoolRate
from reports.rates.rollup import roll_up
from reports.releases import rollup
from reports.releases.levels import STATE
from reports.releases.rollup import due, roll_up_results
from reports.releases.summed_schools import next_schools, summed_schools
from reports.results.sums import sums_of_reports
from reports.tests.exports.conftest import enrol_and_answer
from survey.models import Administration, Respondent, Response
from survey.people.merging.places import merge_schools

# Districts 1 to 4, of five schools each: 10 to 14 in district 1, and so on.
DISTRICTS = {10 * d + n: d for d in range(1, 5) for n in range(5)}
PEOPLE = {school: 20 + school for school in DISTRICTS}


def next_of(earlier, *, hidden=(), reached=None, merged=(), moved=None):
    earlier = {school: DISTRICTS[school] for school in earlier}
    visible = {**DISTRICTS, **(moved or {})}
    for school in hidden:
        del visible[school]
    reached = visible.keys() & (visible if reached is None else reached)
    return next_schools(earlier, set(merged), visible, reached, PEOPLE)


ALL = set(DISTRICTS)


def test_fewer_than_three_schools_of_a_district_do_not_join():
    earlier = ALL - {10, 11}
    assert next_of(earlier) == earlier
    assert next_of(ALL - {10, 11, 12}) == ALL
    # Together they are three, and in two districts.
    assert next_of(ALL - {10, 11, 20}) == ALL - {10, 11, 20}


def test_schools_stay_although_they_have_a_report_no_longer():
    assert next_of(ALL, reached=[]) == ALL


def test_a_school_leaves_with_the_two_smallest_of_its_district():
    assert next_of(ALL, hidden=[13]) == ALL - {13, 10, 11}
    assert next_of(ALL, hidden=[10, 11, 12]) == ALL - {10, 11, 12}


def test_the_last_schools_of_a_district_leave_with_those_of_two_others():
    earlier = ALL - {11, 12, 13, 14}
    assert next_of(earlier, hidden=[10], reached=earlier) == (
        earlier - {10, 20, 21, 30, 31}
    )


def test_a_school_leaves_one_district_and_is_not_alone_in_joining_another():
    assert next_of(ALL, moved={13: 2}) == ALL - {13, 10, 11}


def test_a_school_that_was_merged_into_another_one_has_not_left():
    assert next_of(ALL, hidden=[13], merged=[13]) == ALL - {13}


@pytest.fixture
def closed(staff, fall):
    """Close an administration of five schools of Riverside; the last has no report."""
    schools = [staff.lincoln, staff.washington]
    schools += School.objects.bulk_create(
        School(code=f"r{n}", name=f"School {n}", district=staff.riverside)
        for n in range(3)
    )
    for school in schools:
        enrol_and_answer(
            fall,
            ((school, "07", {"safe": ("1", "2")[n % 2]}) for n in range(12)),
        )
    idle = [
        Respondent(
            administration=fall,
            school=schools[-1],
            grade="07",
            code_digest=f"idle {n}".encode(),
            code_key_version=1,
        )
        for n in range(20)
    ]
    Respondent.objects.bulk_create(idle)
    fall.minimum_group = 10
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.opens_at = fall.closes_at - timedelta(days=3)
    fall.save()
    Respondent.objects.filter(started_at__isnull=False).update(
        started_at=fall.opens_at, completed_at=fall.closes_at - timedelta(days=1)
    )
    Response.objects.update(saved_at=fall.closes_at - timedelta(days=1))
    release(fall)
    return fall, schools


def current(administration):
    administrations = Administration.objects.select_related(
        "published__survey", "results_roll_up", "roll_up"
    )
    return administrations.get(pk=administration.pk)


def release(administration):
    roll_up([current(administration)])
    roll_up_results(current(administration), release=True)


def people_in_state(administration):
    _districts, sums = sums_of_reports(current(administration), [], [])
    return int(sums[STATE].people[-1])


def erase_idle(schools):
    Respondent.objects.filter(school=schools[-1], started_at=None).delete()


@pytest.mark.django_db
@pytest.mark.sqlite
class TestReleases:
    def test_a_school_that_reaches_its_threshold_later_is_not_added(self, closed):
        fall, schools = closed
        assert summed_schools(current(fall)).keys() == {s.pk for s in schools[:4]}
        erase_idle(schools)
        roll_up([current(fall)])
        assert people_in_state(fall) == 48
        release(fall)
        assert SchoolRate.objects.filter(finished__gte=F("needed")).count() == 5
        assert people_in_state(fall) == 48

    def test_without_what_was_before_it_could_be_subtracted(self, closed, monkeypatch):
        fall, schools = closed
        erase_idle(schools)
        monkeypatch.setattr(rollup, "staying_schools", lambda *args: None)
        release(fall)
        assert people_in_state(fall) == 48 + 12

    def test_a_merge_changes_no_sum(self, closed):
        fall, schools = closed
        merge_schools(schools[2], schools[1])
        roll_up([current(fall)])
        assert people_in_state(fall) == 48
        release(fall)
        assert people_in_state(fall) == 48
        assert CountedSchool.objects.filter(is_summed=True).count() == 3

    def test_a_school_without_answers_leaves_with_two_others(self, closed):
        fall, schools = closed
        people = Respondent.objects.filter(school=schools[2])
        Response.objects.filter(respondent_id__in=people.values("pk")).delete()
        people.delete()
        release(fall)
        assert len(summed_schools(current(fall))) == 1
        assert people_in_state(fall) == 12


@pytest.mark.django_db
@pytest.mark.sqlite
def test_results_wait_for_the_final_response_rates(closed):
    fall, _schools = closed
    fall.results_roll_up.delete()
    assert due() == [fall]
    RollUp.objects.update(as_of=fall.closes_at)
    assert due() == []
