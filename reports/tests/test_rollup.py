from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg2
import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import School
from reports.models import Curve, GradeRate, RollUp, SchoolRate
from reports.rates import rollup, rollup_query
from reports.rates.rollup import due, roll_up
from reports.tests.conftest import invite
from survey.database import advisory_locks
from survey.models import Job, Respondent, Role, Wave
from survey.tests.rosters.roster_imports import run_import
from survey.tests.two_servers import wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def figures(administration):
    rates = SchoolRate.objects.filter(administration=administration)
    return {
        rate.school.name: (rate.eligible, rate.started, rate.finished) for rate in rates
    }


def test_people_are_counted_once_in_their_school_and_grade(staff, students):
    invite(students, staff.lincoln, 12, grade="07", started=5, finished=3)
    invite(students, staff.lincoln, 20, grade="08", finished=20)
    invite(students, staff.roosevelt, 4, grade="07")

    result = roll_up()

    assert result.administrations == 1
    assert figures(students) == {
        "Lincoln": (32, 25, 23),
        # Listed with 0, so that the missing roster is noticed.
        "Washington": (0, 0, 0),
        "Roosevelt": (4, 0, 0),
    }
    lincoln = SchoolRate.objects.get(school=staff.lincoln)
    assert (lincoln.needed, lincoln.district) == (16, staff.riverside)
    grades = GradeRate.objects.filter(school=staff.lincoln).order_by("grade")
    assert list(grades.values_list("grade", "eligible", "started", "finished")) == [
        ("07", 12, 5, 3),
        ("08", 20, 20, 20),
    ]
    assert timezone.now() - students.roll_up.as_of < timedelta(seconds=30)


def test_a_second_roll_up_changes_no_row(staff, students):
    invite(students, staff.lincoln, 12, grade="07", finished=3)
    assert roll_up().rows_changed > 0
    before = list(
        SchoolRate.objects.values_list("pk", "last_started_at").order_by("pk")
    )

    assert roll_up().rows_changed == 0
    after = list(SchoolRate.objects.values_list("pk", "last_started_at").order_by("pk"))
    assert after == before


def test_a_roll_up_says_when_figures_have_changed(staff, students):
    invite(students, staff.lincoln, 3, finished=1)
    roll_up([students])
    first = RollUp.objects.get()
    roll_up([students])
    second = RollUp.objects.get()
    assert second.as_of > first.as_of
    assert second.changed_at == first.changed_at == first.as_of
    invite(students, staff.lincoln, 1)
    roll_up([students])
    third = RollUp.objects.get()
    assert third.changed_at == third.as_of > second.as_of


def test_a_finish_changes_the_rows_of_its_school_only(staff, students):
    [maya, *_] = invite(students, staff.lincoln, 12, grade="07", started=4)
    invite(students, staff.roosevelt, 12, grade="07", started=4)
    roll_up()
    Respondent.objects.filter(pk=maya.pk).update(completed_at=timezone.now())

    # The school, its grade, and three curves: school, district, all.
    assert roll_up().rows_changed == 5
    assert figures(students)["Lincoln"] == (12, 4, 1)


def test_withdrawn_people_are_not_counted(staff, students):
    people = invite(students, staff.lincoln, 12, grade="07", finished=12)
    roll_up()
    Respondent.objects.filter(pk__in=[person.pk for person in people[:5]]).update(
        withdrawn_at=timezone.now()
    )

    roll_up()
    assert figures(students)["Lincoln"] == (7, 7, 7)
    curve = Curve.objects.get(level="school", place_id=staff.lincoln.pk)
    assert sum(hour[2] for hour in json.loads(curve.hours)) == 7


def test_people_who_moved_count_in_their_new_school_only(staff, students):
    [maya] = invite(students, staff.lincoln, 1, grade="07", finished=1)
    roll_up()
    Respondent.objects.filter(pk=maya.pk).update(school=staff.washington, grade="08")

    roll_up()
    rates = figures(students)
    assert (rates["Lincoln"], rates["Washington"]) == ((0, 0, 0), (1, 1, 1))
    # The empty school has no grades and no curve.
    assert not GradeRate.objects.filter(school=staff.lincoln).exists()
    assert not Curve.objects.filter(level="school", place_id=staff.lincoln.pk).exists()


