"""What one wave has hidden is not told by the next one, nor by a recount."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import School
from reports.models import GroupResults, ResultsRollUp
from reports.releases import storing
from reports.releases.apply_suppression import hide_small_groups, tables_of
from reports.releases.rollup import roll_up_results
from reports.results.visible import visible_groups
from reports.suppression.results import decide
from reports.suppression.tables import EarlierSuppression
from reports.tests.exports.conftest import answer, enrol_and_answer, opened

pytestmark = pytest.mark.django_db


@pytest.fixture
def count(staff, fall, monkeypatch):
    """Count a wave of Lincoln's grades, and of Washington, where all grades are large.

    A grade has two people who agree, and all others disagree. However many people are
    left out of the district, the schools show grades.
    """
    monkeypatch.setattr("reports.suppression.attributes.MOST_LEFT_OUT", 1)

    def count(name, hours_ago, lincoln, other_schools=(), **fields):
        administration = opened(fall.published, name)
        large = dict.fromkeys(("06", "07", "08"), 20)
        schools = [(school, large) for school in (staff.washington, *other_schools)]
        enrol_and_answer(
            administration,
            (
                (school, grade, {"safe": "1" if number < 2 else "2"})
                for school, grades in ((staff.lincoln, lincoln), *schools)
                for grade, people in grades.items()
                for number in range(people)
            ),
        )
        now = timezone.now()
        administration.opens_at = now - timedelta(days=500)
        administration.closes_at = now - timedelta(hours=hours_ago)
        administration.minimum_group = 5
        for field, value in fields.items():
            setattr(administration, field, value)
        administration.save()
        roll_up_results(administration)
        hide_small_groups(administration)
        return administration

    return count


def shown(administration, school):
    """Return the grades that the school shows."""
    place = ("school", school.pk)
    grades = ("06", "07", "08")
    return [
        grade
        for grade in grades
        if visible_groups(administration, [place], "grade", grade).get(place)
    ]


def agreed(administration, place, grade=""):
    attribute = "grade" if grade else ""
    visible = visible_groups(administration, [place], attribute, grade)[place]
    return visible.items["safe"].values["1"]


def forget(administration):
    """Decide as if there had been nothing before."""
    tables = tables_of(administration)
    alone = replace(tables, earlier=EarlierSuppression.none(tables.groups))
    released = alone.released(administration.minimum_group)
    decision = decide(released, alone.items, alone.answered)
    for place, (level, key) in enumerate(tables.arrays.places):
        for column, (attribute, value) in enumerate(tables.arrays.groups):
            GroupResults.objects.filter(
                administration=administration,
                level=level,
                place_id=key,
                attribute=attribute,
                value=value,
            ).update(
                is_hidden=decision.groups[place, column],
                hidden_items=[
                    name for name, mask in decision.items.items() if mask[place, column]
                ],
            )


@pytest.mark.usefixtures("exact_shares")
def test_the_next_wave_hides_the_same_second_grade(staff, count):
    """One more person in grade 07, so that 08 would be the smallest other grade."""
    fall = count("first", 3, {"06": 4, "07": 10, "08": 11})
    assert shown(fall, staff.lincoln) == ["08"]
    winter = count("second", 1, {"06": 4, "07": 12, "08": 11})
    assert shown(winter, staff.lincoln) == ["08"]
    # Without the rule, grade 07 is shown, in which two people agreed before as well.
    # So two people of the four in grade 06 have agreed.
    forget(winter)
    assert shown(winter, staff.lincoln) == ["07"]
    school = ("school", staff.lincoln.pk)
    known = agreed(winter, school, "07") + agreed(fall, school, "08")
    assert agreed(fall, school) - known == 2


def test_a_district_shows_grades_although_nobody_is_left_in_one(staff, count):
    # Only Lincoln has a grade 05, and is left out.
    lincoln = {"05": 12, "06": 4, "07": 10, "08": 11}
    for name, hours_ago in (("first", 3), ("second", 2)):
        wave = count(name, hours_ago, lincoln)
        assert shown(wave, staff.lincoln) == ["08"]
        place = ("district", staff.riverside.pk)
        visible = {
            grade: visible_groups(wave, [place], "grade", grade)[place]
            for grade in ("05", "06", "07", "08")
        }
        assert [grade for grade, group in visible.items() if group] == [
            "06",
            "07",
            "08",
        ]


def agreed_in_district(administration, district):
    """Return how many agreed in grade 06; None if the district shows no grades."""
    place = ("district", district.pk)
    if visible_groups(administration, [place], "grade", "06")[place] is None:
        return None
    return agreed(administration, place, "06")


@pytest.mark.usefixtures("exact_shares")
def test_a_sum_of_schools_without_grades_stays_one_of_the_same_schools(
    staff, count, monkeypatch
):
    # No school of the district shows its grades, because Lincoln does not.
    monkeypatch.setattr("reports.suppression.attributes.MOST_LEFT_OUT", 0)
    adams = School.objects.create(code="adams", name="Adams", district=staff.riverside)
    lincoln = {"06": 4, "07": 12, "08": 12}
    first = count("first", 4, lincoln, [adams])
    assert shown(first, staff.lincoln) == []
    assert agreed_in_district(first, staff.riverside) == 6
    # Nobody in Adams takes part in the next wave, nor in the one after.
    waves = [count("second", 3, lincoln), count("third", 2, lincoln)]
    for wave in waves:
        assert agreed_in_district(wave, staff.riverside) is None
    last = count("fourth", 1, lincoln, [adams])
    assert agreed_in_district(last, staff.riverside) is None
    # Without the rule, the sums of two waves tell what grade 06 of Adams answered.
    for wave in waves:
        forget(wave)
        assert agreed_in_district(wave, staff.riverside) == 6 - 2


@pytest.mark.usefixtures("exact_shares")
def test_the_same_schools_are_summed_again(staff, count, monkeypatch):
    monkeypatch.setattr("reports.suppression.attributes.MOST_LEFT_OUT", 0)
    lincoln = {"06": 4, "07": 12, "08": 12}
    for name, hours_ago in (("first", 3), ("second", 2)):
        wave = count(name, hours_ago, lincoln)
        assert agreed_in_district(wave, staff.riverside) == 4
        hide_small_groups(wave)
        assert agreed_in_district(wave, staff.riverside) == 4


def test_a_group_that_was_too_small_stays_hidden_until_many_have_come(staff, count):
    count("first", 3, {"06": 4, "07": 10, "08": 30})
    winter = count("second", 2, {"06": 5, "07": 10, "08": 30})
    assert shown(winter, staff.lincoln) == ["08"]
    spring = count("third", 1, {"06": 10, "07": 15, "08": 30})
    assert shown(spring, staff.lincoln) == ["06", "07", "08"]
    forget(winter)
    assert shown(winter, staff.lincoln) == ["06", "07", "08"]


def test_grades_of_another_school_year_are_other_people(staff, count):
    count("first", 400 * 24, {"06": 4, "07": 10, "08": 30})
    later = count("second", 1, {"06": 5, "07": 10, "08": 30})
    assert shown(later, staff.lincoln) == ["06", "07", "08"]


def test_other_surveys_and_roles_are_no_waves(staff, count):
    count("first", 3, {"06": 4, "07": 10, "08": 30}, role="parent")
    later = count("second", 1, {"06": 5, "07": 10, "08": 30})
    assert shown(later, staff.lincoln) == ["06", "07", "08"]


def test_what_has_been_shown_is_not_hidden_because_of_another_wave(staff, count):
    winter = count("second", 1, {"06": 5, "07": 10, "08": 30})
    assert shown(winter, staff.lincoln) == ["06", "07", "08"]
    count("first", 3, {"06": 4, "07": 10, "08": 30})
    hide_small_groups(winter)
    assert shown(winter, staff.lincoln) == ["06", "07", "08"]


@pytest.mark.parametrize("most_updated", [0, storing.MOST_UPDATED])
def test_a_recount_hides_the_same_grades(
    staff, count, enrol, monkeypatch, most_updated
):
    monkeypatch.setattr(storing, "MOST_UPDATED", most_updated)
    fall = count("first", 3, {"06": 4, "07": 10, "08": 11})
    assert shown(fall, staff.lincoln) == ["08"]
    # Two people of the closed administration are counted later.
    for _number in range(2):
        answer(enrol(fall, staff.lincoln, grade="07"), {"safe": "2"})
    roll_up_results(fall, all_schools=True)
    hide_small_groups(fall)
    assert shown(fall, staff.lincoln) == ["08"]
    forget(fall)
    assert shown(fall, staff.lincoln) == ["07"]


def test_a_decision_is_the_same_again(staff, count):
    count("first", 3, {"06": 4, "07": 10, "08": 11})
    winter = count("second", 1, {"06": 7, "07": 11, "08": 10})
    before = list(GroupResults.objects.order_by("pk").values_list("is_hidden"))
    for _again in range(2):
        hide_small_groups(winter)
    assert ResultsRollUp.objects.get(pk=winter.pk).hidden_as_of
    assert before == list(GroupResults.objects.order_by("pk").values_list("is_hidden"))


def test_a_decision_reads_two_waves(staff, count, django_assert_num_queries):
    count("first", 3, {"06": 4, "07": 10, "08": 11})
    winter = count("second", 1, {"06": 7, "07": 11, "08": 10})
    with django_assert_num_queries(9):
        tables_of(winter)
