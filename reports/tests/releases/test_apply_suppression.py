"""What is hidden is stored with the results, and pages read nothing else."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db.models import F

from reports.models import GradeRate, GroupResults, ResultsRollUp
from reports.rates.visible_rates import grade_lines
from reports.releases.apply_suppression import categories_of, hide_small_groups
from reports.releases.result_arrays import result_arrays
from reports.releases.rollup import roll_up_results
from reports.results.visible import visible_groups
from reports.tests.exports.conftest import answer, enrol_and_answer
from reports.tests.releases.stored_figures import distributions

pytestmark = pytest.mark.django_db


@pytest.fixture
def counted(staff, fall):
    """Count a large school, and one with a single person in grade 08."""
    fall.minimum_group = 3
    fall.save()
    groups = [
        *(
            (staff.lincoln, grade, number)
            for grade in ("07", "08")
            for number in range(12)
        ),
        *((staff.washington, "07", number) for number in range(4)),
        (staff.washington, "08", 0),
    ]
    enrol_and_answer(
        fall,
        (
            (
                *(school, grade),
                {
                    "safe": ("1", "2", "-1")[number % 3],
                    "pets": ("cat", "dog")[number % 2],
                },
            )
            for school, grade, number in groups
        ),
    )
    roll_up_results(fall)
    return fall


def test_nothing_is_shown_until_it_is_decided_what_is_hidden(
    staff, counted, django_assert_num_queries
):
    places = [("school", staff.lincoln.pk)]
    assert visible_groups(counted, places) == {}
    hide_small_groups(counted)
    with django_assert_num_queries(1):
        visible = visible_groups(counted, places)
    assert visible[places[0]].people == 24
    # Newer figures, for which it is not decided yet.
    roll_up_results(counted)
    assert visible_groups(counted, places) == {}


def test_figures_of_another_roll_up_are_not_marked_as_decided(
    staff, counted, monkeypatch
):
    riverside = staff.riverside.pk
    districts = {staff.lincoln.pk: riverside, staff.washington.pk: riverside}
    stale = result_arrays(counted, districts)
    roll_up_results(counted, all_schools=True)
    monkeypatch.setattr(
        "reports.releases.apply_suppression.result_arrays", lambda *_: stale
    )
    hide_small_groups(counted)
    assert ResultsRollUp.objects.get().hidden_as_of is None


def test_a_school_that_hides_a_group_is_left_out_of_the_district(staff, counted):
    hide_small_groups(counted)
    places = [
        ("school", staff.washington.pk),
        ("school", staff.lincoln.pk),
        ("district", staff.riverside.pk),
        ("state", 0),
    ]
    everyone = visible_groups(counted, places)
    assert [everyone[place].people for place in places] == [5, 24, 29, 29]
    for grade in ("07", "08"):
        visible = visible_groups(counted, places, "grade", grade)
        assert visible[places[0]] is None
        assert [visible[place].people for place in places[1:]] == [12, 12, 12]
        left_out = [visible[place].leaves_out_schools for place in places[1:]]
        assert left_out == [False, True, True]
        safe = [visible[place].items["safe"] for place in places[1:]]
        assert safe[0] == safe[1] == safe[2]
        assert safe[0].values == {"1": 4, "2": 4, "-1": 4}
        assert safe[0].not_reached == 0
    # The twin: with everybody, a subtraction is the answer of one person.
    raw = [distributions(counted, *place, "grade", "08") for place in places[1:3]]
    large, both = (Counter(group.items["safe"].values) for group in raw)
    assert both - large == Counter({"1": 1})


def test_a_group_that_has_grown_is_shown_again(staff, counted, enrol):
    hide_small_groups(counted)
    assert GroupResults.objects.filter(is_hidden=True).exists()
    for number in range(3):
        answer(
            enrol(counted, staff.washington, grade="08"), {"safe": str(1 + number % 2)}
        )
    roll_up_results(counted)
    hide_small_groups(counted)
    place = ("school", staff.washington.pk)
    assert visible_groups(counted, [place], "grade", "08")[place].people == 4
    district = ("district", staff.riverside.pk)
    shown = visible_groups(counted, [district], "grade", "08")[district]
    assert (shown.people, shown.leaves_out_schools) == (16, False)
    published = GroupResults.objects.exclude(published_people=None)
    assert not published.exclude(published_people=F("people")).exists()


def test_options_of_multiple_choices_are_tables_of_their_own(staff, counted):
    arrays = result_arrays(
        counted,
        {staff.lincoln.pk: staff.riverside.pk, staff.washington.pk: staff.riverside.pk},
    )
    tables = categories_of(arrays)
    assert {"safe", "pets", "pets cat", "pets dog"} <= set(tables)
    for counts in tables.values():
        assert (counts.sum(axis=2) == arrays.people).all()


@pytest.fixture
def small_grades(staff, counted):
    """Invite nine people to grade 08 of Washington, of whom six have answered."""

    def small_grades():
        people = [("08", ("1", "2")[number % 2]) for number in range(5)]
        people += [("09", ("1", "2", "-1")[number % 3]) for number in range(20)]
        enrol_and_answer(
            counted,
            ((staff.washington, grade, {"safe": value}) for grade, value in people),
        )
        for grade, eligible, people in (("07", 30, 4), ("08", 9, 6), ("09", 20, 20)):
            GradeRate.objects.update_or_create(
                administration=counted,
                school=staff.washington,
                grade=grade,
                defaults={
                    "eligible": eligible,
                    "at_opening": eligible,
                    "started": people,
                    "finished": people,
                },
            )
        roll_up_results(counted)
        hide_small_groups(counted)

    return small_grades


def shown_people(administration, school, grades):
    place = ("school", school.pk)
    groups = [
        visible_groups(administration, [place], "grade", grade)[place]
        for grade in grades
    ]
    return [group and group.people for group in groups]


def test_results_hide_grades_whose_response_rate_is_hidden(
    staff, counted, small_grades
):
    small_grades()
    # As it would be too large a part of the district, the school shows no grade at all.
    assert shown_people(counted, staff.washington, ["07", "08", "09"]) == [None] * 3


def test_otherwise_results_would_show_hidden_rates(staff, counted, small_grades):
    # Everybody may know who has finished, so rates hide nothing.
    counted.coordinators_see_finished = True
    counted.save()
    small_grades()
    assert shown_people(counted, staff.washington, ["07", "08", "09"]) == [4, 6, 20]
    rates = GradeRate.objects.filter(school=staff.washington).order_by("grade")
    lines = grade_lines(rates, school_is_hidden=False, sees_all=False)
    assert [line.started for line in lines] == [4, None, None]