def test_curves_have_starts_and_finishes_by_hour(staff, students):
    nine = datetime(2026, 11, 16, 15, 10, tzinfo=UTC)
    people = invite(students, staff.lincoln, 3, started=3, at=nine)
    Respondent.objects.filter(pk=people[0].pk).update(
        completed_at=nine + timedelta(minutes=40)
    )
    Respondent.objects.filter(pk=people[1].pk).update(
        completed_at=nine + timedelta(minutes=60)
    )
    roll_up()

    hour = int(nine.replace(minute=0).timestamp())
    expected = [[hour, 3, 1], [hour + 3600, 0, 1]]
    for level, place in (
        ("school", staff.lincoln.pk),
        ("district", staff.riverside.pk),
        ("all", 0),
    ):
        curve = Curve.objects.get(level=level, place_id=place)
        assert json.loads(curve.hours) == expected


def test_hours_begin_at_full_hours_of_the_states_clocks(staff, students, settings):
    """India is 5½ hours ahead of UTC."""
    moment = datetime(2026, 11, 16, 5, 45, tzinfo=UTC)
    invite(students, staff.lincoln, 1, started=1, at=moment)
    settings.TIME_ZONE = "Asia/Kolkata"
    roll_up()

    [[hour, *_]] = json.loads(Curve.objects.get(level="all").hours)
    assert datetime.fromtimestamp(hour, ZoneInfo("Asia/Kolkata")).hour == 11
    assert datetime.fromtimestamp(hour, ZoneInfo("Asia/Kolkata")).minute == 0


def test_today_begins_at_local_midnight(staff, students):
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    invite(students, staff.lincoln, 2, finished=2, at=midnight)
    invite(
        students, staff.lincoln, 3, finished=3, at=midnight - timedelta(microseconds=1)
    )
    roll_up()
    assert SchoolRate.objects.get(school=staff.lincoln).finished_today == 2


def test_grades_of_teachers_are_not_stored(staff, administer):
    teachers = administer("teachers-2027", Role.TEACHER)
    invite(teachers, staff.lincoln, 9, grade="07", finished=8)
    roll_up()

    assert figures(teachers)["Lincoln"] == (9, 8, 8)
    assert not GradeRate.objects.filter(administration=teachers).exists()


def test_parents_need_a_fifth_of_the_students_of_their_wave(staff, administer):
    spring = Wave.objects.create(name="Spring 2027")
    students = administer("students-2027", wave=spring)
    parents = administer("parents-2027", Role.PARENT, wave=spring)
    other_year = administer(
        "students-2026", wave=Wave.objects.create(name="Spring 2026")
    )
    invite(students, staff.lincoln, 101)
    invite(other_year, staff.lincoln, 7)
    invite(parents, staff.lincoln, 40)
    invite(parents, staff.roosevelt, 40)
    roll_up()

    rates = SchoolRate.objects.filter(administration=parents)
    assert rates.get(school=staff.lincoln).students == 101
    assert rates.get(school=staff.lincoln).needed == 21
    # Without students in this wave there is no share to take.
    assert rates.get(school=staff.roosevelt).needed is None


def test_schools_of_the_offer_are_listed_without_people(staff, administer):
    of_district = administer("a", district=staff.riverside)
    by_school, by_district = administer("b"), administer("c")
    by_school.schools.add(staff.roosevelt)
    by_district.districts.add(staff.lakeside)
    # People on the roster of another school count there all the same.
    invite(by_school, staff.lincoln, 2)
    roll_up()

    assert set(figures(of_district)) == {"Lincoln", "Washington"}
    assert figures(by_school) == {"Roosevelt": (0, 0, 0), "Lincoln": (2, 0, 0)}
    assert set(figures(by_district)) == {"Roosevelt"}


def add_schools_by_roster(administration):
    header = "district,school,student ID,given name"
    rows = (f"riverside,{code},{code},Ann" for code in ("new 1", "new 2"))
    report = run_import(administration, header, *rows)
    assert len(report.schools_created) == 2


