from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from accounts.models import PlaceSettings
from accounts.permissions import Permissions
from reports.models import SchoolRate
from reports.rates.rollup import roll_up
from reports.rates.thresholds import (
    ThresholdProgress,
    ThresholdState,
    needed,
    thresholds_of_schools,
)
from reports.rates.visible_rates import lines_of_school
from reports.tests.conftest import invite


def test_words_say_how_many_more_people_are_needed():
    assert (
        ThresholdProgress("student", 100, 36).words == "14 more students to reach 50 %"
    )
    assert ThresholdProgress("student", 100, 49).words == "1 more student to reach 50 %"
    assert ThresholdProgress("student", 100, 50).words == "Threshold reached"


def test_thresholds_of_many_schools():
    students = partial(thresholds_of_schools, "student")
    assert students((), has_usual=False) == ""
    assert students((), has_usual=True) == "50 % in each school"
    assert students((60, 70), has_usual=False) == "60 % to 70 % in each school"
    assert students((60,), has_usual=True) == "50 % to 60 % in each school"
    assert thresholds_of_schools("parent", (), has_usual=True) == (
        "20 % of the number of students, in each school"
    )


@pytest.mark.parametrize(
    ("role", "eligible", "students", "expected"),
    [
        # At least 50 % of the students, and at least 10.
        ("student", 0, None, None),
        ("student", 1, None, None),
        ("student", 9, None, None),
        ("student", 10, None, 10),
        ("student", 11, None, 10),
        ("student", 19, None, 10),
        ("student", 20, None, 10),
        ("student", 21, None, 11),
        ("student", 22, None, 11),
        ("student", 101, None, 51),
        # At least 50 % of the teachers, and at least 8.
        ("teacher", 0, None, None),
        ("teacher", 7, None, None),
        ("teacher", 8, None, 8),
        ("teacher", 15, None, 8),
        ("teacher", 16, None, 8),
        ("teacher", 17, None, 9),
        # 20 % of the number of students.
        ("parent", 300, 100, 20),
        ("parent", 300, 101, 21),
        ("parent", 300, 104, 21),
        ("parent", 300, 105, 21),
        ("parent", 300, 106, 22),
        ("parent", 300, 1, 1),
        ("parent", 20, 100, 20),
        ("parent", 19, 100, None),
        ("parent", 300, 0, None),
        ("parent", 300, None, None),
        ("parent", 0, 100, None),
    ],
)
def test_needed_for_each_role_and_size(role, eligible, students, expected):
    assert needed(role, eligible, students) == expected


@pytest.mark.parametrize(
    ("role", "eligible", "finished", "students", "state"),
    [
        ("student", 10, 9, None, ThresholdState.BELOW),
        ("student", 10, 10, None, ThresholdState.REACHED),
        ("student", 9, 9, None, ThresholdState.TOO_FEW),
        # 49 % and 50 %. More than half is not enough if it is less than ten.
        ("student", 100, 49, None, ThresholdState.BELOW),
        ("student", 100, 50, None, ThresholdState.REACHED),
        ("student", 14, 9, None, ThresholdState.BELOW),
        ("student", 1001, 500, None, ThresholdState.BELOW),
        ("student", 1001, 501, None, ThresholdState.REACHED),
        ("student", 0, 0, None, ThresholdState.NOT_INVITED),
        ("teacher", 8, 7, None, ThresholdState.BELOW),
        ("teacher", 8, 8, None, ThresholdState.REACHED),
        ("teacher", 7, 7, None, ThresholdState.TOO_FEW),
        ("teacher", 14, 7, None, ThresholdState.BELOW),
        ("teacher", 0, 0, None, ThresholdState.NOT_INVITED),
        ("parent", 90, 19, 100, ThresholdState.BELOW),
        ("parent", 90, 20, 100, ThresholdState.REACHED),
        ("parent", 5, 5, 100, ThresholdState.TOO_FEW),
        ("parent", 90, 60, None, ThresholdState.UNKNOWN),
        ("parent", 0, 0, 100, ThresholdState.NOT_INVITED),
    ],
)
def test_state_for_each_role_and_size(role, eligible, finished, students, state):
    assert ThresholdProgress(role, eligible, finished, students).state is state


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (
            ThresholdProgress("student", 15, 7),
            "3 more students to reach 10, the minimum for a",
        ),
        (ThresholdProgress("student", 2400, 0), "1,200 more students to reach 50 %"),
        (
            ThresholdProgress("student", 7, 7),
            "Too few for a report: 7 students are invited, and 10 have to finish",
        ),
        (
            ThresholdProgress("student", 1, 0),
            "Too few for a report: 1 student is invited, and 10 have to finish",
        ),
        (
            ThresholdProgress("teacher", 12, 7),
            "1 more teacher to reach 8, the minimum for a",
        ),
        (ThresholdProgress("teacher", 30, 7), "8 more teachers to reach 50 %"),
        (
            ThresholdProgress("parent", 300, 84, 480),
            "12 more parents to reach 20 % of the 480 students",
        ),
        (
            ThresholdProgress("parent", 5, 0, 480),
            "Too few for a report: 5 parents are invited, and 96 have to finish",
        ),
        (ThresholdProgress("parent", 300, 0, None), "Threshold unknown"),
        (ThresholdProgress("student", 0, 0), "No one is invited yet"),
    ],
)
def test_each_state_has_its_sentence(progress, words):
    assert progress.words.startswith(words)


@pytest.mark.django_db
def test_a_school_needs_what_its_place_has_set(staff, students):
    for school in (staff.lincoln, staff.washington, staff.roosevelt):
        invite(students, school, 40, finished=25)
    PlaceSettings.objects.create(student_percent=75)
    PlaceSettings.objects.create(district=staff.riverside, student_percent=60)
    PlaceSettings.objects.create(school=staff.lincoln, student_percent=90)
    roll_up([students])
    assert needed_by_school() == {"Lincoln": 36, "Washington": 24, "Roosevelt": 30}
    line = lines_of_school(Permissions(staff.dana), staff.lincoln, [students])[0]
    assert line.words == "11 more students to reach 90 %"


@pytest.mark.django_db
def test_closed_surveys_keep_their_thresholds(staff, students):
    invite(students, staff.lincoln, 40)
    roll_up([students])
    PlaceSettings.objects.create(student_percent=75)
    students.closes_at = timezone.now() - timedelta(hours=1)
    students.save(update_fields=["closes_at"])
    roll_up([students])
    assert needed_by_school()["Lincoln"] == 20


def needed_by_school():
    rates = SchoolRate.objects.filter(eligible__gt=0)
    return dict(rates.values_list("school__name", "needed"))
