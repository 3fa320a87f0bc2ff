"""Changes of rosters never show in the figures what one person has done."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.permissions import Permissions
from accounts.tests.logging_in import log_in
from reports.console.rates.board import role_panels
from reports.models import GradeRate, RollUp, SchoolRate
from reports.rates import counting_groups
from reports.rates.rollup import roll_up
from survey.models import CountedGroup, Respondent
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

HEADER = "district,school,role,grade,student ID,given name,family name"
TEN = 10


class Roster:
    """A coordinator's file of Lincoln: student ID and grade."""

    def __init__(self, administration, **grades):
        self.administration = administration
        self.grades = {}
        self.last = 100
        for grade, people in grades.items():
            self.add(grade.removeprefix("g"), people)

    def add(self, grade, people):
        ids = [f"{self.last + number}" for number in range(people)]
        self.last += people
        self.grades.update(dict.fromkeys(ids, grade))
        return ids

    def move(self, ids, grade):
        self.grades.update(dict.fromkeys(ids, grade))

    def upload(self):
        lines = [
            f"Riverside,Lincoln,student,{grade},{student},First,Last"
            for student, grade in self.grades.items()
        ]
        report = run_import(self.administration, HEADER, *lines, complete_for="schools")
        assert report.imported, report.rejections


def open_now(administration):
    type(administration).objects.filter(pk=administration.pk).update(
        opens_at=timezone.now() - timedelta(minutes=5)
    )
    administration.refresh_from_db()
    roll_up()


def finish(administration, ids):
    moment = timezone.now()
    Respondent.objects.filter(
        administration=administration, identity__external_id__in=ids
    ).update(started_at=moment, completed_at=moment)


def wait_a_day():
    """Let a day pass: what was stored is a day older."""
    day = timedelta(days=1)
    RollUp.objects.update(groups_as_of=F("groups_as_of") - day)
    CountedGroup.objects.update(changed_at=F("changed_at") - day)
    roll_up()


@pytest.fixture
def planned(administer):
    """An administration that has not opened yet."""
    return administer(opens_at=timezone.now() + timedelta(days=1))


@pytest.fixture
def roster(staff, planned):
    new_roster = Roster(planned, g6=20, g7=21, g8=30)
    new_roster.upload()
    open_now(planned)
    return new_roster


def grades(administration):
    rates = GradeRate.objects.filter(administration=administration)
    return {rate.grade: (rate.eligible, rate.finished) for rate in rates}


def school_rate(administration):
    return SchoolRate.objects.get(administration=administration, school__name="Lincoln")


# Stories


@pytest.mark.sqlite
def test_one_persons_change_of_grade_does_not_count(client, staff, planned, roster):
    eighth = [student for student, grade in roster.grades.items() if grade == "8"]
    finish(planned, eighth[:12])
    roll_up()
    log_in(client, staff.chen)
    address = f"/console/rates/schools/{staff.lincoln.pk}/school.csv"
    before = client.get(address).content.splitlines()

    roster.move(eighth[:1], "6")
    roster.upload()
    assert Respondent.objects.get(identity__external_id=eighth[0]).grade == "06"
    for _ in range(3):
        wait_a_day()
        after = client.get(address).content.splitlines()
        # All but the time at the end of each line.
        assert [line[:-8] for line in after] == [line[:-8] for line in before]
    page = client.get(f"/console/rates/schools/{staff.lincoln.pk}/").content.decode()
    assert "1 change of the roster not counted yet" in page


@pytest.mark.sqlite
def test_ten_changes_count_on_the_next_day(planned, roster):
    eighth = [student for student, grade in roster.grades.items() if grade == "8"]
    finish(planned, eighth[:12])
    for number in (4, 9, 10):
        roster.move(eighth[:number], "6")
        roster.upload()
        roll_up()
        assert grades(planned)["08"] == (30, 12)
        assert school_rate(planned).waiting == number
        if number < TEN:
            wait_a_day()
            assert grades(planned)["08"] == (30, 12)
    wait_a_day()
    assert grades(planned) == {"06": (30, 10), "07": (21, 0), "08": (20, 2)}
    assert school_rate(planned).waiting == 0
    as_of = RollUp.objects.get().groups_as_of
    assert timezone.localtime(as_of).hour == 0


def test_nobody_is_left_behind_alone(planned, roster):
    seventh = [student for student, grade in roster.grades.items() if grade == "7"]
    # One of 21 stays: 20 who left, subtracted, would show that one.
    roster.move(seventh[:20], "6")
    roster.upload()
    wait_a_day()
    assert grades(planned)["07"] == (21, 0)
    roster.move(seventh, "6")
    roster.upload()
    wait_a_day()
    assert grades(planned) == {"06": (41, 0), "08": (30, 0)}