def test_schools_that_a_roster_adds_are_not_listed_elsewhere(staff, administer):
    adding, open_one, chosen = administer("a"), administer("b"), administer("c")
    closed = administer("d", closes_at=timezone.now() - timedelta(hours=1))
    later = administer(
        "e",
        opens_at=timezone.now() + timedelta(days=1),
        closes_at=timezone.now() + timedelta(days=2),
    )
    before = {"Lincoln", "Washington", "Roosevelt"}
    new = {"new 1", "new 2"}
    add_schools_by_roster(adding)
    chosen.schools.add(School.objects.get(code="new 1"))
    roll_up()

    assert set(figures(adding)) == before | new
    assert set(figures(open_one)) == set(figures(closed)) == before
    assert set(figures(chosen)) == {"new 1"}
    assert set(figures(later)) == before | new
    invite(open_one, School.objects.get(code="new 2"), 3)
    roll_up()
    assert set(figures(open_one)) == before | {"new 2"}


def test_schools_of_other_rosters_would_lack_a_roster(staff, administer):
    adding, other_roster = administer("a"), administer("b")
    add_schools_by_roster(adding)
    School.objects.update(added_at=None)
    roll_up()
    assert figures(other_roster)["new 1"] == (0, 0, 0)


def test_a_school_that_closes_stays_in_administrations_that_have_ended(
    staff, administer
):
    ended = administer("a", closes_at=timezone.now() - timedelta(hours=1))
    running = administer("b")
    School.objects.filter(pk=staff.washington.pk).update(closed_at=timezone.now())
    roll_up()
    assert "Washington" in figures(ended)
    assert "Washington" not in figures(running)


# What is due when


def set_counted(administration, **ago):
    moment = timezone.now() - timedelta(**ago)
    RollUp.objects.update_or_create(
        administration=administration, defaults={"as_of": moment, "written_at": moment}
    )


def test_open_administrations_are_always_due_and_closed_ones_once_more(administer):
    now = timezone.now()
    running = administer("open")
    just_closed = administer("just closed", closes_at=now - timedelta(minutes=5))
    closed = administer("closed", closes_at=now - timedelta(hours=5))
    early = administer("early", opens_at=now + timedelta(days=5))
    new = administer("new", opens_at=now + timedelta(days=5))
    for administration in (running, just_closed, closed, early):
        set_counted(administration, minutes=1)
    assert due() == [running, just_closed, new]

    # Last counted when people could still finish.
    set_counted(closed, hours=5, minutes=-10)
    assert closed in due()
    set_counted(closed, hours=4)
    assert closed not in due()
    set_counted(early, minutes=61)
    assert early in due()


def test_closed_administrations_are_due_after_a_roster_was_applied(administer):
    now = timezone.now()
    closed = administer("closed", closes_at=now - timedelta(days=2))
    set_counted(closed, minutes=10)
    assert due() == []
    ended = {"state": Job.State.DONE, "ended_at": now - timedelta(minutes=5)}
    Job.objects.create(kind="roster.check", **ended)
    assert due() == []
    Job.objects.create(kind="roster.apply", **ended)
    assert due() == [closed]


def test_figures_of_a_replica_further_behind_are_ignored(staff, students, monkeypatch):
    invite(students, staff.lincoln, 3, finished=2)
    roll_up()
    newer = students.roll_up.as_of
    Respondent.objects.update(completed_at=None)
    counted = rollup_query.count

    def late(chosen):
        as_of, numbers = counted(chosen)
        return as_of - timedelta(hours=1), numbers

    monkeypatch.setattr(rollup_query, "count", late)
    assert roll_up().rows_changed == 0
    assert figures(students)["Lincoln"] == (3, 2, 2)
    assert RollUp.objects.get().as_of == newer


def test_a_roll_up_that_breaks_leaves_nothing(staff, students, monkeypatch):
    invite(students, staff.lincoln, 3, finished=2)
    write = rollup.synchronise

    def broken(model, *args):
        changed = write(model, *args)
        assert model is not Curve, "the disk is full"
        return changed

    with monkeypatch.context() as patched:
        patched.setattr(rollup, "synchronise", broken)
        with pytest.raises(AssertionError, match="the disk is full"):
            roll_up()
    assert not SchoolRate.objects.exists()
    assert not RollUp.objects.exists()
    # Without the transaction a part of it would remain.
    monkeypatch.setattr(
        rollup,
        "synchronise",
        lambda model, *args: write(model, *args) if model is SchoolRate else 0,
    )
    roll_up()
    assert SchoolRate.objects.exists()
    assert not Curve.objects.exists()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="locks of PostgreSQL")
