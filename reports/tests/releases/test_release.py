"""Results are a release: what has been seen tells nobody's answers by what comes later.

Twenty-four people of Lincoln have answered, twelve of them in grade 07; the minimum
group is 10.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from reports.answers.versions import versions_of
from reports.models import FormerPeople, ResultsRollUp, Scoring
from reports.models.scores import FORMAT
from reports.releases import rollup
from reports.releases.frozen_people import (
    NOBODY,
    by_school,
    differ_by_few,
    packed,
    released_people,
    unpacked,
)
from reports.scores import scoring
from reports.tasks import start_due_results
from reports.tests.exports.conftest import answer, enrol_and_answer
from reports.tests.releases.conftest import release, stored
from reports.tests.releases.stored_figures import distributions
from survey.models import CountedGroup, Job, Respondent, Response
from survey.work import jobs
from survey.work.jobs import JobRefused

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture
def closed(staff, fall):
    enrol_and_answer(
        fall,
        (
            (staff.lincoln, grade, {"safe": ("1", "2", "-1")[n % 3], "age": "9"})
            for grade in ("07", "08")
            for n in range(12)
        ),
    )
    fall.minimum_group = 10
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.save()
    Response.objects.update(saved_at=fall.closes_at - timedelta(days=1))
    return fall


def run_jobs():
    for job in Job.objects.filter(kind="results.count", state=Job.State.WAITING):
        jobs.run(job.pk)


def people(staff, grade=None):
    respondents = Respondent.objects.filter(school=staff.lincoln).order_by("pk")
    return list(respondents.filter(grade=grade) if grade else respondents)


def opt_out(*respondents):
    now = timezone.now()
    Respondent.objects.filter(
        pk__in=[respondent.pk for respondent in respondents]
    ).update(opted_out_at=now, withdrawn_at=now)


def take_back(*respondents):
    Respondent.objects.filter(
        pk__in=[respondent.pk for respondent in respondents]
    ).update(opted_out_at=None, withdrawn_at=None)


def kept_schools():
    return ResultsRollUp.objects.get().kept_schools


def safe(administration, *place):
    return dict(distributions(administration, *place).items["safe"].values)


def test_nothing_that_was_shown_changes_by_itself(staff, closed):
    start_due_results()
    run_jobs()
    roll_up = ResultsRollUp.objects.get()
    assert roll_up.released_at == roll_up.as_of == roll_up.hidden_as_of
    before = stored(closed)
    opt_out(people(staff)[0])
    start_due_results()
    run_jobs()
    assert Job.objects.filter(kind="results.count").count() == 1
    assert stored(closed) == before


def test_an_opt_out_tells_nobody_how_that_person_answered(staff, closed):
    release(closed)
    before = stored(closed)
    person = people(staff)[0]
    opt_out(person)
    release(closed)
    assert kept_schools() == [staff.lincoln.pk]
    assert stored(closed) == before
    # Nor does taking it back, and the next person's.
    take_back(person)
    opt_out(people(staff)[1])
    release(closed)
    assert stored(closed) == before


def test_without_the_comparison_an_opt_out_tells_how_that_person_answered(
    staff, closed, monkeypatch
):
    monkeypatch.setattr(rollup, "schools_to_keep", lambda *_: set())
    release(closed)
    before = safe(closed)
    opt_out(people(staff)[0])
    release(closed)
    after = safe(closed)
    assert {name: before[name] - after[name] for name in before} == {
        "1": 1,
        "2": 0,
        "-1": 0,
    }


def test_many_changes_make_new_figures(staff, closed):
    release(closed)
    gone = people(staff, "07")[:10]
    opt_out(*gone)
    release(closed)
    assert kept_schools() == []
    assert distributions(closed).people == 14
    assert FormerPeople.objects.get().school_id == staff.lincoln.pk
    # Back again but for one: the second release would tell nothing, the first would.
    take_back(*gone[1:])
    release(closed)
    assert kept_schools() == [staff.lincoln.pk]
    assert distributions(closed).people == 14
    # All of them are those of the first release.
    take_back(gone[0])
    release(closed)
    assert kept_schools() == []
    assert distributions(closed).people == 24


def test_few_changes_of_a_grade_keep_the_school(staff, closed):
    release(closed)
    before = stored(closed)
    moved = people(staff, "07")[:2]
    for person in moved:
        CountedGroup.objects.create(
            respondent=person,
            administration=closed,
            school=staff.lincoln,
            grade="08",
            attributes={},
            cohort=1,
            changed_at=timezone.now(),
        )
    release(closed)
    assert kept_schools() == [staff.lincoln.pk]
    assert stored(closed) == before


def test_few_answers_after_a_reopening_keep_the_school(staff, closed):
    release(closed)
    before = stored(closed)
    # So the closing is after the release, and what follows is after that.
    ResultsRollUp.objects.update(
        released_at=F("as_of") - timedelta(hours=2),
        as_of=F("as_of") - timedelta(hours=2),
    )
    person = people(staff)[0]
    Response.objects.filter(respondent_id=person.pk).delete()
    answer(person, {"safe": "2", "age": "9"})
    Response.objects.filter(respondent_id=person.pk).update(saved_at=timezone.now())
    release(closed)
    assert kept_schools() == [staff.lincoln.pk]
    assert stored(closed) == before


def test_a_new_school_with_few_people_stays_out_of_its_district(staff, closed):
    release(closed)
    riverside = ("district", staff.riverside.pk)
    before = safe(closed, *riverside)
    enrol_and_answer(closed, [(staff.washington, "07", {"safe": "1"})] * 3)
    release(closed)
    assert kept_schools() == [staff.washington.pk]
    assert safe(closed, *riverside) == before
    assert distributions(closed, "school", staff.washington.pk) is None
    enrol_and_answer(closed, [(staff.washington, "07", {"safe": "1"})] * 7)
    release(closed)
    assert kept_schools() == []
    assert distributions(closed, *riverside).people == 34


def test_a_school_that_is_gone_keeps_its_part_of_the_district(staff, closed):
    enrol_and_answer(closed, [(staff.washington, "07", {"safe": "1"})] * 3)
    release(closed)
    riverside = ("district", staff.riverside.pk)
    before = safe(closed, *riverside)
    opt_out(*Respondent.objects.filter(school=staff.washington))
    release(closed)
    assert kept_schools() == [staff.washington.pk]
    assert safe(closed, *riverside) == before


def test_a_release_that_fails_leaves_the_earlier_one(staff, closed, monkeypatch):
    release(closed)
    before = stored(closed), ResultsRollUp.objects.values().get()
    opt_out(*people(staff, "07")[:10])

    def fail(administration):
        raise RuntimeError

    monkeypatch.setattr(rollup, "hide_small_groups", fail)
    with pytest.raises(RuntimeError):
        release(closed)
    assert (stored(closed), ResultsRollUp.objects.values().get()) == before


def test_figures_from_before_the_closing_are_no_release(closed):
    closed.closes_at = timezone.now() - timedelta(minutes=14)
    closed.save()
    release(closed)
    assert ResultsRollUp.objects.get().released_at is None


def test_people_are_stored_as_they_counted(staff, closed):
    enrol_and_answer(closed, [(staff.washington, "07", {"safe": "1"})] * 3)
    release(closed)
    released = released_people(closed)
    assert len(released) == 27
    for school, some in by_school(released).items():
        unpacked_people = unpacked(packed(some), school, None)
        for name in ("ids", "at", "finished", "group"):
            assert (getattr(unpacked_people, name) == getattr(some, name)).all()
        assert unpacked_people.groups == some.groups
        assert not differ_by_few(unpacked_people, some, {}, ["", "grade"], 10)
        assert differ_by_few(unpacked_people, NOBODY, {}, ["", "grade"], 30)


def test_scores_are_of_the_people_of_the_release(staff, closed):
    release(closed)
    opt_out(*people(staff)[:3])
    read = read_scored(closed)
    assert len(read.people) == 24
    # Before it, they are of the people of today.
    ResultsRollUp.objects.update(released_at=None)
    assert len(read_scored(closed).people) == 21


def read_scored(administration):
    [version] = versions_of([administration]).values()
    item = {"name": "safe", "reversed": False}
    content = {"essentials": [], "measures": [{"name": "safety", "items": [item]}]}
    return scoring.read_answers(administration, version, content)


def test_scores_stay_where_a_few_answers_changed_after_a_reopening(closed):
    release(closed)
    Scoring.objects.create(
        administration=closed,
        as_of=closed.closes_at,
        calculated_at=closed.closes_at,
        people=24,
        format=FORMAT,
    )
    assert not rollup.keeps_earlier_answers(closed)
    ResultsRollUp.objects.update(
        kept_schools=[1], released_at=closed.closes_at - timedelta(days=1)
    )
    with pytest.raises(JobRefused, match="a few people have changed their answers"):
        scoring.score_administration(closed, recalculate=True)
