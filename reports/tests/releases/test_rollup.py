"""Stored results equal a slow count, and recounting some schools equals all."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import School
from reports.models import CountedSchool, GroupResults, ResultsRollUp
from reports.releases import changes, storing
from reports.releases.rollup import roll_up_results
from reports.tests.exports.conftest import (
    HIDE,
    SKIP,
    answer,
    answer_all,
    enrol_and_answer,
    respondent_of,
)
from reports.tests.releases.conftest import stored, widths
from reports.tests.releases.slow_count import slowly_counted
from reports.tests.releases.stored_figures import distributions
from survey.models import (
    Administration,
    CountedGroup,
    Respondent,
    Response,
)

pytestmark = pytest.mark.django_db

# Values of each item of FIRST that a person may give.
CHOICES = {
    "safe": ["1", "2", "-1", SKIP],
    "pets": ["cat", "cat dog", "dog", SKIP],
    "age": ["9", "12", "13", "14", SKIP],
    "far": ["1.5", "2", "2.50", SKIP],
    "comment": ["Don't\tknow", 'a "word"', SKIP],
    "born": ["2015-03-01", SKIP],
    "bus": ["0", "15", SKIP],
    "promise": ["OK", SKIP],
    "teen": ["1", "2", HIDE],
    "wake": ["06:30", HIDE],
    "last": ["The end", SKIP],
}
PAGES = (
    ("safe", "pets", "age", "far", "comment"),
    ("born", "bus", "promise"),
    ("teen", "wake"),
    ("last",),
)


def take_part(dice, administration, schools, people):
    """Enrol people who answer some pages in any order, and may finish."""
    respondents, answers = [], []
    for _ in range(people):
        school = dice.choice(schools)
        fields = {
            "grade": dice.choice(("", "07", "08")),
            "attributes": dice.choice(({}, {"sex": "f"}, {"sex": "m"})),
        }
        if dice.random() < 0.5:
            fields["completed_at"] = datetime(2027, 3, 1, 15, tzinfo=UTC)
        respondents.append(respondent_of(administration, school, **fields))
        pages = dice.sample(PAGES, dice.randint(0, len(PAGES)))
        answers.append(
            {name: dice.choice(CHOICES[name]) for page in pages for name in page}
        )
    Respondent.objects.bulk_create(respondents)
    answer_all(administration, zip(respondents, answers, strict=True))
    return respondents


@pytest.fixture
def dice():
    return random.Random(7)


@pytest.fixture
def crowd(staff, fall, dice):
    return take_part(dice, fall, list(School.objects.order_by("pk")), 60)


@pytest.mark.sqlite
def test_results_equal_a_slow_count(fall, crowd):
    outcome = roll_up_results(fall)
    assert stored(fall) == slowly_counted(fall)
    assert outcome.schools == 3
    everyone = distributions(fall)
    assert 0 < everyone.finished < everyone.people < 60
    safe = everyone.items["safe"]
    assert list(safe.values) == ["1", "2", "-1"]
    assert min(*safe.values.values(), safe.skipped, safe.not_reached) > 0
    assert everyone.items["teen"].not_applicable > 0
    # A calculation.
    assert list(everyone.items["score"].values) == ["-10", "10", "20"]
    assert not everyone.items["comment"].values


@pytest.mark.sqlite
def test_people_count_where_and_while_response_rates_count_them(
    staff, fall, enrol, crowd
):
    now = timezone.now()
    opted_out, withdrawn, moved, left, joined = crowd[:5]
    Respondent.objects.filter(pk=opted_out.pk).update(
        opted_out_at=now, withdrawn_at=now
    )
    Respondent.objects.filter(pk=withdrawn.pk).update(withdrawn_at=now)
    for person, school in (
        (moved, staff.roosevelt),
        (left, None),
        (joined, None),
        # The roster withdrew this person, which does not count yet.
        (withdrawn, staff.lincoln),
    ):
        CountedGroup.objects.create(
            respondent=person,
            administration=fall,
            school=school,
            grade="05",
            attributes={"sex": "x"},
            cohort=1 if person is left else 0,
            changed_at=now,
        )
    for person in (opted_out, withdrawn, moved, left, joined):
        Response.objects.filter(respondent_id=person.pk).delete()
        answer(person, {"safe": "1"})
    roll_up_results(fall)
    assert stored(fall) == slowly_counted(fall)
    fifth = distributions(fall, "state", 0, "grade", "05")
    assert fifth.people == 2
    assert distributions(fall, "school", staff.roosevelt.pk, "sex", "x").people == 1


@pytest.mark.sqlite
def test_deleted_people_leave_no_trace(fall, crowd):
    roll_up_results(fall)
    before = distributions(fall).people
    gone = Response.objects.filter(state="a").values_list("respondent_id").first()[0]
    Respondent.objects.filter(pk=gone).delete()
    roll_up_results(fall)
    assert distributions(fall).people == before - 1
    assert stored(fall) == slowly_counted(fall)


def test_results_of_a_deleted_administration_go_with_it(fall, crowd):
    roll_up_results(fall)
    Response.objects.all().delete()
    Respondent.objects.all().delete()
    Administration.objects.filter(pk=fall.pk).delete()
    assert not GroupResults.objects.exists()
    assert not CountedSchool.objects.exists()
    assert not ResultsRollUp.objects.exists()


@pytest.mark.sqlite
def test_an_administration_without_people_has_no_results(fall):
    assert roll_up_results(fall).people == 0
    assert distributions(fall) is None
    assert ResultsRollUp.objects.get().as_of <= timezone.now()


# Recounting what changed


def test_a_roll_up_knows_its_survey_and_every_program_that_counted(
    fall, crowd, monkeypatch
):
    def recorded():
        roll_up = ResultsRollUp.objects.get()
        return roll_up.survey_digest, roll_up.software

    monkeypatch.setattr(changes, "LARGE_PART", 1.0)
    long_ago = timezone.now() - timedelta(days=1)
    Response.objects.update(saved_at=long_ago)
    roll_up_results(fall)
    assert recorded() == (fall.published_id, "counts 1")
    monkeypatch.setattr(storing, "SOFTWARE", "counts 2")
    # Nothing changed, so nothing was counted.
    roll_up_results(fall)
    assert recorded() == (fall.published_id, "counts 1")
    Respondent.objects.filter(pk=crowd[0].pk).update(completed_at=timezone.now())
    roll_up_results(fall)
    assert recorded() == (fall.published_id, "counts 1, counts 2")
    roll_up_results(fall, all_schools=True)
    assert recorded() == (fall.published_id, "counts 2")


def save_later(person, answers):
    """Save answers after all others, as a page does."""
    answer(person, answers)
    Response.objects.filter(respondent_id=person.pk).update(saved_at=timezone.now())


def long_ago(administration):
    """Let all answers be older than the last roll-up."""
    Response.objects.filter(administration_id=administration.pk).update(
        saved_at=timezone.now() - timedelta(days=1)
    )


@pytest.mark.sqlite
def test_nothing_is_counted_again_where_nothing_changed(fall, crowd):
    long_ago(fall)
    roll_up_results(fall)
    outcome = roll_up_results(fall)
    assert (outcome.schools, outcome.people, outcome.rows_changed) == (0, 0, 0)


@pytest.mark.sqlite
def test_only_the_school_of_a_new_answer_is_counted_again(
    staff, fall, crowd, enrol, monkeypatch
):
    monkeypatch.setattr(changes, "LARGE_PART", 1)
    maya = enrol(fall, staff.lincoln, grade="07", attributes={"sex": "f"})
    long_ago(fall)
    roll_up_results(fall)
    save_later(maya, {"safe": "2", "age": "13"})
    outcome = roll_up_results(fall)
    assert outcome.schools == 1
    # Everyone, grade 7, girls, and four other subgroups without a value; three levels.
    assert outcome.rows_changed == 3 * 7
    assert stored(fall) == slowly_counted(fall)


@pytest.mark.sqlite
def test_people_are_counted_by_subgroups_that_were_declared_later(fall, crowd):
    Administration.objects.filter(pk=fall.pk).update(subgroups={})
    fall.refresh_from_db()
    long_ago(fall)
    roll_up_results(fall)
    assert distributions(fall, "state", 0, "sex", "f") is None
    Administration.objects.filter(pk=fall.pk).update(subgroups={"sex": ["f", "m"]})
    fall.refresh_from_db()
    roll_up_results(fall)
    assert distributions(fall, "state", 0, "sex", "f").people
    assert stored(fall) == slowly_counted(fall)


EVENTS = ("answer", "finish", "opt out", "move", "regrade", "join", "number", "erase")


def apply_event(event, dice, administration, enrol, schools):
    people = list(administration.respondents.order_by("pk"))
    respondent = dice.choice(people)
    if event == "answer":
        known = set(
            Response.objects.filter(respondent_id=respondent.pk).values_list(
                "item_id", flat=True
            )
        )
        ids = dict(administration.published.survey.items.values_list("name", "pk"))
        for page in PAGES:
            if not known & {ids[name] for name in page}:
                save_later(
                    respondent, {name: dice.choice(CHOICES[name]) for name in page}
                )
                return
    elif event == "number":
        far = str(dice.randrange(1000) / 8)
        person = enrol(administration, dice.choice(schools))
        save_later(person, {"far": far, "age": str(dice.randrange(100))})
    elif event == "erase":
        respondent.delete()
    elif event == "join":
        take_part(dice, administration, schools, 1)
    else:
        moment = timezone.now()
        changed = {
            "finish": {"completed_at": moment},
            "opt out": {"opted_out_at": moment, "withdrawn_at": moment},
            "move": {"school": dice.choice(schools)},
            "regrade": {"grade": dice.choice(("07", "11"))},
        }[event]
        Respondent.objects.filter(pk=respondent.pk).update(**changed)


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.sqlite), *range(2, 6)]
)
def test_recounts_equal_a_full_count_after_any_events(
    fall, crowd, enrol, seed, monkeypatch
):
    monkeypatch.setattr(changes, "LARGE_PART", 1)
    dice = random.Random(seed)
    schools = list(School.objects.order_by("pk"))
    long_ago(fall)
    roll_up_results(fall)
    for _ in range(4):
        for _ in range(dice.randint(1, 4 if seed else 40)):
            apply_event(dice.choice(EVENTS), dice, fall, enrol, schools)
        # People who join have answered in the past, but start now.
        roll_up_results(fall)
        recounted = stored(fall)
        assert recounted == slowly_counted(fall, widths(fall))
        roll_up_results(fall, all_schools=True)
        assert stored(fall) == recounted


def test_many_numbers_are_counted_in_the_same_bins_everywhere(
    staff, fall, enrol, monkeypatch
):
    monkeypatch.setattr(changes, "LARGE_PART", 1)
    schools = (staff.roosevelt, staff.lincoln)
    enrol_and_answer(
        fall,
        (
            (schools[n % 2], "07", {"far": str(n / 4), "age": str(n % 9)})
            for n in range(80)
        ),
    )
    long_ago(fall)
    roll_up_results(fall)
    assert widths(fall) == {"far": "0.5", "age": "", "bus": "", "score": ""}
    far = distributions(fall, "school", staff.lincoln.pk).items["far"]
    assert list(far.values)[:3] == ["0", "0.5", "1"]
    assert set(far.values.values()) == {1}
    # A number far away makes all bins wider.
    save_later(enrol(fall, staff.lincoln), {"far": "400"})
    roll_up_results(fall)
    assert widths(fall)["far"] == "10"
    assert stored(fall) == slowly_counted(fall, widths(fall))


def test_a_school_in_another_district_counts_there(staff, fall, crowd, monkeypatch):
    monkeypatch.setattr(changes, "LARGE_PART", 1)
    long_ago(fall)
    roll_up_results(fall)
    School.objects.filter(pk=staff.roosevelt.pk).update(district=staff.riverside)
    roll_up_results(fall)
    assert distributions(fall, "district", staff.riverside.pk).people == (
        distributions(fall).people
    )
    assert stored(fall) == slowly_counted(fall)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite never copies")
def test_many_rows_are_copied(fall, crowd, monkeypatch):
    monkeypatch.setattr(storing, "MOST_UPDATED", 0)
    roll_up_results(fall)
    assert stored(fall) == slowly_counted(fall)
    Respondent.objects.filter(grade="07").update(grade='1,"\\N')
    Respondent.objects.filter(pk__lt=crowd[30].pk).delete()
    roll_up_results(fall)
    assert distributions(fall, "state", 0, "grade", '1,"\\N').people
    assert stored(fall) == slowly_counted(fall)


def test_older_figures_never_replace_newer_ones(fall, crowd, monkeypatch):
    """As after a failover to a replica that is further behind."""
    roll_up_results(fall)
    before = stored(fall)
    earlier = timezone.now() - timedelta(minutes=5)
    monkeypatch.setattr(changes, "_read_as_of", lambda alias: earlier)
    Respondent.objects.all().delete()
    assert roll_up_results(fall, all_schools=True).rows_changed == 0
    assert stored(fall) == before


def test_answers_after_closing_are_not_looked_for(
    fall, crowd, django_assert_max_num_queries
):
    """Nothing can be saved any more: only people and groups are compared."""
    long_ago(fall)
    Administration.objects.filter(pk=fall.pk).update(
        closes_at=timezone.now() - timedelta(hours=1)
    )
    closed = Administration.objects.get(pk=fall.pk)
    roll_up_results(closed)
    with django_assert_max_num_queries(40) as ran:
        roll_up_results(closed)
    read = [query["sql"] for query in ran if "survey_response" in query["sql"]]
    assert not [sql for sql in read if "saved_at" in sql]