def test_two_processes_do_not_roll_up_at_once(staff, students):
    invite(students, staff.lincoln, 3)
    parameters = connection.get_connection_params()
    rival = psycopg2.connect(
        host=parameters["host"],
        port=5432,
        dbname=connection.settings_dict["NAME"],
        user=parameters["user"],
    )
    try:
        with rival.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [advisory_locks.ROLLUP])
        assert roll_up().administrations == 0
        assert not SchoolRate.objects.exists()
    finally:
        # When a process dies, its lock is released.
        rival.close()
    wait_until(lambda: roll_up().administrations == 1)


# Compared with a slow count


def counted_one_by_one(administration):
    """Return the same figures, counted person by person."""
    schools, grades, hours = {}, {}, {}
    for person in administration.respondents.filter(withdrawn_at=None):
        done = (1, person.started_at is not None, person.completed_at is not None)
        for counts, key in (
            (schools, person.school_id),
            (grades, (person.school_id, person.grade)),
        ):
            counts[key] = tuple(
                a + b for a, b in zip(counts.get(key, (0, 0, 0)), done, strict=True)
            )
        for place in ((person.school_id,), ()):
            for column, moment in enumerate((person.started_at, person.completed_at)):
                if moment is not None:
                    hour = int(moment.timestamp()) // 3600 * 3600
                    both = hours.setdefault(place, {}).setdefault(hour, [0, 0])
                    both[column] += 1
    return schools, grades, hours


def stored(administration):
    rates = SchoolRate.objects.filter(administration=administration, eligible__gt=0)
    grades = GradeRate.objects.filter(administration=administration)
    curves = Curve.objects.filter(administration=administration)
    return (
        {
            rate.school_id: (rate.eligible, rate.started, rate.finished)
            for rate in rates
        },
        {
            (grade.school_id, grade.grade): (
                grade.eligible,
                grade.started,
                grade.finished,
            )
            for grade in grades
        },
        {
            () if curve.level == "all" else (curve.place_id,): {
                hour: numbers for hour, *numbers in json.loads(curve.hours)
            }
            for curve in curves.exclude(level="district")
        },
    )


FIRST = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
EVENTS = ("start", "finish", "withdraw", "return", "move", "regrade", "invite")


def apply_event(event, dice, administration, schools):
    people = list(administration.respondents.all())
    if event == "invite" or not people:
        invite(administration, dice.choice(schools), 1, grade=dice.choice(("", "07")))
        return
    person = dice.choice(people)
    moment = FIRST + timedelta(seconds=dice.randrange(86400 * 3))
    if event == "start":
        person.started_at = person.started_at or moment
    elif event == "finish":
        person.started_at = person.started_at or moment
        person.completed_at = person.completed_at or person.started_at + timedelta(
            seconds=dice.randrange(7200)
        )
    elif event == "withdraw":
        person.withdrawn_at = moment
    elif event == "return":
        person.withdrawn_at = None
    elif event == "move":
        person.school = dice.choice(schools)
    else:
        person.grade = dice.choice(("", "07", "08"))
    person.save()


@settings(
    max_examples=25,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
@given(
    batches=st.lists(
        st.lists(st.sampled_from(EVENTS), min_size=1, max_size=25),
        min_size=1,
        max_size=3,
    ),
    seed=st.integers(0, 10_000),
)
def test_figures_equal_a_slow_count_after_any_events(staff, students, batches, seed):
    dice = random.Random(seed)
    schools = list(School.objects.order_by("pk"))
    for batch in batches:
        for event in batch:
            apply_event(event, dice, students, schools)
        roll_up()
        assert stored(students) == counted_one_by_one(students)
        assert roll_up().rows_changed == 0


def test_the_scheduler_rolls_up_once_a_minute(settings):
    from celery import current_app

    entry = settings.CELERY_BEAT_SCHEDULE["roll up response rates"]
    assert entry["schedule"] == 60
    current_app.loader.import_default_modules()
    assert entry["task"] in current_app.tasks


def test_the_embedded_worker_rolls_up(staff, students):
    from survey.management.commands.work import Schedule

    invite(students, staff.lincoln, 3, finished=2)
    due_now = {task.name: task for task in Schedule().due()}
    due_now["reports.tasks.roll_up_rates"]()
    assert figures(students)["Lincoln"] == (3, 2, 2)
