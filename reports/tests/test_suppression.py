"""Hide numbers that would identify people, on every page and in every file."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import Membership
from accounts.permissions import Permissions
from accounts.tests.logging_in import log_in
from reports.models import SchoolRate
from reports.rates import visible_rates
from reports.rates.progress_pace import needed_per_day
from reports.rates.rollup import roll_up
from reports.suppression.rates import (
    SMALLEST_GRADE,
    SMALLEST_HOUR,
    hidden_grades,
    hides_school,
    join_small_hours,
)
from reports.tests.conftest import invite
from survey.models import Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def small_grade(staff, students):
    """One finished person in grade 4, 30 people in grade 5 and 25 in grade 6."""
    invite(students, staff.lincoln, 1, grade="04", finished=1)
    invite(students, staff.lincoln, 30, grade="05", started=20, finished=17)
    invite(students, staff.lincoln, 25, grade="06", started=19, finished=13)
    roll_up()
    return students


FIGURES = ("eligible", "started", "finished", "rate (%)")


def grades_on_screen(client, school):
    body = client.get(f"/console/rates/schools/{school.pk}/").content.decode()
    cells = re.findall(r'<th scope="row">(\d+)</th>(.*?)</tr>', body, re.S)
    return {
        grade: tuple(re.findall(r'<td class="number[^>]*>([^<]*)', row))
        for grade, row in cells
    }


def grades_in_file(client, school):
    response = client.get(f"/console/rates/schools/{school.pk}/school.csv")
    rows = csv.DictReader(io.StringIO(response.content.decode("utf-8-sig")))
    return {
        row["grade"]: (
            row["eligible"],
            row["started"],
            row["finished"],
            row["rate (%)"],
        )
        for row in rows
        if row["grade"] != "all"
    }


def test_coordinators_do_not_see_a_grade_of_one_person(client, staff, small_grade):
    log_in(client, staff.chen)
    shown = {
        "4": ("1", "*", "*", "*"),
        "5": ("30", "20", "17", "56 %"),
        # If it were shown, 31 of the school minus 17 and 13 would be grade 4.
        "6": ("25", "*", "*", "*"),
    }
    assert grades_on_screen(client, staff.lincoln) == shown
    # Programs read files: there, a grade is its code.
    in_file = {
        f"0{key}": (*cells[:3], cells[3][:-2] or "*") for key, cells in shown.items()
    }
    assert grades_in_file(client, staff.lincoln) == in_file
    # The school itself is large enough.
    page = client.get(f"/console/rates/schools/{staff.lincoln.pk}/").content.decode()
    assert "31 of 56 finished, 40 started" in page


def test_people_who_see_responses_see_every_grade(client, staff, small_grade):
    for user in (staff.state, staff.dana, staff.analyst):
        log_in(client, user)
        assert grades_on_screen(client, staff.lincoln)["4"] == ("1", "1", "1", "100 %")
        assert grades_in_file(client, staff.lincoln)["04"] == ("1", "1", "1", "100")


def test_nothing_is_hidden_if_coordinators_may_see_who_has_finished(
    client, staff, small_grade
):
    small_grade.coordinators_see_finished = True
    small_grade.save()
    log_in(client, staff.chen)
    assert grades_on_screen(client, staff.lincoln)["4"] == ("1", "1", "1", "100 %")


def test_without_suppression_coordinators_would_see_the_small_grade(
    client, staff, small_grade, monkeypatch
):
    monkeypatch.setattr(visible_rates, "hidden_grades", lambda eligible: set())
    log_in(client, staff.chen)
    assert grades_on_screen(client, staff.lincoln)["4"] == ("1", "1", "1", "100 %")


@pytest.mark.parametrize(("role", "least"), [("student", 10), ("teacher", 8)])
def test_a_small_school_hides_what_was_started_and_finished(
    client, staff, administer, role, least
):
    few = administer("few", role)
    invite(few, staff.lincoln, least - 1, grade="04", started=6, finished=5)
    enough = administer("enough", role)
    invite(enough, staff.lincoln, least, grade="04", started=6, finished=5)
    roll_up()
    address = f"/console/rates/schools/{staff.lincoln.pk}/"

    log_in(client, staff.chen)
    page = client.get(address, {"administration": few.pk}).content.decode()
    assert "* of %s finished, * started" % (least - 1) in page
    assert "Too few people to show who has finished" in page
    # No chart either: its hours would show the same.
    assert "days-plot" not in page
    page = client.get(address, {"administration": enough.pk}).content.decode()
    assert f"5 of {least} finished, 6 started" in page
    # Nor here, where so few have started that a day would tell who.
    assert "days-plot" not in page
    many = administer("many", role)
    invite(many, staff.lincoln, 30, grade="04", started=22, finished=17)
    roll_up()
    page = client.get(address, {"administration": many.pk}).content.decode()
    assert "days-plot" in page

    log_in(client, staff.dana)
    page = client.get(address, {"administration": few.pk}).content.decode()
    assert f"5 of {least - 1} finished, 6 started" in page


@pytest.fixture
def two_schools(staff, students):
    """Ms Chen works in two schools, of which one is small."""
    Membership.objects.create(
        user=staff.chen, role="coordinator", school=staff.washington
    )
    invite(students, staff.lincoln, 30, started=22, finished=17)
    invite(students, staff.washington, 3, started=3, finished=2)
    roll_up()
    return students


def test_a_small_school_is_hidden_in_lists_files_and_charts(client, staff, two_schools):
    log_in(client, staff.chen)
    response = client.get("/console/rates/", follow=True)
    page = response.content.decode()
    row = page[page.index(">Washington<") :]
    cells = re.findall(r'<td class="number[^>]*>([^<]*)', row)
    assert cells[:4] == ["3", "*", "*", "*"]
    # No chart: there would be a single bar, as the other one is hidden.
    assert "places-plot" not in page
    # The total minus the school that is shown would be the hidden one.
    assert "19 of 33" not in page
    assert "days-plot" not in page
    file = client.get("/console/rates/schools.csv").content.decode("utf-8-sig")
    [washington] = [
        row
        for row in csv.DictReader(io.StringIO(file))
        if row["school"] == "Washington"
    ]
    assert (washington["started"], washington["finished"]) == ("*", "*")
    assert (washington["last start"], washington["needed"]) == ("*", "")

    # There is something to hide.
    log_in(client, staff.dana)
    assert "19 of 33" in client.get("/console/rates/", follow=True).content.decode()


@pytest.mark.parametrize("sort", ["started", "finished", "rate", "missing", "quiet"])
@pytest.mark.parametrize("done", [0, 3])
def test_sorting_does_not_reveal_hidden_numbers(client, staff, two_schools, sort, done):
    def order():
        body = client.get(f"/console/rates/schools/?sort={sort}").content.decode()
        return re.findall(r'id="school-\d+"[^>]*>([^<]+)<', body)

    log_in(client, staff.chen)
    first = order()
    SchoolRate.objects.filter(school=staff.washington).update(
        started=done, finished=done, last_started_at=None
    )
    assert order() == first


@pytest.mark.parametrize("state", list(visible_rates.STATES))
def test_filters_do_not_reveal_hidden_numbers(client, staff, two_schools, state):
    def schools_listed():
        page = client.get(f"/console/rates/schools/?state={state}")
        return page.content.decode().count('id="school-')

    log_in(client, staff.chen)
    first = schools_listed()
    SchoolRate.objects.filter(school=staff.washington).update(
        started=0, finished=0, last_started_at=None
    )
    assert schools_listed() == first


def test_list_and_page_of_a_school_hide_the_same_numbers(staff, administer):
    """The list hides in SQL, and the page in Python."""
    from accounts.permissions import Permissions

    for role in Role.values:
        for eligible in (0, 1, 7, 8, 9, 10, 11):
            administration = administer(f"{role}-{eligible}", role)
            invite(administration, staff.lincoln, eligible, finished=eligible)
            roll_up([administration])
            for user in (staff.chen, staff.dana):
                permissions = Permissions(user)
                [row] = visible_rates.rates_for(permissions, administration).filter(
                    school=staff.lincoln
                )
                [line] = visible_rates.lines_of_school(
                    permissions, staff.lincoln, [administration]
                )
                assert visible_rates.school_line(row, administration) == line
                hidden = user == staff.chen and hides_school(role, eligible)
                assert line.is_hidden == hidden


# The rule for grades


@given(st.lists(st.integers(0, 40), max_size=9))
def test_hidden_grades_cannot_be_calculated_by_subtraction(eligible):
    hidden = hidden_grades(eligible)
    for position, size in enumerate(eligible):
        if 0 < size < SMALLEST_GRADE:
            assert position in hidden
    if hidden and sum(eligible) >= SMALLEST_GRADE:
        # The school's number minus the grades that are shown.
        rest = [eligible[position] for position in hidden]
        assert sum(rest) >= SMALLEST_GRADE
        assert len(rest) > 1 or len([number for number in eligible if number]) == 1


@pytest.mark.parametrize(
    ("eligible", "hidden"),
    [
        ([], set()),
        ([30, 25], set()),
        ([10, 10], set()),
        ([9, 30, 25], {0, 2}),
        # Together they are 10 people, and hide each other.
        ([5, 5, 30], {0, 1}),
        ([4, 5, 30, 40], {0, 1, 2}),
        ([3, 30], {0, 1}),
        ([0, 3, 30, 40], {1, 2}),
    ],
)
def test_the_smallest_other_grade_is_hidden_as_well(eligible, hidden):
    assert hidden_grades(eligible) == hidden


hourly = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), max_size=40)


@given(counts=hourly)
def test_hours_show_nobody_or_enough_people(counts):
    first = datetime(2027, 3, 1, tzinfo=UTC)
    hours = [(first + timedelta(hours=n), *two) for n, two in enumerate(counts)]
    shown = join_small_hours(hours)
    for kind in (1, 2):
        cells = [hour[kind] for hour in shown]
        assert all(cell == 0 or cell >= SMALLEST_HOUR for cell in cells)
        # The total minus the hours is nobody, unless no hour is shown at all.
        total = sum(hour[kind] for hour in hours)
        assert sum(cells) == (total if total >= SMALLEST_HOUR else 0)
        # Nobody is shown before the hour in which they started or finished,
        # except the last few.
        before = 0
        for moment, *numbers in shown[:-1]:
            before += numbers[kind - 1]
            known = sum(hour[kind] for hour in hours if hour[0] <= moment)
            assert before <= known + SMALLEST_HOUR


def hourly_cells(client, school) -> set[int]:
    body = client.get(f"/console/rates/schools/{school.pk}/").content.decode()
    [table] = re.findall(r'<details id="hours"[^>]*>(.*?)</details>', body, re.S)
    numbers = re.findall(r'<td class="number">(\d+)</td>', table)
    tooltips = re.findall(r"(\d+) started, (\d+) finished", table)
    assert tooltips
    return {int(n) for n in numbers} | {int(n) for pair in tooltips for n in pair}


def test_coordinators_see_no_hour_of_a_single_person(client, staff, students):
    noon = datetime(2027, 3, 1, 18, tzinfo=UTC)
    invite(students, staff.lincoln, 40, grade="05")
    for hour, people in ((0, 12), (1, 1), (3, 2)):
        invite(
            students,
            staff.lincoln,
            people,
            grade="05",
            finished=people,
            at=noon + timedelta(hours=hour),
        )
    roll_up()
    log_in(client, staff.chen)
    assert hourly_cells(client, staff.lincoln) == {15}
    # People who may see the answers see every hour.
    log_in(client, staff.dana)
    assert hourly_cells(client, staff.lincoln) == {0, 1, 2, 12}


def test_coordinators_see_no_time_and_no_number_of_a_single_persons_day(
    client, staff, students
):
    """ "1 today" and "last start at 12:07" are about one person."""
    yesterday = timezone.now() - timedelta(days=1)
    invite(students, staff.lincoln, 40, grade="05")
    invite(students, staff.lincoln, 12, grade="05", finished=12, at=yesterday)
    [late] = invite(students, staff.lincoln, 1, grade="05", finished=1)
    roll_up()
    address = f"/console/rates/schools/{staff.lincoln.pk}/"
    for user, today, exact in ((staff.chen, None, False), (staff.dana, 1, True)):
        log_in(client, user)
        [line] = visible_rates.lines_of_school(
            Permissions(user), staff.lincoln, [students]
        )
        [row] = visible_rates.rates_for(Permissions(user), students).filter(
            school=staff.lincoln
        )
        assert visible_rates.school_line(row, students) == line
        assert (line.today, line.is_exact) == (today, exact)
        assert (line.last_started_at == late.started_at) is exact
        assert line.pace
        # Today's number is not to be calculated from what is missing either.
        assert line.pace.per_day == needed_per_day(
            14 if today is None else 15,
            timezone.localdate(),
            timezone.localdate(students.closes_at),
        )
        # The school days of the last week, with the hours of the chart.
        [panel] = client.get(address).context["panels"]
        assert panel.line.last_week.finished == (12 if exact else 13)
