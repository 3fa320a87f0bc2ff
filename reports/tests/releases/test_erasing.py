"""Erased people: no figure, file or later release tells what one of them answered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from reports.exports import job
from reports.models import Export, ResultsRollUp, SchoolRate, Scoring
from reports.models.scores import FORMAT
from reports.rates.rollup import roll_up
from reports.releases import frozen_people, rollup
from reports.scores import scoring
from reports.tests.conftest import invite as invite_many
from reports.tests.exports.conftest import FIRST, answer, made, opened, published
from reports.tests.exports.conftest import enrol as enrol  # noqa: PLC0414
from reports.tests.exports.test_formats import rows_of
from reports.tests.releases.conftest import release, stored
from reports.tests.releases.test_release import closed as closed  # noqa: PLC0414
from reports.tests.releases.test_release import kept_schools, people
from survey.models import Identity, Respondent, Response
from survey.people.erasing import files
from survey.tests.erasing.conftest import erased
from survey.tests.erasing.conftest import (
    jobs_run_by_hand as jobs_run_by_hand,  # noqa: PLC0414
)
from survey.work.jobs import JobRefused

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def erase(*respondents, by):
    for number, person in enumerate(respondents):
        Identity.objects.get_or_create(
            respondent=person,
            defaults={
                "administration_id": person.administration_id,
                "district_id": person.school.district_id,
                "external_id": f"erased-{person.pk}-{number}",
            },
        )
    erasure = erased(*respondents, by=by)
    keys = [person.pk for person in respondents]
    assert not Response.objects.filter(respondent_id__in=keys).exists()
    return erasure


def test_rates_do_not_show_whether_the_person_had_finished(staff, students):
    respondents = invite_many(students, staff.lincoln, 20, grade="07", finished=10)

    def figures():
        roll_up()
        rate = SchoolRate.objects.get(administration=students, school=staff.lincoln)
        return rate.eligible, rate.started, rate.finished

    before = figures()
    assert before == (20, 10, 10)
    erase(respondents[0], by=staff.dana)
    assert figures() == before
    # Without a record that stays, the person would be missing at once.
    Respondent.objects.filter(pk=respondents[0].pk).delete()
    assert figures() == (19, 9, 9)


def test_a_later_release_tells_nobody_how_an_erased_person_answered(staff, closed):
    release(closed)
    before = stored(closed)
    erase(people(staff)[0], by=staff.dana)
    release(closed)
    assert kept_schools() == [staff.lincoln.pk]
    assert stored(closed) == before
    # Nor after the next one.
    erase(people(staff)[1], by=staff.dana)
    release(closed)
    assert stored(closed) == before


def test_without_the_comparison_a_release_would_tell(staff, closed, monkeypatch):
    release(closed)
    before = stored(closed)
    monkeypatch.setattr(rollup, "schools_to_keep", lambda *_: set())
    erase(people(staff)[0], by=staff.dana)
    release(closed)
    assert stored(closed) != before


def test_many_erased_people_leave_the_figures(staff, closed):
    release(closed)
    before = stored(closed)
    erase(*people(staff)[:12], by=staff.dana)
    release(closed)
    assert kept_schools() == []
    assert stored(closed) != before
    assert not rollup.keeps_earlier_answers(closed)


def test_scores_are_not_calculated_without_an_erased_person(staff, closed, monkeypatch):
    release(closed)
    Scoring.objects.create(
        administration=closed,
        as_of=closed.closes_at,
        calculated_at=closed.closes_at,
        people=24,
        format=FORMAT,
    )
    assert not rollup.keeps_earlier_answers(closed)
    erase(people(staff)[0], by=staff.dana)
    with pytest.raises(JobRefused, match="Scores stay as they are"):
        scoring.score_administration(closed, recalculate=True)
    # The twin: of the people of the release, this one would have no answers.
    monkeypatch.setattr(rollup, "counts_erased_people", lambda *_: False)
    assert not rollup.keeps_earlier_answers(closed)
    assert frozen_people.counts_erased_people(closed)


@pytest.mark.parametrize("stored_format", [None, FORMAT - 1])
def test_no_other_scores_are_calculated_without_an_erased_person(
    staff, closed, stored_format, monkeypatch
):
    release(closed)
    if stored_format:
        Scoring.objects.create(
            administration=closed,
            as_of=closed.closes_at,
            calculated_at=closed.closes_at,
            people=24,
            format=stored_format,
        )
    erase(people(staff)[0], by=staff.dana)
    with pytest.raises(JobRefused, match="Scores (stay as they are|can't be)"):
        scoring.score_administration(closed)
    # The twin: they would be calculated.
    monkeypatch.setattr(scoring, "keeps_earlier_answers", lambda _: False)
    monkeypatch.setattr(scoring, "counts_erased_people", lambda _: False)
    scoring.score_administration(closed)
    assert Scoring.objects.current().filter(pk=closed.pk).exists()


def test_rows_of_others_leave_a_file_with_an_erased_person(staff, enrol):
    administration = opened(published(FIRST, "3"), "fall", minimum_group=5)
    respondents = []
    for number in range(12):
        moment = datetime(2027, 3, 1, 15, tzinfo=UTC)
        person = enrol(administration, staff.lincoln, started_at=moment)
        answer(person, {"age": str(number + 5)})
        respondents.append(person)

    def ages():
        return {int(row["age"]) for row in rows_of(made(staff.state, administration))}

    everyone = set(range(5, 17))
    assert ages() == everyone
    erase(respondents[5], by=staff.state)
    left = ages()
    assert left < everyone - {10}
    assert len(everyone - left) >= 5


def test_exports_of_the_district_are_deleted_and_again_those_in_hand(staff, enrol):
    administration = opened(published(FIRST, "3"), "fall", minimum_group=1)
    person = enrol(
        administration, staff.lincoln, started_at=datetime(2027, 3, 1, tzinfo=UTC)
    )
    answer(person, {"age": "9"})
    ready = made(staff.state, administration)
    in_hand = made(staff.state, administration)
    assert ready.file_name
    # A job that has read the person, and has not stored its file yet.
    name, made_at = in_hand.file_name, in_hand.made_at
    Export.objects.filter(pk=in_hand.pk).update(made_at=None, file_name="")
    type(in_hand.job).objects.filter(pk=in_hand.job_id).update(
        ended_at=None, state="running"
    )
    erasure = erase(person, by=staff.dana)
    ready.refresh_from_db()
    assert ready.deleted_at and not ready.file_name
    type(in_hand.job).objects.filter(pk=in_hand.job_id).update(
        ended_at=timezone.now(), state="done"
    )
    Export.objects.filter(pk=in_hand.pk).update(made_at=made_at, file_name=name)
    type(erasure).objects.update(erased_at=timezone.now() - timedelta(hours=1))
    Export.objects.update(created_at=timezone.now() - timedelta(hours=2))
    assert files.follow_up_all() == 0
    in_hand.refresh_from_db()
    assert in_hand.deleted_at and not in_hand.file_name


def test_an_export_that_has_read_the_person_is_deleted_once_it_is_ready(
    staff, enrol, monkeypatch
):
    """The person is erased between the snapshot of the answers and the file."""
    administration = opened(published(FIRST, "3"), "fall", minimum_group=1)
    person = enrol(
        administration, staff.lincoln, started_at=datetime(2027, 3, 1, tzinfo=UTC)
    )
    answer(person, {"age": "9"})
    write, erasures = job.write_data, []

    def write_late(*arguments):
        erasures.append(erase(person, by=staff.dana))
        return write(*arguments)

    monkeypatch.setattr(job, "write_data", write_late)
    export = made(staff.state, administration)
    # There was something to delete.
    assert [row["age"] for row in rows_of(export)] == ["9"]
    [erasure] = erasures
    assert erasure.completed_at is None
    Export.objects.update(created_at=timezone.now() - timedelta(hours=2))
    type(erasure).objects.update(erased_at=timezone.now() - timedelta(hours=1))
    assert files.follow_up_all() == 0
    export.refresh_from_db()
    assert export.deleted_at and not export.file_name


def test_the_figures_of_a_release_stay(staff, closed):
    release(closed)
    before = stored(closed)
    erase(people(staff)[0], by=staff.dana)
    assert stored(closed) == before
    assert ResultsRollUp.objects.get().released_at