def test_a_wrong_grade_of_a_whole_school_is_corrected_at_once(planned, roster):
    roster.move(list(roster.grades), "9")
    roster.upload()
    wait_a_day()
    assert grades(planned) == {"09": (71, 0)}


@pytest.mark.sqlite
def test_people_who_come_and_go_wait_too(planned, roster):
    roster.add("6", 9)
    [leaver] = [student for student, grade in roster.grades.items() if grade == "6"][:1]
    del roster.grades[leaver]
    roster.upload()
    wait_a_day()
    assert school_rate(planned).eligible == 71
    roster.grades[leaver] = "6"
    roster.add("6", 1)
    roster.upload()
    wait_a_day()
    # The ten new people, and the one who never left.
    assert (school_rate(planned).eligible, grades(planned)["06"]) == (81, (30, 0))
    assert school_rate(planned).waiting == 0


def test_a_second_change_does_not_forget_the_counted_group(planned, roster):
    [student] = [
        student_id for student_id, grade in roster.grades.items() if grade == "8"
    ][:1]
    for grade in ("6", "7"):
        roster.move([student], grade)
        roster.upload()
    counted = CountedGroup.objects.get()
    assert (counted.grade, counted.school.name, counted.cohort) == ("08", "Lincoln", 0)


def test_rosters_before_the_opening_count_at_once(staff, planned):
    roster = Roster(planned, g7=12)
    roster.upload()
    roster.move(list(roster.grades)[:1], "8")
    roster.upload()
    assert not CountedGroup.objects.exists()
    roll_up()
    assert grades(planned) == {"07": (11, 0), "08": (1, 0)}


def test_changes_count_at_once_where_the_list_of_people_shows_who_has_finished(
    planned, roster
):
    planned.coordinators_see_finished = True
    planned.save()
    [student] = [
        student_id for student_id, grade in roster.grades.items() if grade == "8"
    ][:1]
    finish(planned, [student])
    roster.move([student], "6")
    roster.upload()
    roll_up()
    assert grades(planned)["06"] == (21, 1)


def test_changes_wait_while_a_roster_is_applied(planned, roster, monkeypatch):
    roster.move(list(roster.grades), "9")
    roster.upload()
    with monkeypatch.context() as busy:
        busy.setattr(counting_groups, "_lock", lambda administration: False)
        wait_a_day()
        assert "09" not in grades(planned)
    roll_up()
    assert grades(planned) == {"09": (71, 0)}


def test_the_first_people_of_a_school_count_at_once(staff, planned):
    """They were not too late: nobody's number can be subtracted from theirs."""
    open_now(planned)
    roster = Roster(planned, g6=20, g7=3, g8=20)
    roster.upload()
    roll_up()
    assert school_rate(planned).eligible == 43
    roster.add("7", 30)
    roster.upload()
    wait_a_day()
    [panel] = role_panels(Permissions(staff.chen), staff.lincoln, [planned])
    assert [line.name for line in panel.grades if line.is_hidden] == ["06", "07"]
    assert panel.line.eligible == 73


def test_sizes_are_not_taken_from_half_a_roster(planned, monkeypatch):
    open_now(planned)
    roster = Roster(planned, g7=3)
    roster.upload()
    with monkeypatch.context() as busy:
        busy.setattr(counting_groups, "_lock", lambda administration: False)
        roll_up()
    assert (school_rate(planned).eligible, school_rate(planned).at_opening) == (3, 0)
    roll_up()
    assert school_rate(planned).at_opening == 3


def test_invented_people_make_no_small_grade_visible(staff, planned):
    roster = Roster(planned, g6=20, g7=21, g8=1)
    [maya] = [student for student, grade in roster.grades.items() if grade == "8"]
    roster.upload()
    open_now(planned)
    finish(planned, [maya])
    roster.add("8", 30)
    roster.upload()
    wait_a_day()
    [panel] = role_panels(Permissions(staff.chen), staff.lincoln, [planned])
    assert [line.name for line in panel.grades if line.is_hidden] == ["06", "08"]
    assert panel.line.eligible == 72


def test_hidden_grades_stay_together(planned):
    """Grade 8 is hidden with 7; without 7 the rest of both would be grade 8."""
    roster = Roster(planned, g6=40, g7=12, g8=3)
    roster.upload()
    open_now(planned)
    roster.grades = {
        student: grade for student, grade in roster.grades.items() if grade != "7"
    }
    roster.upload()
    wait_a_day()
    assert (school_rate(planned).eligible, school_rate(planned).waiting) == (55, 12)
