"""Response rates where anyone can take part: a school's count is the denominator."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from itertools import count

import pytest
from django.test import Client
from django.utils import timezone

from accounts.permissions import Permissions
from accounts.tests.logging_in import log_in
from reports.models import Curve, GradeRate, SchoolRate
from reports.rates import rollup_query, visible_rates
from reports.rates.rollup import due, roll_up, supplied_counts
from reports.rates.thresholds import ThresholdProgress, needed
from reports.tests.conftest import invite
from survey.fieldwork.open_codes.codes import create_open_code
from survey.fieldwork.school_counts.changes import supply_count
from survey.models import Respondent, Response, SchoolCount, Wave
from survey.tests.open_codes.cast import open_to_parents

pytestmark = pytest.mark.django_db
_numbers = count(1)


@pytest.fixture
def parents(staff):
    return open_to_parents()


def begin(parents, school, people, *, answered=0, finished=0, at=None):
    """Let people begin with an open code; the first of them answer and finish."""
    code = parents.open_codes.filter(school=school).first() or create_open_code(
        administration=parents, school=school, by="a test"
    )
    moment = at or timezone.now()
    begun = Respondent.objects.bulk_create(
        Respondent(
            administration=parents,
            school=school,
            open_code=code,
            code_digest=f"parent {next(_numbers)}".encode(),
            code_key_version=1,
            started_at=moment,
            completed_at=moment if number < finished else None,
        )
        for number in range(people)
    )
    Response.objects.bulk_create(
        Response(
            administration_id=parents.pk,
            respondent_id=person.pk,
            item_id=item,
            state="s",
            revision=1,
            saved_at=moment,
        )
        for person in begun[: max(answered, finished)]
        for item in (1, 2)
    )


def supply(parents, school, number, unit="students"):
    current = SchoolCount.objects.current().filter(
        administration=parents, school=school
    )
    supply_count(
        administration=parents,
        school=school,
        unit=unit,
        count=number,
        seen=current.values_list("pk", flat=True).first(),
        by="a test",
    )


def rate_of(parents, school) -> SchoolRate:
    return SchoolRate.objects.get(administration=parents, school=school)


def visible_text(response) -> str:
    assert response.status_code == 200, response.status_code
    body = response.content.decode()
    bare = re.sub(r"<script.*?</script>|<[^>]+>", " ", body, flags=re.S)
    return re.sub(r"\s+", " ", bare)


def rows_of(response) -> dict[str, dict[str, str]]:
    """Return the lines of a CSV file by school, or else by district."""
    text = response.content.decode("utf-8-sig")
    rows = csv.DictReader(io.StringIO(text))
    return {row.get("school") or row["district"]: row for row in rows}


# Counting ---------------------------------------------------------------------


@pytest.mark.sqlite
def test_starts_without_an_answer_are_in_no_figure(staff, parents):
    begin(parents, staff.lincoln, 9, answered=6, finished=4)
    supply(parents, staff.lincoln, 50)
    roll_up()

    rate = rate_of(parents, staff.lincoln)
    assert (rate.eligible, rate.unit) == (50, "students")
    assert (rate.started, rate.finished, rate.finished_today) == (6, 4, 4)
    assert not GradeRate.objects.filter(administration=parents).exists()
    curves = Curve.objects.filter(administration=parents)
    for curve in curves:
        [[_, started, finished]] = eval(curve.hours)  # noqa: S307
        assert (started, finished) == (6, 4)
    assert curves.count() == 3


@pytest.mark.sqlite
def test_starts_without_an_answer_set_no_time_of_the_last_start(staff, parents):
    early = timezone.now() - timedelta(hours=9)
    begin(parents, staff.lincoln, 1, answered=1, at=early)
    begin(parents, staff.lincoln, 1)
    roll_up()
    assert rate_of(parents, staff.lincoln).last_started_at == early


@pytest.mark.sqlite
def test_withdrawn_people_do_not_count(staff, parents):
    begin(parents, staff.lincoln, 3, finished=3)
    Respondent.objects.filter(pk=Respondent.objects.first().pk).update(
        withdrawn_at=timezone.now()
    )
    roll_up()
    assert rate_of(parents, staff.lincoln).finished == 2


@pytest.mark.sqlite
def test_all_administrations_are_counted_by_one_statement(
    staff, parents, django_assert_num_queries
):
    more = [
        open_to_parents(name=f"parents-{n}", published=parents.published)
        for n in range(2)
    ]
    for administration in (parents, *more):
        begin(administration, staff.lincoln, 4, answered=3)
        supply(administration, staff.lincoln, 50)
    postgresql = rollup_query.connection.vendor == "postgresql"
    # PostgreSQL: limits, time and savepoint. Both: waiting changes, opt-outs, and on
    # SQLite the schools' districts.
    with django_assert_num_queries(7 if postgresql else 4):
        rollup_query.count([parents, *more])
    with django_assert_num_queries(1):
        assert len(supplied_counts([parents, *more])) == 3
    parents.denominator = "roster"
    with django_assert_num_queries(0):
        assert supplied_counts([parents]) == {}


def test_a_new_count_of_a_closed_administration_is_counted_soon(staff, parents):
    now = timezone.now()
    type(parents).objects.filter(pk=parents.pk).update(
        opens_at=now - timedelta(days=9), closes_at=now - timedelta(days=2)
    )
    parents.refresh_from_db()
    begin(parents, staff.lincoln, 5, finished=5)
    roll_up([parents])
    assert due() == []
    supply(parents, staff.lincoln, 20)
    assert due() == [parents]
    roll_up()
    assert rate_of(parents, staff.lincoln).eligible == 20
    assert due() == []


# Thresholds -------------------------------------------------------------------


@pytest.mark.sqlite
def test_parents_need_a_fifth_of_the_students_that_the_school_counted(staff, parents):
    supply(parents, staff.lincoln, 251)
    begin(parents, staff.lincoln, 50, finished=50)
    roll_up()
    rate = rate_of(parents, staff.lincoln)
    assert (rate.students, rate.needed) == (251, 51)
    page = log_in(Client(), staff.dana).get("/console/rates/schools/")
    assert "1 more parent to reach 20 % of the 251 students" in visible_text(page)


@pytest.mark.sqlite
def test_families_are_the_rate_and_the_wave_knows_the_students(staff, parents):
    wave = Wave.objects.create(name="Spring")
    type(parents).objects.update(wave=wave)
    students = open_to_parents(
        name="students",
        role="student",
        denominator="roster",
        published=parents.published,
        wave=wave,
    )
    invite(students, staff.lincoln, 100)
    supply(parents, staff.lincoln, 60, "families")
    supply(parents, staff.washington, 60, "families")
    begin(parents, staff.lincoln, 20, finished=20)
    begin(parents, staff.washington, 20, finished=20)
    roll_up()
    lincoln, washington = (
        rate_of(parents, school) for school in (staff.lincoln, staff.washington)
    )
    assert (lincoln.eligible, lincoln.students, lincoln.needed) == (60, 100, 20)
    assert (washington.students, washington.needed) == (0, None)
    text = visible_text(
        log_in(Client(), staff.dana).get(
            f"/console/rates/schools/?administration={parents.pk}"
        )
    )
    assert "60 families 20 20 33 % Threshold reached" in text
    assert "Threshold unknown: supply the number of students" in text


@pytest.mark.parametrize(
    ("eligible", "students", "least"),
    [(0, None, None), (0, 100, 20), (10, 100, 20), (60, 100, 20), (60, None, None)],
)
def test_a_low_count_never_makes_the_parents_threshold_impossible(
    eligible, students, least
):
    assert needed("parent", eligible, students, is_count=True) == least
    # On a roster, nobody else can answer.
    if least and eligible < least:
        assert needed("parent", eligible, students) is None


def test_without_any_number_the_words_ask_for_one():
    assert ThresholdProgress("parent", 0, 3, None, True).words == "No count yet"
    assert ThresholdProgress("student", 0, 3, None, True).words == "No count yet"
    small = ThresholdProgress("student", 8, 3, None, True).words
    assert small == "Too few for a report: the count is 8, and 10 have to finish"


# Screens and files --------------------------------------------------------------


def test_schools_without_a_count_have_no_rate_and_spoil_no_total(staff, parents):
    begin(parents, staff.lincoln, 30, finished=20)
    begin(parents, staff.washington, 15, finished=12)
    supply(parents, staff.lincoln, 80)
    roll_up()
    dana = log_in(Client(), staff.dana)
    where = f"/console/rates/districts/{staff.riverside.pk}/"
    text = visible_text(dana.get(where))
    assert "20 of the 80 that schools counted; 12 more at schools without a" in text
    assert "Lincoln 80 students 20 20 25 % Threshold reached" in text
    assert "Washington No count yet 12 12 – No count yet" in text
    assert "0 %" not in re.sub(r"\d0 %", "", text)
    assert "without a count" in text and "without a roster" not in text

    rows = rows_of(dana.get(f"{where}schools.csv"))
    lincoln, washington = rows["Lincoln"], rows["Washington"]
    shown = ("eligible", "started", "finished", "rate (%)", "denominator")
    assert [lincoln[name] for name in shown] == ["80", "20", "20", "25", "students"]
    assert [washington[name] for name in shown] == ["", "12", "12", "", "no count yet"]

    state = log_in(Client(), staff.state)
    text = visible_text(state.get("/console/rates/"))
    assert "Riverside 80 32 32 25 %" in text
    assert "Lakeside No count yet 0 0 –" in text
    rows = rows_of(state.get("/console/rates/districts.csv"))
    assert rows["Riverside"]["rate (%)"] == "25"
    assert rows["Lakeside"]["eligible"] == rows["Lakeside"]["rate (%)"] == ""
    assert rows["Riverside"]["schools without a roster or count"] == "1"


def home_words(user):
    return visible_text(log_in(Client(), user).get("/console/"))


def test_the_home_page_says_which_numbers_make_the_rate(staff, parents):
    begin(parents, staff.lincoln, 30, finished=20)
    begin(parents, staff.washington, 15, finished=12)
    supply(parents, staff.lincoln, 80)
    roll_up()
    assert "20 parents finished, for 80 students." in home_words(staff.chen)
    where = f"/console/rates/schools/{staff.lincoln.pk}/"
    text = visible_text(log_in(Client(), staff.chen).get(where))
    assert "20 parents finished, for 80 students. 20 started." in text
    text = home_words(staff.dana)
    assert "25 % 20 of the 80 that schools counted; 12 more at schools" in text
    assert "1 school has no count, and is not in the rate" in text
    supply(parents, staff.lincoln, 60, "families")
    roll_up()
    assert "20 of 60 families finished." in home_words(staff.chen)


@pytest.mark.sqlite
def test_schools_without_a_count_can_be_found(staff, parents):
    supply(parents, staff.lincoln, 80)
    roll_up()
    dana = log_in(Client(), staff.dana)
    where = f"/console/rates/districts/{staff.riverside.pk}/"
    page = dana.get(where).content.decode()
    assert '<option value="nobody">No count yet</option>' in page
    lines = dana.get(f"{where}?state=nobody").context["lines"]
    assert [line.name for line in lines] == ["Washington"]


def test_the_page_of_a_school_without_a_count_shows_days_without_a_rate(staff, parents):
    begin(parents, staff.lincoln, 15, finished=12)
    roll_up()
    page = log_in(Client(), staff.dana).get(
        f"/console/rates/schools/{staff.lincoln.pk}/"
    )
    text = visible_text(page)
    assert "12 finished, 12 started. No count yet." in text
    assert {point.rate for point in page.context["days"]} == {None}
    assert {point.rate for point in page.context["hours"]} == {None}
    assert sum(point.finished for point in page.context["days"]) == 12


def test_more_answers_than_the_count_are_shown_with_a_hint(staff, parents):
    supply(parents, staff.lincoln, 20, "families")
    begin(parents, staff.lincoln, 24, finished=24)
    roll_up()
    dana = log_in(Client(), staff.dana)
    hint = "More answers than 20 families: the count may be too low"
    board = dana.get(f"/console/rates/districts/{staff.riverside.pk}/")
    assert "20 families 24 24 120 %" in visible_text(board)
    assert hint in visible_text(board)
    assert "some counts may be too low" in visible_text(board)
    school = dana.get(f"/console/rates/schools/{staff.lincoln.pk}/")
    assert hint in visible_text(school)
    assert max(point.rate or 0 for point in school.context["days"]) == 120


def test_everybody_may_have_started_and_the_school_can_still_be_quiet(staff, parents):
    supply(parents, staff.lincoln, 20)
    begin(parents, staff.lincoln, 20, finished=20, at=parents.opens_at)
    roll_up()
    permissions = Permissions(staff.dana)
    rows = visible_rates.rates_for(permissions, parents)
    assert rows.get(school=staff.lincoln).quiet_order == 0


# Confidentiality ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "started", "hidden"),
    [
        (None, 0, True),
        (None, 9, True),
        (None, 10, False),
        (9, 9, True),
        # More have answered than were counted: the school is not small.
        (9, 10, False),
        (10, 1, False),
    ],
)
def test_small_schools_are_hidden_from_coordinators(
    staff, parents, number, started, hidden
):
    begin(parents, staff.lincoln, started, answered=started)
    if number:
        supply(parents, staff.lincoln, number)
    roll_up()
    for user, is_hidden in ((staff.chen, hidden), (staff.dana, False)):
        permissions = Permissions(user)
        [line] = visible_rates.lines_of_school(permissions, staff.lincoln, [parents])
        [row] = visible_rates.rates_for(permissions, parents).filter(
            school=staff.lincoln
        )
        assert visible_rates.school_line(row, parents) == line
        assert line.is_hidden == is_hidden
    page = log_in(Client(), staff.chen).get(
        f"/console/rates/schools/{staff.lincoln.pk}/"
    )
    if hidden:
        words = "* finished, * started."
        if number:
            words = f"* parents finished, for {number} students. * started."
        assert words in visible_text(page)
        assert page.context["days"] is None
        text = log_in(Client(), staff.chen).get(
            f"/console/rates/schools/{staff.lincoln.pk}/school.csv"
        )
        assert rows_of(text)["Lincoln"]["finished"] == "*"


def test_a_larger_count_does_not_uncover_a_small_school(staff, parents):
    """Otherwise a coordinator would raise the count to see who has finished."""
    supply(parents, staff.lincoln, 4)
    begin(parents, staff.lincoln, 3, finished=1)
    roll_up()
    supply(parents, staff.lincoln, 400)
    roll_up()
    assert rate_of(parents, staff.lincoln).eligible == 400
    permissions = Permissions(staff.chen)
    [line] = visible_rates.lines_of_school(permissions, staff.lincoln, [parents])
    assert line.is_hidden
    # People who may see the answers see the figures.
    permissions = Permissions(staff.dana)
    [line] = visible_rates.lines_of_school(permissions, staff.lincoln, [parents])
    assert line.finished == 1


@pytest.mark.sqlite
def test_hours_of_few_people_wait_for_later_ones(staff, parents):
    supply(parents, staff.lincoln, 40)
    noon = timezone.now().replace(minute=0) - timedelta(days=1)
    begin(parents, staff.lincoln, 3, finished=3, at=noon)
    begin(parents, staff.lincoln, 12, finished=9, at=noon + timedelta(hours=2))
    roll_up()
    where = f"/console/rates/schools/{staff.lincoln.pk}/"
    seen = {}
    for user in (staff.chen, staff.dana):
        page = log_in(Client(), user).get(where)
        seen[user] = [point.finished for point in page.context["hours"]]
    assert seen[staff.chen] != seen[staff.dana]
    assert sum(seen[staff.chen]) in (0, 12)
    assert min([hour for hour in seen[staff.chen] if hour], default=10) >= 10


def test_a_schools_page_marks_that_unusually_many_began_at_once(staff, parents):
    supply(parents, staff.lincoln, 240)
    at = timezone.now().replace(minute=5) - timedelta(hours=3)
    begin(parents, staff.lincoln, 59, answered=59, finished=50, at=at)
    begin(parents, staff.washington, 300, answered=300, finished=300, at=at)
    roll_up()
    where = f"/console/rates/schools/{staff.lincoln.pk}/"
    dana = log_in(Client(), staff.dana)
    assert "began within ten minutes" not in dana.get(where).content.decode()
    # A quarter of the students.
    begin(parents, staff.lincoln, 1, at=at)
    shown = dana.get(where).content.decode()
    assert "60 people began within ten minutes" in shown
    assert "59 of them have answers, and 50 finished" in shown
    coordinator = log_in(Client(), staff.chen).get(where)
    assert "began within ten minutes" not in coordinator.content.decode()
